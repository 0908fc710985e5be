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
give the same bytes everywhere. docs/protocol.md says how to read one without this package.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from igcd.errors import IgcdError, excerpt
from igcd.records import parse_json, write_bytes
from igcd.streams.protocols import StageIndices
from igcd.types import IntArray, Truth

VERSION = 1
ROLES = ("labeled", "unlabeled", "test")
COLUMNS = ("stage", "role", "image", "category", "group")
HEADER = ("igcd-split", "name", "source", "seed", "spec", "columns")

# Stages without any line are possible. So the number is bounded: a wrong digit could make a billion empty ones.
_STAGE = re.compile(r"0|[1-9][0-9]{0,3}")
_SEED = re.compile(r"0|[1-9][0-9]{0,99}")
_GROUP = re.compile(r"Old|New|S-(0|[1-9][0-9]{0,3})")


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
    n_tabs = sum(line.count("\t") for line in lines[len(HEADER) :])
    if n_tabs != 4 * (len(lines) - len(HEADER)) or any(line.splitlines() != [line] for line in lines):
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
    first_line = content.split(b"\n", 1)[0]
    if first_line.endswith(b"\r"):
        raise IgcdError(
            f"{path} has lines that end in CR and LF, a split file's end in LF alone; copy it without converting text, "
            "or rebuild it with `igcd build`"
        )
    version = first_line.removeprefix(b"#igcd-split ").decode(errors="replace")
    if version != str(VERSION):
        raise IgcdError(f"{path} is a split file of version {version}, this igcd reads version {VERSION}; rebuild it")
    if not found or hashlib.sha256(body).hexdigest().encode() != checksum.strip():
        raise IgcdError(f"{path} is truncated or was edited: its checksum does not fit; rebuild it with `igcd build`")
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise _bad_line(path, 1 + body.count(b"\n", 0, error.start), "must be UTF-8 text, got other bytes") from None
    return _parse(text, path)


def _bad_line(path: Path, number: int, wrong: str) -> IgcdError:
    return IgcdError(f"{path} line {number} {wrong}; rebuild it with `igcd build`")


def _parse(text: str, path: Path) -> Split:
    *lines, rest = text.split("\n")
    if rest:
        raise _bad_line(path, len(lines) + 1, "must end before the checksum, it does not")
    if "\r" in text or len(text.splitlines()) != len(lines):  # Unicode has more line breaks than the line feed
        number = next(number for number, line in enumerate(lines, 1) if line and line.splitlines() != [line])
        raise _bad_line(path, number, "has a line break inside a name")
    header = _parse_header(lines, path)
    truths = _parse_rows(lines, path)
    n_stages = 1 + max((stage for stage, _ in truths), default=-1)
    nothing = Truth(image_ids=(), categories=(), groups=())
    return Split(
        name=header["name"],
        source=header["source"],
        seed=int(header["seed"]),
        spec=parse_json(header["spec"]),
        stages=tuple(SplitStage(*(truths.get((stage, role), nothing) for role in ROLES)) for stage in range(n_stages)),
    )


def _parse_header(lines: Sequence[str], path: Path) -> dict[str, str]:
    """What the first lines say, checked."""
    header = {}
    for number, key in enumerate(HEADER, 1):
        line = lines[number - 1] if number <= len(lines) else ""
        if not line.startswith(f"#{key} "):
            raise _bad_line(path, number, f"must begin with #{key}, it is {_shortened(line)}")
        header[key] = line.removeprefix(f"#{key} ")
    if header["columns"] != " ".join(COLUMNS):
        raise IgcdError(f"{path} has other columns than {', '.join(COLUMNS)}; rebuild it with `igcd build`")
    if not _SEED.fullmatch(header["seed"]):
        raise _bad_line(path, 4, f"must hold the seed, a whole number, got {_shortened(header['seed'])}")
    try:
        is_spec = isinstance(parse_json(header["spec"]), dict)
    except ValueError:
        is_spec = False
    if not is_spec:
        raise _bad_line(path, 5, f"must hold the spec, a JSON object, got {_shortened(header['spec'])}")
    return header


def _parse_rows(lines: Sequence[str], path: Path) -> dict[tuple[int, str], Truth]:
    """The images of each stage and role, in the order of their lines, every line checked.

    Stage, role and group are looked at once for each combination, which leaves two lookups for each of a million lines.
    """
    rows: dict[tuple[int, str], list[tuple[str, str, str]]] = {}
    role_of_image: dict[int, dict[str, str]] = {}
    places: dict[tuple[str, str, str], tuple[list[tuple[str, str, str]], dict[str, str]]] = {}
    for number, line in enumerate(lines[len(HEADER) :], len(HEADER) + 1):
        fields = line.split("\t")
        if len(fields) != len(COLUMNS):
            raise _bad_line(path, number, f"must have {len(COLUMNS)} fields, it has {len(fields) if line else 0}")
        stage, role, image_id, category, group = fields
        place = places.get((stage, role, group))
        if place is None:
            wrong = _fault(stage, role, group)
            if wrong:
                raise _bad_line(path, number, wrong)
            place = rows.setdefault((int(stage), role), []), role_of_image.setdefault(int(stage), {})
            places[stage, role, group] = place
        rows_here, role_of = place
        if not image_id or not category:
            raise _bad_line(path, number, f"must name the {'category' if image_id else 'image'}, the field is empty")
        if image_id in role_of:
            raise _bad_line(
                path,
                number,
                f"has {_shortened(image_id)} as {role}, which stage {stage} already has as {role_of[image_id]}",
            )
        role_of[image_id] = role
        rows_here.append((image_id, category, group))
    return {cell: Truth(*zip(*rows_here, strict=True)) for cell, rows_here in rows.items()}


def _fault(stage: str, role: str, group: str) -> str:
    """What is wrong with the stage, role and group of a line, "" if nothing is."""
    if not _STAGE.fullmatch(stage):
        return f"must begin with the number of a stage, 0 to 9999, got {_shortened(stage)}"
    if role not in ROLES:
        return f"must have the role {', '.join(ROLES[:-1])} or {ROLES[-1]}, got {_shortened(role)}"
    match = _GROUP.fullmatch(group)
    if match is None:
        return f"must have the group Old, New or S-t, got {_shortened(group)}"
    if match[1] is not None and int(match[1]) >= int(stage):
        return f"must have a group of an earlier stage than {stage}, got {group}"
    return ""


def _shortened(text: str) -> str:
    return excerpt(repr(text), limit=60)


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
