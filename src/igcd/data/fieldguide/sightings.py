"""Who was seen where and when: ranges, a long tail of sightings, dates and coordinates.

A survey goes round the world in four waves, more sightings every year, later continents opened later. Stages by year
and continent that follow the same waves therefore meet known species again, and new ones.
"""

import datetime
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from igcd.data.fieldguide.dice import Dice

WAVES: tuple[tuple[tuple[str, ...], range], ...] = (
    (("North America", "Europe"), range(2008, 2017)),
    (("Oceania",), range(2017, 2018)),
    (("Asia",), range(2018, 2019)),
    (("Africa", "South America"), range(2019, 2020)),
)
YEARS = range(2008, 2020)
SHARE_OF_SPECIES = (0.5, 1 / 6, 1 / 6, 1 / 6)  # by the wave in which they are first met
SHARE_IN_WAVE = 0.8  # of a continent's sightings; the others fall in other years
SHARE_AT_HOME = 0.6  # of the sightings of a species with a range of more than one continent
TAIL_EXPONENT = 0.5  # the k-th most common species has 1 / k^0.5 of the sightings of the most common
YEARLY_GROWTH = 1.35

# Latitude from, to, longitude from, to: boxes far from every coast.
INLAND: dict[str, tuple[tuple[float, float, float, float], ...]] = {
    "North America": ((34.0, 49.0, -113.0, -94.0), (52.0, 58.0, -116.0, -102.0)),
    "Europe": ((47.5, 52.5, 9.0, 21.0), (45.5, 47.0, 22.0, 26.0)),
    "Oceania": ((-28.5, -20.5, 125.0, 144.0), (-32.0, -29.0, 141.0, 149.0)),
    "Asia": ((26.0, 37.0, 101.0, 113.0), (18.5, 25.5, 75.5, 82.0)),
    "Africa": ((-18.0, -9.5, 17.0, 27.0), (5.5, 9.0, 37.0, 41.0)),
    "South America": ((-15.0, -6.0, -63.0, -48.0), (-27.0, -18.0, -62.0, -56.0)),
}


@dataclass(frozen=True)
class Sighting:
    """One picture taken: of which species (a position), where, when, and the digits that name it."""

    species: int
    continent: str
    date: datetime.datetime
    latitude: float
    longitude: float
    uncertainty: int | None  # meters
    observer: int
    digits: str  # of the file name: says nothing about the species


def wave_of(continent: str) -> int:
    """The wave in which the survey reaches a continent."""
    return next(wave for wave, (continents, _) in enumerate(WAVES) if continent in continents)


def ranges(n_species: int, abundance: Sequence[int], dice: Dice) -> list[tuple[str, ...]]:
    """One to three continents for each species, its home first, the others never from an earlier wave.

    `abundance` is each species' rank, 0 the most common; the rarer third lives on one continent only. The most common
    species of the first wave are pioneers: each reaches another later wave, so that every wave meets known species.
    """
    waves = [wave for wave, n in enumerate(split_evenly(n_species, SHARE_OF_SPECIES)) for _ in range(n)]
    homes = [dice.pick(WAVES[wave][0]) for wave in dice.shuffled(waves)]
    by_abundance = sorted(range(n_species), key=lambda species: abundance[species])
    of_first_wave = [species for species in by_abundance if wave_of(homes[species]) == 0]
    found: dict[int, tuple[str, ...]] = {
        species: (homes[species], dice.pick(continents))
        for species, (continents, _) in zip(of_first_wave, WAVES[1:], strict=False)
    }
    deck: list[str] = []  # the continents are dealt like cards, so that none is forgotten
    for species in by_abundance:
        home = homes[species]
        if species in found:
            continue
        found[species] = (home,)
        for _ in range(0 if abundance[species] >= n_species * 2 / 3 else dice.pick((0, 1, 1, 1, 2, 2, 2))):
            if not any(_reachable(found[species], continent) for continent in deck):
                deck += dice.shuffled([*INLAND, "Oceania", "Asia", "Africa", "South America"])
            card = next((continent for continent in deck if _reachable(found[species], continent)), None)
            if card:
                deck.remove(card)
                found[species] = (*found[species], card)
    return [found[species] for species in range(n_species)]


