"""What the estimator does with calls that fail, numbers of any size, and states that are damaged."""

# ruff: noqa: N806 - X is what scikit-learn calls the features
import copy
import json

import numpy as np
import pytest
from discoverer.easy_rows import a_start, blob

from igcd.discoverer import CategoryDiscoverer
from igcd.functional.confidence import Confidence
from igcd.memory.category_ledger import DiscovererError

# Nothing by halves ---------------------------------------------------------------------------------------------------


def everything(model):
    """All that a model holds, to be compared."""
    tensors, metadata = model.state_dict()
    return {name: tensor.tolist() for name, tensor in tensors.items()}, metadata, model.get_params()


class DiskOnFireError(Exception):
    pass


@pytest.mark.parametrize("broken", ["_take_in_labels", "_look", "_take_in", "_assign"])
def test_a_call_that_fails_halfway_changes_nothing(model, monkeypatch, broken):
    def fail(*_args, **_options):
        raise DiskOnFireError

    before, fresh = everything(model), CategoryDiscoverer()
    original = getattr(CategoryDiscoverer, broken)

    def after(self, *args, **options):
        original(self, *args, **options)
        fail()

    monkeypatch.setattr(CategoryDiscoverer, broken, after)
    X, y, _ = a_start(40)
    for call in (model.partial_fit, model.fit, fresh.fit):
        with pytest.raises(DiskOnFireError):
            call(X, np.where(y >= 0, y + 20, -1))
    monkeypatch.undo()
    assert everything(model) == before
    assert vars(fresh) == vars(CategoryDiscoverer())


def test_decisions_that_fail_halfway_change_nothing(model, monkeypatch):
    before = everything(model)
    for broken in ("confirm", "join", "remember", "forget"):
        monkeypatch.setattr(f"igcd.discoverer.kept_rows.KeptRows.{broken}", None)
    decisions = (
        lambda: model.rename(1000, 7),
        lambda: model.merge(0, [1, 2]),
        lambda: model.split(0, blob(0, 3)),
        lambda: model.reject(1),
    )
    for decide in decisions:
        with pytest.raises(TypeError):
            decide()
    monkeypatch.undo()
    assert everything(model) == before


def test_equal_rows_under_two_labels_are_one_row_under_one_of_them(model):
    rows = np.concatenate([blob(8, 3), blob(8, 3)])
    model.partial_fit(rows, [20, 20, 20, 21, 21, 21])
    assert model.labels_.tolist() == [20] * 6
    assert 21 not in model.categories_ and len(model.categories_) == 7
    assert CategoryDiscoverer().fit(rows, [5, 5, 5, 4, 4, 5]).labels_.tolist() == [5, 5, 5, 4, 4, 5]


def test_a_batch_of_a_few_equal_rows_goes_on(model):
    model.partial_fit(np.repeat(blob(0, 2), 10, axis=0))
    assert model.labels_.tolist() == [0] * 20


# Numbers of any size -------------------------------------------------------------------------------------------------


def same_groups(labels, others):
    """Whether two answers agree: known labels as they are, discoveries whichever number they have.

    Discoveries of equal size are numbered in the order of their rows' digests, which a scale changes.
    """
    pairs = {*zip(labels.tolist(), others.tolist(), strict=True)}
    is_one_to_one = len({one for one, _ in pairs}) == len({other for _, other in pairs}) == len(pairs)
    return is_one_to_one and all(one == other for one, other in pairs if min(one, other) < 1000)


@pytest.fixture(scope="module")
def unscaled():
    X, y, _ = a_start()
    kinds = [(dtype, n_components) for dtype in (np.float64, np.float32) for n_components in (256, None)]
    return {kind: CategoryDiscoverer(n_components=kind[1]).fit(X.astype(kind[0]), y) for kind in kinds}


@pytest.mark.parametrize("n_components", [256, None])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scale", [1e19, 1e-18, 1e25, 1e-30, 2.0**-120])
def test_scale_is_no_information(unscaled, scale, dtype, n_components):
    X, y, _ = a_start()
    model = copy.deepcopy(unscaled[dtype, n_components])
    scaled = CategoryDiscoverer(n_components=n_components).fit((X * scale).astype(dtype), y)
    assert same_groups(scaled.labels_, model.labels_)
    later = np.concatenate([blob(0, 5, seed=1), blob(9, 12), blob(4, 5, seed=1)])
    for one, factor in ((model, 1.0), (scaled, scale)):
        one.partial_fit((later * factor).astype(dtype))
    assert same_groups(scaled.labels_, model.labels_)
    assert same_groups(scaled.predict((X * scale).astype(dtype)), model.predict(X.astype(dtype)))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_row_far_larger_than_all_others_is_compared_by_its_direction(dtype):
    X, y, _ = a_start()
    model = CategoryDiscoverer(unsure=None).fit(X.astype(dtype), y)
    most = float(np.finfo(dtype).max) / 10
    assert model.predict((most / 5 * blob(2, 4)).astype(dtype)).tolist() == [2] * 4
    assert np.isfinite(model.transform((most / 5 * blob(2, 4)).astype(dtype))).all()


