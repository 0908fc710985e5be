import pytest
from small_run import ROWS, TAXA, predictions_of

from igcd.report.paper import PUBLISHED
from igcd.report.run_records import read_run
from igcd.report.score_table import level_table, score_table


def test_layout_of_table_1_with_one_value_per_column(make_run):
    results = read_run(make_run()).results
    table = score_table(results, "This run", "dual", [])
    assert table.stages == ((0, ("All",)), (1, ("All", "Old", "New", "S-0")))
    (row,) = table.rows
    ours = results.stages[1].scores
    assert row.values == (80.0, ours["All"], ours["Old"], ours["New"], ours["S-0"], results.M_f, results.M_d)


def test_the_paper_stands_in_the_same_columns(make_run):
    results = read_run(make_run()).results
    table = score_table(results, "This run", "dual", PUBLISHED["cifar100-igcd-l"])
    ours, paper = table.rows
    assert len(ours.values) == len(paper.values)
    assert (paper.name, paper.note) == ("Paper, table A9", "ResNet-18, MoCo")
    assert paper.values == (77.8, 78.5, 79.0, 78.2, None, 26.5, 69.2)  # it has no S-0 at stage 1


def test_mixed_incremental_has_forgetting_and_discovery_only(make_run):
    table = score_table(read_run(make_run()).results, "This run", "", PUBLISHED["cifar100-mi"])
    assert table.rows[1].values == (None, None, None, None, None, 4.0, 31.2)


TAXONOMY = {taxon.name: taxon for taxon in TAXA}


def test_levels_stand_in_the_columns_of_the_scores(make_run):
    """At stage 1 clusters 0, 1 and 7 are owl, fox and newt; the owl in cluster 7 is of the newt's genus."""
    table = level_table(predictions_of(ROWS), TAXONOMY, "test")
    assert table.stages == ((0, ("All",)), (1, ("All", "Old", "New")))
    species, genus, family = table.rows
    assert [(row.name, row.note) for row in table.rows] == [
        ("Same species", "4 species"),
        ("Same genus", "3 genera"),
        ("Same family", "3 families"),
    ]
    assert species.values == (80.0, 62.5, pytest.approx(200 / 3), 60.0)
    assert genus.values == family.values == (80.0, 75.0, 100.0, 60.0)
    scores = read_run(make_run()).results.stages
    assert species.values == (scores[0].scores["All"], *(scores[1].scores[group] for group in ("All", "Old", "New")))


def test_one_genus_is_not_many():
    table = level_table(predictions_of([(0, "test", "owl", "0", "Old")]), TAXONOMY, "test")
    assert [row.note for row in table.rows] == ["1 species", "1 genus", "1 family"]
