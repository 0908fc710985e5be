"""Hidden labels are out of reach of a method, by whatever it is handed in a run: see tests/leaks.py."""

from weakref import WeakKeyDictionary

import numpy as np
import pytest
import tiny_sources
from leaks import leaks, reachable, within_reach
from PIL import Image

from igcd import assembly
from igcd.cli.build import build_by_category
from igcd.cli.run import run_recipe
from igcd.data.images import FileImages
from igcd.data.sources import SOURCES
from igcd.hidden import hidden_call
from igcd.method_registry import METHODS
from igcd.run_folder import secret_of
from igcd.streams.split import read_split
from igcd.streams.veil import VeiledImages
from igcd.types import Stage

pytestmark = pytest.mark.usefixtures("quick_learning")
SMALL = (
    "encoder: {backbone: resnet10t, weights: random, size: 32, tail: adapter, n_views: 2, cache: CACHE}\n"
    "training: {first_stage: {epochs: 1}, later_stages: {epochs: 1}}\n"
)
CUT = "{protocol: igcd-l, categories_per_stage: [4, 2], images_labeled: 8, images_new: 8, images_old: 4"
GUIDE = "source: fieldguide, options: {n_species: 10, n_images: 200, n_test_per_species: 3, size: 32}"


class Spy:
    """A method that looks around before it does anything."""

    def __init__(self, method, handed, look):
        self._method = method
        self._handed = handed
        self._look = look

    def learn(self, stage):
        self._look(stage, stage, self._method, self._handed, *_asked_of(stage.unlabeled))
        self._method.learn(stage)

    def predict(self, images):
        self._look(images, images, self._method, self._handed, *_asked_of(images))
        return self._method.predict(images)

    def __getattr__(self, name):
        return getattr(self._method, name)


def _asked_of(images):
    """What images answer: pixels that are views would lead to those of all other images."""
    if not len(images):
        return []
    answers = [images.pixels(0), images.pixels_at_least(0, 8), images.square(0, 8), images.key(0), images.take([0])]
    return [*answers, images.at_size(np.arange(1), len(answers[0]))]


@pytest.fixture
def spied_run(tmp_path, monkeypatch):
    """A function that runs a recipe with a spy at work, and returns how much each look has found, and the leaks."""

    def run(text, overrides=(), paths=()):
        out = tmp_path / "out"
        looks, faults = [], []

        def look(what, *handed):
            split = read_split(out / "split.tsv")
            is_supervised = "method.name=supervised" in overrides
            is_second = 3 <= len(looks) < 6  # the referrers, which take longer to find, at the second stage alone
            names = (
                [*what.labeled.ids, *what.unlabeled.ids, *what.category_names] if isinstance(what, Stage) else what.ids
            )
            found = within_reach(*handed, names=names) if is_second else reachable(*handed)
            known = {name for stage in split.stages for name in stage.labeled.categories}
            hidden = {name for stage in split.stages for name in stage.test.image_ids}
            if not is_supervised:  # the upper bound gets the labels
                hidden |= {name for stage in split.stages for name in stage.unlabeled.image_ids}
                hidden |= {name for stage in split.stages for name in stage.unlabeled.categories} - known
            faults.extend(leaks(found, hidden=hidden, paths=[out, *paths], secret=secret_of(out)))
            looks.append(len(found))

        def make_spy(section, context, *more):
            return Spy(make_method(section, context, *more), (context, *more), hidden_call(look))

        make_method = assembly.make_method
        monkeypatch.setattr(assembly, "make_method", make_spy)
        (tmp_path / "recipe.yaml").write_text(text + SMALL.replace("CACHE", str(tmp_path / "cache")))
        run_recipe(str(tmp_path / "recipe.yaml"), list(overrides), out, resume=False, as_json=True)
        assert len(looks) >= 6 and min(looks) > 100  # at each stage three: learn, predict test and unlabeled images
        return faults

    return run


OF_EACH_KIND = {"snn_density", "density_gaussian", "simgcd", "supervised"}


@pytest.mark.parametrize(
    "method",
    [pytest.param(method, marks=() if method in OF_EACH_KIND else pytest.mark.slow) for method in METHODS],
)
def test_no_method_is_handed_a_hidden_label(spied_run, method):
    text = f"stream:\n  source: digits\n  by_category: {CUT}, test_per_category: 3}}\n"
    assert spied_run(text, [f"method.name={method}"]) == []


