"""Rows that are left out, against spaces and means found by hand without them."""

import pytest
import torch
from torch.nn.functional import normalize

from igcd.functional import left_out as module
from igcd.functional.discovery import fit_whitening_with
from igcd.functional.left_out import LeftOut, leave_out


def rows_of(n_categories, n_each, width=12, seed=0):
    generator = torch.Generator().manual_seed(seed)
    category = torch.arange(n_categories).repeat(n_each)
    centers = torch.randn(n_categories, width, generator=generator)
    return normalize(centers[category] + 0.4 * torch.randn(len(category), width, generator=generator), dim=1), category


@pytest.mark.parametrize("n_known", [0, 12])
@pytest.mark.parametrize("width", [12, 60])
def test_a_part_is_asked_in_what_was_found_without_it(n_known, width):
    """Slow twin: whitening and means of the other rows alone, category by category. Some rows have no category."""
    features, category = rows_of(4, 8, width)
    category[[20, 31]] = -1
    parts = leave_out(features, category, n_known=n_known)
    assert sorted(torch.cat([part.idx for part in parts]).tolist()) == list(range(32))
    for part in parts:
        rest = [row for row in range(32) if row not in part.idx.tolist()]
        known = [row for row in rest if row < n_known]
        whitening = fit_whitening_with(
            features[[row for row in rest if row >= n_known]], features[known], category[known], seed=0
        )
        torch.testing.assert_close(part.rows, whitening(features[part.idx]))
        for category_id, mean in zip(part.category.tolist(), part.means, strict=True):
            own = [row for row in rest if category[row] == category_id]
            torch.testing.assert_close(mean, whitening(features[own]).mean(dim=0))
        assert part.category.tolist() == [0, 1, 2, 3]


def test_what_a_row_is_has_no_part_in_what_it_is_asked_in():
    features, category = rows_of(3, 10)
    one = leave_out(features, category, n_known=9)[0]
    features[one.idx] = 7.0
    category[one.idx] = 2
    again = leave_out(features, category, n_known=9)[0]
    assert torch.equal(one.idx, again.idx) and torch.equal(one.means, again.means)


def test_of_many_rows_enough_are_asked(monkeypatch):
    features, category = rows_of(4, 100)
    monkeypatch.setattr(module, "ENOUGH", 50)
    assert sum(len(part.idx) for part in leave_out(features, category, n_known=40)) == 60  # three parts of twenty
    monkeypatch.setattr(module, "MAX_ROWS", 399)
    assert leave_out(features, category, n_known=40) == []


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_few_rows_are_no_trouble(n):
    features, category = rows_of(2, 2)
    assert len(leave_out(features[:n], category[:n], n_known=0)) == (n if n > 1 else 0)


def test_the_place_of_a_category_that_is_left_out_whole_is_none():
    part = LeftOut(torch.arange(4), torch.zeros(4, 2), torch.zeros(3, 2), torch.tensor([1, 4, 6]))
    assert part.place_of(torch.tensor([4, 1, 5, 9, -1, 6])).tolist() == [1, 0, -1, -1, -1, 2]
