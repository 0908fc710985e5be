import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from igcd.errors import IgcdError
from igcd.streams.protocols import (
    NOTHING,
    PROTOCOLS,
    StageIndices,
    StreamSpec,
    arrivals_by_category,
    group_of_categories,
    hold_out,
    igcd_l,
    igcd_u,
    stages_by_category,
)
from igcd.streams.randomness import generator, shuffled

N_CATEGORIES, N_TRAIN, N_TEST = 20, 30, 5
CATEGORIES = np.repeat(np.arange(N_CATEGORIES), N_TRAIN + N_TEST)
IS_TEST = np.tile(np.arange(N_TRAIN + N_TEST) >= N_TRAIN, N_CATEGORIES)
NAMES = [f"category {code:02d}" for code in range(N_CATEGORIES)]


def build(seed=0, **spec):
    return stages_by_category(CATEGORIES, IS_TEST, NAMES, StreamSpec(**spec), generator(seed))


def present(stage):
    return set(CATEGORIES[np.concatenate([stage.labeled_idx, stage.unlabeled_idx])].tolist())


def test_shuffled_is_a_permutation_and_follows_the_generator():
    assert sorted(shuffled(50, generator(3)).tolist()) == list(range(50))
    assert shuffled(50, generator(3)).tolist() == shuffled(50, generator(3)).tolist()
    assert shuffled(50, generator(3)).tolist() != shuffled(50, generator(4)).tolist()
    assert shuffled(50, generator(3, 1)).tolist() != shuffled(50, generator(3, 2)).tolist()


@pytest.mark.parametrize("protocol", ["igcd-l", "igcd-u", "mi", "cgcd"])
def test_sizes_of_the_stages(protocol):
    stages = build(protocol=protocol, images_old=2)
    sizes = [14, 2, 2, 2] if protocol != "cgcd" else [10, 2, 2, 2, 2, 2]
    seen: set[int] = set()
    for stage, size in zip(stages, sizes, strict=True):
        assert len(present(stage) - seen) == size
        seen |= present(stage)
    assert seen == set(range(N_CATEGORIES))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_image_arrives_twice_and_none_is_tested_and_trained(protocol):
    stages = build(protocol=protocol, images_old=3)
    unlabeled = np.concatenate([stage.unlabeled_idx for stage in stages])
    first = stages[0].labeled_idx
    assert len(np.unique(np.concatenate([first, unlabeled]))) == len(first) + len(unlabeled)
    assert not IS_TEST[first].any() and not IS_TEST[unlabeled].any()
    assert all(IS_TEST[stage.test_idx].all() for stage in stages)


def test_igcd_l_labels_arrive_one_stage_later():
    stages = build(protocol="igcd-l")
    assert len(stages[0].unlabeled_idx) == 0
    assert stages[1].labeled_idx.tolist() == stages[0].labeled_idx.tolist()
    for earlier, later in itertools.pairwise(stages[1:]):
        assert later.labeled_idx.tolist() == earlier.unlabeled_idx.tolist()


@pytest.mark.parametrize("protocol", ["igcd-u", "mi", "cgcd"])
def test_no_labels_after_stage_0(protocol):
    stages = build(protocol=protocol)
    assert len(stages[0].labeled_idx) > 0
    assert all(len(stage.labeled_idx) == 0 for stage in stages[1:])


@pytest.mark.parametrize("protocol", ["mi", "cgcd"])
def test_mixed_incremental_brings_back_every_category(protocol):
    seen: set[int] = set()
    for stage in build(protocol=protocol):
        assert seen <= present(stage)
        seen |= present(stage)


@pytest.mark.parametrize(("presence", "expected"), [(0.0, 0), (0.5, 7), (1.0, 14)])
def test_old_presence_is_the_share_that_comes_back(presence, expected):
    stages = build(protocol="igcd-u", old_presence=presence)
    assert len(present(stages[1]) & present(stages[0])) == expected


def test_images_per_category():
    stages = build(protocol="mi", images_labeled=8, images_new=6, images_old=3)
    assert np.bincount(CATEGORIES[stages[0].labeled_idx]).max() == 8
    counts = np.bincount(CATEGORIES[stages[1].unlabeled_idx], minlength=N_CATEGORIES)
    assert sorted(set(counts.tolist())) == [0, 3, 6]
    assert (counts == 6).sum() == 2 and (counts == 3).sum() == 14


def test_unset_limits_use_every_training_image():
    stages = build(protocol="mi", images_old=3)
    n_used = len(stages[0].labeled_idx) + sum(len(stage.unlabeled_idx) for stage in stages)
    assert n_used == N_CATEGORIES * N_TRAIN


def test_a_small_category_is_dealt_evenly():
    categories = np.array([0] * 4 + [1] * 40 + [2] * 40)
    spec = StreamSpec(protocol="mi", categories_per_stage=(1, 1, 1), images_old=25)
    arrivals = arrivals_by_category(categories, np.array([0, 1, 2]), spec, generator(0))
    assert [int((categories[idx] == 0).sum()) for idx in arrivals] == [2, 1, 1]


