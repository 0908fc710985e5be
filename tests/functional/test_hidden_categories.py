"""The height that hidden categories tell, on blobs one could draw."""

import itertools
import json
from dataclasses import asdict, replace
from functools import partial

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from igcd.functional import discovery
from igcd.functional.discovery import Scene, discover, discover_from_statistics
from igcd.functional.gaussian import scatter_statistics
from igcd.functional.heights import HIDDEN, Heights
from igcd.functional.hidden_categories import RETURNING, _best_height, heights_by_hiding, n_right
from igcd.functional.pulling import node_of_rows
from igcd.functional.selection import select_by_density, select_per_category

WIDTH = 32


def blobs(categories, n_each, *, seed, spread=0.12):
    """Each category is three groups close to each other: cut too low, it is several."""
    rows = torch.tensor(categories, dtype=torch.int64).repeat_interleave(n_each)
    generator = torch.Generator().manual_seed(seed)
    part = torch.randint(3, (len(rows),), generator=generator)
    offsets = 0.25 * torch.randn(WIDTH, 3, WIDTH, generator=torch.Generator().manual_seed(99))
    noise = spread * torch.randn(len(rows), WIDTH, generator=generator)
    return normalize(torch.eye(WIDTH)[rows] + offsets[rows, part] + noise, dim=1), rows


def round_blobs(categories, n_each, *, seed):
    rows = torch.tensor(categories, dtype=torch.int64).repeat_interleave(n_each)
    noise = 0.08 * torch.randn(len(rows), WIDTH, generator=torch.Generator().manual_seed(seed))
    return normalize(torch.eye(WIDTH)[rows] + noise, dim=1), rows


KNOWN, CATEGORIES = blobs(range(24), 18, seed=0)
UNLABELED = torch.cat([blobs(range(24), 4, seed=1)[0], blobs(range(24, 28), 18, seed=2)[0]])


@pytest.fixture(scope="module")
def heights():
    """Of the rows above; they take a second or two."""
    return heights_by_hiding(KNOWN, CATEGORIES)


def scaled(heights, by):
    return replace(heights, heights=tuple(by * height for height in heights.heights))


def test_at_that_height_statistics_find_the_true_number(heights):
    statistics = scatter_statistics(KNOWN, CATEGORIES, n_categories=24)
    assert abs(discover_from_statistics(UNLABELED, statistics, heights=heights).n_novel - 4) <= 1


@pytest.mark.parametrize("n_kept", [6, 8])
def test_at_that_height_a_few_typical_rows_find_the_true_number(n_kept):
    found = []
    for seed in (0, 10, 20, 30):  # one draw may be off by two
        known, categories = blobs(range(24), 18, seed=seed)
        returning, new = blobs(range(24), 4, seed=seed + 1)[0], blobs(range(24, 28), 18, seed=seed + 2)[0]
        kept = select_per_category(known, categories, n_kept, select=select_by_density)
        heights = heights_by_hiding(known, categories, n_kept=n_kept)
        unlabeled = torch.cat([returning, new])
        found.append(discover(unlabeled, known[kept], categories[kept], heights=heights, smallest=6).n_novel)
    assert sum(abs(number - 4) for number in found) <= len(found)


def test_renaming_categories_changes_nothing_and_the_seed_does(heights):
    renamed = (CATEGORIES + 1) * 7
    assert heights_by_hiding(KNOWN, renamed) == heights
    assert heights_by_hiding(KNOWN, CATEGORIES, seed=1) != heights


@pytest.mark.parametrize(("n_categories", "n_each"), [(0, 5), (1, 20), (2, 20), (9, 1)])
@pytest.mark.parametrize("n_kept", [None, 4])
def test_too_few_labels_tell_no_height(n_categories, n_each, n_kept):
    rows, categories = blobs(list(range(n_categories)), n_each, seed=0)
    assert heights_by_hiding(rows, categories, n_kept=n_kept) is None


def test_three_categories_of_two_rows_are_enough():
    heights = heights_by_hiding(*blobs([0, 1, 2], 4, seed=0))
    assert heights is not None and min(heights.heights) >= 0


@pytest.mark.parametrize("seed", range(5))
def test_rows_right_equal_slow_twin(seed):
    rng = np.random.default_rng(seed)
    groups, categories = rng.integers(-1, 7, 60), rng.integers(0, 6, 60)
    new_groups, new_categories = range(3, 7), range(3, 6)
    table = np.array([[((groups == g) & (categories == c)).sum() for c in new_categories] for g in new_groups])
    best = max(table[list(chosen), range(3)].sum() for chosen in itertools.permutations(range(4), 3))
    assert n_right(groups, categories, 3) == best + int(((groups == categories) & (categories < 3)).sum())


