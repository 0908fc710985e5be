"""Figures of the paper, to stand beside ours.

Zhao and Mac Aodha, "Incremental Generalized Category Discovery", ICCV 2023. `paper_tables.json` has every figure of its
tables; `snn_density` is the row "Ours". Percent; a lower M_f is better.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from igcd.errors import IgcdError

RESNET_18 = "ResNet-18, MoCo"
"""Pretrained on ImageNet-1k without labels."""
VIT_B_16 = "ViT-B/16"

TABLES: Mapping[str, Mapping[str, Any]] = json.loads(
    (resources.files("igcd.report") / "paper_tables.json").read_text(encoding="utf-8")
)
"""By name: the number of the table, its columns, and rows of figures; a figure it does not print is None."""


@dataclass(frozen=True)
class PublishedFigures:
    """A row of a table of the paper, by column: S1.Old, M_f, or All where the table has one stage."""

    table: str
    figures: Mapping[str, float]


def published_figures(reference: str, row: str) -> PublishedFigures | None:
    """The figures a reference points at, None where the table has no such row.

    A reference is the name of a table, the data set where its columns are of several, and the row where it is not
    `row`: `cifar100_igcd_l`, `mi.cub`, `backbone.vit_b/gm`.

    >>> published_figures("mi.cub", "gm")
    PublishedFigures(table='3', figures={'M_f': 6.8, 'M_d': 26.7})
    >>> published_figures("mi.cub", "orca") is None
    True
    """
    path, _, own_row = reference.partition("/")
    name, _, part = path.partition(".")
    if name not in TABLES:
        raise IgcdError(f"paper: there is no table {name!r}; choose one of {', '.join(TABLES)}")
    table = TABLES[name]
    prefix = f"{part}." if part else ""
    columns = {
        column.removeprefix(prefix): at for at, column in enumerate(table["columns"]) if column.startswith(prefix)
    }
    if not columns:
        parts = dict.fromkeys(column.partition(".")[0] for column in table["columns"])
        raise IgcdError(f"paper: table {name} has no columns of {part!r}; choose one of {', '.join(parts)}")
    values = table["rows"].get(own_row or row)
    if values is None:
        return None
    figures = {column: values[at] for column, at in columns.items() if values[at] is not None}
    return PublishedFigures(table["table"], figures)


@dataclass(frozen=True)
class PublishedRow:
    """The row of `snn_density` in a table of the paper."""

    table: str
    backbone: str
    scores: Mapping[tuple[int, str], float]  # by stage and group, as far as the table has them
    forgetting: float
    discovery: float


@dataclass(frozen=True)
class PublishedCount:
    """New categories found per stage after the first, and how many there were."""

    table: str
    found: tuple[int, ...]
    true: tuple[int, ...]


def _row(reference: str, backbone: str) -> PublishedRow:
    published = published_figures(reference, "snn_density")
    assert published is not None  # noqa: S101 - every table named here has the row
    figures = dict(published.figures)
    forgetting, discovery = figures.pop("M_f"), figures.pop("M_d")
    scores = {(int(column[1]), column[3:]): score for column, score in figures.items()}
    return PublishedRow(published.table, backbone, scores, forgetting, discovery)


PUBLISHED: Mapping[str, tuple[PublishedRow, ...]] = {
    "inat2021-igcd-l": (_row("inat_igcd_l_resnet18", RESNET_18), _row("inat_igcd_l_vit_b16", VIT_B_16)),
    # The paper heads the third column of the second table S-1; by the layout of table 2 it is S-0.
    "inat2021-igcd-u": (_row("inat_igcd_u_resnet18", RESNET_18), _row("inat_igcd_u_vit_b16", VIT_B_16)),
    "cifar100-igcd-l": (_row("cifar100_igcd_l", RESNET_18),),
    "cifar100-igcd-u": (_row("cifar100_igcd_u", RESNET_18),),
    "cifar100-mi": (_row("mi.cifar100", RESNET_18),),
    "cub-mi": (_row("mi.cub", RESNET_18),),
}
"""What the paper reports for its own method, by stream."""


def published_count(stream: str, method: str) -> PublishedCount | None:
    """How many new categories the paper says a method found, where its table 4 has the stream and the method.

    >>> published_count("cifar100-mi", "gm")
    PublishedCount(table='4', found=(14, 13, 13), true=(10, 10, 10))
    """
    part = {"cifar100-mi": "cifar100_mi", "inat2021-igcd-l": "inat_l"}.get(stream)
    if part is None:
        return None
    found = published_figures(f"category_count.{part}", method)
    true = published_figures(f"category_count.{part}", "ground_truth")
    if found is None or true is None:
        return None
    return PublishedCount(
        found.table,
        found=tuple(int(count) for count in found.figures.values()),
        true=tuple(int(count) for count in true.figures.values()),
    )


PUBLISHED_COUNTS: Mapping[str, PublishedCount] = {
    stream: count for stream in PUBLISHED if (count := published_count(stream, "snn_density")) is not None
}
"""New categories found by the paper's own method, by stream."""

LATER_WORK: Mapping[str, Mapping[str, Any]] = json.loads(
    (resources.files("igcd.report") / "later_work.json").read_text(encoding="utf-8")
)
"""By stream: what later work has published for its layout, under the definition of Happy, and in which setting."""


def later_work_published(stream: str, configs: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The entry of `LATER_WORK` that runs of a stream compare with; empty where one of them has another setting.

    >>> sorted(later_work_published("cifar100-cgcd", []))
    ['holds_for', 'rows', 'setting']
    >>> later_work_published("cifar100-cgcd", [{"encoder": {"backbone": "resnet18"}}])
    {}
    """
    published = LATER_WORK.get(stream, {})
    return published if all(_holds(published.get("holds_for", {}), config) for config in configs) else {}


def _holds(wanted: Any, found: Any) -> bool:  # noqa: ANN401 - whatever JSON holds
    """Whether everything that is wanted is found, at any depth; what else is found does not matter."""
    if isinstance(wanted, Mapping):
        return isinstance(found, Mapping) and all(_holds(value, found.get(key)) for key, value in wanted.items())
    return bool(wanted == found)


_LIMITS = {
    "images_labeled": "images per category at stage 0",
    "images_new": "images per new category",
    "test_per_category": "test images per category",
    "images_per_stage": "images per stage",
}


def differences(config: Mapping[str, Any], spec: Mapping[str, Any]) -> list[str]:
    """What a reader has to know before comparing our row with the paper's, as far as the records tell."""
    found = []
    encoder = config.get("encoder", {})
    if encoder:
        found.append(f"our encoder is {encoder.get('backbone')} at {encoder.get('size')} px")
    limits = [f"{spec[key]:,} {what}" for key, what in _LIMITS.items() if isinstance(spec.get(key), int)]
    if limits:
        found.append(f"our stream is a small one ({', '.join(limits)})")
    return found
