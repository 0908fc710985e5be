"""iNaturalist's export, made up and real."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from igcd.data.geography import CONTINENTS, continent_of
from igcd.data.inaturalist_csv import read_inaturalist_csv
from igcd.data.observation_files import read_observation_file
from igcd.data.observations import IMPOSSIBLE_YEAR, NO_YEAR
from igcd.data.sightings import NO_NAME, NO_PHOTO, STRAY_PHOTO
from igcd.errors import IgcdError

HEADER = "id,observed_on,latitude,longitude,scientific_name,iconic_taxon_name,common_name"
ROWS = """\
101,2015-06-10,48.86,2.35,Danaus plexippus,Insecta,Monarch
102,2016-01-01,48.9,2.4,Corvus corax,Aves,"Raven, Common"
103,,48.9,2.4,Corvus corax,Aves,
104,2015-02-30,,,Corvus corax,Aves,
105,2017-01-01,-33.9,151.2,,Plantae,
106,2017-01-01,-33.9,151.2,Filipendula,Plantae,
"""


@pytest.fixture
def export(tmp_path: Path) -> Path:
    path = tmp_path / "my garden.csv"
    path.write_text(f"{HEADER}\n{ROWS}", encoding="utf-8-sig")
    return path


def test_every_row_with_a_name_is_an_observation(export: Path):
    observations = read_observation_file(export)
    assert observations.image_ids == ("101", "102", "103", "104", "106")
    assert observations.category_names == ("Corvus corax", "Danaus plexippus", "Filipendula")
    assert observations.categories.tolist() == [1, 0, 0, 0, 2]
    assert observations.years.tolist() == [2015, 2016, NO_YEAR, IMPOSSIBLE_YEAR, 2017]
    assert np.isnan(observations.latitude).tolist() == [False, False, False, True, False]
    assert observations.skipped == {NO_NAME: 1}
    assert observations.taxa[0].ranks == ("Animalia", "Chordata", "Aves", "", "", "Corvus")
    assert observations.taxa[0].common_name == "Raven, Common"
    assert observations.taxa[2].at("genus") == ""


def test_photos_are_found_by_the_id_of_their_observation(export: Path, tmp_path: Path, paint: Callable[..., Path]):
    photos = tmp_path / "photos"
    for name in ("101.jpg", "102_1.jpg", "102-2.png", "spring/103/a.jpg", "1010.jpg", "105.jpg"):
        paint(photos / name)
    observations = read_inaturalist_csv(export, photos)
    assert observations.image_ids == ("101.jpg", "102-2.png", "102_1.jpg", "spring/103/a.jpg")
    assert observations.categories.tolist() == [1, 0, 0, 0]
    assert observations.skipped == {NO_NAME: 1, NO_PHOTO: 2, STRAY_PHOTO: 1}


def test_a_column_of_file_names_goes_first(tmp_path: Path, paint: Callable[..., Path]):
    photos = tmp_path / "photos"
    for name in ("a.jpg", "sub/b.jpg", "2.jpg"):
        paint(photos / name)
    path = tmp_path / "x.csv"
    rows = "1,2015-01-01,1,1,A b,a.jpg\n2,2015-01-01,1,1,A b,sub\\b.jpg\n3,2015-01-01,1,1,A b,../x.csv\n"
    path.write_text(f"id,observed_on,latitude,longitude,scientific_name,file_name\n{rows}", encoding="utf-8")
    observations = read_inaturalist_csv(path, photos)
    assert observations.image_ids == ("a.jpg", "sub/b.jpg")
    assert observations.skipped == {NO_PHOTO: 1, STRAY_PHOTO: 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must have the columns id, observed_on.*it has none"),
        ("nummer,datum,breite\n1,2,3\n", "missing: id, observed_on, latitude, longitude, scientific_name"),
        (f"{HEADER}\n101,2015-06-10,48.86\n", "line 2 must have 7 fields like the first line, it has fewer"),
        (f"{HEADER}\n1,2,3,4,5,6,7,8\n", "line 2 must have 7 fields like the first line, it has more"),
        (f"{HEADER}\n{ROWS}101,2015-06-10,48,2,A b,,\n", "observation '101' is on line 2 and again on line 8"),
        (f"{HEADER}\n{ROWS} ,2015-06-10,48,2,A b,,\n", "line 8 must have the id of its observation, got none"),
        (
            f"{HEADER}\n../../7,2015-06-10,48,2,A b,,\n",
            "line 2 must have a photo whose path is plain and stays below a folder",
        ),
        (f'{HEADER}\n1,"2015', "is not valid CSV"),
        (f"{HEADER}\n1,{'x' * 200_000},,,A b,,\n", "is not valid CSV"),
    ],
)
def test_bad_files_are_refused_in_one_sentence(text: str, message: str, tmp_path: Path):
    path = tmp_path / "bad.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(IgcdError, match=message) as refused:
        read_observation_file(path)
    assert "\n" not in str(refused.value)


def test_other_bytes_and_missing_files_are_refused(tmp_path: Path):
    path = tmp_path / "latin.csv"
    path.write_bytes(f"{HEADER}\n1,2015,1,1,Zo\u00eb b,,\n".encode("latin-1"))
    with pytest.raises(IgcdError, match="must be UTF-8"):
        read_observation_file(path)
    with pytest.raises(IgcdError, match="cannot be read"):
        read_observation_file(tmp_path / "absent.csv")


def test_real_observations(shared_data: Path):
    observations = read_observation_file(shared_data / "inat_observations_sample.csv")
    assert len(observations) == 2_521 and len(observations.taxa) == 423
    assert not observations.skipped
    assert observations.years.min() > 1900
    continents = [CONTINENTS[code] for code in continent_of(observations.latitude, observations.longitude) if code < 7]
    assert len(continents) > 0.99 * len(observations)
    assert (continents.count("Europe") + continents.count("North America")) / len(continents) > 0.9


@pytest.mark.parametrize("file_name", ["../x.jpg", "/etc/passwd", "a\\..\\..\\x.jpg", "C:\\x.jpg", "a\tb.jpg"])
def test_a_photo_outside_its_folder_is_refused_with_its_line(file_name: str, tmp_path: Path):
    path = tmp_path / "x.csv"
    rows = f"1,2015-01-01,1,1,A b,a.jpg\n2,2015-01-01,1,1,A b,{file_name}\n"
    path.write_text(f"id,observed_on,latitude,longitude,scientific_name,file_name\n{rows}", encoding="utf-8")
    with pytest.raises(IgcdError, match="x line 3 must have a photo whose path is plain and stays below a folder"):
        read_observation_file(path)


def test_photos_of_one_observation_share_a_sighting(export: Path, tmp_path: Path, paint: Callable[..., Path]):
    photos = tmp_path / "photos"
    for name in ("101.jpg", "102_1.jpg", "102-2.png", "103/a.jpg", "103/b.jpg", "0/102.jpg"):
        paint(photos / name)
    observations = read_inaturalist_csv(export, photos)
    sightings: dict[int, set[str]] = {}
    for image_id, code in zip(observations.image_ids, observations.sighting_codes.tolist(), strict=True):
        sightings.setdefault(code, set()).add(image_id)
    assert sorted(map(sorted, sightings.values())) == [
        ["0/102.jpg", "102-2.png", "102_1.jpg"],
        ["101.jpg"],
        ["103/a.jpg", "103/b.jpg"],
    ]
