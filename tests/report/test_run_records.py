import json

import pytest
from small_run import TAXA

from igcd.errors import IgcdError
from igcd.report.run_records import read_run


def test_reads_what_is_there(make_run):
    run = read_run(make_run(spec={"protocol": "igcd-l"}, places=[(0, 48.5, 2.5, 3), (0, 95.0, 0.0, 1)]))
    assert [record.stage for record in run.stages] == [0, 1]
    assert run.stages[1].discoveries[0].cluster == 7
    assert run.spec == {"protocol": "igcd-l"}
    assert run.places is not None
    assert run.places.latitude.tolist() == [48.5]  # latitude 95 is no place
    assert run.ended == "2026-01-02T03:04:05+00:00"


def test_split_places_taxonomy_and_events_may_be_absent(make_run):
    folder = make_run()
    (folder / "events.jsonl").unlink()
    run = read_run(folder)
    assert (run.spec, run.places, run.taxonomy, run.ended) == ({}, None, None, None)


def test_a_log_that_is_cut_off_gives_no_date(make_run):
    folder = make_run()
    (folder / "events.jsonl").write_text('{"time": "2026-0')
    assert read_run(folder).ended is None


@pytest.mark.parametrize("line", ["[" * 100_000, '{"time": ' * 100_000, "null"])
def test_a_log_that_nobody_can_read_gives_no_date(make_run, line):
    folder = make_run()
    (folder / "events.jsonl").write_text(f"{line}\n")
    assert read_run(folder).ended is None


def test_a_spec_that_nobody_can_read_is_left_out(make_run):
    folder = make_run(spec={"protocol": "igcd-l"})
    (folder / "split.tsv").write_text("#spec " + "[" * 100_000 + "\n")
    assert read_run(folder).spec == {}


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("M_d", float("nan"), "M_d: Input should be a finite number"),
        ("peak_memory_bytes", -1, "peak_memory_bytes: Input should be greater than or equal to 0"),
        ("peak_memory_bytes", 10**400, "peak_memory_bytes: Input should be less than"),
        ("stages", [], "stages: Tuple should have at least 1 item"),
    ],
)
def test_results_that_cannot_be_are_one_sentence(make_run, key, value, sentence):
    folder = make_run()
    results = json.loads((folder / "results.json").read_text())
    (folder / "results.json").write_text(json.dumps(results | {key: value}))
    with pytest.raises(IgcdError, match=sentence):
        read_run(folder)


def test_refuses_what_is_no_run(tmp_path):
    with pytest.raises(IgcdError, match=r"has no config\.json; give the folder that `igcd run"):
        read_run(tmp_path)
    with pytest.raises(IgcdError, match="is not a folder"):
        read_run(tmp_path / "nowhere")


def test_says_how_to_resume_an_unfinished_run(make_run):
    folder = make_run()
    (folder / "results.json").unlink()
    with pytest.raises(IgcdError, match=r"not finished \(2 stages done\).*--resume"):
        read_run(folder)


@pytest.mark.parametrize(
    ("file", "content", "sentence"),
    [
        ("results.json", "{", "results.json is not what `igcd run` writes"),
        ("results.json", "[]", "results.json is not what"),
        ("stages/stage-1.json", '{"stage": 1}', "known_clusters: Field required"),
        ("places.csv", "stage,latitude\n0,1\n", "expected the columns stage,latitude,longitude,images"),
        ("places.csv", "stage,latitude,longitude,images\n0,x,1,1\n", "with numbers in them"),
        ("places.csv", "stage,latitude,longitude,images\n0,1,1,1e300\n", "with numbers in them"),
        ("places.csv", "stage,latitude,longitude,images\n-1,1,1,1\n", "must have whole numbers from 0 on"),
        ("places.csv", "stage,latitude,longitude,images\n0,1,1,inf\n", "with numbers in them"),
        ("places.csv", f"stage,latitude,longitude,images\n{10**30},1,1,1\n", "with numbers in them"),
        ("places.csv", "stage,latitude,longitude,images\n0,1,1," + 200_000 * "1" + "\n", "with numbers in them"),
        ("taxonomy.csv", "category,genus\n", "taxonomy.csv must have the columns category, kingdom"),
        ("predictions.csv", "stage\n", "missing split"),
    ],
)
def test_a_broken_file_is_one_sentence(make_run, file, content, sentence):
    folder = make_run()
    (folder / file).write_text(content)
    with pytest.raises(IgcdError, match=sentence):
        read_run(folder)


def test_a_missing_stage_file_is_one_sentence(make_run):
    folder = make_run()
    (folder / "stages" / "stage-1.json").unlink()
    with pytest.raises(IgcdError, match="cannot be read"):
        read_run(folder)


def test_refuses_predictions_of_another_run(make_run):
    folder = make_run()
    results = json.loads((folder / "results.json").read_text())
    results["stages"] = results["stages"][:1]
    (folder / "results.json").write_text(json.dumps(results))
    with pytest.raises(IgcdError, match=r"stages \[0\] and predictions.csv has \[0, 1\]"):
        read_run(folder)


def test_a_taxonomy_has_every_category(make_run):
    folder = make_run(taxa=TAXA)
    taxonomy = read_run(folder).taxonomy
    assert taxonomy is not None and taxonomy["newt"].at("genus") == "Strix"
    lines = (folder / "taxonomy.csv").read_text().splitlines(keepends=True)
    (folder / "taxonomy.csv").write_text("".join(line for line in lines if not line.startswith("moth")))
    with pytest.raises(
        IgcdError, match=r"must have all 4 categories of the run, 1 are absent, the first is 'moth'; add"
    ):
        read_run(folder)
