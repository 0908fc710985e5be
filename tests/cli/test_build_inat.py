"""`igcd build inat2021` and `igcd build observations`, below the command line's options."""

import json
from pathlib import Path

import pytest
from inat2021_annotations import TRAIN, VAL, annotations

from igcd.cli.build_inat import build_fieldguide, build_inat2021, build_observations, place_and_year_spec
from igcd.data.taxonomy import read_taxonomy
from igcd.errors import IgcdError
from igcd.streams.split import read_split

OPTIONS = {"spec": {}, "images": None, "seed": 0}


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    paths = tmp_path / "train.json", tmp_path / "val.json"
    for path, rows in zip(paths, (TRAIN, VAL), strict=True):
        path.write_text(json.dumps(annotations(rows, path.stem)), encoding="utf-8")
    return paths


def test_json_gives_machines_the_stages(files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    build_inat2021(*files, tmp_path / "out", as_json=True, **OPTIONS)
    record = json.loads(capsys.readouterr().out)
    keys = {"stage", "images", "test_images", "categories", "old", "new", "continents", "years"}
    assert all(keys <= stage.keys() for stage in record["stages"])
    assert record["skipped"]["no date"] == 3
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["places.csv", "split.tsv", "taxonomy.csv"]
    split = read_split(tmp_path / "out" / "split.tsv")
    assert [len(stage.unlabeled.image_ids) for stage in split.stages] == [0, 2, 3, 2]
    assert read_taxonomy(tmp_path / "out" / "taxonomy.csv")["Panthera leo"].at("family") == "Felidae"


def test_people_get_a_table_and_the_papers_counts(
    files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "200")
    build_inat2021(*files, tmp_path / "out", as_json=False, **OPTIONS)
    shown = capsys.readouterr().out
    for text in ("Africa, South America", "2008–2016", "Nymphalidae", "skipped 3: no date", "3,888", "split.tsv"):
        assert text in shown


def test_missing_images_are_told_once(files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    photo = tmp_path / "images" / annotations(TRAIN, "train")["images"][0]["file_name"]
    photo.parent.mkdir(parents=True)
    photo.touch()
    options = {**OPTIONS, "images": tmp_path / "images"}
    build_inat2021(*files, tmp_path / "out", as_json=False, **options)
    assert capsys.readouterr().out.count("17 of 18 images have no file") == 1
    build_inat2021(*files, tmp_path / "out", as_json=True, **options)
    assert json.loads(capsys.readouterr().out)["missing_images"] == 17


def test_bad_input_leaves_nothing_behind(files: tuple[Path, Path], tmp_path: Path):
    train, val = files
    train.write_text(train.read_text(encoding="utf-8")[:-100], encoding="utf-8")
    with pytest.raises(IgcdError, match="cut short"):
        build_inat2021(train, val, tmp_path / "out", as_json=True, **OPTIONS)
    with pytest.raises(IgcdError, match="as well, or set a share aside"):
        build_inat2021(val, None, tmp_path / "out", as_json=True, **OPTIONS)
    assert not (tmp_path / "out").exists()


def test_ones_own_observations(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    table = tmp_path / "mine.csv"
    rows = [f"{i},{2015 + i % 2}-05-05,{48 + i / 100},2.35,Genus species{i % 4}" for i in range(40)]
    table.write_text("id,observed_on,latitude,longitude,scientific_name\n" + "\n".join(rows), encoding="utf-8")
    spec = {"stages": "2015:Europe;2016:Europe", "min_images": None}
    build_observations(table, tmp_path / "out", spec=spec, images=None, seed=0, as_json=True)
    stages = json.loads(capsys.readouterr().out)["stages"]
    assert [(stage["images"], stage["test_images"]) for stage in stages] == [(16, 4), (16, 4)]
    assert stages[1]["new"] == 2


def test_the_seed_draws_the_guide(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    def sha256(seed: int) -> str:
        build_fieldguide(tmp_path, guide={"n_species": 12}, spec={}, pictures=False, seed=seed, as_json=True)
        record = json.loads(capsys.readouterr().out)
        assert record["warnings"] == []
        return record["sha256"]

    taxonomies = []
    for seed in (0, 1):
        sha256(seed)
        taxonomies.append((tmp_path / "taxonomy.csv").read_text(encoding="utf-8"))
    assert taxonomies[0] != taxonomies[1]
    assert sha256(1) == sha256(1)


def test_a_warning_for_no_test_images(files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    guide = {"n_species": 12, "n_images": 200, "n_test_per_species": 0}
    build_fieldguide(tmp_path / "guide", guide=guide, spec={}, pictures=False, seed=0, as_json=False)
    assert "warning: there are no test images" in capsys.readouterr().out
    with pytest.raises(IgcdError, match=r"test images of its own, got --held-out 0\.5; leave --held-out out"):
        build_inat2021(*files, tmp_path / "out", spec={"held_out": 0.5}, images=None, seed=0, as_json=True)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"reading": "both"}, "--reading: Input should be 'replace', 'add', 'year' or 'place'"),
        ({"min_images": 0}, "--min-images: .* got 0"),
        ({"held_out": 1.5}, "--held-out: "),
        ({"stages": "2015:Europe"}, "at least two stages"),
        ({"color": "red"}, "--color: "),
    ],
)
def test_bad_options_are_refused_in_one_sentence(values: dict[str, object], message: str):
    with pytest.raises(IgcdError, match=message) as refused:
        place_and_year_spec(values)
    assert "\n" not in str(refused.value)
