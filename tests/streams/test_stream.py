"""Hidden labels are out of reach: what a method can get from a `Stage`, and what it cannot."""

import gc

import numpy as np
import pytest
from leaks import leaks, reachable
from PIL import Image
from sklearn.metrics import adjusted_mutual_info_score

from igcd.data.images import ArrayImages, BrokenImageError, FileImages
from igcd.errors import IgcdError
from igcd.streams.protocols import StreamSpec, group_of_categories, stages_by_category
from igcd.streams.randomness import generator
from igcd.streams.split import make_split
from igcd.streams.stream import SplitStream
from igcd.streams.veil import VeiledImages

N_CATEGORIES, N_EACH = 12, 14
CATEGORIES = np.repeat(np.arange(N_CATEGORIES), N_EACH)
NAMES = [f"Secretus species{code}" for code in range(N_CATEGORIES)]
IDS = [f"{NAMES[code]}/{number:03d}.png" for number, code in enumerate(CATEGORIES)]
PIXELS = np.arange(len(IDS), dtype=np.uint8)[:, None, None, None] + np.zeros((len(IDS), 4, 4, 3), dtype=np.uint8)


def make_stream(protocol, images, seed=0, secret=None):
    is_test = np.arange(len(IDS)) % N_EACH >= 10
    spec = StreamSpec(protocol=protocol, categories_per_stage=(6, 2, 2, 2) if protocol != "static" else (6, 6))
    stages = stages_by_category(CATEGORIES, is_test, NAMES, spec, generator(seed))
    split = make_split(
        name="toy",
        source="toy",
        seed=seed,
        spec={},
        stages=stages,
        groups=group_of_categories(stages, CATEGORIES),
        image_ids=IDS,
        categories=CATEGORIES,
        category_names=NAMES,
    )
    return SplitStream(split, images, secret)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    root = tmp_path_factory.mktemp("images")
    for image_id, pixels in zip(IDS, PIXELS, strict=True):
        (root / image_id).parent.mkdir(exist_ok=True)
        Image.fromarray(pixels).save(root / image_id)
    return FileImages(root, IDS)


@pytest.mark.parametrize("protocol", ["igcd-l", "igcd-u", "mi", "static"])
@pytest.mark.parametrize("kind", ["arrays", "files"])
def test_nothing_reachable_from_a_stage_names_a_hidden_category(protocol, kind, files):
    stream = make_stream(protocol, files if kind == "files" else ArrayImages(IDS, PIXELS))
    for stage, truth in stream:
        hidden = set(truth.unlabeled.categories) - set(stage.category_names)
        hidden_files = set(truth.unlabeled.image_ids) | set(truth.test.image_ids)
        things = reachable(stage)
        assert any(thing is stage.unlabeled for thing in things)  # the walk does walk
        texts = [str(thing) for thing in things if isinstance(thing, str | bytes)]
        assert not any(category in text for category in hidden for text in texts)
        assert not any(name in text for name in hidden_files for text in texts)
        n_hidden = len(truth.unlabeled.categories)
        arrays = [thing for thing in things if isinstance(thing, np.ndarray)]
        assert all(array is stage.labels or len(array) != n_hidden or not n_hidden for array in arrays)


def test_the_walk_finds_a_planted_leak(files):
    stage, truth = list(make_stream("mi", files))[1]

    def leak(names=truth.unlabeled.categories):
        return names

    assert any(thing is truth.unlabeled.categories for thing in reachable(stage, leak))
    assert any(isinstance(thing, FileImages) for thing in reachable(files.pixels))


@pytest.mark.parametrize("protocol", ["igcd-l", "mi", "static"])
def test_order_and_ids_say_nothing_about_the_category(protocol):
    """Neither the position nor the sorted id predicts the category better than a shuffled one does."""
    images = ArrayImages(IDS, PIXELS)
    scores = []
    for seed in range(8):
        for stage, truth in make_stream(protocol, images, seed):
            categories = np.asarray(truth.unlabeled.categories)
            if len(categories) < 30:
                continue
            for order in (np.arange(len(categories)), np.argsort(stage.unlabeled.ids)):
                blocks = np.arange(len(categories)) // (len(categories) // 6)
                scores.append(adjusted_mutual_info_score(categories[order], blocks))
    assert len(scores) >= 16
    assert abs(np.mean(scores)) < 0.05  # sorted by category it is above 0.8


