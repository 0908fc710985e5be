import csv
import io
import json

import pytest
from workspace.painted_photos import paint
from workspace.sample_catalog import sample_workspace

from igcd.errors import IgcdError
from igcd.workspace import decisions
from igcd.workspace.catalog import open_catalog
from igcd.workspace.export import export
from igcd.workspace.init import init_workspace

OWL, HARE = 1, 2


@pytest.fixture
def catalog(tmp_path):
    sample_workspace(tmp_path, known={"owl": 2}, novel={"hare": 3})
    with open_catalog(tmp_path / "ws") as catalog:
        yield catalog


def test_csv_has_a_line_per_photo(catalog, tmp_path):
    decisions.name(catalog, HARE, "Lepus/Lepus timidus", author="ann")
    assert export(catalog, "csv", tmp_path / "out.csv") == 8
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text())))
    assert len(rows) == 8
    hares = [row for row in rows if row["category_id"] == str(HARE)]
    assert {(row["category"], row["parent"], row["confirmed"]) for row in hares} == {
        ("Lepus/Lepus timidus", "Lepus", "1")
    }
    assert {row["path"] for row in hares} == {
        str(tmp_path / "photos" / "unlabeled" / f"hare-{i:04d}.png") for i in range(3)
    }
    (unsure,) = [row for row in rows if row["category_id"] == ""]
    assert unsure["category"] == ""


def test_a_photo_at_two_places_is_one_line(catalog, tmp_path):
    from igcd.workspace.photos import add_photos

    (tmp_path / "copy").mkdir()
    source = tmp_path / "photos" / "owl" / "0000.png"
    (tmp_path / "copy" / "a.png").write_bytes(source.read_bytes())
    add_photos(catalog, [tmp_path / "copy"])
    assert export(catalog, "csv", tmp_path / "out.csv") == 8


def test_coco(catalog, tmp_path):
    export(catalog, "coco", tmp_path / "coco.json")
    coco = json.loads((tmp_path / "coco.json").read_text())
    assert len(coco["images"]) == 8 and len(coco["annotations"]) == 7
    assert coco["categories"] == [
        {"id": OWL, "name": "owl", "supercategory": ""},
        {"id": HARE, "name": "new 2", "supercategory": ""},
    ]
    images = {image["id"]: image for image in coco["images"]}
    for annotation in coco["annotations"]:
        image = images[annotation["image_id"]]
        assert annotation["bbox"] == [0, 0, image["width"], image["height"]] == [0, 0, 24, 24]
        assert annotation["area"] == 576 and annotation["category_id"] in (OWL, HARE)


def test_label_studio_has_annotations_where_confirmed_and_predictions_elsewhere(catalog, tmp_path):
    export(catalog, "labelstudio", tmp_path / "tasks.json")
    tasks = json.loads((tmp_path / "tasks.json").read_text())
    assert len(tasks) == 8
    assert sum("annotations" in task for task in tasks) == 2
    assert sum("predictions" in task for task in tasks) == 5
    first = tasks[0]
    path = (tmp_path / "photos" / "owl" / "0000.png").as_posix().lstrip("/")
    assert first["data"]["image"] == f"/data/local-files/?d={path}"
    assert first["annotations"][0]["result"][0]["value"] == {"choices": ["owl"]}


@pytest.mark.parametrize("link", [False, True])
def test_folders_hold_the_photos_and_the_originals_stay(catalog, tmp_path, link):
    before = {path: path.read_bytes() for path in (tmp_path / "photos").rglob("*.png")}
    decisions.name(catalog, HARE, "../../<b>: Lepus", author="ann")
    export(catalog, "folders", tmp_path / "out", link=link)
    found = sorted(path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.png"))
    assert len(found) == 8
    assert {path.rsplit("/", 1)[0] for path in found} == {"owl", "unconfirmed/owl", "__/__/_b__ Lepus", "unsure"}
    copy = tmp_path / "out" / "owl" / "0000.png"
    original = tmp_path / "photos" / "owl" / "0000.png"
    assert copy.read_bytes() == original.read_bytes()
    assert copy.samefile(original) == link
    assert {path: path.read_bytes() for path in (tmp_path / "photos").rglob("*.png")} == before
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".out")]


def test_names_that_no_folder_can_tell_apart_get_folders_of_their_own(catalog, tmp_path):
    decisions.name(catalog, OWL, "a:b", author="ann")
    decisions.name(catalog, HARE, "a?b", author="ann")
    export(catalog, "folders", tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"a_b", f"a_b-{HARE}", "unconfirmed", "unsure"}


def test_nothing_is_overwritten(catalog, tmp_path):
    (tmp_path / "out.csv").write_text("precious")
    for kind in ("csv", "coco", "labelstudio", "folders"):
        with pytest.raises(IgcdError, match="exists already"):
            export(catalog, kind, tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == "precious"
    with pytest.raises(IgcdError, match="no export format 'xml'"):
        export(catalog, "xml", tmp_path / "out.xml")


def test_a_missing_photo_stops_the_export_of_folders_whole(catalog, tmp_path):
    (tmp_path / "photos" / "owl" / "0001.png").unlink()
    with pytest.raises(IgcdError, match=r"0001.png is missing"):
        export(catalog, "folders", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".out")]


