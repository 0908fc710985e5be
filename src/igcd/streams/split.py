"""Split files: a whole stream as plain text, one line per image, readable without this package.

    #igcd-split 1
    #name cifar100-mi
    #source cifar100
    #seed 0
    #spec {"protocol":"mi", …}
    #columns stage role image category group
    0<TAB>labeled<TAB>train/00012<TAB>apple<TAB>Old
    …
    #sha256 <of everything above this line>

Lines are sorted, fields are separated by one tab, the text is UTF-8 with line feeds. The same spec, seed and images
give the same bytes everywhere. docs/protocol.md tells how to read one without this package.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from igcd.errors import IgcdError
from igcd.records import write_bytes
from igcd.streams.protocols import StageIndices
from igcd.types import IntArray, Truth

VERSION = 1
ROLES = ("labeled", "unlabeled", "test")
COLUMNS = ("stage", "role", "image", "category", "group")


@dataclass(frozen=True)
class SplitStage:
    """The images of one stage, by role, with their categories and groups."""

    labeled: Truth
    unlabeled: Truth
    test: Truth


@dataclass(frozen=True)
class Split:
    """Who is in which stage, by name: what a split file holds."""

    name: str
    source: str
    seed: int
    spec: Mapping[str, Any]
    stages: tuple[SplitStage, ...]


def make_split(
    *,
    name: str,
    source: str,
    seed: int,
    spec: Mapping[str, Any],
    stages: Sequence[StageIndices],
    groups: Sequence[Mapping[int, str]],
    image_ids: Sequence[str],
    categories: IntArray,
    category_names: Sequence[str],
) -> Split:
    """Positions turned into names: `stages` point into `image_ids` and `categories`, (n,), codes of `category_names`.

    A test image of a category that no stage has met yet has no group and is left out.
    """

    def truth(idx: IntArray, group_of: Mapping[int, str]) -> Truth:
        codes = categories[idx].tolist()
        met = [(image_ids[i], code) for i, code in zip(idx.tolist(), codes, strict=True) if code in group_of]
        met.sort()
        return Truth(
            image_ids=tuple(image_id for image_id, _ in met),
            categories=tuple(category_names[code] for _, code in met),
            groups=tuple(group_of[code] for _, code in met),
        )

    return Split(
        name=name,
        source=source,
        seed=seed,
        spec=dict(spec),
        stages=tuple(
            SplitStage(
                labeled=truth(stage.labeled_idx, group_of),
                unlabeled=truth(stage.unlabeled_idx, group_of),
                test=truth(stage.test_idx, group_of),
            )
            for stage, group_of in zip(stages, groups, strict=True)
        ),
    )


def format_split(split: Split) -> bytes:
    """The split file's bytes, checksum included."""
    spec = json.dumps(split.spec, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    lines = [
        f"#igcd-split {VERSION}",
        f"#name {split.name}",
        f"#source {split.source}",
        f"#seed {split.seed}",
        f"#spec {spec}",
        f"#columns {' '.join(COLUMNS)}",
    ]
    for index, stage in enumerate(split.stages):
        for role in ROLES:
            truth: Truth = getattr(stage, role)
            lines += [
                f"{index}\t{role}\t{image_id}\t{category}\t{group}"
                for image_id, category, group in zip(truth.image_ids, truth.categories, truth.groups, strict=True)
            ]
    n_tabs = sum(line.count("\t") for line in lines[6:])
    if n_tabs != 4 * (len(lines) - 6) or any(len(line.splitlines()) > 1 for line in lines):
        raise IgcdError("a name has a tab or a line break in it, which a split file cannot hold; rename it")
    text = "".join(f"{line}\n" for line in lines).encode()
    return text + f"#sha256 {hashlib.sha256(text).hexdigest()}\n".encode()


def write_split(split: Split, path: Path) -> None:
    """Writes the split file whole or not at all."""
    write_bytes(path, format_split(split))


def read_split(path: Path) -> Split:
    """Reads a split file and checks every byte of it."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise IgcdError(f"split file {path} cannot be read ({error.strerror}); `igcd build` makes one") from None
    body, found, checksum = content.rpartition(b"#sha256 ")
    if not content.startswith(b"#igcd-split "):
        raise IgcdError(f"{path} is not a split file: its first line should begin with #igcd-split")
    version = content.split(b"\n", 1)[0].removeprefix(b"#igcd-split ").decode(errors="replace")
    if version != str(VERSION):
        raise IgcdError(f"{path} is a split file of version {version}, this igcd reads version {VERSION}; rebuild it")
    if not found or hashlib.sha256(body).hexdigest().encode() != checksum.strip():
        raise IgcdError(f"{path} is truncated or was edited: its checksum does not fit; rebuild it with `igcd build`")
    return _parse(body.decode(), path)


def _parse(text: str, path: Path) -> Split:
    lines = text.splitlines()
    header = dict(line[1:].split(" ", 1) for line in lines[:6])
    if header.get("columns") != " ".join(COLUMNS):
        raise IgcdError(f"{path} has other columns than {', '.join(COLUMNS)}; rebuild it with `igcd build`")
    rows = [line.split("\t") for line in lines[6:]]
    n_stages = 1 + max((int(row[0]) for row in rows), default=-1)
    cells: dict[tuple[int, str], list[list[str]]] = {}
    for stage, role, *names in rows:
        cells.setdefault((int(stage), role), []).append(names)

    def truth(stage: int, role: str) -> Truth:
        columns = zip(*cells.get((stage, role), []), strict=True)
        image_ids, categories, groups = tuple(columns) or ((), (), ())
        return Truth(image_ids=image_ids, categories=categories, groups=groups)

    return Split(
        name=header["name"],
        source=header["source"],
        seed=int(header["seed"]),
        spec=json.loads(header["spec"]),
        stages=tuple(SplitStage(*(truth(stage, role) for role in ROLES)) for stage in range(n_stages)),
    )


@dataclass(frozen=True)
class StageCounts:
    """A stage in numbers, as `igcd build` shows it."""

    stage: int
    labeled: int
    unlabeled: int
    test_images: int
    categories: int
    old: int
    new: int
    absent: int


def count_stages(split: Split) -> list[StageCounts]:
    """Images and categories of each stage. `categories` are those present; `absent` were met earlier."""
    counts = []
    for index, stage in enumerate(split.stages):
        group_of = dict(zip(stage.test.categories, stage.test.groups, strict=True))
        group_of |= dict(zip(stage.labeled.categories, stage.labeled.groups, strict=True))
        group_of |= dict(zip(stage.unlabeled.categories, stage.unlabeled.groups, strict=True))
        values = np.asarray(list(group_of.values()), dtype=np.str_)
        n_old, n_new = int((values == "Old").sum()), int((values == "New").sum())
        counts.append(
            StageCounts(
                stage=index,
                labeled=len(stage.labeled.image_ids),
                unlabeled=len(stage.unlabeled.image_ids),
                test_images=len(stage.test.image_ids),
                categories=n_old + n_new,
                old=n_old,
                new=n_new,
                absent=len(values) - n_old - n_new,
            )
        )
    return counts
