"""Features of photos: computed once per content and encoder, kept in the catalog, batch by batch.

What is computed is committed with each batch, so that a stopped `discover` goes on where it was.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from igcd.assembly import build_encoder
from igcd.config import EncoderConfig
from igcd.data.decoding import decode
from igcd.data.quarantine import Quarantine
from igcd.encoders.backbone import Backbone
from igcd.encoders.encoder import Encoder
from igcd.encoders.trunk_cache import Progress as ViewsProgress
from igcd.encoders.views import plain_views, to_tensor
from igcd.records import named_in_errors
from igcd.tensor_files import read_tensors, require_finite
from igcd.types import Images, Pixels
from igcd.workspace.catalog import Catalog, id_list
from igcd.workspace.defaults import FAST_SIZE, default_encoder
from igcd.workspace.feature_store import Features, find_damaged, read_features, write_features
from igcd.workspace.near_duplicates import picture_hash
from igcd.workspace.photo_files import PhotoFiles, photo_files
from igcd.workspace.quality import quality_of
from igcd.workspace.queries import setting

RESTORE = "restore it from a backup of the workspace"
"""What to do about an adapted tail that is damaged: photos that were embedded with it can be compared with no other."""

Progress = Callable[[int, int], None]

BATCH = 64

PART_ON_CPU = 16
"""Images that are in the network at once on a CPU. As fast as 64 with freed memory kept by the process, faster without,
and in less than half of the memory. A GPU takes whole batches."""


class PhotoEncoder(Protocol):
    """Pixels to features. `key` names it: two encoders that give different features have different keys."""

    @property
    def key(self) -> str:
        """What features are kept under."""
        ...

    @property
    def size(self) -> int:
        """Side of the images it takes."""
        ...

    def __call__(self, pixels: Pixels) -> Features:
        """(n, size, size, 3) -> (n, d), rows of length 1."""
        ...


class FrozenEncoder:
    """The pretrained backbone as it comes."""

    def __init__(self, encoder: Encoder) -> None:
        self._backbone, self.size = encoder.backbone, encoder.transform.size
        self.key = f"{_name(self._backbone, self.size)}-{fingerprint(self._backbone.tail)}"

    @torch.no_grad()
    def __call__(self, pixels: Pixels) -> Features:
        """(n, size, size, 3) -> (n, d), rows of length 1."""
        return in_parts(self._encode, pixels, PART_ON_CPU if self._backbone.device.type == "cpu" else len(pixels))

    def _encode(self, pixels: Pixels) -> Features:
        return _as_features(normalize(self._backbone(_inputs(self._backbone, pixels, self.size)), dim=1))


class AdaptedEncoder:
    """The pretrained feature and that of an adapted tail, joined.

    Training pulls novel photos towards known ones, and the pretrained half keeps them apart
    (docs/methods/snn_density.md).
    """

    def __init__(self, encoder: Encoder, tail: nn.Module) -> None:
        self._backbone, self.size = encoder.backbone, encoder.transform.size
        self._tail = tail.eval()
        self.key = f"{_name(self._backbone, self.size)}-adapted-{fingerprint(tail)}"

    @torch.no_grad()
    def __call__(self, pixels: Pixels) -> Features:
        """(n, size, size, 3) -> (n, 2 d), rows of length 1."""
        return in_parts(self._encode, pixels, PART_ON_CPU if self._backbone.device.type == "cpu" else len(pixels))

    def _encode(self, pixels: Pixels) -> Features:
        intermediate = self._backbone.trunk(_inputs(self._backbone, pixels, self.size))
        parts = [normalize(tail(intermediate), dim=1) for tail in (self._backbone.tail, self._tail)]
        return _as_features(torch.cat(parts, dim=1) / 2**0.5)


@dataclass(frozen=True)
class Unreadable:
    """Photos whose features could not be had, and why."""

    reasons: Mapping[int, str]  # photo id -> reason


def encoder_of(
    catalog: Catalog, *, quarantine: Quarantine | None = None, progress: ViewsProgress | None = None
) -> Encoder:
    """The encoder a workspace was made with: backbone, views and cache."""
    with catalog.snapshot() as db:
        chosen = {"size": FAST_SIZE, **(setting(db, "encoder") or {})}
    return build_encoder(EncoderConfig(**chosen), quarantine=quarantine or Quarantine(limit=1.0), progress=progress)


def change_encoder(catalog: Catalog, changes: Mapping[str, Any]) -> None:
    """Other values of `igcd.config.EncoderConfig` for a workspace from now on.

    The next discovery computes the features again that it needs; photos, labels and decisions stay. With another size
    photos are pooled as in a new workspace of that size.
    """
    with catalog.transaction() as db:
        chosen = {"size": FAST_SIZE, **(setting(db, "encoder") or {})}
        if changes.get("size", chosen["size"]) != chosen["size"]:
            chosen |= default_encoder(chosen.get("backbone"), changes["size"])
        chosen |= changes
        EncoderConfig(**chosen)  # raises where a value is impossible
        db.execute("INSERT OR REPLACE INTO settings VALUES ('encoder', ?)", (json.dumps(chosen),))


def embed_missing(
    catalog: Catalog, encoder: PhotoEncoder, photo_ids: Sequence[int], *, progress: Progress | None = None
) -> Unreadable:
    """Computes the features that are not there yet, or are damaged.

    A photo that never had one and cannot be read is set aside.
    """
    with catalog.snapshot() as db:
        stored = read_features(db, encoder.key, photo_ids)
        sound = stored.keys() - set(find_damaged(stored))
        usable = db.execute(
            "SELECT id FROM photos WHERE id IN (SELECT value FROM json_each(?)) AND broken IS NULL ORDER BY id",
            (id_list(photo_ids),),
        )
        missing = [row["id"] for row in usable if row["id"] not in sound]
        files = photo_files(db, missing)
    images = PhotoFiles(files[photo_id] for photo_id in missing if photo_id in files)
    quarantine = Quarantine(limit=1.0)
    n_done = n_set_aside = 0
    for idx, pixels in decode(images, encoder.size, quarantine=quarantine, batch_size=BATCH):
        ids = [int(images.ids[i]) for i in idx.tolist()]
        keys = [images.key(i) for i in idx.tolist()]
        _store(catalog, encoder.key, ids, keys, pixels, encoder(pixels))
        n_done, n_set_aside = n_done + len(ids), len(quarantine)
        if progress is not None:
            progress(n_done + n_set_aside, len(images))
    reasons = {int(photo_id): reason for photo_id, reason in quarantine.reasons.items()}
    reasons |= {photo_id: "file is missing" for photo_id in missing if photo_id not in files}
    _set_aside(catalog, reasons)
    return Unreadable(reasons)


def embed_images(encoder: PhotoEncoder, images: Images, *, quarantine: Quarantine) -> tuple[list[int], Features]:
    """Features of images that are in no catalog: the positions of those that could be read, and (n, d)."""
    positions: list[int] = []
    features: list[Features] = []
    for idx, pixels in decode(images, encoder.size, quarantine=quarantine, batch_size=BATCH):
        positions += idx.tolist()
        features.append(encoder(pixels))
    return positions, np.concatenate(features) if features else np.empty((0, 0), dtype=np.float32)


def fingerprint(module: nn.Module) -> str:
    """A digest of the weights of a module."""
    digest = hashlib.blake2b(digest_size=8)
    for name, tensor in module.state_dict().items():
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def _store(
    catalog: Catalog, encoder_key: str, ids: Sequence[int], keys: Sequence[str], pixels: Pixels, features: Features
) -> None:
    hashes = [picture_hash(image).tobytes() for image in pixels]
    qualities = [quality_of(image) for image in pixels]
    with catalog.transaction() as db:
        write_features(db, encoder_key, keys, features)
        db.executemany(
            "UPDATE photos SET picture_hash = ? WHERE id = ? AND picture_hash IS NULL",
            list(zip(hashes, ids, strict=True)),
        )
        db.executemany(
            "INSERT OR REPLACE INTO qualities VALUES (?, ?, ?)",
            [(photo, quality.brightness, quality.sharpness) for photo, quality in zip(ids, qualities, strict=True)],
        )


def _set_aside(catalog: Catalog, reasons: Mapping[int, str]) -> None:
    """Marks photos that cannot be used. One that could be read before keeps its place: its file may come back."""
    if not reasons:
        return
    with catalog.transaction() as db:
        for photo_id, reason in reasons.items():
            marked = db.execute(
                "UPDATE photos SET broken = ? WHERE id = ? AND NOT EXISTS "
                "(SELECT 1 FROM features f WHERE f.content_hash = photos.content_hash)",
                (reason, photo_id),
            ).rowcount
            if marked:
                db.execute("DELETE FROM assignments WHERE photo = ?", (photo_id,))


def in_parts(encode: Callable[[Pixels], Features], pixels: Pixels, n_at_once: int) -> Features:
    """`encode(pixels)`, computed for so many images at once: (n, size, size, 3) -> (n, d).

    >>> in_parts(lambda part: part.reshape(len(part), -1) / 2, np.arange(6).reshape(3, 1, 1, 2), 2).tolist()
    [[0.0, 0.5], [1.0, 1.5], [2.0, 2.5]]
    """
    starts = range(0, max(1, len(pixels)), max(1, n_at_once))
    return np.concatenate([encode(pixels[start : start + n_at_once]) for start in starts])


def _name(backbone: Backbone, size: int) -> str:
    looks = hashlib.blake2b(json.dumps(str(backbone.normalization)).encode(), digest_size=4).hexdigest()
    return f"{backbone.name}-{size}px-{backbone.fingerprint}-{looks}"


def _inputs(backbone: Backbone, pixels: Pixels, size: int) -> Tensor:
    return plain_views(to_tensor(pixels, backbone.device), size, backbone.normalization)


def _as_features(features: Tensor) -> Features:
    return np.asarray(features.cpu().numpy(), dtype=np.float32)


def open_tail(encoder: Encoder, path: Path) -> nn.Module:
    """The tail that an adaptation left behind in a file."""
    tensors, _ = read_tensors(path, remedy=RESTORE)
    require_finite(tensors, path)
    tail = encoder.backbone.new_tail()
    prefix = "model.tail."
    with named_in_errors(path):
        tail.load_state_dict(
            {name.removeprefix(prefix): part for name, part in tensors.items() if name.startswith(prefix)}
        )
    return tail
