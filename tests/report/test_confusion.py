from collections import Counter

import numpy as np
import pytest
from small_run import ROWS, predictions_of

from igcd.metrics.scorecard import scorecard
from igcd.report.confusion import (
    accuracy_on_first_categories,
    categories_of_group,
    confusion_table,
    cross,
    known_and_novel,
    missed,
    most_confused,
)

KNOWN = {"0": "owl", "1": "fox"}


def test_known_and_novel_on_rows_to_count_by_hand():
    counts = known_and_novel(predictions_of(ROWS), stage=1, split="test", known_clusters=KNOWN)
    assert (counts.known_known, counts.known_novel) == (4, 1)
    assert (counts.novel_known, counts.novel_novel) == (2, 3)
    assert counts.no_prediction == 0


def test_every_image_is_counted_once():
    rng = np.random.default_rng(0)
    rows = [(1, "test", f"c{rng.integers(5)}", str(rng.integers(-1, 6)), "New") for _ in range(200)]
    rows = [(stage, split, category, cluster, "New") for stage, split, category, cluster, _ in rows]
    counts = known_and_novel(
        predictions_of(rows), stage=1, split="test", known_clusters={"0": "c0", "1": "c1", "9": "c2"}
    )
    assert counts.no_prediction == sum(row[3] == "-1" for row in rows) > 0
    assert counts.known_known == sum(row[2] in ("c0", "c1", "c2") and row[3] in ("0", "1") for row in rows)
    total = counts.known_known + counts.known_novel + counts.novel_known + counts.novel_novel + counts.no_prediction
    assert total == len(rows)


def test_most_confused_on_rows_to_count_by_hand():
    pairs = most_confused(cross(predictions_of(ROWS), stage=1, split="test"), n_pairs=10)
    assert [(pair.category, pair.taken_for, pair.n_images, pair.n_of_category) for pair in pairs] == [
        ("moth", "fox", 1, 1),
        ("newt", "fox", 1, 4),
        ("owl", "newt", 1, 3),
    ]
    assert most_confused(cross(predictions_of(ROWS), stage=1, split="test"), n_pairs=1) == pairs[:1]


def test_a_cluster_that_stands_for_no_category():
    rows = [(0, "test", "owl", "3", "Old")] * 2 + [(0, "test", "owl", "4", "Old")]
    (pair,) = most_confused(cross(predictions_of(rows), stage=0, split="test"), n_pairs=10)
    assert (pair.category, pair.taken_for, pair.cluster, pair.n_images) == ("owl", None, "4", 1)


def random_stream(seed):
    rng = np.random.default_rng(seed)
    rows = []
    for stage in range(3):
        for category in range(4 + stage):
            group = "Old" if category < 4 else "New"
            for _ in range(int(rng.integers(1, 9))):
                cluster = category if rng.random() < 0.7 - 0.2 * stage else int(rng.integers(6))
                rows.append((stage, "test", f"c{category}", str(cluster), group))
    return predictions_of(rows)


@pytest.mark.parametrize("seed", range(5))
def test_the_errors_of_all_pairs_are_what_accuracy_lacks(seed):
    predictions = random_stream(seed)
    n_images = Counter(predictions.stage.tolist())[2]
    pairs = most_confused(cross(predictions, stage=2, split="test"), n_pairs=1_000)
    right = 100 * (1 - sum(pair.n_images for pair in pairs) / n_images)
    assert right == pytest.approx(scorecard(predictions).to_json()["M_d"])


@pytest.mark.parametrize("seed", range(5))
def test_the_confusion_table_counts_as_a_double_loop_does(seed):
    predictions = random_stream(seed)
    crossing = cross(predictions, stage=2, split="test")
    table = confusion_table(crossing, n_rows=3, n_columns=4)
    now = [row for row in range(len(predictions)) if predictions.stage[row] == 2]
    for at, category in enumerate(table.categories.tolist()):
        name = crossing.categories[category]
        own = [predictions.cluster[row] for row in now if predictions.category[row] == name]
        shown = [crossing.clusters[cluster] for cluster in table.clusters.tolist()]
        assert table.counts[at].tolist() == [own.count(cluster) for cluster in shown]
        assert table.counts[at].sum() + table.n_elsewhere[at] == len(own) == crossing.n_images[category]
    wrong = crossing.n_images - crossing.n_right
    assert sorted(wrong[table.categories]) == sorted(wrong)[-len(table.categories) :]
    for category in table.categories.tolist():  # its own cluster has a column
        assert not (crossing.category_of == category).any() or (crossing.category_of[table.clusters] == category).any()
    assert table.is_right.sum(axis=1).max() <= 1


@pytest.mark.parametrize("seed", range(5))
def test_the_largest_fall_of_the_curve_is_the_forgetting_of_the_scores(seed):
    predictions = random_stream(seed)
    curve = accuracy_on_first_categories(predictions, split="test")
    assert curve[0] - min(curve[1], curve[2]) == pytest.approx(scorecard(predictions).to_json()["M_f"])


def test_new_categories_and_those_missed():
    new = categories_of_group(predictions_of(ROWS), stage=1, group="New", split="unlabeled")
    assert new == {"newt", "moth"}
    assert missed(new, ["newt", None, "owl"]) == ["moth"]
