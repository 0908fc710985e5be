import json

import pytest
from small_run import ROWS

from igcd.errors import IgcdError
from igcd.report.confusion import cross
from igcd.report.confusion_matrix import confusion_matrix
from igcd.report.picture_sheets import read_pictures
from igcd.report.run_exploration import category_entries, cluster_names, explore_run, truth_names
from igcd.report.run_records import read_run


@pytest.fixture
def run(make_run):
    return read_run(make_run(pictures=True))


def explore(run):
    return explore_run(run, read_pictures(run.folder), ["Stage 0", "Stage 1"], "test")


def test_the_answers_are_those_of_the_predictions(run):
    explored = explore(run)
    names = list(cluster_names(run))
    for answers in explored.answers:
        said = {
            explored.images.id[image]: names[group]
            for image, group in zip(answers.images, answers.groups, strict=True)
            if explored.images.split[image] != 0
        }
        expected = {str(at): row[3] for at, row in enumerate(ROWS) if row[0] == answers.stage}
        assert said == expected


def test_right_and_wrong_add_up_to_the_scores(run):
    """What the script counts as right is what the scores count as right."""
    explored = explore(run)
    for result, answers in zip(run.results.stages, explored.answers, strict=True):
        verdicts = [
            answers.stands_for[group] == explored.images.truth[image]
            for image, group in zip(answers.images, answers.groups, strict=True)
            if explored.splits[explored.images.split[image]] == "test"
        ]
        expected = (
            result.scores["All"] if result.stage == 0 else run.results.M_d
        )  # which counts what is absent now, too
        assert 100 * sum(verdicts) / len(verdicts) == pytest.approx(expected)


def test_labeled_images_are_where_their_label_puts_them(run):
    explored = explore(run)
    labeled = [at for at, split in enumerate(explored.images.split) if explored.splits[split] == "labeled"]
    assert [explored.images.id[at] for at in labeled] == ["labeled/0.jpg", "labeled/1.jpg"]
    said = dict(zip(explored.answers[0].images, explored.answers[0].groups, strict=True))
    assert {explored.groups[said[at]].name for at in labeled} == {"owl"}


def test_groups_know_when_they_were_found_and_labeled(run):
    groups = {group.name: (group.found, group.labeled) for group in explore(run).groups}
    assert groups == {"owl": (None, 0), "fox": (None, 0), "category 7": (1, None)}


def test_a_page_for_each_category(run):
    entries = category_entries(run, cross(run.predictions, stage=1, split="test"), "test")
    assert [(entry.name, entry.kind) for entry in entries] == [
        ("fox", "known"),
        ("moth", "missed"),
        ("newt", "new"),
        ("owl", "known"),
    ]
    facts = {entry.name: dict(entry.facts) for entry in entries}
    assert facts["newt"] == {
        "Test images": "4",
        "Right": "3",
        "Right, %": "75.0",
        "Most often taken for": "fox (1)",
        "Found at stage": "1",
    }
    assert facts["moth"]["Right"] == "0" and facts["moth"]["Most often taken for"] == "fox (1)"


def test_the_matrix_names_the_groups_that_its_cells_are_in(run):
    matrix = confusion_matrix(run, run.stages[1], "test")
    assert [column.name for column in matrix.columns] == ["fox", "newt", "owl"]
    (moth,) = [row for row in matrix.rows if row.name == "moth"]
    assert [cell.n for cell in moth.cells] == [1, 0, 0] and moth.is_new
    names = [group.name for group in explore(run).groups]
    assert [names[cell.group] for cell in moth.cells] == ["fox", "category 7", "owl"]
    assert truth_names(run)[moth.truth] == "moth"


def test_the_table_cannot_end_its_element(make_run):
    rows = [(stage, split, "</script><b>" if c == "newt" else c, *rest) for stage, split, c, *rest in ROWS]
    text = explore(read_run(make_run(rows, pictures=True))).as_json
    assert "<" not in text and "</script><b>" in json.loads(text)["truths"]


def test_pictures_of_another_run_are_an_error(make_run):
    folder = make_run(pictures=True)
    index = folder / "pictures" / "index.csv"
    index.write_text(index.read_text().replace("owl,0,0", "owl,1,0").replace(",1,0,", ",5,0,"))
    for path in list((folder / "pictures").glob("stage-1-0.webp")):
        path.rename(path.with_name("stage-5-0.webp"))
    run = read_run(folder)
    with pytest.raises(IgcdError, match="stages of the run"):
        explore(run)
