import torch
from torch.nn.functional import normalize

from igcd.methods.joined_features import frozen_part, join_features


def test_the_cosine_of_joined_features_is_the_weighted_mean_of_both():
    generator = torch.Generator().manual_seed(0)
    frozen = normalize(torch.randn(6, 3, generator=generator), dim=1)
    tuned = normalize(torch.randn(6, 5, generator=generator), dim=1)
    joined = join_features(frozen, tuned, frozen_weight=0.3)
    assert torch.allclose(joined @ joined.T, 0.3 * frozen @ frozen.T + 0.7 * tuned @ tuned.T, atol=1e-6)
    assert torch.allclose(frozen_part(joined, 3, frozen_weight=0.3), frozen, atol=1e-6)
