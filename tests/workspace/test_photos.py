"""Photos and labels in: what is found, what is set aside, what is refused, each in one sentence."""

import os
import shutil
import unicodedata

import numpy as np
import pytest
from PIL import Image
from workspace.painted_photos import paint, paint_categories

from igcd.errors import IgcdError
from igcd.workspace import queries
from igcd.workspace.catalog import CATALOG_FILE, open_catalog
from igcd.workspace.init import init_workspace
from igcd.workspace.labels import first_label, no_label
from igcd.workspace.photos import add_photos, find_photos, read_photos, write_photos


@pytest.fixture
def images(tmp_path):
    paint_categories(tmp_path / "photos", {"owl": (0, range(3)), "fox": (1, range(2)), "unlabeled": (2, range(2))})
    return tmp_path / "photos"


def names_of(catalog):
    with catalog.snapshot() as db:
        rows = db.execute(
            "SELECT pp.path, c.name FROM labels l JOIN categories c ON c.id = l.category "
            "JOIN photo_paths pp ON pp.photo = l.photo"
        )
        return {row["path"]: row["name"] for row in rows}


def test_labels_from_folders(images, tmp_path):
    paint(images / "Parus" / "Parus major" / "a.jpg", 5, 5)
    paint(images / "loose.jpg", 5, 6)
    report = init_workspace(tmp_path / "ws", images, from_folders=True)
    assert report.sentence() == "9 new photos, 6 of them labeled in 3 categories"
    with open_catalog(tmp_path / "ws") as catalog:
        names = names_of(catalog)
        assert names["owl/00-000.jpg"] == "owl" and names["Parus/Parus major/a.jpg"] == "Parus/Parus major"
        assert "loose.jpg" not in names and not any(path.startswith("unlabeled") for path in names)
        assert {category.parent for category in queries.categories(catalog)} == {None, "Parus"}
        assert queries.status(catalog).stages[0].n_waiting == 3


def test_labels_from_a_table(images, tmp_path):
    table = tmp_path / "labels.csv"
    table.write_text(f"path,category\nowl/00-000.jpg,eagle owl\n{images}/fox/01-000.jpg,fox\n")
    init_workspace(tmp_path / "ws", images, labels=table)
    with open_catalog(tmp_path / "ws") as catalog:
        assert names_of(catalog) == {"owl/00-000.jpg": "eagle owl", "fox/01-000.jpg": "fox"}


def fails(tmp_path, images, match, **options):
    with pytest.raises(IgcdError, match=match):
        init_workspace(tmp_path / "ws", images, **options)
    assert not (tmp_path / "ws").exists()


def test_labels_for_photos_that_do_not_exist(images, tmp_path):
    (tmp_path / "labels.csv").write_text("path,category\nowl/99.jpg,owl\nowl/98.jpg,owl\nowl/00-000.jpg,owl\n")
    fails(
        tmp_path, images, r"labels 2 photos that are not below .*, first 'owl/98.jpg'", labels=tmp_path / "labels.csv"
    )


def test_a_path_listed_twice(images, tmp_path):
    (tmp_path / "labels.csv").write_text("path,category\nowl/00-000.jpg,owl\nowl/00-000.jpg,fox\n")
    fails(tmp_path, images, "listed once", labels=tmp_path / "labels.csv")


@pytest.fixture
def contested(images):
    """Two photos that lie in the folders of two categories each, and one with three files."""
    shutil.copy(images / "owl" / "00-000.jpg", images / "fox" / "copy.jpg")
    shutil.copy(images / "owl" / "00-001.jpg", images / "fox" / "other.jpg")
    shutil.copy(images / "owl" / "00-001.jpg", images / "owl" / "twice.jpg")
    return images


def test_the_same_photo_under_two_labels_is_refused_and_all_such_photos_are_listed(contested, tmp_path):
    with pytest.raises(
        IgcdError, match=r"2 photos have several.*--on-conflict skip \(no label\), first or ask"
    ) as said:
        init_workspace(tmp_path / "ws", contested, from_folders=True)
    assert said.value.details == (
        "fox/copy.jpg is 'fox', owl/00-000.jpg is 'owl'",
        "fox/other.jpg is 'fox', owl/00-001.jpg is 'owl', owl/twice.jpg is 'owl'",
    )
    assert not (tmp_path / "ws").exists()


