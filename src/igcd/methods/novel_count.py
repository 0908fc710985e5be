"""How many novel categories a stage has, for the methods that must know it before they learn."""

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from igcd.errors import IgcdError


class CountNovel(Protocol):
    """Tells the number of novel categories of a stage."""

    def __call__(self, stage: int, known: Tensor, clusters: Tensor, unlabeled: Tensor) -> int:
        """From features of known images, (n, d), with their clusters, (n,), and of the unlabeled ones, (m, d)."""
        ...


@dataclass(frozen=True)
class GivenCounts:
    """The true number, as most published results assume. A method that is given it is told so in its records."""

    per_stage: tuple[int, ...]

    def __call__(self, stage: int, known: Tensor, clusters: Tensor, unlabeled: Tensor) -> int:  # noqa: ARG002, D102
        if stage >= len(self.per_stage):
            raise IgcdError(
                f"the number of novel categories is not given for stage {stage}; estimate it: n_novel=density"
            )
        return self.per_stage[stage]