def test_labels_that_no_number_of_a_discovery_can_follow_are_refused():
    X, y, _ = a_start()
    large = np.where(y >= 0, y + 2**61, -1)
    with pytest.raises(DiscovererError, match="leave no room for numbers of new categories"):
        CategoryDiscoverer().fit(X, large)
    model = CategoryDiscoverer(first_novel=1000).fit(X, large)
    assert model.categories_.tolist() == [2**61, 2**61 + 1, 2**61 + 2, 2**61 + 3, 1000, 1001]
    for label in (float("inf"), float("nan"), 10**30):
        with pytest.raises(ValueError, match=r"labels must be numbers from|contains NaN"):
            CategoryDiscoverer().fit(blob(0, 2), np.array([label, 3], dtype=object))
    for first_novel in (10**30, 2**62):
        with pytest.raises(DiscovererError, match="first_novel must be a whole number from 1 to"):
            CategoryDiscoverer(first_novel=first_novel).fit(X, y)
    with pytest.raises(DiscovererError, match="too large for a label; set a smaller first_novel"):
        CategoryDiscoverer(first_novel=2**62 - 1).fit(X, y)


@pytest.mark.parametrize("name", [10**30, 2**62, -(2**62), float("nan"), float("inf"), 1e300])
def test_a_name_that_is_too_large_is_refused_and_nothing_is_changed(model, name):
    before = everything(model)
    with pytest.raises(DiscovererError, match="labels must be numbers from -4611686018427387903 to"):
        model.rename(1000, name)
    with pytest.raises(DiscovererError, match="labels must be numbers from -4611686018427387903 to"):
        model.split(0, blob(0, 3), name=name)
    if isinstance(name, int):
        with pytest.raises(DiscovererError, match="labels must be numbers from"):
            model.partial_fit(blob(0, 2), np.array([name, 3], dtype=object))
    assert everything(model) == before


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("granularity", 10**30), ("granularity", float("nan")), ("n_kept", 10**30), ("n_components", 2**62)],
        *[("n_novel", 10**30), ("random_state", 2**63), ("random_state", None), ("unsure", 10**400)],
    ],
)
def test_a_parameter_that_no_memory_holds_is_named(name, value):
    with pytest.raises(DiscovererError, match=f"^{name} must be .*; change it"):
        CategoryDiscoverer(**{name: value}).fit(*a_start()[:2])


def test_what_is_no_label_at_all_is_the_name_of_no_category(model):
    for decide in (model.rename, model.merge, lambda one, other: model.split(0, blob(0, 3), name=[one, other])):
        with pytest.raises(DiscovererError, match=r"there is no category \[1\]|must be a whole number"):
            decide([1], [2])


@pytest.mark.parametrize(
    ("entry", "damage"),
    [
        ("ledger", lambda _: "{"),
        ("ledger", lambda _: "[" * 5000),
        ("parameters", lambda _: '{"granularity": 1e999}'),
        ("ledger", lambda text: text.replace('"status": "known"', '"status": "odd"', 1)),
        ("fitted", lambda text: text.replace('"n_groups_": ', '"n_groups_": null, "x": ')),
        ("scale", lambda text: text.replace('"sharpness": ', '"sharpness": -')),
        ("scale", lambda text: text.replace('"stray": ', '"stray": 1')),
        ("whitening", lambda tensor: tensor[:2]),
        ("classifier.ids", lambda tensor: tensor.flip(0)),
        ("classifier.means", lambda tensor: tensor[:1]),
        ("space.mean", lambda tensor: tensor * np.nan),
        ("space.mean", lambda tensor: tensor[:3]),
        ("space.components", lambda tensor: tensor.float()),
        ("kept.categories", lambda tensor: tensor + 90),
        ("kept.content", lambda tensor: tensor[:, :2]),
        ("row_ids", lambda tensor: tensor + 90),
        ("row_keys", lambda tensor: tensor + 100),
        ("kept.n_per_category", lambda _: str(10**30)),
        ("parameters", lambda text: text.replace('"n_kept": 50', f'"n_kept": {10**30}')),
    ],
)
def test_a_damaged_state_is_refused_in_a_sentence(model, entry, damage):
    tensors, text = model.state_dict()
    part = tensors if entry in tensors else text
    part[entry] = damage(part[entry])
    with pytest.raises(DiscovererError) as said:
        CategoryDiscoverer.from_state_dict(tensors, text)
    assert len(str(said.value)) < 300


def test_a_state_of_before_there_were_strays_is_read(model):
    tensors, text = model.state_dict()
    scale = json.loads(text["scale"])
    del scale["stray"]
    again = CategoryDiscoverer.from_state_dict(tensors, text | {"scale": json.dumps(scale)})
    assert again._means.learned.confidence == Confidence(model._means.learned.confidence.sharpness, stray=0.0)


def test_a_state_of_before_later_rows_had_a_certainty_is_read(model):
    tensors, text = model.state_dict()
    del tensors["learned_keys"], text["later"]
    again = CategoryDiscoverer.from_state_dict(tensors, text | {"version": "2"})
    rows = a_start()[0] + 0.01
    assert again._means.later is None and model._means.later is not None
    assert again._means.learned == model._means.learned
    np.testing.assert_array_equal(again.predict(rows), model.predict(rows))
    assert np.isfinite(again.predict_proba(rows)).all()


def test_a_state_sets_no_other_attribute(model):
    tensors, text = model.state_dict()
    text["fitted"] = text["fitted"].replace("{", '{"predict": 3, ', 1)
    assert CategoryDiscoverer.from_state_dict(tensors, text).predict(blob(0, 1)).tolist() == [0]
