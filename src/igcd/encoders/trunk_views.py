"""Trunk outputs of the views of a set of images: read from the cache, or of fresh views that are drawn each time."""

from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from igcd.data.decoding import decode
from igcd.data.quarantine import Quarantine
from igcd.encoders.backbone import Backbone
from igcd.encoders.middle import half_way
from igcd.encoders.row_store import Location
from igcd.encoders.views import Transform, Words, augmented_views, to_tensor, uniform_draws, view_parameters
from igcd.errors import IgcdError
from igcd.types import BoolArray, Images, IntArray

ALL = slice(None)
_N_FRESH = 2**31


class TrunkViews(Protocol):
    """Trunk outputs of the views of a set of images. Rows are positions in that set."""

    @property
    def usable_idx(self) -> IntArray:
        """The positions of the images that could be decoded."""
        ...

    @property
    def n_views(self) -> int | None:
        """How many augmented views there are of each image; None if they are drawn fresh."""
        ...

    def gather(self, rows: IntArray, views: IntArray) -> Tensor:
        """Trunk outputs of augmented views by number, (m,), (m,) -> (m, ...) float32."""
        ...

    def looks(self, rows: IntArray) -> list[Tensor]:
        """Trunk outputs of the plain view, and of the middle where that is seen as well, (m,) -> (m, ...) float32."""
        ...

    def two_views(self, rows: IntArray, generator: torch.Generator, *, part: slice = ALL) -> tuple[Tensor, Tensor]:
        """Two different augmented views of each image, (m,) -> (m, ...), (m, ...).

        Drawn for all of them; read, and returned, for those of a part.
        """
        ...


class CachedViews:
    """Views read from memory-mapped files."""

    def __init__(self, location: Location, n_views: int, device: torch.device) -> None:
        self._location = location  # shaped (n, looks + n_views), the looks first
        self._n_looks = location.shard.shape[1] - n_views
        self._n_views = n_views
        self._device = device
        self._is_usable: BoolArray = np.asarray((location.shard >= 0).all(axis=1))

    @property
    def usable_idx(self) -> IntArray:
        """The positions of the images that could be decoded."""
        return np.flatnonzero(self._is_usable)

    @property
    def n_views(self) -> int:
        """How many augmented views there are of each image."""
        return self._n_views

    def gather(self, rows: IntArray, views: IntArray) -> Tensor:
        """Trunk outputs of augmented views by number, (m,), (m,) -> (m, ...) float32."""
        views = np.asarray(views)
        if len(views) and not (views.min() >= 0 and views.max() < self._n_views):
            raise IgcdError(
                f"view numbers must be 0 to {self._n_views - 1}, got {views.min()} to {views.max()}; ask the cache for "
                "more views"
            )
        return self._read(np.asarray(rows), self._n_looks + views)

    def looks(self, rows: IntArray) -> list[Tensor]:
        """Trunk outputs of the plain view, and of the middle where that is seen as well, (m,) -> (m, ...) float32."""
        rows = np.asarray(rows)
        return [self._read(rows, np.full_like(rows, look)) for look in range(self._n_looks)]

    def two_views(self, rows: IntArray, generator: torch.Generator, *, part: slice = ALL) -> tuple[Tensor, Tensor]:
        """Two different augmented views of each image of a part, (m,) -> (m, ...), (m, ...)."""
        if self._n_views < 2:
            raise IgcdError(f"two views of each image were asked for, {self._n_views} cached; cache at least 2 views")
        return _both(self, rows[part], *(views[part] for views in draw_two(len(rows), self._n_views, generator)))

    def _read(self, rows: IntArray, columns: IntArray) -> Tensor:
        if not self._is_usable[rows].all():
            broken = rows[~self._is_usable[rows]]
            raise IgcdError(f"image {broken[0]} could not be decoded and has no views; take rows from usable_idx")
        shard, row = self._location.shard[rows, columns], self._location.row[rows, columns]
        shards = self._location.shards
        if not shards:
            raise IgcdError("there are no images to read views of; give at least one that can be decoded")
        halves = np.empty((len(rows), *shards[0].shape[1:]), dtype=np.float16)
        for number in np.unique(shard):
            at = np.flatnonzero(shard == number)
            halves[at] = shards[number][row[at]]
        return torch.from_numpy(halves).to(self._device).float()


