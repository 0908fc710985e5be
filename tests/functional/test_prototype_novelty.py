import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import cosine_similarity, normalize

from igcd.functional.prototype_novelty import hide_each_category, novelty_threshold, similarity_to_known


def points(n, width, seed):
    return torch.randn(n, width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def slow_hiding(features, categories):
    """Image by image: similarity to the closest prototype, with that of its category, itself left out, and without."""
    shown, hidden = [], []
    for i in range(len(features)):
        closest = {}
        for category in set(categories.tolist()):
            members = [j for j in range(len(features)) if categories[j] == category and j != i]
            if members:
                mean = torch.stack([normalize(features[j], dim=0) for j in members]).mean(dim=0)
                closest[category] = cosine_similarity(features[i], mean, dim=0).item()
        if int(categories[i]) in closest:
            shown.append(max(closest.values()))
            del closest[int(categories[i])]
            hidden.append(max(closest.values(), default=-1.0))
    return shown, hidden


@settings(deadline=None)
@given(n=st.integers(1, 12), n_categories=st.integers(1, 4), seed=st.integers(0, 99))
def test_hiding_against_loops(n, n_categories, seed):
    features = points(n, 3, seed)
    categories = torch.randint(n_categories, (n,), generator=torch.Generator().manual_seed(seed)) * 3
    shown, hidden = slow_hiding(features, categories)
    found = hide_each_category(features, categories)
    torch.testing.assert_close(found.shown, torch.tensor(shown, dtype=torch.float64))
    torch.testing.assert_close(found.hidden, torch.tensor(hidden, dtype=torch.float64))


def test_similarity_against_a_double_loop():
    queries, prototypes = points(5, 3, 0), points(4, 3, 1)
    slow = [max(cosine_similarity(query, prototype, dim=0).item() for prototype in prototypes) for query in queries]
    torch.testing.assert_close(similarity_to_known(queries, prototypes), torch.tensor(slow, dtype=torch.float64))


@settings(deadline=None)
@given(seed=st.integers(0, 99))
def test_no_other_threshold_makes_fewer_errors(seed):
    features, categories = points(12, 3, seed), torch.arange(12) % 3
    found = hide_each_category(features, categories)

    def errors(threshold):
        return int((found.shown < threshold).sum() + (found.hidden >= threshold).sum())

    best = errors(novelty_threshold(features, categories))
    assert best == min(errors(float(t)) for t in torch.cat([found.shown, found.hidden, torch.linspace(-1, 1, 201)]))


@settings(deadline=None)
@given(scale=st.floats(0.1, 100), seed=st.integers(0, 20))
def test_only_directions_count(scale, seed):
    features, categories = points(8, 3, seed), torch.arange(8) % 3
    expected = novelty_threshold(features, categories)
    assert novelty_threshold(scale * features, categories) == pytest.approx(expected, abs=1e-9)


def test_where_every_threshold_is_wrong_as_often_nothing_is_novel():
    """Both categories point the same way: hidden images are as similar as shown ones, and the lowest one is −1."""
    features = torch.tensor([[1.0, 0.0]] * 4)
    assert novelty_threshold(features, torch.tensor([0, 0, 1, 1])) == -1.0


def test_categories_of_one_image_tell_nothing():
    assert novelty_threshold(points(3, 2, 0), torch.arange(3)) == -1.0
    assert novelty_threshold(points(0, 2, 0), torch.empty(0, dtype=torch.int64)) == -1.0