@pytest.mark.parametrize(
    ("choose", "label"), [(no_label, None), (first_label, "fox"), (lambda conflict: conflict.labels[-1][1], "owl")]
)
def test_a_choice_settles_the_label_of_photos_that_have_several(contested, tmp_path, choose, label):
    report = init_workspace(tmp_path / "ws", contested, from_folders=True, on_conflict=choose)
    assert report.n_new == 7 and report.n_labeled == (5 if label else 3)
    assert len(report.conflicts) == 2 and set(report.conflicts.values()) == {label}
    assert report.sentence().endswith("; 2 had several labels")
    with open_catalog(tmp_path / "ws") as catalog:
        names = names_of(catalog)
    contested_files = ("fox/copy.jpg", "fox/other.jpg", "owl/00-000.jpg", "owl/00-001.jpg", "owl/twice.jpg")
    assert {names.get(path) for path in contested_files} == {label}
    assert names["owl/00-002.jpg"] == "owl"


def test_two_spellings_of_one_name_are_one_label(images, tmp_path):
    composed, decomposed = unicodedata.normalize("NFC", "ü"), unicodedata.normalize("NFD", "ü")
    paint(images / composed / "a.jpg", 5, 5)
    (images / decomposed).mkdir()
    shutil.copy(images / composed / "a.jpg", images / decomposed / "b.jpg")
    assert init_workspace(tmp_path / "ws", images, from_folders=True).n_labeled == 6


def test_empty_files_are_no_equal_photos(images, tmp_path):
    for folder in ("owl", "fox"):
        (images / folder / "empty.jpg").touch()
    report = init_workspace(tmp_path / "ws", images, from_folders=True)
    assert report.n_labeled == 7 and set(report.broken.values()) == {"file is empty"}


def test_photos_whose_label_in_the_workspace_is_another_are_listed(images, tmp_path):
    init_workspace(tmp_path / "ws", images, from_folders=True)
    found = find_photos([images / "owl"], workspace=tmp_path / "ws", registered=[str(images)])
    with open_catalog(tmp_path / "ws") as catalog:
        with pytest.raises(IgcdError, match="3 photos have another label") as said:
            write_photos(catalog, read_photos(found), labels=dict.fromkeys(found, "fox"))
        assert said.value.details[0] == "owl/00-000.jpg is 'fox', the workspace has it as 'owl'"
        assert queries.status(catalog).n_labels == 5


def test_a_file_whose_name_is_not_utf8_is_set_aside_also_where_folders_are_labels(images, tmp_path):
    paint(images / "x.jpg", 0, 99).replace(images / "owl" / os.fsdecode(b"\xff.jpg"))
    odd_folder = images / os.fsdecode(b"\xfe")
    odd_folder.mkdir()
    paint(images / "y.jpg", 0, 98).replace(odd_folder / "y.jpg")
    report = init_workspace(tmp_path / "ws", images, from_folders=True)
    assert (report.n_new, report.n_labeled, report.n_categories) == (7, 5, 2)
    assert set(report.broken) == {str(images / "owl" / os.fsdecode(b"\xff.jpg")), str(odd_folder / "y.jpg")}


def test_a_folder_that_cannot_be_a_category_is_named_and_its_photos_are_set_aside(images, tmp_path):
    long = paint(images / ("a" * 120) / ("b" * 120) / "1.jpg", 5, 5)
    blank = paint(images / "\u200b" / "2.jpg", 5, 6)
    report = init_workspace(tmp_path / "ws", images, from_folders=True)
    assert (report.n_new, report.n_labeled, report.n_categories) == (7, 5, 2)
    assert report.broken == {
        str(long): "the folder cannot be a category: a name has at most 200 letters, got 241; shorten it",
        str(blank): r"the folder cannot be a category: a name needs visible letters, got '\u200b'; type it again",
    }
    with open_catalog(tmp_path / "ws") as catalog:
        assert dict(queries.broken_photos(catalog)) == report.broken


def test_names_in_a_table_that_no_category_can_have_are_listed(images, tmp_path):
    table = tmp_path / "labels.csv"
    table.write_text(f"path,category\nowl/00-000.jpg,{'x' * 201}\nowl/00-001.jpg,owl\nowl/00-002.jpg,a//b\n")
    with pytest.raises(IgcdError, match="2 labels that cannot be names") as said:
        init_workspace(tmp_path / "ws", images, labels=table)
    assert [line.split(":")[0] for line in said.value.details] == ["owl/00-000.jpg", "owl/00-002.jpg"]
    assert not (tmp_path / "ws").exists()


def test_the_same_photo_twice_under_one_label_is_one_photo(images, tmp_path):
    shutil.copy(images / "owl" / "00-000.jpg", images / "owl" / "copy.jpg")
    report = init_workspace(tmp_path / "ws", images, from_folders=True)
    assert (report.n_new, report.n_known, report.n_labeled) == (7, 1, 5)
    assert report.sentence() == "7 new photos, 5 of them labeled in 2 categories; 1 was there already"


