"""Shards searched one by one and merged, in this process: what the workers of a cluster do (see test_on_ray.py)."""

import pytest
import torch
from torch.nn.functional import normalize

from igcd.embedding import graph_on_ray
from igcd.embedding.graph_on_ray import GraphOnRay, nearest_first
from igcd.functional.neighbors import neighbor_graph, searching_with


class InThisProcess:
    """A cluster of one worker that does its jobs in the wrong order."""

    def run(self, worker, settings, numbers, job, done, *, describe):
        self.described = describe(0)
        here = worker(*settings, 1)
        for number in reversed(numbers):
            done(number, here.make(*job(number)))


class ExactIndex:
    """Stands in for `ShardIndex`: finds the true neighbors, and there is nothing to compile."""

    def __init__(self, rows, *, seed):  # noqa: ARG002 - nothing is drawn
        self._unit = normalize(rows, dim=1)

    def search(self, queries, k):
        cosines, idx = (normalize(queries, dim=1) @ self._unit.T).topk(k)
        return idx, cosines


def graphs(folder):
    """The exact graph of 1,005 rows, and the one merged of shards; the last 5 rows join the shard before."""
    generator = torch.Generator().manual_seed(0)
    centers = torch.randn(20, 24, generator=generator)
    rows = centers[torch.randint(20, (1_005,), generator=generator)] + torch.randn(1_005, 24, generator=generator)
    with searching_with(GraphOnRay(InThisProcess(), folder, shard_rows=500)):
        found = neighbor_graph(rows, 8, approximate_above=100)
    assert (found.idx != torch.arange(len(rows))[:, None]).all()
    assert not list(folder.iterdir())
    return neighbor_graph(rows, 8), found


def test_merged_shards_are_the_exact_graph_where_each_search_is_exact(tmp_path, monkeypatch):
    monkeypatch.setattr(graph_on_ray, "ShardIndex", ExactIndex)
    exact, found = graphs(tmp_path)
    assert torch.equal(found.idx.sort(dim=1).values, exact.idx.sort(dim=1).values)
    assert found.recall == 1
    torch.testing.assert_close(found.similarity, exact.similarity, rtol=0, atol=2e-6)


@pytest.mark.slow  # PyNNDescent is compiled at its first call
def test_merged_shards_are_nearly_the_exact_graph(tmp_path):
    pytest.importorskip("pynndescent", reason="approximate neighbors need the extra `scale`")
    exact, found = graphs(tmp_path)
    shared = (found.idx[:, :, None] == exact.idx[:, None, :]).any(dim=2).double().mean()
    assert shared > 0.95 and abs(found.recall - float(shared)) < 0.02
    assert (found.similarity <= exact.similarity + 1e-6).all()  # nothing is nearer than the nearest


def test_the_nearest_come_first_whatever_the_order_they_came_in():
    idx, cosines = torch.tensor([[7, 3, -1, 5]]), torch.tensor([[0.5, 0.9, -2.0, 0.5]])
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]):
        found, of_found = nearest_first(idx[:, order], cosines[:, order], 3)
        assert found.tolist() == [[3, 5, 7]]
        torch.testing.assert_close(of_found, torch.tensor([[0.9, 0.5, 0.5]]))
