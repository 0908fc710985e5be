from importlib.util import find_spec

import pytest
import torch
from torch.nn.functional import normalize

from igcd.functional.approximate_neighbors import N_SEARCHED, ShardIndex, _index
from igcd.functional.neighbors import SIMILARITY_STEPS, neighbor_graph

# PyNNDescent is compiled at its first call, which takes half a minute; where none is made, it is not even imported.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not find_spec("pynndescent"), reason="approximate neighbors need the extra `scale`"),
]
STEP = 1.1 / SIMILARITY_STEPS
"""Sums in another order may be rounded to the next step."""


def clouds(n, *, width=12, n_clouds=15, seed=0):
    generator = torch.Generator().manual_seed(seed)
    centers = torch.randn(n_clouds, width, generator=generator)
    return centers[torch.arange(n) % n_clouds] + 0.4 * torch.randn(n, width, generator=generator)


@pytest.fixture(scope="module")
def exact_graph():
    rows = clouds(3_000)
    return rows, neighbor_graph(rows, 8)


@pytest.fixture(scope="module")
def graphs(exact_graph):
    rows, exact = exact_graph
    return rows, exact, neighbor_graph(rows, 8, approximate_above=1_000)


def test_nearly_all_neighbors_are_the_true_ones(graphs):
    _, exact, found = graphs
    shared = (found.idx[:, :, None] == exact.idx[:, None, :]).any(dim=2).double().mean()
    assert shared > 0.97
    assert found.recall == pytest.approx(float(shared), abs=0.02)
    assert exact.recall == 1 and exact.first(3).recall == 1
    assert found.first(3).recall == found.recall


def test_similarity_is_that_of_the_pair_and_falls_and_nobody_is_his_own_neighbor(graphs):
    rows, exact, found = graphs
    unit = normalize(rows, dim=1)
    cosine = (unit[found.idx] * unit[:, None]).sum(dim=2)
    torch.testing.assert_close(found.similarity, cosine, rtol=0, atol=2e-6)
    assert (found.similarity.diff(dim=1) <= 0).all()
    assert (found.idx != torch.arange(len(rows))[:, None]).all()
    assert all(len(set(row)) == 8 for row in found.idx.tolist())
    same = (found.idx == exact.idx).all(dim=1)
    assert same.double().mean() > 0.9
    torch.testing.assert_close(found.similarity[same], exact.similarity[same], rtol=0, atol=STEP)


def test_a_seed_gives_the_same_graph_and_the_input_stays(graphs):
    rows, _, found = graphs
    before = rows.clone()
    n_threads = torch.get_num_threads()
    again = neighbor_graph(rows, 8, approximate_above=1_000)
    assert torch.get_num_threads() == n_threads
    assert torch.equal(again.idx, found.idx) and torch.equal(again.similarity, found.similarity)
    assert again.recall == found.recall
    assert torch.equal(rows, before)


def test_rows_of_length_1_have_the_same_neighbors_without_a_copy_of_them(exact_graph):
    unit = normalize(exact_graph[0], dim=1)
    found = [_index(unit, N_SEARCHED, seed=0, copies=copies).neighbor_graph[0] for copies in (True, False)]
    agree = [set(one) == set(other) for one, other in zip(*(idx[:, :9].tolist() for idx in found), strict=True)]
    assert sum(agree) > 0.999 * len(agree)  # but for what rounding decides


def test_half_precision_and_rows_in_any_length(graphs):
    rows, _, found = graphs
    lengths = 0.5 + torch.arange(len(rows)).float()[:, None] / len(rows)
    half = neighbor_graph((rows * lengths).half(), 8, approximate_above=1_000)
    assert half.similarity.dtype == torch.float32
    assert (half.idx[:, :, None] == found.idx[:, None, :]).any(dim=2).double().mean() > 0.95


def test_many_copies_of_one_row_have_eight_neighbors_that_are_copies():
    rows = torch.cat([torch.ones(200, 12), clouds(1_000)])
    found = neighbor_graph(rows, 8, approximate_above=1_000)
    assert (found.idx >= 0).all()
    assert (found.idx[:200] != torch.arange(200)[:, None]).all()
    assert float(found.similarity[:200].double().mean()) > 0.99


def test_shards_searched_one_by_one_give_what_all_rows_give(graphs):
    """Against the exact search, with fewer rows in a shard than neighbors that are asked for as well."""
    rows, exact, _ = graphs
    idx, cosines = ShardIndex(rows, seed=0).search(rows[:200], 9)
    assert (idx[:, 0] == torch.arange(200)).all()  # itself
    shared = (idx[:, 1:, None] == exact.idx[:200, None, :]).any(dim=2).double().mean()
    assert shared > 0.95
    unit = torch.nn.functional.normalize(rows, dim=1)
    torch.testing.assert_close(cosines, (unit[idx] @ unit[:200, :, None])[:, :, 0].float(), rtol=0, atol=1e-5)
    few, of_few = ShardIndex(rows[:20], seed=0).search(rows[:5], 30)
    assert (few[:, 20:] == -1).all() and (of_few[few < 0] == -2).all()


def test_of_a_long_seed_the_last_32_bits_count():
    one, other = (neighbor_graph(clouds(600), 8, approximate_above=100, seed=seed) for seed in (5, 2**32 + 5))
    assert torch.equal(one.idx, other.idx)