def test_test_images_are_those_of_all_categories_so_far():
    stages = build(protocol="igcd-u", test_per_category=3)
    for stage, n_met in zip(stages, [14, 16, 18, 20], strict=True):
        counts = np.bincount(CATEGORIES[stage.test_idx], minlength=N_CATEGORIES)
        assert sorted(counts[counts > 0].tolist()) == [3] * n_met


def test_static_labels_half_of_half():
    (stage,) = build(protocol="static")
    labeled = np.bincount(CATEGORIES[stage.labeled_idx], minlength=N_CATEGORIES)
    unlabeled = np.bincount(CATEGORIES[stage.unlabeled_idx], minlength=N_CATEGORIES)
    assert sorted(labeled.tolist()) == [0] * 10 + [15] * 10
    assert ((labeled + unlabeled) == N_TRAIN).all()
    assert len(stage.test_idx) == N_CATEGORIES * N_TEST


def test_the_seed_decides_and_a_given_order_is_kept():
    first = [stage.unlabeled_idx.tolist() for stage in build(protocol="mi", seed=1)]
    assert first == [stage.unlabeled_idx.tolist() for stage in build(protocol="mi", seed=1)]
    assert first != [stage.unlabeled_idx.tolist() for stage in build(protocol="mi", seed=2)]
    order = tuple(reversed(NAMES))
    stages = build(protocol="igcd-u", category_order=order, old_presence=0)
    assert present(stages[0]) == set(range(6, 20)) and present(stages[3]) == {0, 1}


def test_the_order_of_codes_does_not_matter():
    """The same categories under other codes are met in the same order."""
    recode = shuffled(N_CATEGORIES, generator(9))
    renamed = [""] * N_CATEGORIES
    for code, new in enumerate(recode):
        renamed[new] = NAMES[code]
    spec = StreamSpec(protocol="mi")
    other = stages_by_category(recode[CATEGORIES], IS_TEST, renamed, spec, generator(0))
    for stage, twin in zip(build(protocol="mi"), other, strict=True):
        assert {NAMES[code] for code in present(stage)} == {
            renamed[code] for code in recode[CATEGORIES][np.concatenate([twin.labeled_idx, twin.unlabeled_idx])]
        }


def test_held_out_images_become_test_images():
    categories = CATEGORIES[~IS_TEST]
    no_test = np.zeros(len(categories), dtype=bool)
    stages = stages_by_category(categories, no_test, NAMES, StreamSpec(protocol="mi", held_out=0.2), generator(0))
    assert np.bincount(categories[stages[-1].test_idx]).tolist() == [6] * N_CATEGORIES
    assert hold_out(np.array([0]), 0.9, generator(0)).tolist() == [False]  # the only image stays for training


def test_groups_on_a_stream_you_can_draw():
    categories = np.array([0, 1, 2, 3, 1, 2, 4])  # D^0 = {0, 1}, D^1 = {2, 1}, D^2 = {3, 2, 4}
    arrivals = [np.array([0, 1]), np.array([2, 4]), np.array([3, 5, 6])]
    tests = [NOTHING] * 3
    assert group_of_categories(igcd_l(arrivals, tests), categories) == [
        {0: "Old", 1: "Old"},
        {0: "Old", 1: "Old", 2: "New"},
        {0: "S-0", 1: "Old", 2: "Old", 3: "New", 4: "New"},
    ]
    assert group_of_categories(igcd_u(arrivals, tests), categories) == [
        {0: "Old", 1: "Old"},
        {0: "S-0", 1: "Old", 2: "New"},
        {0: "S-0", 1: "S-0", 2: "New", 3: "New", 4: "New"},
    ]
    released = group_of_categories(igcd_u(arrivals, tests), categories, returning="new")
    assert released[1] == {0: "S-0", 1: "New", 2: "New"}


def test_a_labeled_category_that_comes_back_later_is_old():
    categories = np.array([0, 1, 2, 0])
    stages = [
        StageIndices(np.array([0]), NOTHING, NOTHING),
        StageIndices(np.array([1]), np.array([2]), NOTHING),
        StageIndices(NOTHING, np.array([3]), NOTHING),
    ]
    assert group_of_categories(stages, categories)[2] == {0: "Old", 1: "S-1", 2: "S-1"}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"protocol": "mi", "categories_per_stage": (30, 10)}, "ask for fewer"),
        ({"protocol": "static", "categories_per_stage": (5, 5, 5)}, "two numbers"),
        ({"protocol": "mi", "category_order": ("nobody",)}, "not a category"),
        ({"protocol": "mi", "category_order": (NAMES[0], NAMES[0])}, "twice"),
        ({"protocol": "mi", "held_out": 0.5}, "test images of its own"),
    ],
)
def test_bad_specs_get_a_sentence(spec, words):
    with pytest.raises(IgcdError, match=words):
        build(**spec)


