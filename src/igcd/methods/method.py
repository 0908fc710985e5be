"""The verbs every method has, and what it may do its work with."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from lightning_fabric import Fabric
from torch import Tensor

from igcd.encoders.encoder import Encoder
from igcd.training import Checkpoint, EpochReport
from igcd.types import Images, Stage


@dataclass(frozen=True)
class Assignment:
    """The cluster of each image. Ids are permanent: a cluster keeps its id through later stages."""

    cluster: Tensor  # (n,) int64; `igcd.types.UNLABELED` where the image could not be read
    probability: Tensor  # (n,)


@dataclass(frozen=True)
class Discovery:
    """A category found at a stage, for reports: where it was seen first and what it is like."""

    cluster: int
    stage: int
    members: tuple[str, ...]  # image ids, the density peak first
    nearest_known: int | None  # the cluster of the known category most like it


@dataclass(frozen=True)
class Kept:
    """What a method holds of past images."""

    replay_images: int
    support_images: int
    images: int  # different ones in both together
    pseudo_labeled: int
    bytes: int


@dataclass(frozen=True)
class Context:
    """What a method works with besides images: the encoder, the device, the seed, a checkpoint, a progress callback."""

    encoder: Encoder
    fabric: Fabric
    seed: int
    checkpoint: Checkpoint | None = None
    after_epoch: Callable[[EpochReport], None] = field(default=lambda _report: None)


class Method(Protocol):
    """Learns stage after stage, and names the cluster of any image in between."""

    def learn(self, stage: Stage) -> None:
        """Learns from a stage: labeled images, unlabeled images, and what was kept of earlier stages."""
        ...

    def predict(self, images: Images) -> Assignment:
        """The cluster of each image."""
        ...

    def clusters_of_categories(self) -> dict[int, int]:
        """For each category id of the stages so far, the cluster that stands for it."""
        ...

    def discoveries(self) -> list[Discovery]:
        """The categories found so far without a label, in the order they were found."""
        ...

    def kept(self) -> Kept:
        """What is held of past images."""
        ...

    def state_dict(self) -> tuple[dict[str, Tensor], dict[str, str]]:
        """All of it as tensors and text, as safetensors stores them."""
        ...

    def load_state_dict(self, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
        """The inverse of `state_dict`."""
        ...
