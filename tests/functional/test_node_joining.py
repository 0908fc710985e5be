import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from igcd.functional import node_joining
from igcd.functional.category_tree import grow_tree
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


def test_points_on_a_line_join_where_they_are_near():
    centers = torch.tensor([[1.0, 0.0], [1.0, 0.01], [0.0, 1.0], [0.02, 1.0], [-1.0, 0.0]])
    group = join_nearest(centers, torch.ones(5), n_most=3).numpy()
    assert groups_of(group) == {frozenset([0, 1]), frozenset([2, 3]), frozenset([4])}


@given(seed=st.integers(0, 10_000), n=st.integers(4, 40))
@settings(max_examples=25, deadline=None)
def test_every_group_is_one_of_the_full_tree(seed, n):
    generator = torch.Generator().manual_seed(seed)
    centers = torch.nn.functional.normalize(torch.randn(n, 5, generator=generator, dtype=torch.float64), dim=1)
    weights = torch.randint(1, 9, (n,), generator=generator)
    n_most = max(1, n // 3)
    monkey = pytest.MonkeyPatch()
    monkey.setattr(node_joining, "N_NEAREST", n)  # all pairs: then it is exact
    group = join_nearest(centers, weights, n_most=n_most).numpy()
    monkey.undo()
    assert len(np.unique(group)) == n_most
    assert group.max() == n_most - 1
    assert groups_of(group) <= subtrees(grow_tree(centers.numpy(), weights.numpy()))


def test_few_nodes_stay_as_they_are():
    assert join_nearest(torch.eye(3), torch.ones(3), n_most=3).tolist() == [0, 1, 2]


def test_copies_join_and_never_go_in_circles():
    group = join_nearest(torch.ones(50, 3), torch.ones(50), n_most=4)
    assert len(group.unique()) == 4


def test_weight_counts_a_small_node_joins_before_a_large_one():
    centers = torch.tensor([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.12, 1.0]])
    group = join_nearest(centers, torch.tensor([100.0, 100.0, 1.0, 1.0]), n_most=3).numpy()
    assert groups_of(group) == {frozenset([0]), frozenset([1]), frozenset([2, 3])}
