"""The network as it was before a stage, for the methods that distill from it."""

from copy import deepcopy
from types import TracebackType

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize


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