def test_a_folder_without_photos(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "notes.txt").write_text("x")
    with pytest.raises(IgcdError, match="there are no photos in"):
        init_workspace(tmp_path / "ws", tmp_path / "empty")
    assert not (tmp_path / "ws").exists()
    with pytest.raises(IgcdError, match="is not a folder of photos"):
        init_workspace(tmp_path / "ws", tmp_path / "nowhere")


def test_folders_that_are_no_labels(tmp_path):
    paint(tmp_path / "photos" / "a.jpg", 0, 0)
    with pytest.raises(IgcdError, match="no photos in folders"):
        init_workspace(tmp_path / "ws", tmp_path / "photos", from_folders=True)


def test_both_kinds_of_labels(images, tmp_path):
    with pytest.raises(IgcdError, match="not from both"):
        init_workspace(tmp_path / "ws", images, labels=tmp_path / "labels.csv", from_folders=True)


@pytest.mark.parametrize("seconds", [2**34, 2**40])
def test_a_photo_of_a_year_that_no_database_reaches_is_a_photo(images, tmp_path, seconds):
    path = next(images.rglob("*.jpg"))
    os.utime(path, (seconds, seconds))
    init_workspace(tmp_path / "ws", images, from_folders=True)
    with open_catalog(tmp_path / "ws") as catalog:
        n_photos = queries.status(catalog).n_photos
        assert add_photos(catalog, [images]).n_new == 0 and queries.status(catalog).n_photos == n_photos


def test_unreadable_files_are_set_aside_with_the_reason(images, tmp_path):
    (images / "empty.jpg").touch()
    (images / "text.jpg").write_text("not an image at all")
    (images / "nowhere.jpg").symlink_to(images / "gone.jpg")
    (images / "out.jpg").symlink_to(paint(tmp_path / "elsewhere" / "x.jpg", 3, 3))
    (images / "folder.jpg").mkdir()
    os.mkfifo(images / "pipe.jpg")
    report = init_workspace(tmp_path / "ws", images)
    assert report.n_new == 7
    assert {path.rsplit("/", 1)[-1]: reason for path, reason in report.broken.items()} == {
        "empty.jpg": "file is empty",
        "text.jpg": "not a readable image (UnidentifiedImageError)",
        "nowhere.jpg": "file cannot be read (No such file or directory)",
        "out.jpg": "link leads out of the image folder",
        "folder.jpg": "not a regular file",
        "pipe.jpg": "not a regular file",
    }
    with open_catalog(tmp_path / "ws") as catalog:
        assert len(queries.broken_photos(catalog)) == 6 == queries.status(catalog).n_broken
        (images / "text.jpg").unlink()
        paint(images / "text.jpg", 3, 4)  # repaired
        assert add_photos(catalog, [images]).n_new == 1
        assert queries.status(catalog).n_broken == 5


def test_heic_names_the_extra_that_reads_it(images, tmp_path, monkeypatch):
    import builtins

    (images / "phone.HEIC").write_bytes(b"\0\0\0\x18ftypheic")
    real = builtins.__import__

    def without_heif(name, *args, **kwargs):
        if name == "pillow_heif":
            raise ModuleNotFoundError(name=name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_heif)
    report = init_workspace(tmp_path / "ws", images)
    (reason,) = report.broken.values()
    assert reason == "HEIC, which needs the extra `heic`: pip install 'igcd[heic]'"


def test_heic_with_the_extra(images, tmp_path):
    pillow_heif = pytest.importorskip("pillow_heif")
    from igcd.workspace.photo_files import photo_pixels

    pixels = np.zeros((40, 60, 3), dtype=np.uint8)
    pixels[:, :30] = 200
    pillow_heif.from_pillow(Image.fromarray(pixels)).save(images / "phone.heic", quality=90)
    (images / "broken.heic").write_bytes(b"\0\0\0\x18ftypheic")
    report = init_workspace(tmp_path / "ws", images)
    assert [path.rsplit("/", 1)[-1] for path in report.broken] == ["broken.heic"]
    with open_catalog(tmp_path / "ws") as catalog, catalog.snapshot() as db:
        row = db.execute(
            "SELECT p.id, width, height FROM photos p JOIN photo_paths pp ON pp.photo = p.id WHERE path = 'phone.heic'"
        ).fetchone()
        assert (row["width"], row["height"]) == (60, 40)
        read = photo_pixels(catalog, row["id"], at_least=20)
        assert read.shape == (40, 60, 3) and read[:, :20].mean() > 150 > 60 > read[:, 40:].mean()


