import pytest
import torch
from torch.nn.functional import normalize

from igcd.functional.neighbors import neighbor_graph
from igcd.functional.pulling import climb_to_peaks, group_means, node_of_rows, pull_together, tree_over


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


@pytest.mark.parametrize("seed", range(4))
def test_climbing_equals_slow_twin(seed):
    rows = torch.randn(60, 3, generator=gen(seed))
    graph = neighbor_graph(rows, 4)
    densities = (10 * torch.rand(60, generator=gen(seed))).round()  # many are equal
    expected = []
    for start in range(60):
        here = start
        while True:
            up = max([here, *graph.idx[here].tolist()], key=lambda i: (float(densities[i]), -i))
            if up == here:
                break
            here = up
        expected.append(here)
    assert climb_to_peaks(densities, graph).tolist() == expected


def test_rows_are_nodes_until_they_are_too_many():
    graph = neighbor_graph(torch.randn(60, 3, generator=gen()), 8)
    assert node_of_rows(graph).tolist() == list(range(60))
    node = node_of_rows(graph, max_nodes=25)
    assert int(node.max()) < 25
    assert torch.unique(node).tolist() == list(range(int(node.max()) + 1))


def test_means_of_groups_equal_slow_twin():
    rows, groups = torch.randn(40, 3, generator=gen()), torch.randint(5, (40,), generator=gen())
    groups[groups == 3] = 0  # a group without rows
    expected = torch.stack([rows[groups == g].mean(dim=0) if (groups == g).any() else torch.zeros(3) for g in range(6)])
    torch.testing.assert_close(group_means(rows, groups, 6), expected)


def test_a_tree_over_nodes_weighs_them_by_their_rows():
    rows = torch.tensor([[0.0], [2.0], [10.0]])
    tree = tree_over(rows, torch.tensor([0, 0, 1]))
    assert tree.heights.tolist() == pytest.approx([2 * 1 / 3 * 81])  # nodes at 1 and 10
