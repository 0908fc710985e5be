"""When and where photos were taken, how they look, and finding them by it."""

import math

import numpy as np
import pytest
from PIL import Image
from workspace.painted_photos import PatternEncoder, paint

from igcd.errors import IgcdError
from igcd.workspace import queries
from igcd.workspace.catalog import open_catalog
from igcd.workspace.discover import discover
from igcd.workspace.galleries import gallery
from igcd.workspace.init import init_workspace
from igcd.workspace.quality import quality_of
from igcd.workspace.search import Wish, find, folders_of, great_circle_km, places_of
from igcd.workspace.shots import Shot, read_shot


def write_photo(path, *, taken=None, place=None, seed=0, dark=False):
    path.parent.mkdir(parents=True, exist_ok=True)
    exif = Image.Exif()
    if taken:
        exif.get_ifd(0x8769)[0x9003] = taken
    if place:
        latitude, longitude = place
        exif.get_ifd(0x8825).update({1: "N", 2: (latitude, 30.0, 0.0), 3: "W", 4: (longitude, 0.0, 0.0)})
    pixels = np.random.default_rng(seed).integers(0, 20 if dark else 255, (40, 40, 3))
    Image.fromarray(pixels.astype(np.uint8)).save(path, exif=exif)


@pytest.fixture
def catalog(tmp_path):
    photos = tmp_path / "photos"
    write_photo(photos / "may" / "a.jpg", taken="2026:05:01 10:00:00", place=(60.0, 3.0), seed=1)
    write_photo(photos / "july" / "b_1.jpg", taken="2026:07:01 10:00:00", place=(48.0, 4.0), seed=2)
    write_photo(photos / "july" / "bx1.jpg", seed=3, dark=True)
    paint(photos / "owl" / "c.jpg", 0, 0)
    init_workspace(tmp_path / "ws", photos)
    with open_catalog(tmp_path / "ws") as opened:
        discover(opened, PatternEncoder())
        yield opened


def test_exif_data_are_read(tmp_path):
    write_photo(tmp_path / "a.jpg", taken="2026:05:01 10:00:00", place=(60.0, 3.0))
    assert read_shot(tmp_path / "a.jpg") == Shot("2026-05-01T10:00:00", 60.5, -3.0)
    write_photo(tmp_path / "b.jpg")
    assert not read_shot(tmp_path / "b.jpg") and not read_shot(tmp_path / "nowhere.jpg")


def test_find_by_date_folder_text_and_order(catalog):
    name_of = {photo.id: photo.path for photo in queries.photos(catalog, range(1, 5))}

    def names(**wish):
        return [name_of[photo] for photo in find(catalog, Wish(**wish)).photo_ids]

    assert names(since="2026-06-01") == ["july/b_1.jpg"] and names(until="2026-05") == ["may/a.jpg"]
    assert names(order="newest")[:2] == ["july/b_1.jpg", "may/a.jpg"]
    assert names(order="place")[:2] == ["may/a.jpg", "july/b_1.jpg"]
    assert names(folder="july/", order="file") == ["july/b_1.jpg", "july/bx1.jpg"]
    assert names(text="b_1") == ["july/b_1.jpg"]  # _ is no wildcard
    assert names(text="july bx") == ["july/bx1.jpg"] and names(stage=3) == []
    assert folders_of(catalog) == ["july/", "may/", "owl/"]


def test_find_by_place(catalog):
    name_of = {photo.id: photo.path for photo in queries.photos(catalog, range(1, 5))}

    def names(**wish):
        return sorted(name_of[photo] for photo in find(catalog, Wish(**wish)).photo_ids)

    assert names(place="known") == ["july/b_1.jpg", "may/a.jpg"]
    assert names(place="unknown") == ["july/bx1.jpg", "owl/c.jpg"]
    assert names(near="48.4, -4.0", within=20) == ["july/b_1.jpg"]  # it is 11.1 km away
    assert names(near="48.4, -4.0", within=11) == []
    assert names(near="48.4 -4.0", within=3000) == ["july/b_1.jpg", "may/a.jpg"]
    assert names(near="48.4, -4.0", within=3000, folder="may/") == ["may/a.jpg"]
    assert [(place.latitude, place.longitude, place.n_photos) for place in places_of(catalog)] == [
        (60.5, -3.0, 1),
        (48.5, -4.0, 1),
    ]
    for text in ("48.1", "95, 10", "north of Brest", "1, 200"):
        with pytest.raises(IgcdError, match="write it like"):
            find(catalog, Wish(near=text))


