"""UNO's objective against values put together by hand; what holds for every newer method is in test_newer_methods."""

import pytest
import torch
from torch.nn.functional import cross_entropy, normalize

from igcd.functional.sinkhorn import sinkhorn
from igcd.methods.two_views import TwoViews
from igcd.methods.uno import Uno


@pytest.fixture
def method(make_method):
    """Two known clusters and two novel ones, with a second novel head."""
    method = make_method(Uno, n_heads=2)
    width = method._n_features
    method._model.head.grow(torch.randn(4, width, generator=torch.Generator().manual_seed(0)))
    method._model.novel_heads.append(method._head_at(torch.randn(2, width, generator=torch.Generator().manual_seed(1))))
    return method


def views_of(method, n, targets):
    generator = torch.Generator().manual_seed(2)
    h = tuple(normalize(torch.randn(n, method._n_features, generator=generator), dim=1) for _ in range(2))
    with torch.no_grad():
        return TwoViews(h, h, tuple(method._model.head(one) for one in h), torch.tensor(targets))


def test_the_loss_is_the_mean_over_heads_and_views(method):
    views = views_of(method, 7, [0, 1, 1])
    expected = []
    for head in (None, method._novel_heads[0]):
        logits = [
            cosines if head is None else torch.cat([cosines[:, :2], head(h)], dim=1)
            for h, cosines in zip(views.h, views.cosines, strict=True)
        ]
        for own, other in (logits, logits[::-1]):
            targets = sinkhorn(other[3:], epsilon=0.05, n_rounds=3)
            labeled = cross_entropy(own[:3] / 0.1, views.targets, reduction="sum")
            unlabeled = cross_entropy(own[3:] / 0.1, targets, reduction="sum")
            expected.append(float((labeled + unlabeled).detach()) / 7)
    assert method._loss(views, None, 0).item() == pytest.approx(sum(expected) / 4, abs=1e-5)


def test_a_fine_head_learns_from_unlabeled_images_alone(method):
    views = views_of(method, 5, [0])
    without = method._loss(views, None, 0).item()
    method._model.fine_heads.append(method._head_at(torch.eye(6, method._n_features)))
    fine = [method._fine_heads[0](h[1:]) for h in views.h]
    own = [cross_entropy(a / 0.1, sinkhorn(b)).item() for a, b in (fine, fine[::-1])]
    assert method._loss(views, None, 0).item() == pytest.approx((2 * without + sum(own) / 2) / 3, abs=1e-5)


def test_labels_alone_are_plain_cross_entropy(make_method):
    method = make_method(Uno)
    method._model.head.grow(torch.eye(3, method._n_features))
    views = views_of(method, 4, [0, 2, 2, 1])
    plain = [float(cross_entropy(cosines / 0.1, views.targets)) for cosines in views.cosines]
    assert method._loss(views, None, 0).item() == pytest.approx(sum(plain) / 2, abs=1e-5)


def test_the_head_with_the_least_loss_stays(method, stages, encoder):
    _, (second, _), *_ = stages("igcd-u")
    unlabeled = encoder.training_views(second.unlabeled)
    h = method._h(unlabeled)
    with torch.no_grad():
        method._model.head.prototypes[2:] = torch.stack([h[0], -h[0]])  # one has all images, and should have a quarter
    by_head = method._by_head_of((h,), (method._model.head(h),))
    losses = [cross_entropy(one / 0.1, sinkhorn(one)).item() for (one,) in by_head]
    best = losses.index(min(losses))
    expected = [method._prototypes[2:], *(normalize(head.prototypes, dim=1) for head in method._novel_heads)][best]
    method._choose_head(unlabeled, [2, 3])
    assert best > 0 and torch.allclose(method._prototypes[2:], expected.detach(), atol=1e-6)
    assert len(method._model.novel_heads) == len(method._model.fine_heads) == 0
