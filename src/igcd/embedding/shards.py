"""A folder of features: what `igcd embed` writes, shard by shard, and what others read.

    about.json      the encoder, and which images in how many shards
    shards/         one .npz file for each shard that is done; gone when all are
    features.npy    (n, d) float16, one row for each image that could be read
    images.jsonl    for each row the id of the image and the digest of its content
    hashes.npy      (n, 32) uint8, the picture hash of each image
    unreadable.json why images could not be read, by id

Half precision takes half of the disk, and the cosine of two features changes by less than 0.001. A .npy file can be
mapped: whoever reads it holds only the rows that are looked at.
"""

import hashlib
import io
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from igcd.array_files import DamagedArrayError, read_npy, read_npz
from igcd.errors import IgcdError
from igcd.records import cannot_write, named_in_errors, publish, read_json, unfinished_name, write_bytes, write_json

VERSION = 1
FEATURES = "features.npy"
_AGAIN = "embed into another folder"


@dataclass(frozen=True)
class Shard:
    """The features of some consecutive images; those that could not be read are left out."""

    features: npt.NDArray[np.float16]  # (m, d)
    hashes: npt.NDArray[np.uint8]  # (m, 32)
    ids: list[str]  # m
    keys: list[str]  # m, digests of content
    unreadable: dict[str, str]  # reason by id


