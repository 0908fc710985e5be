"""How large new categories are beside all."""

import math
import statistics

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from igcd.functional.discovery import discover
from igcd.functional.relative_size import relative_size


def slow_ratio(groups, n_labeled):
    members = {}
    for row, group in enumerate(groups.tolist()):
        members.setdefault(group, []).append(row)
    n_labels = {group: sum(row < n_labeled for row in rows) for group, rows in members.items()}
    typical = statistics.median(n_labels[group] / len(members[group]) for group in groups[:n_labeled].tolist())
    new, known = [], []
    for group, rows in members.items():
        expected = typical * len(rows)
        if expected >= 3 and n_labels[group] < expected / 4:
            new.append(len(rows))
        elif expected >= 3 and n_labels[group] >= expected:
            known.append(len(rows))
    if len(new) < 2 or len(known) < 2:
        return 1.0
    log_ratio = math.log(statistics.mean(new) / statistics.mean(new + known))
    error = sum(statistics.pvariance(part) / statistics.mean(part) ** 2 / (len(part) - 1) for part in (new, known))
    return math.exp(log_ratio * max(0.0, 1 - error / log_ratio**2))


@pytest.mark.parametrize("seed", range(6))
def test_as_a_plain_loop_counts_it(seed):
    rng = np.random.default_rng(seed)
    known, new = rng.integers(12, 40, 7), rng.integers(2, 16, 9)
    groups, n_labeled = sizes_as_groups(known, new, labeled_share=0.4)
    groups[rng.integers(0, len(groups), 5)] = rng.integers(0, 16, 5)  # strays
    expected = slow_ratio(groups, n_labeled)
    assert expected < 0.9
    assert relative_size(groups * 3 + 1, n_labeled) == pytest.approx(expected)


def sizes_as_groups(known, new, *, labeled_share):
    """Labeled rows first, then the others. -> (n,), the number of labeled rows."""
    labeled = [np.full(round(labeled_share * size), group) for group, size in enumerate(known)]
    others = [np.full(size - len(mine), group) for group, (size, mine) in enumerate(zip(known, labeled, strict=True))]
    found = [np.full(size, len(known) + group) for group, size in enumerate(new)]
    return np.concatenate([*labeled, *others, *found]), sum(map(len, labeled))


def test_equal_sizes_change_nothing():
    groups, n_labeled = sizes_as_groups([20] * 6, [20] * 4, labeled_share=0.3)
    assert relative_size(groups, n_labeled) == 1.0


def test_a_difference_within_chance_changes_nothing():
    groups, n_labeled = sizes_as_groups([10, 30, 22, 18], [12, 28, 17, 15], labeled_share=0.5)
    assert relative_size(groups, n_labeled) == 1.0


def test_larger_new_categories_are_cut_higher_and_smaller_ones_lower():
    larger = relative_size(*sizes_as_groups([10] * 8, [30] * 8, labeled_share=0.5))
    smaller = relative_size(*sizes_as_groups([30] * 8, [10] * 8, labeled_share=0.5))
    assert larger == pytest.approx(1.5)
    assert smaller == pytest.approx(0.5)


def test_names_and_strays_do_not_matter():
    groups, n_labeled = sizes_as_groups([30] * 8, [10] * 8, labeled_share=0.5)
    renamed = (groups * 7 + 3) % 101
    assert relative_size(renamed, n_labeled) == relative_size(groups, n_labeled)
    groups[0] = groups[-1]  # one labeled row in a group of a new category
    assert relative_size(groups, n_labeled) == pytest.approx(0.5, abs=0.03)


def test_small_groups_that_chance_can_leave_without_labels_are_passed_over():
    """Ten labels in a hundred rows: parts of ten rows often have none."""
    groups, n_labeled = sizes_as_groups([100] * 5, [10] * 8, labeled_share=0.1)
    assert relative_size(groups, n_labeled) == 1.0


def test_parts_of_categories_do_not_matter():
    whole = relative_size(*sizes_as_groups([40] * 8, [20] * 8, labeled_share=0.5))
    halves = relative_size(*sizes_as_groups([20] * 16, [10] * 16, labeled_share=0.5))
    assert halves == pytest.approx(whole)


def test_few_photos_of_new_categories_beside_many_labels_are_found():
    """As in a person's batch: known categories have labels and some rows, new ones half as many rows."""
    found = []
    for seed in range(4):
        generator = torch.Generator().manual_seed(seed)
        centers = 0.62 * torch.randn(28, 48, generator=generator)
        owners = torch.cat([torch.arange(20).repeat_interleave(26), torch.arange(20, 28).repeat_interleave(13)])
        rows = normalize(centers[owners] + torch.randn(len(owners), 48, generator=generator), dim=1)
        is_labeled = (owners < 20) & (torch.arange(len(owners)) % 26 < 18)
        answer = discover(rows[~is_labeled], rows[is_labeled], owners[is_labeled])
        found.append(answer.n_novel)
    assert 7 <= np.mean(found) <= 10
