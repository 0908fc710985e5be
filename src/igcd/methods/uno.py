"""UNO: one cross entropy for labels and for targets of equal size, which the other view of an image gives by Sinkhorn.

Read top to bottom: `learn` is a stage, `_loss` the objective, `_choose_head` the novel head that stays. Nothing of the
past is kept but the network and its prototypes, as with `simgcd`.
"""

from collections.abc import Sequence
from typing import Unpack

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, one_hot

from igcd.encoders.trunk_views import TrunkViews
from igcd.functional.kmeans import kmeans
from igcd.functional.sinkhorn import sinkhorn, soft_cross_entropy
from igcd.methods.base import StageOptions
from igcd.methods.cosine_head import CosineHead, HeadedModel, random_prototypes
from igcd.methods.method import Context
from igcd.methods.parametric import ParametricMethod
from igcd.methods.projector import Projector
from igcd.methods.two_views import TwoViews
from igcd.training import Batch, numbered_generator
from igcd.types import Stage

APART = 0.5
"""How far from the first head's prototypes the other heads start, as a share of their length."""


class ManyHeadedModel(HeadedModel):
    """The head of all clusters, more heads for the novel ones alone, and one with more clusters than there are."""

    def __init__(self, tail: nn.Module, projector: Projector, head: CosineHead) -> None:
        super().__init__(tail, projector, head)
        self.novel_heads = nn.ModuleList()
        self.fine_heads = nn.ModuleList()


class Uno(ParametricMethod):
    """Sinkhorn targets and several novel heads. Implements `igcd.methods.method.Method`."""

    _model: ManyHeadedModel

    def __init__(
        self,
        context: Context,
        *,
        tau: float = 0.1,
        epsilon: float = 0.05,
        n_rounds: int = 3,
        n_heads: int = 4,
        overclustering: int = 3,
        **stages: Unpack[StageOptions],
    ) -> None:
        super().__init__(context, tau=tau, **stages)
        self._epsilon, self._n_rounds = epsilon, n_rounds
        self._n_heads, self._overclustering = n_heads, overclustering
        model = self._model
        self._model = ManyHeadedModel(model.tail, model.projector, model.head).to(self._encoder.backbone.device)
        self._model.projector.requires_grad_(False)  # there is no contrastive loss to train it

    def learn(self, stage: Stage) -> None:
        """Opens prototypes, trains all heads on the stage's images, and keeps the novel head with the least loss."""
        labeled, unlabeled = self._open_labeled(stage), self._encoder.training_views(stage.unlabeled)
        novel = self._open_novel(stage, labeled, unlabeled)
        self._open_heads(stage, unlabeled, novel)
        self._train(stage, self._loss, labeled, unlabeled)
        self._choose_head(unlabeled, novel)
        self._record_opened(stage, unlabeled, novel)

    def _open_heads(self, stage: Stage, unlabeled: TrunkViews, novel: Sequence[int]) -> None:
        """The other novel heads, which start near the first, and one of several times as many clusters."""
        if not novel:
            return
        generator = numbered_generator(self._context.seed, 1000 + stage.index)
        first = self._prototypes[list(novel)]
        for _ in range(self._n_heads - 1):
            apart = random_prototypes(len(first), self._n_features, generator).to(first)
            self._model.novel_heads.append(self._head_at(normalize(first + APART * apart, dim=1)))
        h = self._h(unlabeled)
        n_fine = min(self._overclustering * len(novel), len(h))
        if self._overclustering > 1:
            centers = kmeans(h, n_clusters=n_fine, generator=generator).centers
            self._model.fine_heads.append(self._head_at(centers))

    def _head_at(self, prototypes: Tensor) -> CosineHead:
        head = CosineHead(self._n_features).to(prototypes.device)
        head.grow(prototypes)
        return head

    # The objective -------------------------------------------------------------------------------------------------

    def _loss(self, views: TwoViews, _batch: Batch, _epoch: int) -> Tensor:
        """Mean over heads of the cross entropy of both views, labels and targets of the other view alike. -> ()."""
        labeled = one_hot(views.targets, views.cosines[0].shape[1]).to(views.h[0])
        losses = [self._swapped(cosines, labeled) for cosines in self._by_head_of(views.h, views.cosines)]
        fine = [self._swapped(tuple(head(h) for h in views.unlabeled_h), labeled[:0, :0]) for head in self._fine_heads]
        return torch.stack([*losses, *fine]).mean()

    def _swapped(self, cosines: tuple[Tensor, ...], labeled: Tensor) -> Tensor:
        """Cross entropy of each view with labels, and with the Sinkhorn targets of the other view. (n, c) twice."""
        n_labeled = len(labeled)
        with torch.no_grad():
            targets = [
                torch.cat([labeled.reshape(n_labeled, other.shape[1]), self._targets(other[n_labeled:])])
                for other in reversed(cosines)
            ]
        return torch.stack(
            [soft_cross_entropy(own / self._tau, target) for own, target in zip(cosines, targets, strict=True)]
        ).mean()

    def _targets(self, cosines: Tensor) -> Tensor:
        return sinkhorn(cosines, epsilon=self._epsilon, n_rounds=self._n_rounds)

    def _by_head_of(self, h: tuple[Tensor, ...], cosines: tuple[Tensor, ...]) -> list[tuple[Tensor, ...]]:
        """The cosines of both views with all open clusters, head by head; novel clusters are the last columns."""
        others = [
            tuple(torch.cat([own[:, : -len(head)], head(one)], dim=1) for one, own in zip(h, cosines, strict=True))
            for head in self._novel_heads
        ]
        return [cosines, *others]

    @property
    def _novel_heads(self) -> list[CosineHead]:
        return [head for head in self._model.novel_heads if isinstance(head, CosineHead)]

    @property
    def _fine_heads(self) -> list[CosineHead]:
        return [head for head in self._model.fine_heads if isinstance(head, CosineHead)]

    # The head that stays -------------------------------------------------------------------------------------------

    def _choose_head(self, unlabeled: TrunkViews, novel: Sequence[int]) -> None:
        """The novel head with the least loss on the plain views takes the place of the first; the others are gone."""
        if novel:
            h, head = self._h(unlabeled), self._model.head
            with torch.no_grad():
                by_head = self._by_head_of((h,), (head(h)[:, head.is_open],))
                losses = [float(soft_cross_entropy(one / self._tau, self._targets(one))) for (one,) in by_head]
                best = losses.index(min(losses))
                if best:
                    head.prototypes[list(novel)] = normalize(self._novel_heads[best - 1].prototypes, dim=1)
        self._model.novel_heads, self._model.fine_heads = nn.ModuleList(), nn.ModuleList()
