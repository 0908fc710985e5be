"""Streams by place and year: which years and continents a stage takes, in the paper's reading or another."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from igcd.data.geography import CONTINENTS
from igcd.errors import IgcdError

Reading = Literal["replace", "add", "year", "place"]

READINGS: dict[Reading, str] = {
    "replace": "each stage has its own years and its own continents alone (the default)",
    "add": "each stage has its own years, and its continents with those of the stages before",
    "year": "by year only, wherever seen",
    "place": "by continent only, whenever seen",
}


class StageRule(BaseModel):
    """Which observations a stage takes."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    years: tuple[int, int]  # first and last
    continents: tuple[str, ...]

    @field_validator("years")
    @classmethod
    def _in_order(cls, years: tuple[int, int]) -> tuple[int, int]:
        if years[0] > years[1]:
            raise ValueError(f"the first year must not be after the last, got {years[0]}-{years[1]}")
        return years

    @field_validator("continents")
    @classmethod
    def _known(cls, continents: tuple[str, ...]) -> tuple[str, ...]:
        unknown = sorted(set(continents) - set(CONTINENTS))
        if unknown or not continents:
            raise ValueError(f"continents are {', '.join(CONTINENTS)}, got {', '.join(unknown) or 'none'}")
        return continents


PAPER_STAGES = (
    StageRule(years=(2008, 2016), continents=("North America", "Europe")),
    StageRule(years=(2017, 2017), continents=("Oceania",)),
    StageRule(years=(2018, 2018), continents=("Asia",)),
    StageRule(years=(2019, 2019), continents=("Africa", "South America")),
)


class PlaceAndYearSpec(BaseModel):
    """Everything that decides who is in which stage, apart from the observations and the seed."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    protocol: Literal["igcd-l", "igcd-u"] = "igcd-l"
    stages: tuple[StageRule, ...] = Field(default=PAPER_STAGES, min_length=2)
    reading: Reading = "replace"
    min_images: int = Field(default=1, ge=1)
    """A category with fewer training images in a stage is not in that stage."""
    images_per_stage: int | None = Field(default=None, ge=1)
    """Training images of a stage, drawn so that no category falls below `min_images`; unset: all."""
    held_out: float | None = Field(default=None, gt=0, lt=1)
    """Share of each category's sightings whose images become test images, for observations without any."""
    returning: Literal["old", "new"] = "old"
    """Where a category counts that was labeled at an earlier stage, is not now, and comes back unlabeled."""


@dataclass(frozen=True)
class EffectiveRule:
    """A stage's rule under a reading; None means any."""

    years: tuple[int, int] | None
    continents: tuple[str, ...] | None


def effective_rules(stages: Sequence[StageRule], reading: Reading) -> list[EffectiveRule]:
    """The rules as the reading understands them.

    >>> [rule.continents for rule in effective_rules(PAPER_STAGES[:3], "add")][-1]
    ('North America', 'Europe', 'Oceania', 'Asia')
    """
    so_far: tuple[str, ...] = ()
    rules = []
    for stage in stages:
        so_far += tuple(continent for continent in stage.continents if continent not in so_far)
        years = None if reading == "place" else stage.years
        continents = {"replace": stage.continents, "place": stage.continents, "add": so_far}.get(reading)
        rules.append(EffectiveRule(years, continents))
    return rules


def describe(rule: EffectiveRule) -> str:
    """A rule in words, for error messages."""
    years = "any year" if rule.years is None else f"{rule.years[0]}-{rule.years[1]}"
    return f"{years}, {'anywhere' if rule.continents is None else ' and '.join(rule.continents)}"


def parse_stages(text: str) -> tuple[StageRule, ...]:
    """Stages written as `years:continents`, separated by semicolons.

    >>> [rule.years for rule in parse_stages("2008-2016: North America, Europe; 2017: Oceania")]
    [(2008, 2016), (2017, 2017)]
    """
    rules = []
    for part in filter(None, (part.strip() for part in text.split(";"))):
        match = re.fullmatch(r"(\d{4})(?:\s*[-–]\s*(\d{4}))?\s*:\s*(.+)", part, re.ASCII)
        if match is None:
            raise IgcdError(
                f"a stage is written like 2008-2016:North America,Europe, got {part!r}; separate stages by semicolons"
            )
        known = {name.lower(): name for name in CONTINENTS}
        names = [known.get(name.strip().lower(), name.strip()) for name in match[3].split(",")]
        try:
            rules.append(
                StageRule(years=(int(match[1]), int(match[2] or match[1])), continents=tuple(dict.fromkeys(names)))
            )
        except ValidationError as error:
            reason = error.errors()[0]["msg"].removeprefix("Value error, ")
            raise IgcdError(f"stage {part!r}: {reason}; correct it") from None
        except UnicodeEncodeError:
            raise IgcdError(f"stage {part!r}: it has bytes that are not UTF-8; type it again") from None
    if len(rules) < 2:
        raise IgcdError(f"a stream needs at least two stages, got {len(rules)}; separate stages by semicolons")
    return tuple(rules)
