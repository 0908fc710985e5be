"""Two views of every image of a batch through a model at once, and the losses on them that several methods share."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from igcd.encoders.trunk_views import TrunkViews
from igcd.functional import losses
from igcd.functional.self_distillation import mean_entropy_gap, mutual_distillation
from igcd.training import Batch
from igcd.types import IntArray

Partners = tuple[IntArray, IntArray]
"""Rows of the labeled and of the unlabeled set, one for each image of a batch."""


@dataclass(frozen=True)
class TwoViews:
    """Both views of a batch after one forward pass: b images, the labeled ones first, the same in both views.

    With partners, the second view of an image is that of another one.
    """

    h: tuple[Tensor, Tensor]  # (b, d), rows of length 1
    z: tuple[Tensor, Tensor]  # (b, 256), rows of length 1
    cosines: tuple[Tensor, Tensor]  # (b, c) with the prototypes of the open clusters; c is 0 for a model without a head
    targets: Tensor  # (l,) of the labeled images
    whole: Callable[[Tensor], Tensor] = lambda rows: rows
    """What any network gives for the input that the model saw last, from all processes: (n, d) -> (2 b, d)."""

    @property
    def z_labeled(self) -> tuple[Tensor, Tensor]:
        """Projections of the labeled images, (l, 256)."""
        return self.z[0][: len(self.targets)], self.z[1][: len(self.targets)]

    @property
    def labeled_cosines(self) -> Tensor:
        """Of both views of the labeled images one after the other, (2 l, c)."""
        return torch.cat([cosines[: len(self.targets)] for cosines in self.cosines])

    @property
    def labeled_h(self) -> Tensor:
        """Features of both views of the labeled images one after the other, (2 l, d)."""
        return torch.cat([h[: len(self.targets)] for h in self.h])

    @property
    def unlabeled_h(self) -> tuple[Tensor, Tensor]:
        """Features of the unlabeled images, (b - l, d)."""
        return self.h[0][len(self.targets) :], self.h[1][len(self.targets) :]


def two_views(
    model: nn.Module,
    batch: Batch,
    labeled: TrunkViews,
    targets: Tensor,
    unlabeled: TrunkViews | None,
    is_open: Tensor | None = None,
    *,
    labeled_apart: bool = False,
    partners: Partners | None = None,
) -> TwoViews:
    """Two views of every image of a batch through the model, which gives h and z and, with a head, cosines.

    With `partners` the second view of an image is one of its partner.

    `targets`, (n,), are of all labeled images: categories, or columns of the open clusters. `is_open` says which
    columns of the head count: a closed cluster has -inf, which no loss could take. The model sees the first views of
    all images, then the second ones; `labeled_apart`: both views of the labeled images, then both of the others. That
    decides how sums over a batch are rounded and nothing else, so every method keeps the order its figures have.
    """
    first_rows = batch.labeled_rows, batch.unlabeled_rows
    second_rows = first_rows if partners is None else partners
    n_rows = [len(rows) for views, rows in zip((labeled, unlabeled), first_rows, strict=True) if views is not None]
    n_rows = [n for n in n_rows if n]
    pairs = [
        _pair(views, rows, others, batch)
        for views, rows, others in zip((labeled, unlabeled), first_rows, second_rows, strict=True)
        if views is not None and len(rows)
    ]
    order = [(part, view) for view in (0, 1) for part in range(len(pairs))]
    if labeled_apart:
        order.sort()
    sizes = [n_rows[part] for part, _ in order]

    def whole(rows: Tensor) -> Tensor:
        return batch.share.whole(rows, sizes)

    def by_view(output: Tensor) -> tuple[Tensor, Tensor]:
        parts = dict(zip(order, torch.split(output, sizes), strict=True))
        first, second = (torch.cat([parts[part, view] for part in range(len(pairs))]) for view in (0, 1))
        return first, second

    h, z, *of_head = (whole(output) for output in model(torch.cat([pairs[part][view] for part, view in order])))
    cosines = of_head[0] if of_head else h[:, :0]
    return TwoViews(
        h=by_view(h),
        z=by_view(z),
        cosines=by_view(cosines if is_open is None else cosines[:, is_open]),
        targets=targets[torch.from_numpy(batch.labeled_rows)].to(h.device),
        whole=whole,
    )


def _pair(views: TrunkViews, rows: IntArray, others: IntArray, batch: Batch) -> tuple[Tensor, Tensor]:
    """A view of each image of the share, and another one of itself or of its partner. (m,), (m,) -> (s, ...) twice."""
    first, second = views.two_views(views.usable_idx[rows], batch.generator, part=batch.share.part)
    if others is not rows:
        _, second = views.two_views(views.usable_idx[others], batch.generator, part=batch.share.part)
    return first, second


def contrastive_loss(views: TwoViews, *, labeled_weight: float, tau_u: float, tau_c: float) -> Tensor:
    """L_rep, eq. 1: λ SupCon of the labeled images + (1 − λ) InfoNCE of all images, as GCD has it. -> ()."""
    supervised = losses.supervised_contrastive(*views.z_labeled, views.targets, tau=tau_c)
    self_supervised = losses.self_supervised_contrastive(*views.z, tau=tau_u)
    return losses.representation_loss(supervised, self_supervised, supervised_weight=labeled_weight)


def cross_entropy_of_labels(views: TwoViews, *, tau: float) -> Tensor:
    """Of both views of the labeled images, by the head; 0 where there are none. -> ()."""
    return losses.labeled_loss((views.labeled_cosines / tau).log_softmax(dim=1), views.targets.repeat(2))


def supervised_loss(views: TwoViews, *, labeled_weight: float, tau: float, tau_u: float, tau_c: float) -> Tensor:
    """The supervised part of SimGCD, with which methods begin at stage 0: λ (CE + SupCon) + (1 − λ) InfoNCE. -> ().

    The terms of the labels are of the labeled images and 0 where there are none; InfoNCE is of all images.
    """
    l_rep = contrastive_loss(views, labeled_weight=labeled_weight, tau_u=tau_u, tau_c=tau_c)
    return l_rep + labeled_weight * cross_entropy_of_labels(views, tau=tau)


def self_training_loss(
    views: TwoViews,
    *,
    labeled_weight: float,
    epsilon: float,
    tau: float,
    target_tau: float,
    tau_u: float,
    tau_c: float,
) -> Tensor:
    """SimGCD's whole objective, L_rep + L_cls. -> ().

    λ of each is supervised; 1 − λ is not, and takes in the labeled images, too: the views teach each other, and the
    mean prediction is kept even, with the weight ε.
    """
    l_rep = contrastive_loss(views, labeled_weight=labeled_weight, tau_u=tau_u, tau_c=tau_c)
    distillation = mutual_distillation(*views.cosines, tau=tau, target_tau=target_tau)
    evenness = mean_entropy_gap((torch.cat(views.cosines) / tau).log_softmax(dim=1))
    l_cls = losses.classifier_loss(
        cross_entropy_of_labels(views, tau=tau), distillation + epsilon * evenness, labeled_weight=labeled_weight
    )
    return losses.total_loss(l_rep, l_cls)
