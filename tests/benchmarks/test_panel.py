# The panel of benchmarks/panel.py, on five points one can draw and on one small mixture
import doctest
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import numpy as np
import panel_tasks
import pytest
import torch
from panel import ResultFile, estimator_key, progress_line, run_set
from panel_baselines import BaselineFile
from panel_report import figure, main_baseline, markdown, verdicts
from panel_sets import LARGE_SETS, SETS, FeatureFile, MissingDataError, Mixture, StreamFeatures, choose, panel_recipes
from panel_tasks import (
    SCENES,
    Task,
    accuracies,
    calibration_error,
    confidences,
    is_right,
    kept_share,
    make_task,
    score_discoverer,
)

from igcd.data.sources import load_source
from igcd.errors import IgcdError

SMALL = Mixture(8, 12, 16, separation=4.0, width=8)


def five_rows(labels=(0, -1, -1, -1, -1), truth=(0, 0, 0, 1, 1)):
    """One labeled row and two unlabeled ones of the known category 0, two rows of the new category 1."""
    x = np.arange(10, dtype=np.float32).reshape(5, 2)
    return Task("five", "many", 0, x, np.array(labels), np.zeros(5, dtype=bool), np.array(truth), n_known=1)


class Oracle:
    """Says what the truth is, with certainty; new categories get the numbers from 1000 on."""

    def __init__(self, task):
        self._names = np.where(task.is_new, 1000 + task.truth, task.truth)
        self._name_of = {row.tobytes(): name for row, name in zip(task.x, self._names.tolist(), strict=True)}
        self._seen = set()

    def fit(self, x, y):
        return self.partial_fit(x, y)

    def partial_fit(self, x, y):
        assert len(x) == len(y)
        self.labels_ = self.predict(x)
        self._seen |= set(self.labels_.tolist()) | set(y[y >= 0].tolist())
        return self

    @property
    def classes_(self):
        return np.array(sorted(self._seen))

    @property
    def n_novel_(self):
        return int((self.classes_ >= 1000).sum())

    def predict(self, x):
        return np.array([self._name_of[row.tobytes()] for row in x])

    def predict_proba(self, x):
        return (self.predict(x)[:, None] == self.classes_).astype(float)