def test_a_heic_photo_of_too_many_pixels_is_set_aside_before_it_is_decoded(images, tmp_path, monkeypatch):
    pillow_heif = pytest.importorskip("pillow_heif")
    pillow_heif.from_pillow(Image.new("RGB", (60, 40))).save(images / "huge.heic")
    monkeypatch.setattr("igcd.workspace.photo_files.MAX_PIXELS", 60 * 40 - 1)
    monkeypatch.setattr(pillow_heif.HeifFile, "to_pillow", lambda _: pytest.fail("it was decoded"))
    report = init_workspace(tmp_path / "ws", images)
    assert [reason for path, reason in report.broken.items() if "huge" in path] == ["claims more than 2,399 pixels"]


def test_exif_orientation_turns_size_and_pixels(tmp_path):
    from igcd.workspace.photo_files import photo_pixels

    pixels = np.zeros((40, 60, 3), dtype=np.uint8)
    pixels[:20] = 255  # lies on its side: the top of the file is the right of the picture
    exif = Image.Exif()
    exif[0x0112] = 6
    (tmp_path / "photos").mkdir()
    Image.fromarray(pixels).save(tmp_path / "photos" / "a.jpg", exif=exif)
    init_workspace(tmp_path / "ws", tmp_path / "photos")
    with open_catalog(tmp_path / "ws") as catalog, catalog.snapshot() as db:
        assert tuple(db.execute("SELECT width, height FROM photos").fetchone()) == (40, 60)
        read = photo_pixels(catalog, 1, at_least=40)
        assert read.shape == (60, 40, 3) and read[:, 30:].mean() > 200 > 50 > read[:, :10].mean()


def test_a_photo_added_twice_is_one_photo(images, tmp_path):
    init_workspace(tmp_path / "ws", images)
    shutil.copytree(images, tmp_path / "again")
    paint(tmp_path / "again" / "new.jpg", 4, 4)
    with open_catalog(tmp_path / "ws") as catalog:
        assert add_photos(catalog, [images]).sentence() == "0 new photos; 7 were there already"
        assert add_photos(catalog, [tmp_path / "again"]).sentence() == "1 new photo; 7 were there already"
        assert queries.status(catalog).n_photos == 8 and queries.status(catalog).n_files == 15
        assert len(queries.status(catalog).stages) == 1


def test_files_that_are_known_are_not_read_again(images, tmp_path, monkeypatch):
    import igcd.workspace.photos as module

    init_workspace(tmp_path / "ws", images)
    read = []
    original = module.content_hash
    monkeypatch.setattr(module, "content_hash", lambda path: [read.append(path), original(path)][1])
    new = paint(images / "owl" / "new.jpg", 4, 4)
    with open_catalog(tmp_path / "ws") as catalog:
        add_photos(catalog, [images / "owl"])  # below a folder that is registered
        assert read == [new]
        with catalog.snapshot() as db:
            assert len(db.execute("SELECT * FROM folders").fetchall()) == 1


def test_single_files_and_what_does_not_exist(images, tmp_path):
    init_workspace(tmp_path / "ws", images)
    single = paint(tmp_path / "inbox" / "one.jpg", 4, 4)
    paint(tmp_path / "inbox" / "two.jpg", 4, 5)
    with open_catalog(tmp_path / "ws") as catalog:
        assert add_photos(catalog, [single]).n_new == 1
        with pytest.raises(IgcdError, match="does not exist"):
            add_photos(catalog, [tmp_path / "nowhere"])
        assert queries.status(catalog).n_photos == 8


def test_what_lies_in_the_workspace_is_no_photo(images):
    init_workspace(images / "ws", images)
    paint(images / "ws" / "thumbnails" / "1.jpg", 9, 9)
    found = find_photos([images], workspace=images / "ws")
    assert len(found) == 7 and not any("thumbnails" in file.path for file in found)


def test_photos_are_neither_moved_nor_changed(images, tmp_path):
    def everything():
        return {
            path.relative_to(images): (path.read_bytes(), path.stat().st_mtime_ns) for path in images.rglob("*.jpg")
        }

    before = everything()
    init_workspace(tmp_path / "ws", images, from_folders=True)
    assert everything() == before
    assert sorted(path.name for path in (tmp_path / "ws").iterdir()) == [CATALOG_FILE]


def test_odd_file_names(tmp_path):
    for number, name in enumerate(("a b'c\"d.jpg", "ümläut 日本.jpg", "-rf.jpg", "%41.jpg")):
        paint(tmp_path / "photos" / name, 0, number)
    undecodable = tmp_path / "photos" / os.fsdecode(b"\xff\xfe.jpg")
    paint(tmp_path / "photos" / "x.jpg", 0, 99).replace(undecodable)
    report = init_workspace(tmp_path / "ws", tmp_path / "photos")
    assert report.n_new == 4
    assert report.broken == {str(undecodable): "name with undecodable bytes; rename the file"}
