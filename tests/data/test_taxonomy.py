"""The tree above the categories."""

from itertools import pairwise
from pathlib import Path

import pytest
from inat2021_annotations import TRAIN, annotations

from igcd.data.inat2021 import from_annotations
from igcd.data.taxonomy import RANKS, Taxon, format_taxonomy, groups_at, novelty, read_taxonomy
from igcd.errors import IgcdError

TAXA = from_annotations(annotations(TRAIN, "train"), name="x").taxa
MONARCH, QUEEN, ADMIRAL, RAVEN, MEADOWSWEET, LION = TAXA


def test_groups_at_a_rank():
    codes, names = groups_at(TAXA, "genus")
    assert codes.tolist() == [0, 0, 1, 2, 3, 4]
    assert names == ("Danaus", "Vanessa", "Corvus", "Filipendula", "Panthera")
    assert groups_at(TAXA, "kingdom")[0].tolist() == [0, 0, 0, 0, 1, 0]


def test_a_finer_rank_never_joins_what_a_coarser_one_parts():
    for coarse, fine in pairwise(RANKS):
        coarse_of, fine_of = groups_at(TAXA, coarse)[0], groups_at(TAXA, fine)[0]
        for group in set(fine_of.tolist()):
            assert len(set(coarse_of[fine_of == group].tolist())) == 1


def test_unknown_groups_are_not_the_same_group_and_homonyms_neither():
    taxa = [Taxon("a", ("", "", "", "", "", "")), Taxon("b", ("", "", "", "", "", ""))]
    assert groups_at(taxa, "family")[0].tolist() == [0, 1]
    moth = Taxon("m", ("Animalia", "", "", "", "", "Oenanthe"))
    herb = Taxon("h", ("Plantae", "", "", "", "", "Oenanthe"))
    assert groups_at([moth, herb], "genus")[0].tolist() == [0, 1]
    assert novelty(moth, [herb]) == "new kingdom"


def test_novelty_beside_the_known():
    assert novelty(QUEEN, [MONARCH, RAVEN]) == "new species of a known genus"
    assert novelty(ADMIRAL, [MONARCH]) == "new genus of a known family"
    assert novelty(LION, [RAVEN]) == "new class of a known phylum"
    assert novelty(RAVEN, [MONARCH]) == "new phylum of a known kingdom"
    assert novelty(MEADOWSWEET, [MONARCH]) == "new kingdom"
    assert novelty(MONARCH, [MONARCH]) == "known"
    assert novelty(Taxon("?", ("",) * 6), [Taxon("!", ("",) * 6)]) == "new kingdom"


def test_a_taxonomy_file_reads_back(tmp_path: Path):
    odd = Taxon('Quoted, "name"', ("a", "", "", "", "", ""), "ünï\ncode")
    path = tmp_path / "taxonomy.csv"
    path.write_text(format_taxonomy([*TAXA, odd]), encoding="utf-8", newline="")
    assert list(read_taxonomy(path).values()) == [*TAXA, odd]
    path.write_text("name,genus\n", encoding="utf-8")
    with pytest.raises(IgcdError, match="must have the columns category, kingdom"):
        read_taxonomy(path)


def test_an_unknown_rank_is_refused():
    with pytest.raises(IgcdError, match="rank must be one of kingdom"):
        groups_at(TAXA, "tribe")
