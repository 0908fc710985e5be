"""Names of categories in the tree of life: score at genus level, or tell a new species of a known genus."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from igcd.errors import IgcdError
from igcd.types import IntArray

RANKS = ("kingdom", "phylum", "class", "order", "family", "genus")
"""From the broadest to the narrowest; below the genus is the category itself."""


@dataclass(frozen=True, slots=True)
class Taxon:
    """One category: its name, unique in its data set, and where it stands in the tree."""

    name: str
    ranks: tuple[str, ...]  # aligned with RANKS, "" where unknown
    common_name: str = ""

    def at(self, rank: str) -> str:
        """The name of the group this category belongs to at a rank, "" where unknown.

        >>> Taxon("Danaus plexippus", ("Animalia", "Arthropoda", "Insecta", "Lepidoptera", "", "Danaus")).at("genus")
        'Danaus'
        """
        if rank not in RANKS:
            raise IgcdError(f"rank must be one of {', '.join(RANKS)}, got {rank!r}; choose one of them")
        return self.ranks[RANKS.index(rank)]


def groups_at(taxa: Sequence[Taxon], rank: str) -> tuple[IntArray, tuple[str, ...]]:
    """The group of each category at a rank, (n_categories,), and the names of the groups: scores at that rank.

    Groups of one name in two places of the tree (a genus of moths and one of orchids) stay two. A category without a
    name at the rank is a group of its own, so that what is unknown never counts as the same.
    """
    upto = RANKS.index(rank) + 1 if rank in RANKS else 0
    code_of: dict[tuple[str, ...], int] = {}
    names: list[str] = []
    codes = []
    for taxon in taxa:
        own = taxon.at(rank)
        path = taxon.ranks[:upto] if own else ("", taxon.name)
        if path not in code_of:
            code_of[path] = len(names)
            names.append(own or taxon.name)
        codes.append(code_of[path])
    return np.asarray(codes, dtype=np.int64), tuple(names)


def novelty(taxon: Taxon, known: Iterable[Taxon]) -> str:
    """How new a category is beside the known ones.

    >>> family = ("Animalia", "Arthropoda", "Insecta", "Lepidoptera", "Nymphalidae")
    >>> monarch = Taxon("Danaus plexippus", (*family, "Danaus"))
    >>> queen = Taxon("Danaus gilippus", monarch.ranks)
    >>> comma = Taxon("Polygonia c-album", (*family, "Polygonia"))
    >>> novelty(queen, [monarch]), novelty(comma, [monarch]), novelty(monarch, [monarch, comma])
    ('new species of a known genus', 'new genus of a known family', 'known')
    """
    known = list(known)
    if any(taxon.name == other.name for other in known):
        return "known"
    for depth in range(len(RANKS), 0, -1):
        path = taxon.ranks[:depth]
        if path[-1] and any(other.ranks[:depth] == path for other in known):
            named = zip(RANKS[depth:], taxon.ranks[depth:], strict=True)
            narrower = next((rank for rank, name in named if name), "species")  # an empty rank is not known to be new
            return f"new {narrower} of a known {RANKS[depth - 1]}"
    return f"new {RANKS[0]}"


def format_taxonomy(taxa: Iterable[Taxon]) -> str:
    """The text of `taxonomy.csv`, one line per category."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["category", *RANKS, "common_name"])
    rows.writerows([taxon.name, *taxon.ranks, taxon.common_name] for taxon in taxa)
    return text.getvalue()


def read_taxonomy(path: Path) -> Mapping[str, Taxon]:
    """The categories of a `taxonomy.csv` by name."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file, strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise IgcdError(f"{path} is not a taxonomy file ({error}); `igcd build` writes one") from None
    if not rows or rows[0] != ["category", *RANKS, "common_name"] or any(len(row) != len(rows[0]) for row in rows):
        raise IgcdError(f"{path} must have the columns category, {', '.join(RANKS)}, common_name; rebuild it")
    return {row[0]: Taxon(row[0], tuple(row[1:-1]), row[-1]) for row in rows[1:]}
