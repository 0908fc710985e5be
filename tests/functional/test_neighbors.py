import builtins

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from igcd.errors import IgcdError
from igcd.functional.neighbors import SIMILARITY_STEPS, Neighbors, nearest_neighbors, neighbor_graph, searching_with

STEP = 1.1 / SIMILARITY_STEPS
"""Sums in another order may be rounded to the next step."""


def on_circle(degrees):
    """Points that can be drawn: similarity falls with the angle between them."""
    angles = torch.deg2rad(torch.tensor(degrees, dtype=torch.float64))
    return torch.stack([angles.cos(), angles.sin()], dim=1)


def slow_neighbors(queries, features, k, *, exclude_self):
    """Row by row, all pairs sorted by falling similarity, then by index."""
    all_idx, all_similarity = [], []
    for i, query in enumerate(queries):
        pairs = []
        for j, feature in enumerate(features):
            if not (exclude_self and i == j):
                cosine = float(query @ feature / (query.norm() * feature.norm()))
                pairs.append((-round(cosine * SIMILARITY_STEPS) / SIMILARITY_STEPS, j))
        pairs.sort()
        all_idx.append([j for _, j in pairs[:k]])
        all_similarity.append([-minus for minus, _ in pairs[:k]])
    return Neighbors(torch.tensor(all_idx), torch.tensor(all_similarity, dtype=torch.float64))


def test_points_on_a_circle():
    graph = neighbor_graph(on_circle([0, 10, 25, 90, 93]), 2)
    assert graph.idx.tolist() == [[1, 2], [0, 2], [1, 0], [4, 2], [3, 2]]
    assert graph.similarity[0].tolist() == pytest.approx([0.98481, 0.90631], abs=1e-5)


def test_length_of_a_feature_does_not_count():
    features = on_circle([0, 10, 25, 90, 93])
    lengths = torch.tensor([[3.0], [0.1], [7.0], [1.0], [20.0]])
    torch.testing.assert_close(neighbor_graph(features * lengths, 4).idx, neighbor_graph(features, 4).idx)