def test_distances_on_the_globe():
    rng = np.random.default_rng(0)
    latitudes, longitudes = rng.uniform(-90, 90, 50), rng.uniform(-180, 180, 50)
    found = great_circle_km(12.0, 179.5, latitudes, longitudes)

    def on_sphere(latitude, longitude):
        latitude, longitude = math.radians(latitude), math.radians(longitude)
        ground = math.cos(latitude)
        return (ground * math.cos(longitude), ground * math.sin(longitude), math.sin(latitude))

    here = on_sphere(12.0, 179.5)
    for latitude, longitude, distance in zip(latitudes, longitudes, found, strict=True):
        there = on_sphere(latitude, longitude)
        angle = math.acos(sum(a * b for a, b in zip(here, there, strict=True)))  # slow twin: by the angle between
        assert distance == pytest.approx(6371 * angle, rel=1e-6)
    places = zip(latitudes, longitudes, strict=True)
    back = [great_circle_km(*place, np.array([12.0]), np.array([179.5]))[0] for place in places]
    assert found == pytest.approx(back)  # law: as far back as there
    assert great_circle_km(0.0, 179.9, np.array([0.0]), np.array([-179.9]))[0] == pytest.approx(22.24, abs=0.01)


def test_dark_and_blurred_photos_are_measured(catalog):
    with catalog.snapshot() as db:
        assert db.execute("SELECT COUNT(*) FROM qualities").fetchone()[0] == 4
    assert [photo.path for photo in queries.photos(catalog, gallery(catalog, "dark").photo_ids)] == ["july/bx1.jpg"]
    rng = np.random.default_rng(0)
    sharp = rng.integers(0, 255, (32, 32, 3)).astype(np.uint8)
    smooth = np.asarray(Image.fromarray(sharp).resize((8, 8)).resize((32, 32)))
    assert quality_of(smooth).sharpness < quality_of(sharp).sharpness / 5
    gray = sharp.astype(float) @ [0.299, 0.587, 0.114] / 255
    slow = [
        4 * gray[y, x] - gray[y - 1, x] - gray[y + 1, x] - gray[y, x - 1] - gray[y, x + 1]
        for y in range(1, 31)
        for x in range(1, 31)
    ]
    assert quality_of(sharp).sharpness == pytest.approx(np.var(slow), rel=1e-4)


def test_a_table_tells_date_and_place_as_inaturalist_does(tmp_path):
    for number in range(3):
        write_photo(tmp_path / "photos" / f"{number}.jpg", seed=number, taken="2020:01:01 00:00:00")
    lines = [
        "path,category,observed_on,latitude,longitude",
        "0.jpg,owl,2026-07-03,48.5,-4.25",
        "1.jpg,owl,last summer,900,x",
    ]
    (tmp_path / "labels.csv").write_text("\n".join(lines))
    init_workspace(tmp_path / "ws", tmp_path / "photos", labels=tmp_path / "labels.csv")
    with open_catalog(tmp_path / "ws") as catalog, catalog.snapshot() as db:
        rows = db.execute("SELECT path, taken, latitude, longitude FROM shots JOIN photo_paths USING (photo)")
        found = {row["path"]: tuple(row)[1:] for row in rows}
    assert found["0.jpg"] == ("2026-07-03T00:00:00", 48.5, -4.25)
    assert found["1.jpg"] == found["2.jpg"] == ("2020-01-01T00:00:00", None, None)  # what the photo itself says
