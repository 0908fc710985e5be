import pytest
import torch
from torch.nn.functional import normalize

from igcd.functional import pulling
from igcd.functional.neighbors import neighbor_graph
from igcd.functional.pulling import group_means, node_of_rows, pull_together, tree_over


def gen(seed=0):
    return torch.Generator().manual_seed(seed)


def test_pulling_equals_slow_twin():
    rows = normalize(torch.randn(30, 4, generator=gen(), dtype=torch.float64), dim=1)
    graph = neighbor_graph(rows, 5)
    expected = rows
    for _ in range(2):
        expected = [
            sum((expected[j] for j in graph.idx[i].tolist()), start=expected[i]) / 6 for i in range(len(expected))
        ]
        expected = [row / row.norm() for row in expected]
    torch.testing.assert_close(pull_together(rows, graph), torch.stack(expected))


def test_rows_are_nodes_until_they_are_too_many(monkeypatch):
    rows = normalize(torch.randn(60, 3, generator=gen()), dim=1)
    neighbors = neighbor_graph(rows, 8).idx
    assert node_of_rows(rows, neighbors).tolist() == list(range(60))
    for limits, expected in (((25, 50), 25), ((10, 50), 15), ((10, 12), 12)):  # 60 rows, four per node
        for name, value in zip(("MAX_NODES", "MOST_NODES"), limits, strict=True):
            monkeypatch.setattr(pulling, name, value)
        monkeypatch.setattr(pulling, "ROWS_PER_NODE", 4)
        assert torch.unique(node_of_rows(rows, neighbors)).tolist() == list(range(expected))
    assert torch.unique(node_of_rows(rows, neighbors, max_nodes=7)).tolist() == list(range(7))


def test_means_of_groups_equal_slow_twin():
    rows, groups = torch.randn(40, 3, generator=gen()), torch.randint(5, (40,), generator=gen())
    groups[groups == 3] = 0  # a group without rows
    expected = torch.stack([rows[groups == g].mean(dim=0) if (groups == g).any() else torch.zeros(3) for g in range(6)])
    torch.testing.assert_close(group_means(rows, groups, 6), expected)


def test_a_tree_over_nodes_weighs_them_by_their_rows():
    rows = torch.tensor([[0.0], [2.0], [10.0]])
    tree = tree_over(rows, torch.tensor([0, 0, 1]))
    assert tree.heights.tolist() == pytest.approx([2 * 1 / 3 * 81])  # nodes at 1 and 10


def test_a_known_category_weighs_the_square_of_its_rows():
    rows = torch.tensor([[0.0], [0.0], [0.0], [1.0], [1.0]])
    tree = tree_over(rows, torch.tensor([0, 0, 0, 1, 1]), n_known=1)
    assert tree.heights.tolist() == pytest.approx([9 * 2 / (9 + 2)])
