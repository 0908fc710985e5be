from igcd.report.paper import PUBLISHED
from igcd.report.run_records import read_run
from igcd.report.score_table import score_table


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
