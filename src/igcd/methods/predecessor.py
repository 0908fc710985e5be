"""The network as it was before a stage, for the methods that distill from it; and the stage before there is one."""

from copy import deepcopy
from types import TracebackType

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from igcd.functional import losses
from igcd.methods.parametric import TwoViews


class Predecessor:
    """A frozen copy of a tail that sees, inside a `with`, what the tail itself is trained on.

    It is a network and no memory of images: of the batch it knows what the tail was last given.
    """

    def __init__(self, tail: nn.Module) -> None:
        self._trained = tail
        self._frozen = deepcopy(tail).eval().requires_grad_(False)

    def __enter__(self) -> "Predecessor":
        self._watching = self._trained.register_forward_pre_hook(self._see)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._watching.remove()

    def _see(self, _tail: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        (self._intermediate,) = inputs

    def merge_into_trained(self, *, momentum: float) -> None:
        """The trained tail becomes the weighted mean of both: `momentum` of it as it was, the rest as it is."""
        before = self._frozen.state_dict()
        with torch.no_grad():
            for name, trained in self._trained.state_dict().items():  # shares its memory with the tail
                if trained.is_floating_point():
                    trained.lerp_(before[name].to(trained), momentum)

    @property
    def h(self) -> Tensor:
        """What the last batch looked like before the stage: (n, d), rows of length 1, in the order of the batch."""
        with torch.no_grad():
            return normalize(self._frozen(self._intermediate), dim=1)


def supervised_loss(views: TwoViews, *, labeled_weight: float, tau: float, tau_u: float, tau_c: float) -> Tensor:
    """The supervised part of SimGCD, what a method learns when all is labeled: λ (CE + SupCon) + (1 − λ) InfoNCE.

    The terms of the labels are of the labeled images and 0 where there are none; InfoNCE is of all images.
    """
    supervised = losses.supervised_contrastive(*views.z_labeled, views.targets, tau=tau_c)
    self_supervised = losses.self_supervised_contrastive(*views.z, tau=tau_u)
    log_probs = (views.labeled_cosines / tau).log_softmax(dim=1)
    labeled = losses.labeled_loss(log_probs, views.targets.repeat(2))
    l_rep = losses.representation_loss(supervised, self_supervised, supervised_weight=labeled_weight)
    return l_rep + labeled_weight * labeled
