"""Recursive least squares: what all rows at once would give, whatever the order, and the error on rows left out."""

import pytest
import torch
from torch.nn.functional import one_hot

from igcd.errors import IgcdError
from igcd.functional.least_squares import (
    add_categories,
    add_rows,
    choose_ridge,
    expand,
    no_rows,
    random_expansion,
    take_categories,
)


def rows_of(n, n_categories, seed=0, width=5):
    generator = torch.Generator().manual_seed(seed)
    categories = torch.randint(n_categories, (n,), generator=generator)
    return torch.randn(n, width, generator=generator) + categories[:, None], categories


def all_at_once(rows, categories, n_categories, ridge):
    """The slow twin: the normal equations of all rows, one product at a time."""
    width = rows.shape[1]
    gram = ridge * torch.eye(width, dtype=torch.float64)
    moments = torch.zeros(width, n_categories, dtype=torch.float64)
    for row, category in zip(rows.double(), categories.tolist(), strict=True):
        gram += torch.outer(row, row)
        moments[:, category] += row
    return torch.linalg.solve(gram, moments)


def test_stage_by_stage_is_what_all_rows_at_once_give():
    """Categories 0 to 2 come first, 3 and 4 later, as new columns; a stage may have no row."""
    first, second = rows_of(30, 3), rows_of(2000, 5, seed=1)
    fitted = add_rows(add_categories(no_rows(5, ridge=0.7), 3), *first)
    fitted = add_rows(fitted, first[0][:0], first[1][:0])
    fitted = add_rows(add_categories(fitted, 2), *second)
    expected = all_at_once(torch.cat([first[0], second[0]]), torch.cat([first[1], second[1]]), 5, 0.7)
    assert torch.allclose(fitted.weights, expected, atol=1e-8)
    assert torch.allclose(fitted.scores(second[0]), second[0].double() @ expected, atol=1e-7)


def test_the_order_of_rows_changes_nothing():
    rows, categories = rows_of(1500, 4)
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(2))
    start = add_categories(no_rows(5, ridge=1.0), 4)
    once, shuffled = add_rows(start, rows, categories), add_rows(start, rows[order], categories[order])
    assert torch.allclose(once.weights, shuffled.weights) and torch.allclose(once.inverse, shuffled.inverse)


def test_a_category_that_is_dropped_leaves_the_others_as_they_are():
    fitted = add_rows(add_categories(no_rows(5, ridge=1.0), 4), *rows_of(50, 4))
    kept = take_categories(fitted, torch.tensor([0, 3]))
    assert torch.equal(kept.weights, fitted.weights[:, [0, 3]]) and torch.equal(kept.inverse, fitted.inverse)


@pytest.mark.parametrize("size", [1.0, 0.05])  # of small rows all eigenvalues are below 1
def test_the_ridge_has_the_least_error_on_rows_left_out(size):
    rows, categories = rows_of(25, 3)
    rows = size * rows

    def error(ridge):
        total = 0.0
        for i in range(len(rows)):
            others = torch.arange(len(rows)) != i
            weights = all_at_once(rows[others], categories[others], 3, ridge)
            total += float((one_hot(categories[i], 3).double() - rows[i].double() @ weights).square().sum())
        return total

    ridges = (1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0, 1000.0)
    assert choose_ridge(rows, categories, ridges=ridges) == min(ridges, key=error)


def test_an_expanded_row_has_the_row_in_it():
    rows = torch.nn.functional.normalize(rows_of(6, 2)[0], dim=1)
    directions = random_expansion(5, 7, generator=torch.Generator().manual_seed(0))
    expanded = expand(rows, directions)
    assert expanded.shape == (6, 13) and torch.equal(expanded[:, :5], rows) and (expanded[:, -1] == 1).all()
    for row, one in zip(rows, expanded[:, 5:-1], strict=True):
        positive = torch.tensor([max(0.0, float(row @ direction)) for direction in directions.T])
        assert torch.allclose(one, positive / positive.norm(), atol=1e-6)


def test_a_ridge_of_nothing_is_refused():
    with pytest.raises(IgcdError, match="above 0, got 0"):
        no_rows(3, ridge=0)


def test_ridges_from_a_ten_thousandth_to_a_thousand_are_tried():
    generator = torch.Generator().manual_seed(0)
    easy = torch.eye(3).repeat(10, 1), torch.arange(3).repeat(10)  # any shrinking is wrong
    noise = torch.randn(200, 5, generator=generator), torch.randint(3, (200,), generator=generator)
    assert choose_ridge(*easy) == pytest.approx(1e-4)
    assert choose_ridge(*noise) == pytest.approx(1e3)
