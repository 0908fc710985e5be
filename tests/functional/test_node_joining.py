from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import normalize

from igcd.functional.category_tree import grow_tree
from igcd.functional.neighbors import neighbor_graph
from igcd.functional.node_joining import join_nearest


def subtrees(tree):
    """The rows of every group that there is at some height, by replaying the joins."""
    members = {node: frozenset([node]) for node in range(tree.n_nodes)}
    found = set(members.values())
    for stays, goes in tree.pairs.tolist():
        members[stays] = members[stays] | members.pop(goes)
        found.add(members[stays])
    return found


def groups_of(group):
    return {frozenset(np.flatnonzero(group == number).tolist()) for number in np.unique(group)}


def neighbors_of(rows, k):
    return neighbor_graph(rows, k).idx


def test_points_join_where_they_are_near():
    rows = torch.tensor([[1.0, 0.0], [1.0, 0.01], [0.0, 1.0], [0.02, 1.0], [-1.0, 0.0]])
    group = join_nearest(rows, neighbors_of(rows, 2), n_most=3).numpy()
    assert groups_of(group) == {frozenset([0, 1]), frozenset([2, 3]), frozenset([4])}


@given(seed=st.integers(0, 10_000), n=st.integers(4, 40), half=st.booleans())
@settings(max_examples=25, deadline=None)
def test_every_group_is_one_of_the_full_tree(seed, n, half):
    rows = normalize(torch.randn(n, 5, generator=torch.Generator().manual_seed(seed)), dim=1)
    rows = rows.half() if half else rows
    n_most = max(1, n // 3)
    group = join_nearest(rows, neighbors_of(rows.float(), n - 1), n_most=n_most).numpy()  # all pairs: then it is exact
    assert len(np.unique(group)) == n_most
    assert group.max() == n_most - 1
    assert groups_of(group) <= subtrees(grow_tree(rows.numpy(), np.ones(n)))


def test_few_rows_stay_as_they_are():
    assert join_nearest(torch.eye(3), neighbors_of(torch.eye(3), 2), n_most=3).tolist() == [0, 1, 2]


def test_copies_join_and_never_go_in_circles():
    group = join_nearest(torch.ones(50, 3), neighbors_of(torch.ones(50, 3), 4), n_most=4)
    assert len(group.unique()) == 4


def test_a_node_of_few_rows_joins_before_one_of_many():
    """Two pairs of clouds equally far apart: the two that have few rows cost less to join."""
    directions = torch.tensor([[1.0, 0.0], [1.0, 0.2], [0.0, 1.0], [0.2, 1.0]])
    sizes = (20, 20, 2, 2)
    rows = directions.repeat_interleave(torch.tensor(sizes), dim=0)
    group = join_nearest(rows, neighbors_of(rows, 8), n_most=3).numpy()
    starts = np.cumsum((0, *sizes))
    clouds = [set(group[first:last].tolist()) for first, last in pairwise(starts)]
    assert [len(cloud) for cloud in clouds] == [1, 1, 1, 1]
    assert clouds[2] == clouds[3]
    assert clouds[0].isdisjoint(clouds[1])


@pytest.mark.parametrize("n_most", [3, 1])
def test_clouds_without_a_neighbor_in_another_are_compared_by_their_means(n_most):
    directions = normalize(torch.randn(6, 8, generator=torch.Generator().manual_seed(0)), dim=1)
    rows = directions.repeat_interleave(10, dim=0) + 0.01 * torch.randn(
        60, 8, generator=torch.Generator().manual_seed(1)
    )
    group = join_nearest(rows, neighbors_of(rows, 3), n_most=n_most).numpy()
    assert len(np.unique(group)) == n_most
    assert all(len(set(group[start : start + 10])) == 1 for start in range(0, 60, 10))