@dataclass(frozen=True)
class About:
    """What a folder holds: features by one encoder of one list of images."""

    version: int
    encoder: str
    n_images: int
    images: str  # digest of the ids in their order
    shard_size: int

    @property
    def n_shards(self) -> int:
        """How many shards the images make."""
        return -(-self.n_images // self.shard_size)


class EmbeddedFolder:
    """A folder of features, finished or not."""

    def __init__(self, folder: Path, about: About) -> None:
        self.folder, self.about = folder, about

    @classmethod
    def begin(cls, folder: Path, ids: Sequence[str], *, encoder: str, shard_size: int) -> Self:
        """A new folder, or the one that a stopped run left behind for the same images and encoder."""
        digest = hashlib.blake2b("\0".join(ids).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
        about = About(VERSION, encoder, len(ids), digest, shard_size)
        if not (folder / "about.json").exists():
            if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
                raise IgcdError(f"{folder} must be a new folder or one of `igcd embed`, it holds other files; {_AGAIN}")
            write_json(folder / "about.json", asdict(about))
            return cls(folder, about)
        former = cls.open(folder).about
        for name, what in (
            ("encoder", "the encoder has"),
            ("images", "the images have"),
            ("shard_size", "--shard has"),
        ):
            if getattr(former, name) != getattr(about, name):
                raise IgcdError(f"cannot continue {folder}: {what} changed since it was begun; {_AGAIN}")
        return cls(folder, former)

    @classmethod
    def open(cls, folder: Path) -> Self:
        """A folder that is there."""
        path = folder / "about.json"
        if not path.is_file():
            raise IgcdError(f"expected a folder of `igcd embed`, {folder} has no about.json; check the path")
        record = read_json(path)
        with named_in_errors(path):
            about = About(**record)
            if about.version != VERSION or about.shard_size < 1:
                raise IgcdError(f"it must be of version {VERSION}, got {about.version}; {_AGAIN}")
        return cls(folder, about)

    # Writing ---------------------------------------------------------------------------------------------------------

    @property
    def is_finished(self) -> bool:
        """Whether all features are in one file."""
        return (self.folder / FEATURES).is_file()

    def missing(self) -> list[int]:
        """Numbers of the shards that are not done."""
        return [] if self.is_finished else [n for n in range(self.about.n_shards) if not self._path(n).is_file()]

    def positions(self, number: int) -> range:
        """Which images belong to a shard."""
        start = number * self.about.shard_size
        return range(start, min(start + self.about.shard_size, self.about.n_images))

    def write(self, number: int, shard: Shard) -> None:
        """Stores a shard, whole or not at all."""
        content = io.BytesIO()
        np.savez(
            content,
            features=shard.features,
            hashes=shard.hashes,
            rows=_texts([json.dumps([image_id, key]) for image_id, key in zip(shard.ids, shard.keys, strict=True)]),
            unreadable=_texts([json.dumps(item) for item in shard.unreadable.items()]),
        )
        write_bytes(self._path(number), content.getvalue())

    def read(self, number: int) -> Shard:
        """A shard that is done."""
        path = self._path(number)
        try:
            arrays: dict[str, npt.NDArray[Any]] = dict(read_npz(path))
        except (OSError, DamagedArrayError) as error:
            raise IgcdError(f"{path} cannot be read ({error}); delete it, and embed again") from None
        with named_in_errors(path):
            rows = [json.loads(text) for text in arrays["rows"].tolist()]
            unreadable = dict(json.loads(text) for text in arrays["unreadable"].tolist())
            ids, keys = [row[0] for row in rows], [row[1] for row in rows]
            return Shard(arrays["features"], arrays["hashes"], ids, keys, unreadable)

    def finish(self) -> None:
        """Puts all shards into one file each, part by part, and removes them."""
        if self.is_finished:
            shutil.rmtree(self.folder / "shards", ignore_errors=True)
            return
        shapes = [self._shape(number) for number in range(self.about.n_shards)]
        n, width = sum(shape[0] for shape in shapes), max((shape[1] for shape in shapes), default=0)
        if not n:
            reasons = [
                reason for number in range(self.about.n_shards) for reason in self.read(number).unreadable.values()
            ]
            raise IgcdError(f"none of the {self.about.n_images:,} images could be read ({reasons[0]}); give others")
        targets = {name: self.folder / name for name in (FEATURES, "hashes.npy", "images.jsonl")}
        unfinished = {name: unfinished_name(path) for name, path in targets.items()}
        unreadable: dict[str, str] = {}
        try:
            features = np.lib.format.open_memmap(unfinished[FEATURES], "w+", dtype=np.float16, shape=(n, width))
            hashes = np.lib.format.open_memmap(unfinished["hashes.npy"], "w+", dtype=np.uint8, shape=(n, 32))
            with unfinished["images.jsonl"].open("w", encoding="utf-8") as lines:
                row = 0
                for number in range(self.about.n_shards):
                    shard = self.read(number)
                    part = slice(row, row + len(shard.ids))
                    features[part], hashes[part] = shard.features.reshape(-1, width), shard.hashes.reshape(-1, 32)
                    lines.writelines(json.dumps(each) + "\n" for each in zip(shard.ids, shard.keys, strict=True))
                    unreadable |= shard.unreadable
                    row = part.stop
            features.flush()
            hashes.flush()
            write_json(self.folder / "unreadable.json", unreadable)
            for name in ("hashes.npy", "images.jsonl", FEATURES):  # the features last: they say that all is there
                publish(unfinished[name], targets[name])
        except OSError as error:
            raise cannot_write(self.folder, error) from None
        finally:
            for path in unfinished.values():
                path.unlink(missing_ok=True)
        shutil.rmtree(self.folder / "shards", ignore_errors=True)

    # Reading ---------------------------------------------------------------------------------------------------------

    def features(self) -> npt.NDArray[np.float16]:
        """All features, mapped: (n, d)."""
        if not self.is_finished:
            raise IgcdError(
                f"{self.folder} is not finished, {len(self.missing())} of {self.about.n_shards} shards are missing; "
                "run `igcd embed` again with the same images"
            )
        try:
            table: npt.NDArray[Any] = read_npy(self.folder / FEATURES, mapped=True)
        except (OSError, DamagedArrayError) as error:
            raise IgcdError(f"{self.folder / FEATURES} cannot be read ({error}); {_AGAIN}") from None
        return table

    def rows(self) -> Iterator[tuple[str, str]]:
        """Id and digest of content of each row of the features."""
        with (self.folder / "images.jsonl").open(encoding="utf-8") as lines:
            for line in lines:
                image_id, key = json.loads(line)
                yield image_id, key

    def unreadable(self) -> dict[str, str]:
        """Why images could not be read, by id."""
        return dict(read_json(self.folder / "unreadable.json"))

    def _path(self, number: int) -> Path:
        return self.folder / "shards" / f"{number:06d}.npz"

    def _shape(self, number: int) -> tuple[int, int]:
        n, width = self.read(number).features.shape
        return n, width


def _texts(texts: list[str]) -> npt.NDArray[np.str_]:
    return np.array(texts, dtype=np.str_) if texts else np.empty(0, dtype="U1")


def features_path(path: Path) -> Path:
    """The .npy file behind a path: that of a folder of `igcd embed`, or the path itself."""
    if path.is_dir() and (path / "about.json").is_file():
        EmbeddedFolder.open(path).features()
        return path / FEATURES
    return path
