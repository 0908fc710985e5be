"""Figures published for the method `snn_density`, to stand beside ours.

Zhao and Mac Aodha, "Incremental Generalized Category Discovery", ICCV 2023; the row "Ours" of each table. Percent; a
lower M_f is better.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

RESNET_18 = "ResNet-18, MoCo"
"""Pretrained on ImageNet-1k without labels."""
VIT_B_16 = "ViT-B/16"


@dataclass(frozen=True)
class PublishedRow:
    """One row of a table of the paper."""

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


def _row(table: str, backbone: str, columns: str, values: Sequence[float]) -> PublishedRow:
    *scores, forgetting, discovery = values
    keys = [(int(column[0]), column[2:]) for column in columns.split()]
    return PublishedRow(table, backbone, dict(zip(keys, scores, strict=True)), forgetting, discovery)


_IGCD_L = "0.All 1.All 1.Old 1.New 2.All 2.Old 2.New 2.S-0 3.All 3.Old 3.New 3.S-1 3.S-0"
_IGCD_U = "0.All 1.New 1.S-0 2.New 2.S-1 2.S-0 3.New 3.S-2 3.S-1 3.S-0"

# fmt: off
PUBLISHED: Mapping[str, tuple[PublishedRow, ...]] = {
    "inat2021-igcd-l": (
        _row("1", RESNET_18, _IGCD_L,
             [41.8, 25.6, 34.6, 14.5, 25.7, 35.0, 21.5, 16.4, 22.8, 35.9, 17.8, 16.4, 14.2, 27.6, 28.4]),
        _row("A7", VIT_B_16, _IGCD_L,
             [45.6, 27.0, 36.3, 16.7, 26.8, 37.2, 23.4, 18.5, 25.0, 38.1, 19.7, 18.2, 17.1, 29.4, 30.2]),
    ),
    "inat2021-igcd-u": (
        _row("2", RESNET_18, _IGCD_U, [41.8, 12.7, 22.1, 15.4, 10.7, 14.3, 16.1, 11.2, 9.1, 13.1, 28.7, 14.1]),
        # The paper heads the third column of this table S-1; by the layout of table 2 it is S-0.
        _row("A8", VIT_B_16, _IGCD_U, [41.9, 12.8, 22.5, 15.7, 10.9, 14.6, 16.3, 11.5, 9.0, 13.6, 28.4, 14.9]),
    ),
    "cifar100-igcd-l": (
        _row("A9", RESNET_18, _IGCD_L,
             [77.8, 78.5, 79.0, 78.2, 78.0, 78.7, 75.0, 65.3, 76.0, 78.8, 72.1, 64.6, 51.3, 26.5, 69.2]),
    ),
    "cifar100-igcd-u": (
        _row("A10", RESNET_18, _IGCD_U, [77.8, 64.4, 46.9, 67.8, 47.0, 42.1, 68.0, 40.0, 46.8, 41.5, 36.3, 55.9]),
    ),
    "cifar100-mi": (_row("3", RESNET_18, "", [4.0, 31.2]),),
    "cub-mi": (_row("3", RESNET_18, "", [6.7, 29.4]),),
}
# fmt: on

PUBLISHED_COUNTS: Mapping[str, PublishedCount] = {
    "cifar100-mi": PublishedCount("4", found=(13, 10, 12), true=(10, 10, 10)),
    "inat2021-igcd-l": PublishedCount("4", found=(886, 2857, 4085), true=(972, 3040, 4324)),
}

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
