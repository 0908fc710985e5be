"""Images of the past that a method keeps: a few per cluster, with their pixels, ready to be encoded again."""

import json
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from igcd.data.images import ImageSet
from igcd.functional.herding import herding
from igcd.functional.selection import select_per_category
from igcd.memory.entries import Entries
from igcd.methods.method import Kept
from igcd.types import Images, IntArray, Pixels


class KeptImages(ImageSet):
    """Pixels in memory under the ids and keys the images had, so that caches know them again."""

    def __init__(self, ids: Iterable[str], pixels: Tensor, keys: Sequence[str]) -> None:
        super().__init__(ids)
        self._pixels = pixels.numpy()  # (n, size, size, 3)
        self._keys = tuple(keys)

    def pixels(self, idx: int) -> Pixels:  # noqa: D102
        image: Pixels = self._pixels[idx]
        return image

    def key(self, idx: int) -> str:  # noqa: D102
        return self._keys[idx]


class ImageBuffer:
    """At most `n_per_cluster` images of each cluster, stored at the size they are decoded to for views."""

    def __init__(self, *, n_per_cluster: int, size: int) -> None:
        self.entries = Entries(n_per_category=n_per_cluster)
        self._size = size
        self._key_of: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def clusters(self) -> Tensor:
        """The cluster of each image kept, (n,)."""
        return self.entries.categories

    def add(self, images: Images, idx: IntArray, clusters: Tensor, *, pseudo_labeled: bool) -> None:
        """Keeps the images at these positions, the most important of each cluster first. (n,), (n,)."""
        if len(idx) == 0:
            return
        pixels = np.stack([images.square(i, self._size) for i in idx.tolist()])
        ids = [images.ids[i] for i in idx.tolist()]
        self._key_of |= {image_id: images.key(i) for image_id, i in zip(ids, idx.tolist(), strict=True)}
        self.entries.add(torch.from_numpy(pixels), clusters, ids, pseudo_labeled=pseudo_labeled)
        self._key_of = {image_id: self._key_of[image_id] for image_id in self.entries.image_ids}

    def herd(self, features: Tensor, clusters: Tensor) -> Tensor:
        """Positions of as many images of each cluster as it may keep, chosen by herding, best first. (n, d), (n,)."""
        n = self.entries.n_per_category
        return select_per_category(features, clusters.to(features.device), n, select=herding).cpu()

    def remove(self, clusters: Iterable[int]) -> None:
        """Forgets all images of these clusters."""
        self.entries.remove(clusters)

    def kept(self) -> Kept:
        """What a method holds of past images whose only images these are."""
        account = self.entries.account()
        return Kept(
            replay_images=account.images,
            support_images=0,
            images=account.images,
            pseudo_labeled=account.pseudo_labeled,
            bytes=account.bytes,
        )

    def images(self, rows: Sequence[int] | None = None) -> KeptImages:
        """The images at these rows, or all, as a set that can be encoded."""
        chosen = list(range(len(self))) if rows is None else list(rows)
        ids = [self.entries.image_ids[row] for row in chosen]
        pixels = self.entries.content.reshape(-1, self._size, self._size, 3).to(torch.uint8)[chosen]
        return KeptImages(ids, pixels, [self._key_of[image_id] for image_id in ids])

    def state_dict(self) -> tuple[dict[str, Tensor], dict[str, str]]:
        """All of it as tensors and text, as safetensors stores them."""
        tensors, metadata = self.entries.state_dict()
        return tensors, metadata | {"size": json.dumps(self._size), "key_of": json.dumps(self._key_of)}

    @classmethod
    def from_state_dict(cls, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> "ImageBuffer":
        """The inverse of `state_dict`."""
        entries = Entries.from_state_dict(tensors, metadata)
        buffer = cls(n_per_cluster=entries.n_per_category, size=json.loads(metadata["size"]))
        buffer.entries, buffer._key_of = entries, json.loads(metadata["key_of"])
        return buffer
