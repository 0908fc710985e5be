import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import cosine_similarity, normalize

from igcd.functional.prototype_novelty import leave_one_out_similarity, novelty_threshold, similarity_to_known


def points(n, width, seed):
    return torch.randn(n, width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def slow_leave_one_out(features, categories):
    values = []
    for i in range(len(features)):
        others = [
            normalize(features[j], dim=0) for j in range(len(features)) if j != i and categories[j] == categories[i]
        ]
        if others:
            values.append(cosine_similarity(features[i], torch.stack(others).mean(dim=0), dim=0).item())
    return values


@settings(deadline=None)
@given(n=st.integers(1, 12), n_categories=st.integers(1, 4), seed=st.integers(0, 99))
def test_leaving_one_out_against_a_double_loop(n, n_categories, seed):
    features = points(n, 3, seed)
    categories = torch.randint(n_categories, (n,), generator=torch.Generator().manual_seed(seed)) * 3
    expected = torch.tensor(slow_leave_one_out(features, categories), dtype=torch.float64)
    torch.testing.assert_close(leave_one_out_similarity(features, categories), expected)


def test_similarity_against_a_double_loop():
    queries, prototypes = points(5, 3, 0), points(4, 3, 1)
    slow = [max(cosine_similarity(query, prototype, dim=0).item() for prototype in prototypes) for query in queries]
    torch.testing.assert_close(similarity_to_known(queries, prototypes), torch.tensor(slow, dtype=torch.float64))


@settings(deadline=None)
@given(scale=st.floats(0.1, 100), seed=st.integers(0, 20))
def test_only_directions_count(scale, seed):
    features, categories = points(8, 3, seed), torch.arange(8) % 3
    expected = novelty_threshold(features, categories, quantile=0.3)
    assert abs(novelty_threshold(scale * features, categories, quantile=0.3) - expected) < 1e-9


def test_the_quantile_is_the_share_of_known_images_below():
    features, categories = points(200, 5, 0), torch.arange(200) % 4
    similarity = leave_one_out_similarity(features, categories)
    below = (similarity < novelty_threshold(features, categories, quantile=0.1)).double().mean()
    assert abs(below - 0.1) < 0.01


def test_an_image_in_its_own_prototype_would_be_more_like_it():
    """The law that makes leaving out worth its while: with the image itself the mean is never less like it."""
    features, categories = normalize(points(30, 6, 3), dim=1), torch.arange(30) % 5
    means = torch.stack([features[categories == category].mean(dim=0) for category in range(5)])
    inside = cosine_similarity(features, means[categories], dim=1)
    assert (inside >= leave_one_out_similarity(features, categories)).all()


def test_categories_of_one_image_tell_nothing():
    assert novelty_threshold(points(3, 2, 0), torch.arange(3), quantile=0.05) == -1.0
    assert len(leave_one_out_similarity(points(0, 2, 0), torch.empty(0, dtype=torch.int64))) == 0
