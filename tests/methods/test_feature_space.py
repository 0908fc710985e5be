"""What each of tuned, frozen and dual compares, against the features themselves."""

import pytest
import torch
from torch.nn.functional import normalize

from igcd.encoders.encoder import encode
from igcd.errors import IgcdError
from igcd.functional.projection import fit_projection
from igcd.functional.signed_root import signed_root
from igcd.methods.feature_space import FeatureSpace, frozen_part, join_features


@pytest.fixture(scope="module")
def views(encoder, digit_stream):
    stage, _ = next(iter(digit_stream("mi")))
    return encoder.plain_views(stage.labeled)


@pytest.fixture(scope="module")
def tail(encoder):
    """A tail that has learned something."""
    tail = encoder.backbone.new_tail()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in tail.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
    return tail


@pytest.fixture
def make_space(encoder, tail):
    return lambda features, **options: FeatureSpace(
        features, encoder, tail, n_components=8, frozen_weight=0.3, **options
    )


def test_the_cosine_of_joined_features_is_the_weighted_mean_of_both():
    generator = torch.Generator().manual_seed(0)
    frozen = normalize(torch.randn(6, 3, generator=generator), dim=1)
    tuned = normalize(torch.randn(6, 5, generator=generator), dim=1)
    joined = join_features(frozen, tuned, frozen_weight=0.3)
    assert torch.allclose(joined @ joined.T, 0.3 * frozen @ frozen.T + 0.7 * tuned @ tuned.T, atol=1e-6)
    assert torch.allclose(frozen_part(joined, 3, frozen_weight=0.3), frozen, atol=1e-6)


@pytest.mark.parametrize("takes_roots", [False, True])
@pytest.mark.parametrize("reduce_tuned", [False, True])
def test_each_space_is_made_of_the_features_it_names(encoder, tail, views, make_space, reduce_tuned, takes_roots):
    width = encoder.backbone.n_features
    pretrained, tuned = (encode(views, part, n_features=width) for part in (encoder.backbone.tail, tail))
    projected = [signed_root(part) if takes_roots else part for part in (pretrained, tuned)]
    frozen, reduced = (fit_projection(part, n_components=8)(part) for part in projected)
    if reduce_tuned:
        tuned = reduced
    expected = {"tuned": tuned, "frozen": frozen, "dual": join_features(frozen, tuned, frozen_weight=0.3)}
    for features, compared in expected.items():
        space = make_space(features, reduce_tuned=reduce_tuned, takes_roots=takes_roots)
        space.fit(views)
        assert torch.equal(space.compared(views), compared)
        assert torch.equal(space.for_peaks(views), tuned if features == "tuned" else frozen)
        assert torch.allclose(space.peak_part(compared), space.for_peaks(views), atol=1e-6)
        assert space.n_frozen == (0 if features == "tuned" else 8)


def test_another_frozen_feature_takes_the_place_of_the_first(views, make_space):
    for features in ("frozen", "dual"):
        space = make_space(features)
        space.fit(views)
        compared = space.compared(views)
        assert torch.allclose(space.with_frozen(compared, space.for_peaks(views)), compared)
        other = space.with_frozen(compared, space.for_peaks(views).flip(0))
        assert torch.allclose(space.peak_part(other), space.for_peaks(views).flip(0), atol=1e-6)
        assert torch.equal(other[:, 8:], compared[:, 8:])


@pytest.mark.parametrize("was_rooted", [False, True])
@pytest.mark.parametrize("features", ["tuned", "frozen", "dual"])
def test_the_state_can_be_taken_up_again(views, make_space, features, was_rooted):
    space = make_space(features, reduce_tuned=True, takes_roots=was_rooted)
    again = make_space(features, reduce_tuned=True, takes_roots=True)  # a state without roots comes from before them
    assert not space.is_fitted
    with pytest.raises(IgcdError, match="learned nothing yet"):
        space.compared(views)
    space.fit(views)
    again.load_state_dict(space.state_dict())
    assert again.is_fitted and torch.equal(again.compared(views), space.compared(views))


def test_a_trained_feature_compared_as_it_is_needs_no_fit(make_space):
    assert make_space("tuned").is_fitted