@pytest.fixture
def photos(tmp_path):
    """A folder of photos and a table of them."""
    rng = np.random.default_rng(0)
    lines = ["path,category"]
    for code in range(6):
        folder = tmp_path / "photos" / f"Secretus species{code}"
        folder.mkdir(parents=True)
        for number in range(16):
            pixels = rng.integers(0, 256, (36, 36, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / f"{code}-{number}.png")
            lines.append(f"{folder.name}/{code}-{number}.png,{folder.name}")
    (tmp_path / "photos" / "table.csv").write_text("\n".join(lines))
    return tmp_path / "photos"


@pytest.mark.parametrize("source", ["fieldguide", "fieldguide by place", "folder", "table", "split", "small copies"])
def test_no_source_hands_out_a_hidden_label(spied_run, photos, tmp_path, source):
    paths, overrides = [photos, tmp_path / "split"], ["method.name=kmeans"]
    if source == "fieldguide":
        stream = f"{{{GUIDE}, by_category: {CUT}}}}}"
    elif source == "fieldguide by place":
        stream = f"{{{GUIDE}, by_place_and_year: {{protocol: igcd-u}}}}"
    elif source == "split":
        spec = {"protocol": "igcd-u", "categories_per_stage": (4, 2), "images_old": 4, "held_out": 0.2}
        options = {"spec": spec, "options": (), "category_order": None, "seed": 0, "max_broken": 0.0}
        build_by_category("folder", photos, tmp_path / "split", check=True, as_json=True, **options)
        stream = f"{{source: observations, data: {photos}, split: {tmp_path}/split/split.tsv}}"
    else:
        data = photos / "table.csv" if source == "table" else photos
        name = "table" if source == "table" else "folder"
        stream = f"{{source: {name}, data: {data}, by_category: {CUT}, held_out: 0.2}}}}"
        if source == "small copies":
            overrides.append(f"encoder.image_cache={tmp_path}/small")
            paths.append(tmp_path / "small")
    assert spied_run(f"stream: {stream}\n", overrides, paths) == []


OFFICIAL = {
    "cifar100": (tiny_sources.cifar100, f"by_category: {CUT}}}"),
    "cifar10": (tiny_sources.cifar10, f"by_category: {CUT}}}"),
    "cub": (tiny_sources.cub, f"by_category: {CUT}}}"),
    "cars": (tiny_sources.cars, f"by_category: {CUT}}}"),
    "tiny-imagenet": (tiny_sources.tiny_imagenet, f"by_category: {CUT}}}"),
    "imagenet100": (tiny_sources.imagenet100, "by_category: {protocol: igcd-u, categories_per_stage: [60, 40]}"),
    "inat2021": (
        tiny_sources.inat2021,
        "by_place_and_year: {stages: [{years: [2008, 2016], continents: [North America]}, "
        "{years: [2017, 2017], continents: [Oceania]}]}",
    ),
}
"""Sources with a layout of their own; imagenet1k is imagenet100 with more folders, digits is in the test of methods."""


@pytest.mark.parametrize(
    "source",
    ["cifar100", *(pytest.param(source, marks=pytest.mark.slow) for source in OFFICIAL if source != "cifar100")],
)
def test_no_official_layout_hands_out_a_hidden_label(spied_run, tmp_path, source):
    make, cut = OFFICIAL[source]
    make(tmp_path / "data")
    stream = f"{{source: {source}, data: {tmp_path}/data, {cut}}}"
    assert spied_run(f"stream: {stream}\n", ["method.name=kmeans"], [tmp_path / "data"]) == []


def test_every_source_is_looked_at():
    others = {"fieldguide", "folder", "table", "digits", "imagenet1k"}
    assert set(SOURCES) == set(OFFICIAL) - {"inat2021"} | others


def test_the_reason_why_an_image_is_broken_names_nothing(spied_run, photos):
    for code in range(6):
        folder = photos / f"Secretus species{code}"
        (folder / f"{code}-0.png").write_bytes(b"")
        (folder / f"{code}-1.png").write_bytes(b"no image")
        (folder / f"{code}-2.png").write_bytes((folder / f"{code}-2.png").read_bytes()[:-900])
        (folder / f"{code}-3.png").unlink()
        (folder / f"{code}-3.png").symlink_to(folder / "gone.png")
        (folder / f"{code}-4.png").unlink()
        (folder / f"{code}-4.png").symlink_to("/etc/hostname")
        (folder / f"{code}-5.png").unlink()
        (folder / f"{code}-5.png").mkdir()
    stream = f"{{source: table, data: {photos}/table.csv, by_category: {CUT}, held_out: 0.2}}}}"
    assert spied_run(f"stream: {stream}\nmax_broken: 1.0\n", ["method.name=kmeans"], [photos]) == []


HELD = []
"""By the module, as a registry is."""


class Holder:
    def __init__(self, *held):
        self.held = held


@pytest.mark.parametrize(
    "plant",
    [
        lambda images, names: [[one, name] for one, name in zip(images.ids, names, strict=True)],
        lambda images, names: WeakKeyDictionary({images: Holder(names)}),
        lambda images, names: Holder(Holder(images), names),
        lambda images, names: lambda: (images, names),
        lambda images, names: {images._handle._number: names},
    ],
    ids=["table of ids", "weak registry", "neighbor", "closure", "registry of numbers"],
)
def test_the_walk_finds_a_planted_leak(plant, photos):
    files = FileImages(photos, [f"Secretus species0/0-{number}.png" for number in range(3)])
    images = VeiledImages(files, range(3), b"secret")
    names = tuple(str(name) for name in files.ids)
    hidden, paths = {"Secretus species0"}, [photos]
    del files
    assert leaks(within_reach(images, names=images.ids), hidden=hidden, paths=paths) == []
    HELD.append(plant(images, names))
    try:
        assert leaks(within_reach(images, names=images.ids), hidden=hidden, paths=paths) != []
    finally:
        HELD.clear()