@pytest.fixture
def namesakes(tmp_path):
    """Photos 1, 2 and 3 of one category: a/p-3.jpg, b/p.jpg and c/p.jpg, all different."""
    labels = tmp_path / "labels.csv"
    paths = ["a/p-3.jpg", "b/p.jpg", "c/p.jpg"]
    for number, path in enumerate(paths):
        paint(tmp_path / "photos" / path, 0, number)
    labels.write_text("path,category\n" + "".join(f"{path},owl\n" for path in paths))
    init_workspace(tmp_path / "ws", tmp_path / "photos", labels=labels)
    with open_catalog(tmp_path / "ws") as catalog:
        yield catalog


@pytest.mark.parametrize("link", [False, True])
def test_photos_whose_names_collide_are_all_written_and_no_original_is(namesakes, tmp_path, link):
    before = sorted(path.read_bytes() for path in (tmp_path / "photos").rglob("*.jpg"))
    assert export(namesakes, "folders", tmp_path / "out", link=link) == 3
    assert sorted(path.read_bytes() for path in (tmp_path / "photos").rglob("*.jpg")) == before
    written = sorted((tmp_path / "out" / "owl").iterdir())
    assert [path.name for path in written] == ["p-3-2.jpg", "p-3.jpg", "p.jpg"]
    assert sorted(path.read_bytes() for path in written) == before


def test_where_there_are_no_hard_links_copies_are_made_beside_what_is_there(namesakes, tmp_path, monkeypatch):
    def no_links(_source, _target):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.link", no_links)
    assert export(namesakes, "folders", tmp_path / "out", link=True) == 3
    written = list((tmp_path / "out" / "owl").iterdir())
    assert len(written) == 3 and all(path.stat().st_nlink == 1 for path in written)


@pytest.mark.parametrize("link", [False, True])
def test_a_file_that_turned_into_a_link_out_of_its_folder_is_not_exported(namesakes, tmp_path, link):
    (tmp_path / "secret.jpg").write_bytes(b"secret")
    (tmp_path / "photos" / "b" / "p.jpg").unlink()
    (tmp_path / "photos" / "b" / "p.jpg").symlink_to(tmp_path / "secret.jpg")
    with pytest.raises(IgcdError, match=r"b/p.jpg is missing"):
        export(namesakes, "folders", tmp_path / "out", link=link)


def test_a_link_inside_the_folder_is_exported_as_the_photo_it_leads_to(tmp_path):
    paint(tmp_path / "photos" / "owl" / "z.jpg", 0, 0)
    (tmp_path / "photos" / "owl" / "a.jpg").symlink_to("z.jpg")
    init_workspace(tmp_path / "ws", tmp_path / "photos", from_folders=True)
    with open_catalog(tmp_path / "ws") as catalog:
        assert export(catalog, "folders", tmp_path / "out", link=True) == 1
    (written,) = (tmp_path / "out" / "owl").iterdir()
    assert not written.is_symlink() and written.samefile(tmp_path / "photos" / "owl" / "z.jpg")


def test_a_category_called_like_a_photo_of_its_parent(catalog, tmp_path):
    decisions.name(catalog, HARE, "owl/0000.png", author="ann")
    assert export(catalog, "folders", tmp_path / "out") == 8
    assert len([path for path in (tmp_path / "out").rglob("*") if path.is_file()]) == 8


def test_long_names_and_names_that_differ_in_case_get_folders_of_their_own(catalog, tmp_path):
    decisions.name(catalog, OWL, "梟" * 200, author="ann")
    decisions.name(catalog, HARE, "Unsure", author="ann")
    assert export(catalog, "folders", tmp_path / "out") == 8
    folders = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert folders == ["Unsure", "unconfirmed", "unsure-2", "梟" * 75]


def test_guesses_can_be_left_out(catalog, tmp_path):
    assert export(catalog, "csv", tmp_path / "sure.csv", confirmed_only=True) == 2
    assert export(catalog, "csv", tmp_path / "likely.csv", min_probability=0.75) == 5
    rows = list(csv.DictReader(io.StringIO((tmp_path / "likely.csv").read_text())))
    assert all(row["confirmed"] == "1" or float(row["probability"]) >= 0.75 for row in rows)
    with pytest.raises(IgcdError, match="must be from 0 to 1, got 2"):
        export(catalog, "csv", tmp_path / "x.csv", min_probability=2)


def test_before_a_discovery_the_export_says_what_to_do(tmp_path):
    paint(tmp_path / "photos" / "ash" / "a.jpg", 0, 0)
    paint(tmp_path / "photos" / "b.jpg", 0, 1)
    init_workspace(tmp_path / "ws", tmp_path / "photos", from_folders=True)
    with open_catalog(tmp_path / "ws") as catalog:
        with pytest.raises(IgcdError, match=r"1 of them were not yet; run `igcd discover .*ws` first"):
            export(catalog, "csv", tmp_path / "x.csv")
        assert export(catalog, "csv", tmp_path / "x.csv", confirmed_only=True) == 1
