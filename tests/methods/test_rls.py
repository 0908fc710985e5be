"""Recursive least squares over a stream; what holds for every newer method is in test_newer_methods."""

import pytest
import torch

from igcd.functional.least_squares import add_categories, add_rows, choose_ridge, no_rows
from igcd.methods.density_gaussian import DensityGaussian
from igcd.methods.rls import RecursiveLeastSquares


def make(make_method, **more):
    return make_method(RecursiveLeastSquares, n_expanded=32, granularity=1.5, **more)


def test_labeled_images_alone_give_ridge_regression(make_method, stages):
    method = make(make_method)
    (stage, truth), *_ = stages("mi")
    method.learn(stage)
    x, rows = method._compared(method._encoder.plain_views(stage.labeled)), method._book.of(stage.labels)
    expanded = method._expanded(x)
    fitted = add_categories(no_rows(expanded.shape[1], ridge=choose_ridge(expanded, rows)), 4)
    fitted = add_rows(fitted, expanded, rows)
    queries = method._compared(method._encoder.plain_views(truth.test_images))
    expected = fitted.scores(method._expanded(queries)).argmax(dim=1)
    assert torch.equal(method.predict(truth.test_images).cluster, expected)


@pytest.mark.parametrize("features", ["frozen", "dual"])
def test_it_discovers_what_density_gaussian_discovers(make_method, stages, features):
    method = make(make_method, features=features)
    twin = make_method(DensityGaussian, granularity=1.5, features=features)
    for stage, _ in stages("mi"):
        for each in (method, twin):
            each.learn(stage)
    assert [found.cluster for found in method.discoveries()] == [found.cluster for found in twin.discoveries()]
    assert torch.equal(method._statistics.means, twin._statistics.means)
    assert method.kept().bytes > twin.kept().bytes


def test_later_stages_leave_the_weights_of_earlier_images_in_place(make_method, stages):
    """The head after two stages is that of all images it learned, fitted at once."""
    method = make(make_method)
    learned = []
    add = method._add
    method._add = lambda x, columns: (learned.append((x, columns)), add(x, columns))
    (first, _), (second, _), *_ = stages("mi")
    method.learn(first)
    ridge = choose_ridge(method._expanded(learned[0][0]), learned[0][1])
    method.learn(second)
    x, columns = (torch.cat(parts) for parts in zip(*learned, strict=True))
    assert len(x) > len(learned[0][0])
    expanded = method._expanded(x)
    at_once = add_categories(no_rows(expanded.shape[1], ridge=ridge), len(method._clusters))
    assert torch.allclose(method._fitted.weights, add_rows(at_once, expanded, columns).weights, atol=1e-8)


def test_the_same_labeled_images_again_are_not_counted_twice(make_method, stages):
    method = make(make_method)
    (first, _), (second, _), *_ = stages("igcd-l")
    method.learn(first)
    before = method._fitted.weights
    method._add_labeled(
        second.labeled,
        method._compared(method._encoder.plain_views(second.labeled)),
        method._book.of(second.labels),
    )
    assert torch.equal(method._fitted.weights, before)