@pytest.mark.parametrize("max_bytes", [1, 2_000, 20_000, 2**28])
def test_equals_slow_twin_whatever_the_chunks(max_bytes):
    features = torch.randn(47, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    features[30:36] = features[3]  # copies: ties that only the index can break
    features[40] = -features[3]
    graph = neighbor_graph(features, 7, max_bytes=max_bytes)
    twin = slow_neighbors(features, features, 7, exclude_self=True)
    assert graph.idx.tolist() == twin.idx.tolist()
    torch.testing.assert_close(graph.similarity, twin.similarity, rtol=0, atol=0)


@pytest.mark.parametrize("max_bytes", [1, 2_000, 2**28])
def test_queries_equal_slow_twin(max_bytes):
    generator = torch.Generator().manual_seed(1)
    features = torch.randn(30, 5, generator=generator, dtype=torch.float64)
    queries = torch.cat([torch.randn(11, 5, generator=generator, dtype=torch.float64), features[:2]])
    found = nearest_neighbors(queries, features, 30, max_bytes=max_bytes)
    assert found.idx.tolist() == slow_neighbors(queries, features, 30, exclude_self=False).idx.tolist()
    assert found.idx[-2:, 0].tolist() == [0, 1]


def test_copies_are_neighbors_in_the_order_of_their_index():
    graph = neighbor_graph(torch.ones(40, 8), 5, max_bytes=4_000)
    assert graph.idx[0].tolist() == [1, 2, 3, 4, 5]
    assert graph.idx[3].tolist() == [0, 1, 2, 4, 5]
    assert graph.idx[39].tolist() == [0, 1, 2, 3, 4]
    assert (graph.similarity == 1).all()


def test_float32_agrees_with_float64_and_half_is_accepted():
    features = torch.randn(200, 64, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    exact, single = neighbor_graph(features, 9), neighbor_graph(features.float(), 9)
    torch.testing.assert_close(single.similarity.double(), exact.similarity, rtol=0, atol=2e-6)
    assert (single.idx == exact.idx).float().mean() > 0.99
    assert neighbor_graph(features.half(), 9).similarity.dtype == torch.float32


@given(seed=st.integers(0, 10_000), n=st.integers(3, 25), max_bytes=st.integers(1, 8_000))
@settings(max_examples=40, deadline=None)
def test_laws(seed, n, max_bytes):
    features = torch.randn(n, 3, generator=torch.Generator().manual_seed(seed))
    k = 1 + seed % (n - 1)
    graph = neighbor_graph(features, k, max_bytes=max_bytes)
    assert (graph.idx != torch.arange(n)[:, None]).all()
    assert all(len(set(row)) == k for row in graph.idx.tolist())
    assert (graph.similarity.diff(dim=1) <= 0).all()
    whole = neighbor_graph(features, n - 1)
    assert whole.first(k).idx.tolist() == graph.idx.tolist()


def test_bad_input_is_an_error():
    features = torch.eye(8)
    with pytest.raises(IgcdError, match="below the number of images, got 10 for 8"):
        neighbor_graph(features, 10)
    with pytest.raises(IgcdError, match="at most the number of images, got 9 for 8"):
        nearest_neighbors(features, features, 9)
    with pytest.raises(IgcdError, match="same width"):
        nearest_neighbors(torch.eye(3), features, 1)
    with pytest.raises(IgcdError, match="holds 3 neighbors of each image, 4 were asked for"):
        neighbor_graph(features, 3).first(4)
    features[5, 2] = torch.nan
    with pytest.raises(IgcdError, match="position 5"):
        neighbor_graph(features, 2)


@pytest.mark.parametrize(("steps_apart", "order"), [(0.4, [0, 1]), (2.0, [1, 0])])
def test_cosines_closer_than_a_millionth_tie_and_the_lower_index_comes_first(steps_apart, order):
    cosines = torch.tensor([0.5, 0.5 + steps_apart / 2**20], dtype=torch.float64)
    features = torch.stack([cosines, (1 - cosines.square()).sqrt()], dim=1)
    assert nearest_neighbors(torch.tensor([[1.0, 0.0]], dtype=torch.float64), features, 2).idx.tolist() == [order]


# A search that is not exact ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def exact_graph():
    rows = torch.randn(1_200, 12, generator=torch.Generator().manual_seed(0))
    return rows, neighbor_graph(rows, 8)


def test_without_the_package_the_graph_is_exact_and_says_that_it_takes_long(monkeypatch, exact_graph):
    rows, exact = exact_graph
    real_import = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "pynndescent":
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.warns(UserWarning, match="extra `scale`"):
        found = neighbor_graph(rows, 8, approximate_above=1_000)
    assert torch.equal(found.idx, exact.idx) and found.recall == 1


def test_rows_that_nobody_found_are_searched_exactly(exact_graph):
    rows, exact = exact_graph

    def half_blind(features, k, *, seed):  # noqa: ARG001
        idx = exact.idx.clone()
        idx[::2, -1] = -1
        return idx

    with searching_with(half_blind):
        found = neighbor_graph(rows, 8, approximate_above=1_000)
    assert torch.equal(found.idx, exact.idx)
    torch.testing.assert_close(found.similarity, exact.similarity, rtol=0, atol=STEP)
    assert found.recall == 1


def test_recall_is_the_share_that_is_right(exact_graph):
    rows, exact = exact_graph
    farthest = neighbor_graph(-rows, 1).idx  # any row that is far away

    def two_of_eight_wrong(features, k, *, seed):  # noqa: ARG001
        return torch.cat([exact.idx[:, :6], farthest, (farthest + 1) % len(rows)], dim=1)

    with searching_with(two_of_eight_wrong):
        found = neighbor_graph(rows, 8, approximate_above=1_000)
    assert 0.75 <= found.recall < 1