def _reachable(lives_on: tuple[str, ...], continent: str) -> bool:
    """Whether a species may live on one more continent: not twice on one, not on one surveyed before its home."""
    return continent not in lives_on and wave_of(continent) >= wave_of(lives_on[0])


def split_evenly(total: int, shares: Sequence[float]) -> list[int]:
    """Whole numbers in proportion to the shares that sum to the total, by largest remainder.

    >>> split_evenly(10, [0.5, 0.25, 0.25])
    [5, 3, 2]
    """
    exact = [total * share / sum(shares) for share in shares]
    counts = [int(number) for number in exact]
    by_remainder = sorted(range(len(shares)), key=lambda i: (counts[i] - exact[i], i))
    for i in by_remainder[: total - sum(counts)]:
        counts[i] += 1
    return counts


def long_tail(n_images: int, n_species: int) -> list[int]:
    """Number of sightings by rank, at least one each.

    >>> long_tail(100, 4)
    [36, 25, 21, 18]
    """
    spread = split_evenly(n_images - n_species, [rank**-TAIL_EXPONENT for rank in range(1, n_species + 1)])
    return [1 + count for count in spread]


def make_sightings(
    counts: Sequence[int], homes: Sequence[tuple[str, ...]], *, split: str, seed: int
) -> tuple[Sighting, ...]:
    """`counts[i]` sightings of species i over its range, all in a random order."""
    dice = Dice(f"sightings {split} {seed}")
    drawn: list[tuple[int, str, int]] = []
    for species, (count, continents) in enumerate(zip(counts, homes, strict=True)):
        drawn.extend((species, continent, year) for continent, year in _places_and_years(count, continents, dice))
    return tuple(
        _sighting(
            species, continent, year, hashlib.blake2b(f"{seed}/{split}/{i}".encode(), digest_size=16).hexdigest(), dice
        )
        for i, (species, continent, year) in enumerate(dice.shuffled(drawn))
    )


def _places_and_years(count: int, continents: tuple[str, ...], dice: Dice) -> list[tuple[str, int]]:
    """Continent and year of each sighting of a species: shares by quota, years within them by chance."""
    n_abroad = len(continents) - 1
    shares = [SHARE_AT_HOME, *[(1 - SHARE_AT_HOME) / n_abroad] * n_abroad] if n_abroad else [1.0]
    quotas = split_evenly(count, [share * part for share in shares for part in (SHARE_IN_WAVE, 1 - SHARE_IN_WAVE)])
    places: list[tuple[str, int]] = []
    for i, continent in enumerate(continents):
        in_wave = WAVES[wave_of(continent)][1]
        others = [year for year in YEARS if year not in in_wave]
        places.extend((continent, _year(list(in_wave), dice)) for _ in range(quotas[2 * i]))
        places.extend((continent, _year(others, dice)) for _ in range(quotas[2 * i + 1]))
    return places


def _year(years: Sequence[int], dice: Dice) -> int:
    """One of the years, each likelier than the one before."""
    shares = [YEARLY_GROWTH ** (year - YEARS[0]) for year in years]
    mark = dice.share() * sum(shares)
    for year, share in zip(years, shares, strict=True):
        mark -= share
        if mark < 0:
            return year
    return years[-1]


def _sighting(species: int, continent: str, year: int, digits: str, dice: Dice) -> Sighting:
    south, north, west, east = dice.pick(INLAND[continent])
    day = datetime.datetime(year, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(
        days=dice.whole(0, 364), hours=dice.whole(6, 19), minutes=dice.whole(0, 59)
    )
    return Sighting(
        species=species,
        continent=continent,
        date=day,
        latitude=round(dice.between(south, north), 5),
        longitude=round(dice.between(west, east), 5),
        uncertainty=None if dice.chance(0.15) else round(dice.log_between(4, 900)),
        observer=dice.whole(0, 199),
        digits=digits,
    )
