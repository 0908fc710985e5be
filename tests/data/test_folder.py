"""A folder per category."""

import os

import pytest

from igcd.data.quarantine import Quarantine, inspect
from igcd.data.sources import load_source
from igcd.errors import IgcdError


def test_categories_are_folders_and_all_images_are_for_training(tmp_path, paint):
    for path in ("owl/2.jpg", "owl/1.PNG", "fox/deep/er/1.jpg", "fox/b.webp"):
        paint(tmp_path / path)
    dataset = load_source("folder", tmp_path)
    assert dataset.images.ids == ("fox/b.webp", "fox/deep/er/1.jpg", "owl/1.PNG", "owl/2.jpg")
    assert dataset.category_names == ("fox", "owl")
    assert dataset.categories.tolist() == [0, 0, 1, 1]
    assert not dataset.is_test.any()
    assert dataset.name == tmp_path.name


def test_train_and_test_folders(tmp_path, paint):
    for path in ("train/owl/1.jpg", "train/fox/1.jpg", "test/owl/1.jpg", "test/elk/1.jpg"):
        paint(tmp_path / path)
    dataset = load_source("folder", tmp_path)
    assert dataset.images.ids == ("test/elk/1.jpg", "test/owl/1.jpg", "train/fox/1.jpg", "train/owl/1.jpg")
    assert dataset.category_names == ("elk", "fox", "owl")
    assert dataset.is_test.tolist() == [True, True, False, False]


def test_train_alone_is_a_split_and_trains_are_a_category(tmp_path, paint):
    paint(tmp_path / "split" / "train" / "owl" / "1.jpg")
    assert load_source("folder", tmp_path / "split").category_names == ("owl",)
    paint(tmp_path / "vehicles" / "train" / "1.jpg")
    paint(tmp_path / "vehicles" / "bus" / "1.jpg")
    assert load_source("folder", tmp_path / "vehicles").category_names == ("bus", "train")


def test_a_third_folder_beside_train_is_asked_about(tmp_path, paint):
    paint(tmp_path / "train" / "owl" / "1.jpg")
    paint(tmp_path / "validation" / "owl" / "1.jpg")
    with pytest.raises(IgcdError, match="also validation"):
        load_source("folder", tmp_path)


def test_side_files_hidden_files_and_empty_folders_do_not_count(tmp_path, paint):
    paint(tmp_path / "owl" / "1.jpg")
    for path in ("owl/notes.txt", "owl/._1.jpg", "owl/Thumbs.db", ".git/1.jpg", "__MACOSX/1.jpg", "readme.jpg"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).touch()
    (tmp_path / "empty").mkdir()
    dataset = load_source("folder", tmp_path)
    assert dataset.images.ids == ("owl/1.jpg",)
    assert dataset.category_names == ("owl",)


def test_the_order_does_not_depend_on_how_the_folder_is_listed(tmp_path, paint, monkeypatch):
    for path in ("b/2.jpg", "a/1.jpg", "a/10.jpg", "a/2.jpg", "a/sub/1.jpg"):
        paint(tmp_path / path)
    first = load_source("folder", tmp_path)
    listing = os.scandir

    class Reversed:
        def __init__(self, folder):
            with listing(folder) as entries:
                self.entries = list(entries)[::-1]

        def __enter__(self):
            return iter(self.entries)

        def __exit__(self, *_):
            return None

    monkeypatch.setattr(os, "scandir", Reversed)
    second = load_source("folder", tmp_path)
    assert first.images.ids == second.images.ids == ("a/1.jpg", "a/10.jpg", "a/2.jpg", "a/sub/1.jpg", "b/2.jpg")


def test_what_only_looks_like_an_image_ends_in_the_quarantine(tmp_path, paint):
    for number in range(8):
        paint(tmp_path / "owl" / f"{number}.jpg")
    (tmp_path / "owl" / "folder.jpg").mkdir()
    (tmp_path / "owl" / "text.jpg").write_text("text")
    (tmp_path / "owl" / "phone.heic").write_bytes(b"\0\0\0\x18ftypheic")
    (tmp_path / "owl" / "lost.jpg").symlink_to(tmp_path / "gone.jpg")
    (tmp_path / "owl" / "circle").symlink_to(tmp_path / "owl")
    quarantine = Quarantine()
    dataset = load_source("folder", tmp_path)
    usable = inspect(dataset.images, quarantine)
    assert dict(quarantine.reasons) == {
        "owl/folder.jpg": "is a folder",
        "owl/lost.jpg": "link leads nowhere",
        "owl/phone.heic": "not an image",
        "owl/text.jpg": "not an image",
    }
    assert len(dataset.take(usable)) == 8


def test_a_linked_category_outside_the_folder_is_set_aside_image_by_image(tmp_path, paint):
    paint(tmp_path / "elsewhere" / "1.jpg")
    paint(tmp_path / "mine" / "owl" / "1.jpg")
    (tmp_path / "mine" / "fox").symlink_to(tmp_path / "elsewhere")
    quarantine = Quarantine()
    assert inspect(load_source("folder", tmp_path / "mine").images, quarantine).tolist() == [1]
    assert quarantine.reasons["fox/1.jpg"] == "link leads out of the image folder"


def test_nothing_to_find_is_explained(tmp_path, paint):
    with pytest.raises(IgcdError, match=r"<category>/.* found none in 0 folders and 0 images"):
        load_source("folder", tmp_path)
    paint(tmp_path / "loose.jpg")
    with pytest.raises(IgcdError, match="1 images outside of any"):
        load_source("folder", tmp_path)
    with pytest.raises(IgcdError, match="which is not a folder"):
        load_source("folder", tmp_path / "loose.jpg")


def test_category_names_must_fit_on_a_line(tmp_path, paint):
    paint(tmp_path / "red\tfox" / "1.jpg")
    with pytest.raises(IgcdError, match=r"got 'red\\tfox'; rename it"):
        load_source("folder", tmp_path)