@pytest.mark.parametrize("spec", [{"protocol": "mii"}, {"protocol": "mi", "categories_per_stage": (0, 3)}, {}])
def test_a_spec_is_strict(spec):
    with pytest.raises(ValidationError):
        StreamSpec(**spec)
    with pytest.raises(ValidationError):
        StreamSpec(protocol="mi", colour="red")


@given(
    counts=st.lists(st.integers(0, 12), min_size=8, max_size=14),
    protocol=st.sampled_from(["igcd-l", "igcd-u", "mi", "static"]),
    seed=st.integers(0, 5),
    presence=st.floats(0, 1),
)
def test_any_data_gives_disjoint_stages(counts, protocol, seed, presence):
    categories = np.repeat(np.arange(len(counts)), counts)
    is_test = generator(seed).random(len(categories)) < 0.3
    names = [f"{code}" for code in range(len(counts))]
    spec = StreamSpec(protocol=protocol, old_presence=presence, images_old=2)
    stages = stages_by_category(categories, is_test, names, spec, generator(seed))
    arrived = np.concatenate([stages[0].labeled_idx, *(stage.unlabeled_idx for stage in stages)])
    assert len(np.unique(arrived)) == len(arrived)
    assert not is_test[arrived].any()
    group_of_categories(stages, categories)


def test_images_of_a_group_are_held_out_together():
    categories = np.array([0, 0, 0, 0, 0, 0, 1, 1, 1])
    groups = np.array([7, 3, 7, 5, 3, 5, 9, 9, 9])
    for seed in range(20):
        is_test = hold_out(categories, 0.34, generator(seed), groups)
        held_out = [bool(is_test[groups == group].all()) for group in (7, 3, 5)]
        assert held_out == [bool(is_test[groups == group].any()) for group in (7, 3, 5)]
        assert sum(held_out) == 1
        assert not is_test[6:].any()  # the only group stays for training


def _hold_out_image_by_image(categories: np.ndarray, share: float, rng: np.random.Generator) -> list[bool]:
    is_test = [False] * len(categories)
    for category in range(categories.max() + 1):
        idx = [i for i, code in enumerate(categories) if code == category]
        n_test = min(round(share * len(idx)), max(len(idx) - 1, 0))
        for position in shuffled(len(idx), rng)[:n_test]:
            is_test[idx[position]] = True
    return is_test


@pytest.mark.parametrize("seed", range(5))
def test_groups_of_one_image_change_nothing(seed: int):
    rng = generator(seed)
    categories = rng.integers(0, 6, 60)
    expected = _hold_out_image_by_image(categories, 0.3, generator(seed, 1))
    assert hold_out(categories, 0.3, generator(seed, 1)).tolist() == expected
    codes = rng.permutation(1000)[:60]
    assert hold_out(categories, 0.3, generator(seed, 1), codes).tolist() == expected


def test_a_group_of_two_categories_is_refused():
    with pytest.raises(IgcdError, match="must be of one category, group 4 has two"):
        hold_out(np.array([0, 1, 1]), 0.5, generator(0), np.array([4, 2, 4]))


def test_redrawn_images_come_again_but_labeled_ones_do_not():
    """The layout of later work in small: 20 of 30 images labeled or new, 5 of each category that comes back."""
    spec = {"images_labeled": 20, "images_new": 20, "images_old": 5}
    stages = build(protocol="cgcd", redraw=True, **spec)
    assert [len(stage.unlabeled_idx) for stage in stages] == [0, *(5 * (10 + 2 * t) + 20 * 2 for t in range(5))]
    assert len(stages[0].labeled_idx) == 200
    labeled = set(stages[0].labeled_idx.tolist())
    seen: set[int] = set()
    n_again = 0
    for stage in stages[1:]:
        now = stage.unlabeled_idx.tolist()
        assert len(set(now)) == len(now) and not set(now) & labeled and not IS_TEST[stage.unlabeled_idx].any()
        n_again += len(set(now) & seen)
        seen |= set(now)
    assert n_again > 0
    again = build(protocol="cgcd", redraw=True, **spec)
    assert all(a.unlabeled_idx.tolist() == b.unlabeled_idx.tolist() for a, b in zip(stages, again, strict=True))


def test_redrawing_does_with_small_categories():
    stages = build(protocol="mi", redraw=True, images_labeled=30, images_old=40)
    assert len(stages[0].labeled_idx) == 14 * 30
    assert len(stages[1].unlabeled_idx) == 30 * 16  # there are no more of any category
    unset = build(protocol="mi", redraw=True, images_old=5)
    assert len(unset[0].labeled_idx) == 14 * 25 and len(unset[1].unlabeled_idx) == 14 * 5 + 2 * 30
