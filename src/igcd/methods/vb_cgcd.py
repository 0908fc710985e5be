"""VB-CGCD: one encoder that stands still, a Gaussian per category with its own covariance, novel ones by a mixture.

Read top to bottom: `_learn_in_space` is a stage, `_add_labeled` the known Gaussians, `_find_novel` the novel ones.
Nothing but Gaussians is kept.
"""

from collections.abc import Iterable, Mapping
from typing import Unpack

import torch
from sklearn.mixture import GaussianMixture  # type: ignore[import-untyped]
from torch import Tensor

from igcd.encoders.trunk_views import TrunkViews
from igcd.functional.gaussian import pooled_covariance, scatter_statistics
from igcd.functional.grouping import distinct
from igcd.functional.own_gaussians import (
    OwnGaussians,
    learned_covariances,
    log_determinants,
    sample_covariances,
    steps_before_passing,
)
from igcd.functional.refining import nearest_mean
from igcd.methods.feature_space import Features
from igcd.methods.method import Context, Kept
from igcd.methods.states import State, part_of
from igcd.methods.still_space import SpaceOptions, StillSpaceMethod
from igcd.types import Stage


class VbCgcd(StillSpaceMethod):
    """Gaussians with covariances of their own. Implements `igcd.methods.method.Method`."""

    def __init__(
        self,
        context: Context,
        *,
        features: Features = "tuned",
        n_components: int = 384,
        step: float = 5e-4,
        n_steps: int = 1000,
        early_stop: bool = True,
        **options: Unpack[SpaceOptions],
    ) -> None:
        super().__init__(context, features=features, n_components=n_components, **options)
        self._step, self._n_steps, self._early_stop = step, n_steps, early_stop
        self._scale = torch.ones(())  # of the space: 1 is the mean variance inside categories
        self._clusters = torch.empty(0, dtype=torch.int64)  # (c,) whose Gaussians they are
        self._counts = torch.empty(0, dtype=torch.int64)  # (c,) images each was learned from
        self._gaussians = OwnGaussians(torch.empty(0, 0), torch.empty(0, 0, 0))

    # One stage -----------------------------------------------------------------------------------------------------

    def _begin(self, x: Tensor, clusters: Tensor) -> None:
        """The unit of the space: the identity, at which covariances start, has the mean variance inside categories."""
        ids, rows = distinct(clusters)
        variance = pooled_covariance(scatter_statistics(x, rows, n_categories=len(ids))).trace() / x.shape[1]
        self._scale = variance.clamp(min=1e-12).rsqrt().float()
        width = x.shape[1]
        self._gaussians = OwnGaussians(torch.empty(0, width), torch.empty(0, width, width))

    def _drop_guesses(self, clusters: set[int]) -> None:
        self._forget(clusters)

    def _learn_in_space(self, stage: Stage, x: Tensor, clusters: Tensor, unlabeled: TrunkViews) -> None:
        """Gaussians of the categories labeled now, then those of the novel ones."""
        self._add_labeled(x * self._scale, clusters)
        rows = self._compared(unlabeled) * self._scale
        means = self._gaussians.means / self._scale
        is_absent = ~torch.isin(self._clusters, clusters)
        known = torch.cat([x, means[is_absent]]), torch.cat([clusters, self._clusters[is_absent]])
        n_novel = self._count_novel(stage.index, *known, rows / self._scale) if len(rows) else 0
        self._open(stage, unlabeled, rows, self._find_novel(stage, rows, min(n_novel, len(rows))))

    # Known categories ----------------------------------------------------------------------------------------------

    def _add_labeled(self, x: Tensor, clusters: Tensor) -> None:
        """The Gaussians of labeled images, unless one of more images is there already."""
        n_before = dict(zip(self._clusters.tolist(), self._counts.tolist(), strict=True))
        ids, rows = distinct(clusters)
        counts = torch.bincount(rows, minlength=len(ids))
        taken = [row for row, cluster in enumerate(ids.tolist()) if counts[row] >= n_before.get(cluster, 0)]
        own = torch.isin(rows, torch.tensor(taken, dtype=torch.int64))
        self._forget(ids[taken].tolist())
        means, samples = sample_covariances(x[own], distinct(rows[own])[1], n_categories=len(taken))
        covariances = learned_covariances(samples, step=self._step, n_steps=self._n_steps)
        self._append(ids[taken], counts[taken], OwnGaussians(means, covariances))

    def _append(self, clusters: Tensor, counts: Tensor, gaussians: OwnGaussians) -> None:
        self._clusters = torch.cat([self._clusters, clusters])
        self._counts = torch.cat([self._counts, counts])
        self._gaussians = _joined(self._gaussians, gaussians)

    # Novel categories ----------------------------------------------------------------------------------------------

    def _find_novel(self, stage: Stage, x: Tensor, n_novel: int) -> OwnGaussians:
        """A mixture of all unlabeled images makes Gaussians; one of those they call novel makes them again. (n, d)."""
        width = self._gaussians.means.shape[1]
        novel = OwnGaussians(torch.empty(0, width), torch.empty(0, width, width))
        for _ in range(2):
            if min(n_novel, len(x)) < 1:
                break
            mixture = GaussianMixture(
                n_components=min(n_novel, len(x)),
                covariance_type="diag",
                reg_covar=1e-3,
                random_state=1000 * (self._context.seed % 2**20) + stage.index,
            )
            parts = torch.zeros(len(x), dtype=torch.int64)
            if len(x) > 1:  # as the mixture asks
                parts = torch.from_numpy(mixture.fit_predict(x.double().numpy())).long()
            novel = self._novel_gaussians(x, distinct(parts)[1])
            rows, _ = _joined(self._gaussians, novel).predict(x)
            x = x[rows >= len(self._clusters)]
        return novel

    def _novel_gaussians(self, x: Tensor, parts: Tensor) -> OwnGaussians:
        """Gaussians of parts of the unlabeled images, learned until their determinants pass those of the known ones."""
        means, samples = sample_covariances(x, parts, n_categories=int(parts.max()) + 1)
        n_steps = self._n_steps
        if self._early_stop:
            known = log_determinants(self._gaussians.covariances)
            n_steps = steps_before_passing(samples, known, step=self._step, n_steps=n_steps)
        return OwnGaussians(means, learned_covariances(samples, step=self._step, n_steps=n_steps))

    def _open(self, stage: Stage, unlabeled: TrunkViews, x: Tensor, novel: OwnGaussians) -> None:
        """A cluster for each novel Gaussian that some unlabeled image is given to."""
        n_known = len(self._clusters)
        rows, _ = _joined(self._gaussians, novel).predict(x)
        counts = torch.bincount(rows, minlength=n_known + len(novel.means))[n_known:]
        has_images = counts > 0
        opened = self._book.open(int(has_images.sum()))
        nearest: list[int | None] = [None] * len(opened)
        if n_known and opened:
            nearest = list(self._clusters[nearest_mean(novel.means[has_images], self._gaussians.means)].tolist())
        clusters = torch.tensor(opened, dtype=torch.int64)
        self._append(clusters, counts[has_images], OwnGaussians(novel.means[has_images], novel.covariances[has_images]))
        self._record(stage, unlabeled, self._nearest(x / self._scale), dict(zip(opened, nearest, strict=True)))

    # What others ask -----------------------------------------------------------------------------------------------

    def _nearest(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The Gaussian with the highest likelihood, and its probability."""
        rows, probs = self._gaussians.predict(x * self._scale)
        return self._clusters[rows], probs

    def kept(self) -> Kept:
        """No image; the bytes are those of the Gaussians."""
        n_bytes = sum(tensor.nbytes for tensor in (self._counts, *vars(self._gaussians).values()))
        return Kept(replay_images=0, support_images=0, images=0, pseudo_labeled=0, bytes=n_bytes)

    def _forget(self, clusters: Iterable[int]) -> None:
        stays = ~torch.isin(self._clusters, torch.tensor(sorted(clusters), dtype=torch.int64))
        self._clusters, self._counts = self._clusters[stays], self._counts[stays]
        self._gaussians = OwnGaussians(self._gaussians.means[stays], self._gaussians.covariances[stays])

    def _state_parts(self) -> dict[str, State]:
        gaussians = vars(self._gaussians) | {
            "clusters": self._clusters,
            "counts": self._counts,
            "scale": self._scale.reshape(1),
        }
        return super()._state_parts() | {"gaussians": (gaussians, {})}

    def load_state_dict(self, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
        """The inverse of `state_dict`."""
        super().load_state_dict(tensors, metadata)
        stored = part_of(tensors, "gaussians")
        self._clusters, self._counts = stored["clusters"], stored["counts"]
        self._scale = stored["scale"][0]
        self._gaussians = OwnGaussians(stored["means"], stored["covariances"])


def _joined(first: OwnGaussians, second: OwnGaussians) -> OwnGaussians:
    return OwnGaussians(torch.cat([first.means, second.means]), torch.cat([first.covariances, second.covariances]))
