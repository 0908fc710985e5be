import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from igcd.errors import IgcdError
from igcd.functional.projection import (
    N_COMPONENTS,
    Projection,
    fit_projection,
    fit_projection_of_all,
    project_distinct,
    project_together,
)


def test_projection_equals_singular_vectors():
    generator = torch.Generator().manual_seed(1)
    features = torch.randn(50, 6, generator=generator, dtype=torch.float64) * torch.tensor([9.0, 1, 5, 0.1, 3, 2]) + 4
    projection = fit_projection(features, n_components=3)
    centered = features - features.mean(0)
    _, _, right = torch.linalg.svd(centered)
    torch.testing.assert_close(projection.components.abs(), right[:3].abs())
    torch.testing.assert_close(projection.components @ projection.components.T, torch.eye(3, dtype=torch.float64))
    expected = torch.nn.functional.normalize(centered @ projection.components.T, dim=1)
    torch.testing.assert_close(projection(features), expected)


def test_projection_is_the_same_every_time_and_in_any_order_or_precision():
    features = torch.randn(300, 40, generator=torch.Generator().manual_seed(2)) * torch.linspace(1, 5, 40)
    first = fit_projection(features, n_components=8)
    assert torch.equal(first.components, fit_projection(features, n_components=8).components)
    torch.testing.assert_close(fit_projection(features.flip(0), n_components=8)(features), first(features))
    exact = fit_projection(features.double(), n_components=8)
    torch.testing.assert_close(first(features).double(), exact(features), rtol=0, atol=1e-4)


def test_projection_keeps_no_more_components_than_there_are():
    features = torch.randn(5, 9, generator=torch.Generator().manual_seed(3))
    assert fit_projection(features).components.shape == (4, 9)
    with pytest.raises(IgcdError, match="got 1 and 128"):
        fit_projection(features[:1])


def test_a_projection_of_two_images_to_one_component():
    projected = fit_projection(torch.tensor([[1.0, 2.0], [3.0, 2.0]]), n_components=1)(torch.tensor([[9.0, 9.0]]))
    assert projected.tolist() == [[1.0]]
    with pytest.raises(IgcdError, match="got 2 and 0"):
        fit_projection(torch.eye(2), n_components=0)


def test_the_largest_entry_of_a_component_is_positive():
    components = fit_projection(torch.randn(80, 9, generator=torch.Generator().manual_seed(8))).components
    for row in components.tolist():
        assert max(row, key=abs) > 0


def test_half_precision_gives_rows_of_length_one_in_half_precision():
    features = torch.randn(5000, 6, generator=torch.Generator().manual_seed(9)) * torch.tensor([9.0, 1, 5, 1, 3, 2])
    projection = fit_projection(features, n_components=3)
    half = projection(features.half())
    assert half.dtype == torch.float16
    torch.testing.assert_close(half.float(), projection(features), rtol=0, atol=0.01)


def test_the_core_looks_at_256_components():
    first, second = torch.randn(2, 300, 290, generator=torch.Generator().manual_seed(10))
    together = project_together(first, second)
    assert [part.shape for part in together] == [(300, 256), (300, 256)] and N_COMPONENTS == 256
    torch.testing.assert_close(together[1], fit_projection(torch.cat([first, second]), n_components=256)(second))


def test_full_projection_keeps_cosines_of_centered_features():
    features = torch.randn(60, 7, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    centered = torch.nn.functional.normalize(features - features.mean(0), dim=1)
    projected = fit_projection(features)(features)
    torch.testing.assert_close(projected @ projected.T, centered @ centered.T)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("power", [-120, 3, 120])
def test_scale_is_not_information(dtype, power):
    features = np.random.default_rng(0).normal(2, 1, (40, 5)).astype(dtype)
    plain = fit_projection(features, n_components=3)
    scaled = fit_projection(np.ldexp(features, power), n_components=3)
    assert scaled.exponent == plain.exponent - power
    assert torch.equal(scaled.of_array(np.ldexp(features, power)), plain.of_array(features))


def test_a_row_far_larger_than_those_of_the_fit_keeps_its_direction():
    features = np.random.default_rng(1).normal(0, 1, (40, 5)).astype(np.float32)
    projection = fit_projection(features, n_components=4)
    huge = np.array([[1e38, -2e38, 0, 3e37, 1e38]], dtype=np.float32)
    expected = normalize(torch.from_numpy(huge).double() @ projection.components.double().T, dim=1)
    torch.testing.assert_close(projection.of_array(huge).double(), expected, rtol=0, atol=1e-6)


def test_an_array_and_a_tensor_are_projected_alike_and_some_rows_like_all():
    features = np.random.default_rng(2).normal(1, 1, (5000, 6)).astype(np.float32)
    projection = fit_projection(features, n_components=4)
    assert torch.equal(fit_projection(torch.from_numpy(features), n_components=4).components, projection.components)
    compared = projection.of_array(features)
    torch.testing.assert_close(projection(torch.from_numpy(features)), compared)
    some = np.array([7, 4999, 0])
    torch.testing.assert_close(projection.of_array(features, some), compared[some])
    assert projection.of_array(features.astype(np.float16)).dtype == torch.float32


def test_few_rows_keep_all_directions_for_later_ones():
    features = np.random.default_rng(3).normal(1, 1, (4, 6))
    few = fit_projection_of_all(features, n_components=5)
    assert torch.equal(few.components, torch.eye(6, dtype=torch.float64))
    torch.testing.assert_close(few.coordinates(torch.from_numpy(features)).mean(dim=0), torch.zeros(6).double())
    for n_components, rows in ((None, features), (5, features[:1])):
        as_they_are = fit_projection_of_all(rows, n_components=n_components)
        torch.testing.assert_close(as_they_are.of_array(rows), normalize(torch.from_numpy(rows), dim=1))


def test_sets_of_few_rows_are_projected_together_as_one_table_is():
    features = torch.randn(9, 20, generator=torch.Generator().manual_seed(11))
    of_all = fit_projection_of_all(features.numpy(), n_components=N_COMPONENTS)
    assert torch.equal(torch.cat(project_together(features[:4], features[4:])), of_all(features))


@pytest.mark.parametrize(("limit", "n_fitted"), [(4, 6), (5, 5)])
def test_each_content_is_projected_once_and_fitted_once_unless_they_are_very_many(limit, n_fitted, monkeypatch):
    features = np.random.default_rng(5).normal(1, 1, (6, 3)).astype(np.float32)
    features[4] = features[1]
    first_rows = np.array([5, 0, 1, 3, 2])
    monkeypatch.setattr("igcd.functional.projection.EXACT_UP_TO", limit)
    projection, projected = project_distinct(features, first_rows, n_components=2)
    expected = fit_projection(features if n_fitted == 6 else features[first_rows], n_components=2)
    assert torch.equal(projection.components, expected.components)
    torch.testing.assert_close(projected.float(), expected(torch.from_numpy(features[first_rows])), rtol=0, atol=1e-3)


def test_a_projection_can_be_stored():
    projection = fit_projection(torch.randn(20, 4, generator=torch.Generator().manual_seed(5)) * 9, n_components=2)
    again = Projection.from_state_dict(projection.state_dict())
    assert again.exponent == projection.exponent != 0 and torch.equal(again.components, projection.components)
    before_exponents = {name: tensor for name, tensor in projection.state_dict().items() if name != "exponent"}
    assert Projection.from_state_dict(before_exponents).exponent == 0
