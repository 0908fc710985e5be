import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import normalize

from igcd.functional import held_out as module
from igcd.functional.held_out import explained_shares, left_out_error
from igcd.functional.neighbors import neighbor_graph


def gen(seed=0):
    return torch.Generator().manual_seed(seed)


def clouds(n_clouds, n_each, *, apart, width=32, seed=0):
    owners = torch.arange(n_clouds).repeat_interleave(n_each)
    centers = apart * torch.randn(n_clouds, width, generator=gen(seed))
    return normalize(centers[owners] + torch.randn(len(owners), width, generator=gen(seed + 1)), dim=1)


@given(seed=st.integers(0, 1000), n_groups=st.integers(1, 12))
@settings(max_examples=25, deadline=None)
def test_left_out_error_equals_slow_twin(seed, n_groups):
    rows = torch.randn(15, 3, generator=gen(seed), dtype=torch.float64)
    groups = torch.randint(n_groups, (15,), generator=gen(seed))
    total = 0.0
    for i in range(15):
        others = [j for j in range(15) if j != i and groups[j] == groups[i]]
        mean = rows[others].mean(dim=0) if others else rows.mean(dim=0)
        total += float((rows[i] - mean).square().sum())
    assert left_out_error(rows, groups) == pytest.approx(total / 15)


def test_true_groups_explain_most():
    tried = np.array([2, 3, 6, 9, 12, 16, 24, 60])
    shares = explained_shares(clouds(12, 30, apart=2.0), tried)
    assert tried[shares.argmax()] == 12
    assert shares.max() == 1
    assert shares.min() == 0
    assert (np.diff(shares[:5]) > 0).all()
    assert (np.diff(shares[4:]) < 0).all()


def test_noise_has_no_groups_to_explain():
    noise = normalize(torch.randn(300, 32, generator=gen()), dim=1)
    tried = np.array([2, 5, 20, 80])
    assert explained_shares(noise, tried).argmax() == 0


def test_many_rows_are_sampled(monkeypatch):
    rows, tried = clouds(6, 200, apart=3.0), np.array([2, 4, 6, 9])
    monkeypatch.setattr(module, "MAX_ROWS", 240)
    seen = []
    monkeypatch.setattr(module, "neighbor_graph", lambda rows, k: seen.append(len(rows)) or neighbor_graph(rows, k))
    assert tried[explained_shares(rows, tried).argmax()] == 6
    assert seen == [240, 240]


@pytest.mark.parametrize("shape", [(1, 4), (2, 4), (5, 1)])
def test_too_little_to_hold_out_says_nothing_wrong(shape):
    shares = explained_shares(normalize(torch.randn(shape, generator=gen()), dim=1), np.array([1, 2]))
    assert np.isfinite(shares).all()
