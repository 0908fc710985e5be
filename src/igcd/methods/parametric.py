"""What the methods with a head of prototypes share: clusters are opened, trained on two views, predicted, recorded.

A method of this kind is a subclass of `ParametricMethod` that brings `learn` and its loss; see `simgcd`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, Unpack

import torch
from torch import Tensor, nn

from igcd.encoders.encoder import encode
from igcd.encoders.trunk_views import TrunkViews
from igcd.errors import IgcdError
from igcd.functional.herding import category_means
from igcd.functional.novel_start import NovelStart, novel_centers
from igcd.methods.base import BaseMethod, StageOptions
from igcd.methods.cosine_head import CosineHead, HeadedModel, random_prototypes
from igcd.methods.method import Context, Kept
from igcd.methods.projector import Projector
from igcd.methods.stage_views import LabeledViews, labeled_and_replayed
from igcd.methods.states import State, part_of
from igcd.methods.two_views import Partners, TwoViews, two_views
from igcd.training import Batch, Optimization, numbered_generator
from igcd.types import Stage

Loss = Callable[[TwoViews, Batch, int], Tensor]
"""(both views of a batch, the batch, the epoch) -> ()."""


class ParametricMethod(BaseMethod):
    """A tail, a projector and a head with one prototype per cluster. Everything of `methods.method.Method` but `learn`.

    What a stage draws at random depends on the seed and the stage alone, so that a resumed run draws the same.
    """

    def __init__(
        self,
        context: Context,
        *,
        tau: float,
        novel_start: NovelStart = "split",
        **stages: Unpack[StageOptions],
    ) -> None:
        super().__init__(context, **stages)
        self._tau, self._novel_start = tau, novel_start
        self._model = self._new_model()

    def _new_model(self) -> HeadedModel:
        """The pretrained tail, a random projector, and no prototypes yet."""
        projector = Projector(self._n_features, generator=torch.Generator().manual_seed(self._context.seed))
        model = HeadedModel(self._encoder.backbone.new_tail(), projector, CosineHead(self._n_features))
        return model.to(self._encoder.backbone.device)

    # Opening clusters ----------------------------------------------------------------------------------------------

    def _open_labeled(self, stage: Stage) -> LabeledViews:
        """The labeled images of a stage; each newly labeled category gets a cluster, and a new cluster a prototype."""
        self._take_in_labels(stage)
        labeled = self._labeled_views(stage)
        n_known = len(self._model.head)
        n_new = self._book.n_clusters - n_known
        if n_new:
            # At the mean of its images; in any direction where none of them could be read.
            start = random_prototypes(n_new, self._n_features, self._generator(stage, "labeled"))
            is_new = labeled.clusters >= n_known
            h, rows = self._h(labeled.views)[is_new], labeled.clusters[is_new] - n_known
            means = category_means(h, rows.to(h.device), n_categories=n_new)
            is_empty = (means == 0).all(dim=1, keepdim=True)
            self._model.head.grow(torch.where(is_empty, start.to(means), means))
        return labeled

    def _labeled_views(self, stage: Stage) -> LabeledViews:
        return labeled_and_replayed(self._encoder, stage.labeled, self._book.of(stage.labels), None)

    def _open_novel(self, stage: Stage, labeled: LabeledViews, unlabeled: TrunkViews) -> list[int]:
        """Opens a cluster for each novel category of the unlabeled images, and returns their ids."""
        h, head = self._h(unlabeled), self._model.head
        if len(h) == 0:
            return []
        # A category without images at this stage is known by its prototype.
        clusters = head.is_open.nonzero()[:, 0].cpu()
        clusters = clusters[~torch.isin(clusters, labeled.clusters)]
        known = torch.cat([self._h(labeled.views), self._prototypes[clusters]])
        n_novel = self._count_novel(stage.index, known, torch.cat([labeled.clusters, clusters]), h)
        n_novel = min(n_novel, len(h))
        if n_novel == 0:
            return []
        known, generator = self._prototypes[head.is_open], self._generator(stage, "novel")
        head.grow(novel_centers(h, known, n_novel, start=self._novel_start, generator=generator))
        return self._book.open(n_novel)

    def _forget(self, clusters: Iterable[int]) -> None:
        self._model.head.close(sorted(clusters))

    def _generator(self, stage: Stage, purpose: Literal["labeled", "novel"]) -> torch.Generator:
        number = 2 * stage.index + (purpose == "novel")
        return numbered_generator(self._context.seed, number)

    # Training ------------------------------------------------------------------------------------------------------

    def _train(
        self,
        stage: Stage,
        loss: Loss,
        labeled: LabeledViews,
        unlabeled: TrunkViews | None,
        *,
        optimization: Optimization | None = None,
        before_epoch: Callable[[int], None] = lambda _epoch: None,
        partners: Callable[[Batch], Partners | None] = lambda _batch: None,
    ) -> None:
        """Trains tail, projector and head with a loss of both views of each batch."""
        is_open = self._model.head.is_open
        if not is_open.any():
            raise IgcdError("there is no category to learn; the first stage must have labels, or novel categories")
        targets = (is_open.cumsum(0) - 1)[labeled.clusters]
        self._run_training(
            self._model,
            lambda model, batch, epoch: loss(
                two_views(model, batch, labeled.views, targets, unlabeled, is_open, partners=partners(batch)),
                batch,
                epoch,
            ),
            stage=stage.index,
            n_labeled=len(labeled.clusters),
            n_unlabeled=0 if unlabeled is None else len(unlabeled.usable_idx),
            optimization=optimization,
            before_epoch=before_epoch,
        )

    # Predicting ----------------------------------------------------------------------------------------------------

    @property
    def _n_features(self) -> int:
        return self._encoder.backbone.n_features

    @property
    def _prototypes(self) -> Tensor:
        """Of all clusters, (c, d), rows of length 1."""
        return nn.functional.normalize(self._model.head.prototypes.detach(), dim=1)

    def _h(self, views: TrunkViews) -> Tensor:
        """The trained feature of the plain views, (n, d)."""
        return encode(views, self._model.tail, n_features=self._n_features)

    def _by_head(self, h: Tensor) -> tuple[Tensor, Tensor]:
        """The most probable cluster by the head and its probability, (n, d) -> (n,), (n,)."""
        if not self._model.head.is_open.any():
            raise IgcdError("the method has learned nothing yet; let it learn a stage before it predicts")
        with torch.no_grad():
            best = (self._model.head(h) / self._tau).softmax(dim=1).max(dim=1)
        return best.indices.cpu(), best.values.cpu()

    def _classify(self, h: Tensor) -> tuple[Tensor, Tensor]:
        """How the method predicts: by the head, unless it has another way. (n, d) -> (n,), (n,)."""
        return self._by_head(h)

    def _assign(self, views: TrunkViews) -> tuple[Tensor, Tensor]:
        return self._classify(self._h(views))

    # Recording -----------------------------------------------------------------------------------------------------

    def _record_opened(self, stage: Stage, unlabeled: TrunkViews, novel: Sequence[int]) -> None:
        """Notes the clusters opened at this stage as discoveries; nearest is the known prototype most like theirs."""
        if not novel:
            return
        is_known = self._model.head.is_open.clone()
        is_known[list(novel)] = False
        nearest: list[int | None] = [None] * len(novel)
        if is_known.any():
            likeness = self._prototypes[list(novel)] @ self._prototypes.T
            nearest = list(likeness.masked_fill(~is_known, -torch.inf).argmax(dim=1).tolist())
        self._record(stage, unlabeled, self._assign(unlabeled), dict(zip(novel, nearest, strict=True)))

    # What others ask -----------------------------------------------------------------------------------------------

    def kept(self) -> Kept:
        """Nothing of past images, unless a method says so."""
        return Kept(replay_images=0, support_images=0, images=0, pseudo_labeled=0, bytes=0)

    def _state_parts(self) -> dict[str, State]:
        return {"model": (self._model.state_dict(), {})}

    def load_state_dict(self, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
        """The inverse of `state_dict`."""
        super().load_state_dict(tensors, metadata)
        self._model.load_state_dict(part_of(tensors, "model"))
