"""Which feature is compared, once for all methods: `features: tuned | frozen | dual`.

Training on known categories pulls the novel ones into them, so that their images form no clusters of their own any
more; in the space that was not trained they still do (docs/methods/snn_density.md).
"""

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor, nn

from igcd.encoders.encoder import Encoder, encode
from igcd.encoders.trunk_views import TrunkViews
from igcd.errors import IgcdError
from igcd.functional.projection import Projection, fit_projection
from igcd.functional.signed_root import signed_root
from igcd.methods.states import part_of, prefixed

Features = Literal["tuned", "frozen", "dual"]
"""The trained feature, the pretrained one, or both joined, with clusters looked for in the pretrained."""


class FeatureSpace:
    """Trunk output of images -> the feature that is compared, rows of length 1.

    The pretrained feature is centered and reduced by PCA, fitted to the first images and fixed from then on. The
    trained one is compared as it is, for it moves with every stage; where it stands still after the first one,
    `reduce_tuned` treats it like the pretrained. With `takes_roots` entries are replaced by their roots before that,
    for classifiers that take features for Gaussian.
    """

    def __init__(
        self,
        features: Features,
        encoder: Encoder,
        tail: nn.Module,
        *,
        n_components: int = 128,
        frozen_weight: float,
        reduce_tuned: bool = False,
        takes_roots: bool = False,
    ) -> None:
        self.features = features
        self._encoder, self._tail = encoder, tail
        self._n_components, self._frozen_weight = n_components, frozen_weight
        self._reduced = {"frozen": features != "tuned", "tuned": reduce_tuned and features != "frozen"}
        self._takes_roots = takes_roots
        self._projections: dict[str, Projection] = {}

    @property
    def is_fitted(self) -> bool:
        """Whether all projections are there."""
        return all(name in self._projections for name, is_reduced in self._reduced.items() if is_reduced)

    @property
    def n_frozen(self) -> int:
        """Width of the pretrained feature, reduced; 0 where it is not compared."""
        return len(self._projections["frozen"].components) if "frozen" in self._projections else 0

    def fit(self, *first_images: TrunkViews) -> None:
        """Fits the projections to these images."""
        for name, encode_as in (("frozen", self._pretrained), ("tuned", self.tuned)):
            if self._reduced[name]:
                features = self._before_projection(torch.cat([encode_as(views) for views in first_images]))
                self._projections[name] = fit_projection(features, n_components=self._n_components)

    def compared(self, views: TrunkViews) -> Tensor:
        """What a classifier compares: the feature, or both joined. (n, ...)."""
        if self.features == "frozen":
            return self._frozen(views)
        tuned = self.tuned(views)
        if self._reduced["tuned"]:
            tuned = self._projection("tuned")(self._before_projection(tuned))
        if self.features == "tuned":
            return tuned
        return join_features(self._frozen(views), tuned, frozen_weight=self._frozen_weight)

    def for_peaks(self, views: TrunkViews) -> Tensor:
        """Where density peaks are looked for: the pretrained feature if it is compared, else the trained. (n, ...)."""
        return self.compared(views) if self.features == "tuned" else self._frozen(views)

    def peak_part(self, compared: Tensor) -> Tensor:
        """The part of what is compared, or of means of it, that peaks are looked for in. (n, ...)."""
        if self.features != "dual":
            return compared
        return frozen_part(compared, self.n_frozen, frozen_weight=self._frozen_weight)

    def with_frozen(self, compared: Tensor, frozen: Tensor) -> Tensor:
        """What is compared, with another pretrained feature in it. (n, ...), (n, c) -> (n, ...)."""
        weight = self._frozen_weight if self.features == "dual" else 1.0
        return torch.cat([(weight**0.5 * frozen).to(compared), compared[:, frozen.shape[1] :]], dim=1)

    def tuned(self, views: TrunkViews) -> Tensor:
        """The trained feature h as it is, (n, d)."""
        return encode(views, self._tail, n_features=self._encoder.backbone.n_features)

    def _pretrained(self, views: TrunkViews) -> Tensor:
        return encode(views, self._encoder.backbone.tail, n_features=self._encoder.backbone.n_features)

    def _frozen(self, views: TrunkViews) -> Tensor:
        """The pretrained feature, reduced, (n, c)."""
        return self._projection("frozen")(self._before_projection(self._pretrained(views)))

    def _before_projection(self, features: Tensor) -> Tensor:
        """What a projection is fitted to and takes. (n, d) -> (n, d)."""
        return signed_root(features) if self._takes_roots else features

    def _projection(self, name: str) -> Projection:
        if name not in self._projections:
            raise IgcdError("the method has learned nothing yet; let it learn a stage before it predicts")
        return self._projections[name]

    def state_dict(self) -> dict[str, Tensor]:
        """The projections, and whether they take roots; the tail belongs to the method's model."""
        states = {name: projection.state_dict() for name, projection in self._projections.items()}
        roots = {"takes_roots": torch.tensor(True)} if self._takes_roots else {}
        return roots | states.get("frozen", {}) | prefixed("tuned", states.get("tuned", {}))

    def load_state_dict(self, tensors: Mapping[str, Tensor]) -> None:
        """The inverse of `state_dict`; what earlier versions stored takes no roots."""
        device = self._encoder.backbone.device
        self._takes_roots = "takes_roots" in tensors
        tuned = part_of(tensors, "tuned")
        frozen = {n: t for n, t in tensors.items() if n != "takes_roots" and not n.startswith("tuned.")}
        stored = {"frozen": frozen, "tuned": tuned}
        self._projections = {
            name: Projection.from_state_dict({part: tensor.to(device) for part, tensor in state.items()})
            for name, state in stored.items()
            if state and self._reduced[name]
        }


def join_features(frozen: Tensor, tuned: Tensor, *, frozen_weight: float) -> Tensor:
    """Both with one cosine, the weighted mean of theirs. (n, c), (n, d), rows of length 1 -> (n, c + d), the same.

    >>> here, there = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.6, 0.8]])
    >>> joined = [join_features(frozen, tuned, frozen_weight=0.25) for frozen, tuned in ((here, here), (there, here))]
    >>> (joined[0] * joined[1]).sum()  # 0.25 · 0.6 + 0.75 · 1
    tensor(0.9000)
    """
    return torch.cat([frozen_weight**0.5 * frozen, (1 - frozen_weight) ** 0.5 * tuned], dim=1)


def frozen_part(joined: Tensor, n_frozen: int, *, frozen_weight: float) -> Tensor:
    """The frozen feature out of what `join_features` made, or out of means of it. (n, c + d) -> (n, c)."""
    return joined[:, :n_frozen].div(frozen_weight**0.5)