def test_most_rows_are_right_at_that_height(heights):
    """Cut at a third or at three times the height, fewer rows of hidden categories come out right."""
    statistics = scatter_statistics(KNOWN, CATEGORIES, n_categories=24)
    truth = np.concatenate([np.repeat(np.arange(24), 4), np.repeat(np.arange(24, 28), 18)])
    right = [
        n_right(
            discover_from_statistics(UNLABELED, statistics, heights=scaled(heights, by)).category.numpy(), truth, 24
        )
        for by in (1 / 8, 1, 8)
    ]
    assert right[1] > right[0] and right[1] > right[2]


def test_the_height_follows_the_share_of_known_rows_that_come_back():
    heights = Heights((0.1, 0.2, 0.4), (1.0, 3.0, 2.0), n_labeled=12.0)
    for returning, expected in ((0.0, 1.0), (0.1, 1.0), (0.15, 2.0), (0.2, 3.0), (0.3, 2.5), (0.9, 2.0)):
        n_unlabeled = round(60 * 12 * returning) + 10 * 12  # and a new category for every six known ones
        assert heights.for_batch(n_unlabeled, n_known=60) == pytest.approx(expected, abs=0.01)


def test_parts_that_the_tree_sees_in_labeled_categories(heights):
    assert heights.n_parts > 1.5
    assert heights_by_hiding(*round_blobs(range(24), 18, seed=0)).n_parts == pytest.approx(1, abs=0.1)


def test_every_share_has_the_height_of_its_own_scenes():
    rows, categories = blobs(range(8), 10, seed=3, spread=0.3)
    found = heights_by_hiding(rows, categories)
    assert found.returning == RETURNING and found.n_labeled == 10
    for returning, height in zip(found.returning, found.heights, strict=True):
        assert height == _best_height(rows, categories, returning, n_kept=None, seed=0)


def test_more_rows_that_come_back_open_no_more_categories():
    """Where categories overlap, rows of known ones lie together by chance; the height for them knows."""
    rows, categories = blobs(range(12), 12, seed=4, spread=0.5)
    known = scatter_statistics(rows, categories, n_categories=12)
    heights = heights_by_hiding(rows, categories)
    new = blobs([12, 13], 12, seed=5, spread=0.5)[0]
    many = torch.cat([new, blobs(range(12), 9, seed=6, spread=0.5)[0]])
    followed, fixed = (
        discover_from_statistics(many, known, heights=each).n_novel
        for each in (heights, replace(heights, heights=heights.heights[:1] * len(RETURNING)))
    )
    assert followed < fixed


def test_heights_survive_json(heights):
    assert Heights.from_dict(json.loads(json.dumps(asdict(heights)))) == heights


def test_the_unit_is_the_mean_join_also_where_nodes_are_made_of_many_rows(monkeypatch):
    scene = Scene.between(UNLABELED, KNOWN, CATEGORIES)
    assert scene.unit == pytest.approx(scene.tree.heights.mean())
    monkeypatch.setattr(discovery, "node_of_rows", partial(node_of_rows, max_nodes=100))
    fewer = Scene.between(UNLABELED, KNOWN, CATEGORIES)
    assert len(fewer.tree.heights) < len(scene.tree.heights) / 2
    assert fewer.unit == pytest.approx(scene.unit, rel=0.05)


def test_a_batch_with_more_new_categories_than_scenes_have_is_cut_as_its_own_tree_asks():
    """Eight known categories and twelve new ones: heights alone, for few new ones, would leave most of them joined."""
    rows, categories = round_blobs(range(8), 18, seed=0)
    unlabeled = torch.cat([round_blobs(range(8), 4, seed=1)[0], round_blobs(range(8, 20), 18, seed=2)[0]])
    statistics = scatter_statistics(rows, categories, n_categories=8)
    heights = heights_by_hiding(rows, categories)
    scene = Scene.between(unlabeled, rows, categories)
    assert scene.n_novel(heights.for_batch(len(unlabeled), 8) * scene.unit, smallest=6) < 6
    assert discover_from_statistics(unlabeled, statistics, heights=heights).n_novel == 12


@pytest.mark.parametrize("n_known", [3, 60])
def test_how_like_the_scenes_a_batch_is(n_known):
    """As many new ones as in the scenes, or fewer, are like them; from there on it falls, slowly for an unsure tree."""
    heights, unsure = (Heights((0.2,), (1.0,), 10.0, n_parts) for n_parts in (1.0, 2.0))
    most = n_known / (1 - HIDDEN)
    assert [heights.like_scenes(n, n_known) for n in (0, n_known, most)] == pytest.approx([1, 1, 1])
    falling = [heights.like_scenes(by * most, n_known) for by in (1, 1.1, 1.5, 3)]
    assert falling == sorted(falling, reverse=True) and falling[0] > 0.99 > 0.01 > falling[-1]
    assert heights.like_scenes(np.exp(0.25) * most, n_known) == pytest.approx(np.exp(-0.5))
    assert unsure.like_scenes(2 * np.exp(0.25 + np.log(2)) * most, n_known) == pytest.approx(np.exp(-0.5))