def test_the_examples_in_the_docstrings():
    assert doctest.testmod(panel_tasks, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0


def test_accuracies_of_five_rows():
    task = five_rows()
    assert accuracies(np.array([0, 0, 7, 7]), task) == {"all": 100.0, "old": 100.0, "new": 100.0}
    # All in one category, which is matched to one of two equally large ones
    assert accuracies(np.array([0, 0, 0, 0]), task)["all"] == 50.0
    # The second half of a category that was split is wrong
    assert accuracies(np.array([0, 0, 7, 8]), task) == {"all": 75.0, "old": 100.0, "new": 50.0}
    # Noise is wrong, also where it would fit
    assert accuracies(np.array([0, 0, -1, -1]), task) == {"all": 50.0, "old": 100.0, "new": 0.0}


def test_names_of_categories_make_no_difference():
    rng = np.random.default_rng(0)
    predicted, truth, names = rng.integers(6, size=80), rng.integers(5, size=80), rng.permutation(1000)[:6]
    assert (is_right(names[predicted], truth) == is_right(predicted, truth)).all()


def slow_calibration_error(confidence, right, n_bins):
    total = 0.0
    for number in range(n_bins):
        low, high = number / n_bins, (number + 1) / n_bins
        rows = [i for i, c in enumerate(confidence) if low < c <= high or (number == 0 and c == 0)]
        if rows:
            gap = np.mean([right[i] for i in rows]) - np.mean([confidence[i] for i in rows])
            total += len(rows) / len(confidence) * abs(gap)
    return total


def test_calibration_error_is_that_of_a_plain_loop():
    rng = np.random.default_rng(1)
    confidence = np.concatenate([rng.random(200), [0.0, 1.0, 0.5]])
    right = rng.random(203) < confidence**2
    for n_bins in (1, 4, 16):
        assert calibration_error(confidence, right, n_bins=n_bins) == pytest.approx(
            slow_calibration_error(confidence, right, n_bins)
        )


def test_calibration_error_of_the_certain():
    certain = np.ones(4)
    assert calibration_error(certain, np.ones(4, dtype=bool)) == 0
    assert calibration_error(certain, np.zeros(4, dtype=bool)) == 1
    assert calibration_error(certain[:0], np.zeros(0, dtype=bool)) == 0


def test_confidence_is_the_probability_of_the_predicted_category():
    probs = np.array([[0.7, 0.3], [0.6, 0.4], [0.5, 0.5]])
    assert confidences(probs, np.array([3, 1000]), np.array([3, 1000, -1])).tolist() == [0.7, 0.4, 0.0]


def test_rows_that_move_into_an_opened_category_do_not_count_as_lost():
    before = np.array([1, 1, 2, 2])
    assert kept_share(before, before, opened=np.array([])) == 100
    assert kept_share(before, np.array([1, 9, 2, 2]), opened=np.array([9])) == 100
    assert kept_share(before, np.array([1, 2, 2, 2]), opened=np.array([9])) == 75
    assert kept_share(before, np.full(4, 9), opened=np.array([9])) is None


def test_scenes_draw_what_the_experiments_drew():
    features = SMALL.load("small")
    order = np.random.default_rng(3).permutation(8)
    many = make_task(features, "many", 3)
    assert (order[many.truth] == features.y).all()
    assert set(features.y[~many.is_unlabeled]) == set(order[:4].tolist())
    sizes = np.bincount(features.y)
    assert np.bincount(many.labels[~many.is_unlabeled]).tolist() == [sizes[c] // 2 for c in order[:4]]


@pytest.mark.parametrize("scene", SCENES)
def test_laws_of_scenes(scene):
    task = make_task(SMALL.load("small"), scene, 0)
    labeled = ~task.is_unlabeled
    assert (task.labels[labeled] == task.truth[labeled]).all()
    assert not task.is_new[labeled].any()
    assert not task.is_second[labeled].any()
    n_labels = {"few": 3, "one": 1, "none": 0}.get(scene)
    if n_labels is not None:
        assert labeled.sum() == 4 * n_labels
    assert task.n_new == {"none": 8, "all_known": 0}.get(scene, 4)
    if scene == "next":
        late = set(task.truth[task.is_second]) - set(task.truth[~task.is_second])
        assert len(late) == 2  # half of the new categories come with the second batch only
    else:
        assert not task.is_second.any()


@pytest.mark.parametrize("scene", SCENES)
def test_who_knows_the_truth_has_perfect_scores(scene):
    task = make_task(SMALL.load("small"), scene, 0)
    scores = score_discoverer(task, lambda: Oracle(task))
    assert scores["all"] == 100
    assert scores["found"] == scores["true"] == task.n_new
    assert scores["ece"] == 0
    assert scores["unsure"] == 0
    assert scores["kept"] == scores["unchanged"] == (100 if scene == "next" else None)
    assert scores["known_only"] == (None if scene == "none" else 100)
    assert scores["in_new"] == {"all_known": 0, "none": 100}.get(scene, scores["in_new"])


@pytest.fixture(scope="module")
def small_rows(tmp_path_factory):
    out = tmp_path_factory.mktemp("panel")
    results, baselines = ResultFile(out / "results.jsonl", fresh=False), BaselineFile(out / "baselines.json")
    rows = list(run_set(SMALL.load("small"), list(SCENES), [0], results, baselines, estimator=estimator_key()))
    return out, rows


def test_a_small_mixture_goes_through_every_scene(small_rows):
    _, rows = small_rows
    assert [row["scene"] for row in rows] == list(SCENES)
    for row in rows:
        assert "error" not in row, row
        assert row["ours"]["all"] > 60, row["scene"]  # a guess has 100 / categories
        assert 0 <= row["ours"]["ece"] < 0.5
        assert main_baseline(row) > 50, row["scene"]
        assert row["baselines"]["hdbscan"]["found"] >= 0
        assert "FAILED" not in progress_line(row)
    assert rows[0]["baselines"]["logistic_regression"]["known_only"] > 90


def test_finished_tasks_are_not_run_again(small_rows):
    out, rows = small_rows
    with (out / "results.jsonl").open("a") as file:
        file.write('{"set": "cut off')
    asked = []

    def fails():
        asked.append(1)
        raise ValueError("not now")

    def again(estimator, fresh=False):
        results, baselines = ResultFile(out / "results.jsonl", fresh=fresh), BaselineFile(out / "baselines.json")
        return list(
            run_set(SMALL.load("small"), list(SCENES), [0], results, baselines, estimator=estimator, make=fails)
        )

    assert again(estimator_key()) == rows
    assert not asked
    failed = again("another estimator")
    assert [row["error"] for row in failed] == ["ValueError: not now"] * len(SCENES)
    assert again(estimator_key(), fresh=True)[0]["error"]
    assert again(estimator_key()) == rows  # failures are not kept


def test_tables_verdicts_and_figure(small_rows):
    _, rows = small_rows
    text = markdown(rows)
    assert all(f"## {scene}" in text for scene in SCENES)
    ET.fromstring(figure(rows))
    ET.fromstring(figure([]))
    assert markdown([]).startswith("# Panel")


def row_of(scene, own, kmeans, *, found=10, true=10, ece=0.0, kept=None):
    ours = {"all": own, "found": found, "true": true, "ece": ece, "kept": kept}
    return {"set": "made up", "scene": scene, "seed": 0, "ours": ours, "baselines": {"kmeans": {"all": kmeans}}}


def test_bars_are_met_on_their_edge_and_missed_below():
    rows = [row_of("many", 60.0, 50.0), row_of("next", 60.0, 50.0, kept=97.0), row_of("few", 55.0, 50.0)]
    rows += [row_of("none", 52.0, 50.0, found=23, true=20, ece=0.2)]
    assert [verdict.is_met for verdict in verdicts(rows)] == [True] * 8
    rows = [
        row_of("many", 59.9, 50.0),
        row_of("next", 48.9, 50.0, found=5, kept=96.9, ece=0.2),
        row_of("few", 54.9, 50),
    ]
    rows += [row_of("none", 51.9, 50.0, found=5), row_of("one", 51.9, 50.0, found=5)]
    missed = [False] * 8
    missed[6] = True  # a mean ECE of 0.04
    assert [verdict.is_met for verdict in verdicts(rows)] == missed
    assert [verdict.is_met for verdict in verdicts([])] == [None] * 8


def test_a_failed_task_is_a_missed_bar():
    failed = {"set": "made up", "scene": "many", "seed": 0, "error": "ValueError: no", "baselines": {}}
    assert verdicts([failed])[-1].is_met is False
    assert "1 failed" in markdown([failed])


def test_mixtures_are_the_same_every_time():
    for name, recipe in SETS.items():
        if isinstance(recipe, Mixture):
            features = recipe.load(name)
            assert features.key == recipe.load(name).key
            assert np.isfinite(features.x).all()
            sizes = np.bincount(features.y)
            assert len(sizes) == recipe.n_categories
            assert recipe.smallest <= sizes.min() <= sizes.max() <= recipe.largest


def test_sets_that_cannot_be_made(tmp_path):
    with pytest.raises(MissingDataError, match=r"cifar100\.npz"):
        StreamFeatures("cifar100", 4, 8, "cifar100.npz").load("cifar", data=tmp_path, cache=tmp_path)
    np.savez(tmp_path / "other.npz", features=np.zeros((3, 2)))
    with pytest.raises(IgcdError, match="must hold x"):
        FeatureFile(tmp_path / "other.npz").load("other", data=tmp_path, cache=tmp_path)
    with pytest.raises(IgcdError, match="is not a set"):
        choose(SETS, ["birds"])
    assert set(choose(SETS, ["cub", "digits"])) == {"cub_60x30", "cub_150x20", "digits"}


def test_large_categories_are_run_on_request_only(tmp_path):
    usual = panel_recipes([], tmp_path)
    assert not usual.keys() & LARGE_SETS.keys()
    assert set(choose(usual | dict(LARGE_SETS), ["cifar100_5x400"])) == {"cifar100_5x400"}


class RecordingEncoder:
    """Keeps the names of the images it was shown; a feature is the image's mean color."""

    def __init__(self):
        self.image_ids = []
        self.backbone = SimpleNamespace(tail=None, n_features=3)

    def plain_views(self, images):
        self.image_ids += images.ids
        pixels = [images.pixels(idx).mean(axis=(0, 1)) for idx in range(len(images))]
        return SimpleNamespace(usable_idx=np.arange(1, len(images)), features=torch.tensor(np.array(pixels[1:])))


def test_features_of_a_stream_are_of_training_images_and_computed_once(tmp_path, monkeypatch):
    encoder = RecordingEncoder()
    monkeypatch.setattr("igcd.assembly.build_encoder", lambda *_, **__: encoder)
    monkeypatch.setattr("igcd.encoders.encoder.encode", lambda views, *_, **__: views.features)
    options = (("n_species", 12), ("n_images", 60), ("n_test_per_species", 3))
    recipe = StreamFeatures("fieldguide", 10, 4, options=options)
    first = recipe.load("guide", data=tmp_path, cache=tmp_path)
    dataset = load_source("fieldguide", **dict(options))
    train_ids = {image_id for image_id, is_test in zip(dataset.images.ids, dataset.is_test, strict=True) if not is_test}
    assert set(encoder.image_ids) <= train_ids
    assert len(first.x) == len(first.y) == len(encoder.image_ids) - 1  # the first image was broken
    assert len(np.unique(first.y)) == 10
    assert np.bincount(first.y).max() <= 4

    encoder.image_ids.clear()
    assert recipe.load("guide", data=tmp_path, cache=tmp_path).key == first.key
    assert not encoder.image_ids
