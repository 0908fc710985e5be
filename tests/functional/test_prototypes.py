import math

import pytest
import torch

from igcd.errors import IgcdError
from igcd.functional.prototypes import (
    category_statistics,
    draw_categories,
    draw_features,
    grouped_entropy,
    hardness,
    join_categories,
    least_similar,
    mean_variance,
    radius,
)


def gen(seed):
    return torch.Generator().manual_seed(seed)


def test_statistics_equal_slow_twin():
    features = torch.randn(30, 3, generator=gen(0), dtype=torch.float64) + 5
    rows = torch.randint(4, (30,), generator=gen(1))
    found = category_statistics(features, rows, n_categories=4)
    for c in range(4):
        own = features[rows == c].tolist()
        for d in range(3):
            mean = sum(x[d] for x in own) / len(own)
            assert float(found.means[c, d]) == pytest.approx(mean)
            assert float(found.variances[c, d]) == pytest.approx(sum((x[d] - mean) ** 2 for x in own) / len(own))
        assert int(found.counts[c]) == len(own)


def test_statistics_of_two_stages_are_those_of_all_categories():
    features, rows = torch.randn(40, 3, generator=gen(2)), torch.arange(40) % 5
    whole = category_statistics(features, rows, n_categories=5)
    old = category_statistics(features[rows < 3], rows[rows < 3], n_categories=3)
    new = category_statistics(features[rows >= 3], rows[rows >= 3] - 3, n_categories=2)
    joined = join_categories(old, new)
    torch.testing.assert_close(joined.means, whole.means)
    torch.testing.assert_close(joined.variances, whole.variances)
    assert joined.counts.tolist() == whole.counts.tolist()
    with pytest.raises(IgcdError, match="got 1 categories with one and ids up to 1"):
        category_statistics(features[:2], torch.ones(2, dtype=torch.int64), n_categories=2)


@pytest.mark.parametrize("kind", ["own", "shared", "round"])
def test_drawn_features_have_the_mean_and_the_variance_asked_for(kind):
    means = torch.tensor([[0.0, 10.0], [5.0, -5.0]], dtype=torch.float64)
    own = torch.tensor([[1.0, 4.0], [0.0, 9.0]], dtype=torch.float64)
    variances = {"own": own, "shared": mean_variance(own), "round": radius(own) ** 2}[kind]
    expected = {"own": own, "shared": torch.tensor([[0.5, 6.5]] * 2), "round": torch.full((2, 2), 3.5)}[kind]
    rows = torch.arange(2).repeat_interleave(20_000)
    drawn = draw_features(means, variances, rows, generator=gen(3))
    found = category_statistics(drawn, rows, n_categories=2)
    torch.testing.assert_close(found.means, means, rtol=0, atol=0.1)
    torch.testing.assert_close(found.variances, expected.double(), rtol=0.05, atol=1e-12)
    assert torch.equal(drawn, draw_features(means, variances, rows, generator=gen(3)))


def slow_hardness(means, tau):
    def cosine(a, b):
        return float(a @ b / a.norm() / b.norm())

    scores = [
        sum(cosine(a, b) for j, b in enumerate(means) if j != i) / (len(means) - 1) / tau for i, a in enumerate(means)
    ]
    return [math.exp(score) / sum(math.exp(other) for other in scores) for score in scores]


def test_hardness_equals_slow_twin():
    means = torch.randn(6, 3, generator=gen(4), dtype=torch.float64)
    assert hardness(means).tolist() == pytest.approx(slow_hardness(means, 0.1))
    torch.testing.assert_close(hardness(means), hardness(means * torch.arange(1, 7)[:, None]))  # lengths do not matter
    assert hardness(means[:1]).tolist() == [1.0]


def test_categories_amid_others_are_drawn_more_often():
    means = torch.tensor([[1.0, 0.0], [1.0, 0.2], [1.0, -0.2], [-1.0, 0.0]])
    probs = hardness(means)
    assert probs.argmax() == 0
    assert probs.argmin() == 3
    drawn = draw_categories(probs, 20_000, generator=gen(5))
    shares = torch.bincount(drawn, minlength=4) / 20_000
    torch.testing.assert_close(shares, probs, rtol=0, atol=0.02)


def slow_grouped_entropy(probs, n_old):
    n, c = probs.shape
    mean = [sum(float(row[j]) for row in probs) / n for j in range(c)]

    def entropy(values):
        return -sum(v * math.log(v) for v in values if v > 0)

    total, sums = 0.0, []
    for group in (mean[:n_old], mean[n_old:]):
        if group:
            sums.append(sum(group))
            total += entropy([value / sums[-1] for value in group])
    return total + entropy(sums)


@pytest.mark.parametrize("n_old", [0, 1, 3, 5])
def test_grouped_entropy_equals_slow_twin(n_old):
    log_probs = (2 * torch.randn(7, 5, generator=gen(6), dtype=torch.float64)).log_softmax(1)
    assert float(grouped_entropy(log_probs, n_old=n_old)) == pytest.approx(slow_grouped_entropy(log_probs.exp(), n_old))


def test_grouped_entropy_is_largest_where_both_groups_get_half_whatever_their_size():
    balanced = torch.tensor([[0.5, 1 / 6, 1 / 6, 1 / 6]], dtype=torch.float64).log()
    largest = math.log(2) + math.log(1) + math.log(3)
    assert float(grouped_entropy(balanced, n_old=1)) == pytest.approx(largest)
    assert float(grouped_entropy(torch.full((1, 4), 0.25, dtype=torch.float64).log(), n_old=1)) < largest
    # Everything on one old category, the new ones forgotten: no group entropy, log 3 inside the new ones.
    one = torch.tensor([[0.0, -1e4, -1e4, -1e4]], dtype=torch.float64, requires_grad=True)
    entropy = grouped_entropy(one.log_softmax(1), n_old=1)
    entropy.backward()
    assert float(entropy.detach()) == pytest.approx(math.log(3))
    assert torch.isfinite(one.grad).all()
    with pytest.raises(IgcdError, match="got 5 for 4"):
        grouped_entropy(balanced, n_old=5)


def test_least_similar_equals_slow_twin():
    candidates, means = torch.randn(12, 4, generator=gen(7)), torch.randn(5, 4, generator=gen(8))

    def likeness(x):
        return max(float(x @ m / x.norm() / m.norm()) for m in means)

    expected = sorted(range(12), key=lambda i: likeness(candidates[i]))[:4]
    assert least_similar(candidates, means, 4).tolist() == expected
    assert least_similar(candidates, means[:0], 3).tolist() == [0, 1, 2]
    with pytest.raises(IgcdError, match="13 candidates were asked for, there are 12"):
        least_similar(candidates, means, 13)
