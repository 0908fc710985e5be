"""The examples are short, run, and print what happened."""

import csv
import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from igcd.encoders.torchvision_guard import import_timm
from igcd.streams.split import read_split

import_timm()  # the examples import it plainly, and torchvision may not fit the torch of a test machine
FOLDER = Path(__file__).parents[1] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))


def load(name):
    """What an example defines, without running it."""
    return runpy.run_path(str(FOLDER / name))


def run(monkeypatch, capsys, name, *arguments):
    """What an example prints."""
    monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
    runpy.run_path(str(FOLDER / name), run_name="__main__")
    return capsys.readouterr().out


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_short_says_how_to_run_it_and_is_tested(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 60
    assert f"python examples/{path.name}" in text
    assert f'"{path.name}"' in Path(__file__).read_text(encoding="utf-8")


def test_embeddings_in_batches(monkeypatch, capsys):
    shown = run(monkeypatch, capsys, "embeddings.py")
    assert "540 rows, 177 labeled" in shown
    assert re.search(r"novel \d: mostly 6 \((9\d|100)% of \d+\), most like '\w+'", shown)
    assert 3 <= int(re.search(r"found: (\d)\n", shown)[1]) <= 4  # 6, 7 and 8, and perhaps two kinds of 7
    known = re.search(r"known now: (.*)", shown)[1].split(", ")
    assert sorted(known) == sorted(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight"])
    assert re.search(r"new in the second batch: novel \d, mostly 9", shown)
    assert int(re.search(r"rows of named digits: (\d+)% right", shown)[1]) > 85  # measured: 93


def test_photos_in_a_folder(monkeypatch, capsys):
    shown = run(monkeypatch, capsys, "photos.py")
    assert "60 new photos, 30 of them labeled in 3 categories" in shown
    assert "about 15 are very likely of your 3 categories, 1 new category with 15 photos" in shown  # the mushrooms
    assert re.search(r"new 4: 15 photos, such as unlabeled/\w+\.png\n  looks most like \w+", shown)
    assert "known now: beetle, fish, flower, my new 4" in shown


def test_photos_of_ones_own_folder(monkeypatch, capsys, tmp_path):
    load("photos.py")["draw_photos"](tmp_path / "photos")
    run(monkeypatch, capsys, "photos.py", tmp_path / "photos", tmp_path / "workspace")
    assert (tmp_path / "workspace" / "catalog.sqlite").is_file()
    assert len(list((tmp_path / "photos").rglob("*.png"))) == 60


def test_features_that_somebody_has(monkeypatch, capsys, tmp_path):
    rows, digits = load_digits(n_class=5, return_X_y=True)
    names = np.array(["zero", "one", "two", "", ""])[digits]
    names[::2] = ""
    np.save(tmp_path / "rows.npy", rows)
    np.save(tmp_path / "names.npy", names)
    shown = run(monkeypatch, capsys, "model_features.py", tmp_path / "rows.npy", tmp_path / "names.npy")
    counts = {line.split(":")[0]: int(re.search(r": (\d+) rows", line)[1]) for line in shown.splitlines()}
    assert sum(counts.values()) == len(rows)
    for digit, name in enumerate(("zero", "one", "two")):
        assert counts[name] == pytest.approx((digits == digit).sum(), abs=20)
    assert 2 <= sum(name.startswith("novel") for name in counts) <= 3


def test_a_timm_model_embeds_files(tmp_path):
    example = load("model_features.py")
    for idx in range(3):
        Image.new("L", (40, 30), idx * 80).save(tmp_path / f"{idx}.png")  # gray ones become RGB
    functions = example["timm_functions"]("resnet10t", pretrained=False)
    rows = example["embed"](sorted(tmp_path.glob("*.png")), *functions)
    assert rows.shape == (3, 512) and np.isfinite(rows).all() and not np.allclose(rows[0], rows[2])


def test_an_inaturalist_export_becomes_stages_and_a_map(monkeypatch, capsys, tmp_path):
    places = {"Paris": (48.9, 2.3), "Sydney": (-33.9, 151.2), "Delhi": (28.6, 77.2), "Nairobi": (-1.3, 36.8)}
    with (tmp_path / "observations.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["id", "observed_on", "latitude", "longitude", "scientific_name"])
        for year, place, species in [(2015, "Paris", "Vulpes vulpes"), (2017, "Sydney", "Vombatus ursinus")]:
            for day in range(1, 11):
                table.writerow([f"{year}{day:02}", f"{year}-05-{day:02}", *places[place], species])
        table.writerow(["7", "", *places["Delhi"], "Elephas maximus"])
        table.writerow(["8", "2017-05-01", *places["Nairobi"], "Panthera leo"])
    stages = "2008-2016: Europe; 2017: Oceania"
    shown = run(monkeypatch, capsys, "inaturalist.py", tmp_path / "observations.csv", tmp_path / "out", stages)
    assert "stage 0: 8 images of 1 species, 0 of them new" in shown  # a fifth is held out
    assert "stage 1: 8 images of 1 species, 1 of them new" in shown
    assert "left out, no date: 1" in shown and "left out, continent not in the stage of its year: 1" in shown
    assert len(read_split(tmp_path / "out" / "split.tsv").stages) == 2
    with Image.open(tmp_path / "out" / "map.png") as picture:
        assert picture.getpixel((round((2.3 + 180) * 4), round((90 - 48.9) * 4))) == (0x44, 0x77, 0xAA)
        assert picture.getpixel((round((151.2 + 180) * 4), round((90 + 33.9) * 4))) == (0xEE, 0x66, 0x77)
        assert picture.getpixel((round((77.2 + 180) * 4), round((90 - 28.6) * 4))) == (220, 220, 220)  # land, no dot


def test_a_stream_and_a_method_of_ones_own():
    card = load("own_stream.py")["main"]()
    stages = card.variants[card.default].stages
    assert [stage.stage for stage in stages] == [0, 1, 2] and stages[0].scores["New"] is None
    assert stages[-1].scores["Old"] > 90 and stages[-1].scores["New"] > 70  # measured: 96.1 and 83.8


def test_scoring_by_hand(monkeypatch, capsys, tmp_path):
    """Cluster c holds both newts and one fox; so one of four foxes and owls is wrong."""
    shown = run(monkeypatch, capsys, "scoring.py")
    assert "stage 1: All 83.3, Old 75.0, New 100.0; identity 83.3, 3 clusters" in shown
    assert "forgetting M_f 25.0, discovery M_d 83.3" in shown
    (tmp_path / "mine.csv").write_text(load("scoring.py")["ROWS"].replace("fox-2,fox,c", "fox-2,fox,a"))
    assert "M_f 0.0, discovery M_d 100.0" in run(monkeypatch, capsys, "scoring.py", tmp_path / "mine.csv")


def test_a_pipeline_is_searched(monkeypatch, capsys):
    shown = run(monkeypatch, capsys, "pipeline.py")
    scores = [float(score) for score in re.findall(r"^(0\.\d{3}) \{", shown, flags=re.MULTILINE)]
    assert len(scores) == 4 and max(scores) > 0.85  # measured: 0.879
    assert 3 <= int(re.search(r"new categories: (\d+)", shown)[1]) <= 6