class LiveViews:
    """Fresh views of each image, decoded, drawn and sent through the trunk when asked for; the plain view is cached."""

    def __init__(
        self, backbone: Backbone, images: Images, transform: Transform, seed: int, cached: CachedViews, words: Words
    ) -> None:
        self._backbone = backbone
        self._images = images
        self._transform = transform
        self._seed = seed
        self._cached = cached
        self._words = words

    @property
    def usable_idx(self) -> IntArray:
        """The positions of the images that could be decoded."""
        return self._cached.usable_idx

    @property
    def n_views(self) -> None:
        """There are as many as are asked for."""
        return

    def gather(self, rows: IntArray, views: IntArray) -> Tensor:
        """Trunk outputs of augmented views by number, any from 0 on, (m,), (m,) -> (m, ...) float32."""
        rows, views = np.asarray(rows), np.asarray(views)
        distinct, position = np.unique(rows, return_inverse=True)
        quarantine = Quarantine(limit=0)
        chunk = list(decode(self._images.take(distinct), self._transform.canvas, quarantine=quarantine))
        if len(quarantine):
            raise IgcdError(f"{quarantine.summary()} since training began; put them back, or train from cached views")
        pixels = np.concatenate([pixels for _, pixels in chunk])
        canvas = to_tensor(pixels, self._backbone.device)[torch.from_numpy(position).to(self._backbone.device)]
        inputs = augment(canvas, self._words[rows], views, self._transform, self._seed, self._backbone)
        outputs: Tensor = self._backbone.trunk(inputs)
        return outputs

    def looks(self, rows: IntArray) -> list[Tensor]:
        """Trunk outputs of the plain view, and of the middle where that is seen as well, (m,) -> (m, ...) float32."""
        return self._cached.looks(rows)

    def two_views(self, rows: IntArray, generator: torch.Generator, *, part: slice = ALL) -> tuple[Tensor, Tensor]:
        """Two different views of each image of a part that were not seen before, (m,) -> (m, ...), (m, ...)."""
        return _both(self, rows[part], *(views[part] for views in draw_two(len(rows), _N_FRESH, generator)))


def embed(views: TrunkViews, tail: nn.Module, *, batch_size: int = 256) -> Tensor:
    """Features of all usable images, in order, where nothing is drawn: (len(usable_idx), d), in evaluation mode."""
    was_training = tail.training
    tail.eval()
    try:
        with torch.no_grad():
            starts = range(0, len(views.usable_idx), batch_size)
            batches = (views.looks(views.usable_idx[start : start + batch_size]) for start in starts)
            features = [half_way([tail(look) for look in looks]) for looks in batches]
    finally:
        tail.train(was_training)
    if not features:
        raise IgcdError("there are no images to embed; give at least one that can be decoded")
    return torch.cat(features)


def _both(views: TrunkViews, rows: IntArray, first: IntArray, second: IntArray) -> tuple[Tensor, Tensor]:
    """Two views of each image by number, read at once. (m,), (m,), (m,) -> (m, ...), (m, ...)."""
    both = views.gather(np.concatenate([rows, rows]), np.concatenate([first, second]))
    return both[: len(rows)], both[len(rows) :]


def draw_two(n: int, n_views: int, generator: torch.Generator) -> tuple[IntArray, IntArray]:
    """Two different view numbers below `n_views` for each of n images, each pair equally likely."""
    first = torch.randint(n_views, (n,), generator=generator)
    other = torch.randint(n_views - 1, (n,), generator=generator)
    return first.numpy(), ((first + 1 + other) % n_views).numpy()


def augment(
    canvas: Tensor, words: Words, views: IntArray, transform: Transform, seed: int, backbone: Backbone
) -> Tensor:
    """Augmented views by number as network input, (n, 3, c, c), (n,), (n,) -> (n, 3, size, size)."""
    parameters = view_parameters(transform.recipe, uniform_draws(words, views, seed=seed))
    return augmented_views(canvas, parameters, transform.size, backbone.normalization)
