import tarfile

import pytest

from igcd.assembly import build_stream
from igcd.config import StreamConfig
from igcd.data.fieldguide.guide import FieldGuide, write
from igcd.errors import IgcdError
from igcd.streams.inat_igcd import PlaceAndYearSpec


@pytest.mark.parametrize("packed", [False, True])
def test_a_folder_as_inat2021_unpacks_is_a_stream(tmp_path, packed):
    """The built-in guide written out: the same split as the guide itself, with its pictures, map and taxonomy."""
    options = {"n_species": 12, "n_images": 240, "n_test_per_species": 4, "size": 32}
    write(FieldGuide(**options), tmp_path)
    if packed:
        for name in ("train.json", "val.json"):
            with tarfile.open(tmp_path / f"{name}.tar.gz", "w:gz") as archive:
                archive.add(tmp_path / name, arcname=name)
            (tmp_path / name).unlink()
    spec = PlaceAndYearSpec(protocol="igcd-u")
    built = build_stream(StreamConfig(source="inat2021", data=tmp_path, by_place_and_year=spec), seed=0)
    drawn = build_stream(StreamConfig(source="fieldguide", options=options, by_place_and_year=spec), seed=0)
    assert built.split.stages == drawn.split.stages
    assert set(built.tables) == {"places.csv", "taxonomy.csv"} and built.tables == drawn.tables
    stage, truth = next(iter(built.stream))
    assert stage.labeled.pixels(0).shape == (32, 32, 3) and len(truth.test_images) > 0


def test_missing_annotations_and_sources_without_places_get_a_sentence(tmp_path):
    spec = PlaceAndYearSpec()
    with pytest.raises(IgcdError, match=r"should hold train\.json or train_mini\.json"):
        build_stream(StreamConfig(source="inat2021", data=tmp_path, by_place_and_year=spec), seed=0)
    with pytest.raises(IgcdError, match=r"stream\.data=FOLDER"):
        build_stream(StreamConfig(source="inat2021", by_place_and_year=spec), seed=0)
    with pytest.raises(IgcdError, match="need dates and coordinates"):
        build_stream(StreamConfig(source="digits", by_place_and_year=spec), seed=0)
    with pytest.raises(IgcdError, match="whole numbers"):
        options = {"n_species": "many"}
        build_stream(StreamConfig(source="fieldguide", options=options, by_place_and_year=spec), seed=0)