def test_labels_are_dense_in_the_order_of_arrival():
    for stage, truth in make_stream("igcd-l", ArrayImages(IDS, PIXELS)):
        assert set(stage.labels.tolist()) <= set(range(len(stage.category_names)))
        assert len(stage.category_names) == len(set(stage.category_names))
        assert len(stage.category_names) == [6, 6, 8, 10][truth.index]


def test_labels_and_truth_are_aligned_with_the_pixels():
    value_of = dict(zip(IDS, PIXELS[:, 0, 0, 0].tolist(), strict=True))
    name_of = {value: NAMES[code] for value, code in zip(value_of.values(), CATEGORIES.tolist(), strict=True)}
    for stage, truth in make_stream("igcd-l", ArrayImages(IDS, PIXELS)):
        for position, label in enumerate(stage.labels):
            assert name_of[int(stage.labeled.pixels(position)[0, 0, 0])] == stage.category_names[label]
        for images, known in ((stage.unlabeled, truth.unlabeled), (truth.test_images, truth.test)):
            assert len(images) == len(known.image_ids) == len(known.groups)
            for position, image_id in enumerate(known.image_ids):
                value = int(images.pixels(position)[0, 0, 0])
                assert value == value_of[image_id] and name_of[value] == known.categories[position]


def test_an_image_keeps_its_id_and_key_from_stage_to_stage():
    stages = [stage for stage, _ in make_stream("igcd-l", ArrayImages(IDS, PIXELS))]
    key_then = {image_id: stages[1].unlabeled.key(i) for i, image_id in enumerate(stages[1].unlabeled.ids)}
    key_now = {image_id: stages[2].labeled.key(i) for i, image_id in enumerate(stages[2].labeled.ids)}
    assert key_then == key_now and len(key_now) == 20


def test_ids_are_those_of_the_secret():
    """With the secret of a run they come back when it is resumed; without it nobody can work them out."""
    images = ArrayImages(IDS, PIXELS)
    first, again, other = (make_stream("mi", images, secret=secret) for secret in (b"one", b"one", b"two"))
    ids, same, new = (
        [image_id for stage, _ in stream for image_id in stage.unlabeled.ids] for stream in (first, again, other)
    )
    assert ids == same and not set(ids) & set(new)
    drawn = [next(iter(make_stream("mi", images)))[0].labeled.ids for _ in range(2)]
    assert not set(drawn[0]) & set(drawn[1])


def test_what_is_taken_shares_no_object_with_what_it_is_taken_from():
    """The truth refers to its test images: those a method is handed must not lead back to them."""
    veiled = VeiledImages(ArrayImages(IDS, PIXELS), [3, 5], b"secret")
    taken = veiled.take([1])
    assert taken.ids == veiled.ids[1:] and taken.ids[0] is not veiled.ids[1]
    assert taken.pixels(0)[0, 0, 0] == 5 and taken.key(0) == veiled.key(1)
    assert not any(thing is veiled for thing in reachable(taken))


def test_pixels_are_copies():
    veiled = VeiledImages(ArrayImages(IDS, PIXELS), [3, 5], b"secret")
    for pixels in (
        veiled.pixels(0),
        veiled.pixels_at_least(0, 2),
        veiled.square(0, 4),
        veiled.at_size(np.array([0]), 4),
    ):
        assert pixels.base is None


def test_the_error_of_a_broken_image_leads_nowhere(tmp_path):
    (tmp_path / "Secretus species.png").write_bytes(b"no image")
    veiled = VeiledImages(FileImages(tmp_path, ["Secretus species.png"]), [0], b"secret")
    for read in (lambda: veiled.pixels(0), lambda: veiled.pixels_at_least(0, 8), lambda: veiled.square(0, 8)):
        with pytest.raises(BrokenImageError, match="not an image") as caught:
            read()
        error = caught.value
        assert error.__context__ is None and error.__cause__ is None
        held = [value for entry in caught.traceback[1:] for value in entry.frame.f_locals.values()]
        assert held and leaks(reachable(*held), hidden=["Secretus"], paths=[tmp_path]) == []
    with pytest.raises(IndexError):
        veiled.pixels(1)


def test_a_veil_lets_go_of_images_nobody_uses():
    images = ArrayImages(IDS, PIXELS)
    veiled = VeiledImages(images, [0, 1], b"secret")
    assert veiled.pixels(1)[0, 0, 0] == 1
    n_before = len(gc.get_referrers(images))
    del veiled
    gc.collect()
    assert len(gc.get_referrers(images)) == n_before - 1


def test_images_missing_from_the_data_get_a_sentence():
    with pytest.raises(IgcdError, match="not in the data"):
        make_stream("mi", ArrayImages(IDS[:100], PIXELS[:100]))
