"""What methods share whose feature space stands still: the tail is fine-tuned at the first stage or not at all."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Unpack

import torch
from torch import Tensor

from igcd.encoders.trunk_views import TrunkViews
from igcd.errors import IgcdError
from igcd.functional.grouping import distinct
from igcd.functional.herding import category_means
from igcd.methods.base import BaseMethod, StageOptions
from igcd.methods.cosine_head import CosineHead, HeadedModel
from igcd.methods.feature_space import Features, FeatureSpace
from igcd.methods.method import Context
from igcd.methods.projector import Projector
from igcd.methods.states import State, part_of
from igcd.methods.two_views import supervised_loss, two_views
from igcd.types import Stage


class SpaceOptions(StageOptions, total=False):
    """Options of the space that are the same for all methods in it."""

    frozen_weight: float
    labeled_weight: float
    tau: float
    tau_u: float
    tau_c: float


class StillSpaceMethod(BaseMethod):
    """A feature space that the first stage fixes forever."""

    def __init__(
        self,
        context: Context,
        *,
        features: Features,
        n_components: int,
        takes_roots: bool = False,
        frozen_weight: float = 0.5,
        labeled_weight: float = 0.35,
        tau: float = 0.1,
        tau_u: float = 1.0,
        tau_c: float = 0.07,
        **stages: Unpack[StageOptions],
    ) -> None:
        super().__init__(context, **stages)
        self._weights = {"labeled_weight": labeled_weight, "tau": tau, "tau_u": tau_u, "tau_c": tau_c}
        backbone = self._encoder.backbone
        projector = Projector(backbone.n_features, generator=torch.Generator().manual_seed(context.seed))
        tail = backbone.new_tail()
        self._model = HeadedModel(tail, projector, CosineHead(backbone.n_features))
        self._space = FeatureSpace(
            features,
            self._encoder,
            tail,
            n_components=n_components,
            frozen_weight=frozen_weight,
            reduce_tuned=True,
            takes_roots=takes_roots,
        )

    def learn(self, stage: Stage) -> None:
        """The first stage fixes the feature space; each is learned in it."""
        self._drop_guesses(self._take_in_labels(stage))
        labeled, unlabeled = (self._encoder.plain_views(images) for images in (stage.labeled, stage.unlabeled))
        clusters = self._book.of(stage.labels)[torch.from_numpy(labeled.usable_idx)]
        if not self._space.is_fitted:
            if len(clusters) < 2:
                raise IgcdError("the feature space is fitted to labeled images; the first stage must have some")
            if self._space.features != "frozen":
                self._fine_tune(stage)
            self._space.fit(labeled)
            self._begin(self._compared(labeled), clusters)
        self._learn_in_space(stage, self._compared(labeled), clusters, unlabeled)

    def _drop_guesses(self, clusters: set[int]) -> None:
        """Forgets what was guessed about discoveries that have become categories, where it would be in the way."""

    def _begin(self, x: Tensor, clusters: Tensor) -> None:
        """What else the first labeled images decide, once the space is there. (n, d), (n,)."""

    @abstractmethod
    def _learn_in_space(self, stage: Stage, x: Tensor, clusters: Tensor, unlabeled: TrunkViews) -> None:
        """Learns from the labeled images, (n, d), (n,), and the unlabeled ones."""

    def _fine_tune(self, stage: Stage) -> None:
        """Trains the tail once, with the supervised part of SimGCD; the head is not used afterwards."""
        labeled, unlabeled = (self._encoder.training_views(images) for images in (stage.labeled, stage.unlabeled))
        clusters = self._book.of(stage.labels)[torch.from_numpy(labeled.usable_idx)]
        rows = distinct(clusters)[1]  # of the prototypes: a category may have no image that could be read
        self._model.head.grow(category_means(self._space.tuned(labeled).cpu(), rows, n_categories=int(rows.max()) + 1))
        self._run_training(
            self._model,
            lambda model, batch, _epoch: supervised_loss(
                two_views(model, batch, labeled, rows, unlabeled, labeled_apart=True), **self._weights
            ),
            stage=0,
            n_labeled=len(clusters),
            n_unlabeled=len(unlabeled.usable_idx),
        )

    def _compared(self, views: TrunkViews) -> Tensor:
        """The feature in the space, (n, c), rows of length 1."""
        return self._space.compared(views).cpu()

    @abstractmethod
    def _nearest(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The most probable cluster of features in the space and its probability. (n, c) -> (n,), (n,)."""

    def _assign(self, views: TrunkViews) -> tuple[Tensor, Tensor]:
        return self._nearest(self._compared(views))

    def _state_parts(self) -> dict[str, State]:
        return {"model": (self._model.state_dict(), {}), "projection": (self._space.state_dict(), {})}

    def load_state_dict(self, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
        """The inverse of `state_dict`."""
        super().load_state_dict(tensors, metadata)
        self._model.load_state_dict(part_of(tensors, "model"))
        self._space.load_state_dict(part_of(tensors, "projection"))
