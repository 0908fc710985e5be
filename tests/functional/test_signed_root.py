import math

import pytest
import torch

from igcd.functional.signed_root import signed_root


def slow_root(row):
    """The same with plain numbers, entry by entry."""
    roots = [math.copysign(math.sqrt(abs(entry)), entry) for entry in row]
    length = math.sqrt(sum(root * root for root in roots))
    return [root / length for root in roots]


def test_it_equals_a_plain_loop():
    features = torch.randn(7, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    expected = torch.tensor([slow_root(row) for row in features.tolist()], dtype=torch.float64)
    torch.testing.assert_close(signed_root(features), expected)


def test_the_size_of_a_row_does_not_matter():
    features = torch.randn(4, 6, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(signed_root(features * 9), signed_root(features))
    torch.testing.assert_close(signed_root(-features), -signed_root(features))


def test_the_cosine_of_histograms_is_their_bhattacharyya_coefficient():
    first, second = torch.tensor([0.25, 0.75, 0.0]), torch.tensor([0.25, 0.25, 0.5])
    rooted = signed_root(torch.stack([first, second]))
    assert float(rooted[0] @ rooted[1]) == pytest.approx(0.25 + math.sqrt(0.75 * 0.25))


def test_a_row_of_zeros_stays_one():
    assert signed_root(torch.zeros(1, 3)).tolist() == [[0.0, 0.0, 0.0]]
