"""Labels from COCO and Label Studio, also those that we exported ourselves."""

import json

import pytest
from workspace.painted_photos import paint
from workspace.sample_catalog import sample_workspace

from igcd.errors import IgcdError
from igcd.workspace import decisions, queries
from igcd.workspace.catalog import open_catalog
from igcd.workspace.export import export
from igcd.workspace.init import init_workspace
from igcd.workspace.labels import first_label


@pytest.fixture
def images(tmp_path):
    for number in range(3):
        paint(tmp_path / "photos" / f"{number} a.jpg", number, number)
    return tmp_path / "photos"


def labels_of(folder):
    with open_catalog(folder) as catalog:
        return {
            photo.path: category.name
            for category in queries.categories(catalog, states=["labeled"])
            for photo in queries.photos_of(catalog, category.id).photos
        }


def coco(pairs):
    names = sorted({name for _, name in pairs})
    return {
        "images": [{"id": i, "file_name": file} for i, (file, _) in enumerate(pairs)],
        "categories": [{"id": names.index(name), "name": name} for name in names],
        "annotations": [
            {"id": i, "image_id": i, "category_id": names.index(name)} for i, (_, name) in enumerate(pairs)
        ],
    }


def label_studio(pairs):
    return [
        {
            "data": {"image": f"/data/local-files/?d={file}"},
            "annotations": [{"result": [{"type": "choices", "value": {"choices": [name]}}]}],
        }
        for file, name in pairs
    ]


@pytest.mark.parametrize("write", [coco, label_studio])
def test_labels_come_in(images, tmp_path, write):
    file = tmp_path / "labels.json"
    prefix = f"{images}/".lstrip("/") if write is label_studio else ""
    file.write_text(json.dumps(write([(f"{prefix}0 a.jpg", "owl"), (f"{prefix}2 a.jpg", "Parus/Parus major")])))
    report = init_workspace(tmp_path / "ws", images, labels=file)
    assert (report.n_new, report.n_labeled) == (3, 2)
    assert labels_of(tmp_path / "ws") == {"0 a.jpg": "owl", "2 a.jpg": "Parus/Parus major"}


@pytest.mark.parametrize("kind", ["coco", "labelstudio"])
def test_what_was_exported_comes_back(tmp_path, kind):
    sample_workspace(tmp_path, known={"owl": 3}, novel={"hare": 4})
    with open_catalog(tmp_path / "ws") as catalog:
        decisions.name(catalog, 2, "Lepus/hare", author="ann")
        export(catalog, kind, tmp_path / "out.json")
    report = init_workspace(tmp_path / "again", tmp_path / "photos", labels=tmp_path / "out.json")
    assert report.n_labeled == 7  # guesses are no labels
    assert sorted(set(labels_of(tmp_path / "again").values())) == ["Lepus/hare", "owl"]


def test_a_photo_with_several_categories_is_refused_or_settled(images, tmp_path):
    record = coco([("0 a.jpg", "owl"), ("1 a.jpg", "fox")])
    record["annotations"].append({"id": 9, "image_id": 0, "category_id": 0})
    file = tmp_path / "labels.json"
    file.write_text(json.dumps(record))
    with pytest.raises(IgcdError, match=r"1 of .* have several, see below"):
        init_workspace(tmp_path / "ws", images, labels=file)
    report = init_workspace(tmp_path / "ws", images, labels=file, on_conflict=first_label)
    assert report.n_labeled == 2 and report.conflicts == {"0 a.jpg is 'owl', 0 a.jpg is 'fox'": "owl"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "cannot be read as JSON"),
        ("{}", "is neither COCO"),
        ("[1]", "not as COCO or Label Studio write it"),
        ('{"annotations": [{"image_id": 5, "category_id": 1}], "images": [], "categories": []}', "not as COCO"),
        (json.dumps(coco([("nowhere.jpg", "owl")])), "labels 1 photo that is not below"),
        (json.dumps(coco([("0 a.jpg", " ")])), "cannot be names of categories"),
    ],
)
def test_bad_files_are_one_sentence(images, tmp_path, text, said):
    (tmp_path / "labels.json").write_text(text)
    with pytest.raises(IgcdError, match=said):
        init_workspace(tmp_path / "ws", images, labels=tmp_path / "labels.json")
    assert not (tmp_path / "ws").exists()
