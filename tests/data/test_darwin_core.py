"""Darwin Core archives and GBIF tables."""

import zipfile
from pathlib import Path

import pytest

from igcd.data.observation_files import read_observation_file
from igcd.data.sightings import NO_NAME
from igcd.errors import IgcdError

META = """<?xml version="1.0" encoding="utf-8"?>
<archive xmlns="http://rs.tdwg.org/dwc/text/" metadata="eml.xml">
  <core encoding="UTF-8" fieldsTerminatedBy="{delimiter}" linesTerminatedBy="\\n" fieldsEnclosedBy="{quote}"
        ignoreHeaderLines="1" rowType="http://rs.tdwg.org/dwc/terms/Occurrence">
    <files><location>{location}</location></files>
    <id index="0"/>
    <field index="1" term="http://rs.tdwg.org/dwc/terms/eventDate"/>
    <field index="2" term="http://rs.tdwg.org/dwc/terms/decimalLatitude"/>
    <field index="3" term="http://rs.tdwg.org/dwc/terms/decimalLongitude"/>
    <field index="4" term="http://rs.tdwg.org/dwc/terms/scientificName"/>
    <field index="5" term="http://rs.tdwg.org/dwc/terms/family"/>
    <field default="Animalia" term="http://rs.tdwg.org/dwc/terms/kingdom"/>
  </core>
</archive>
"""
TABLE = (
    'a\tb\tc\td\te\tf\n7\t2015-06-10T10:00:00Z\t48.9\t2.3\tCorvus "corax"\tCorvidae\n'
    "8\t2015-06-10/2015-06-11\t\t\tDanaus plexippus\t\n"
)
GBIF = (
    "gbifID\toccurrenceID\tkingdom\tfamily\tgenus\tspecies\tscientificName\tdecimalLatitude\tdecimalLongitude"
    "\teventDate\tyear\n"
    "91\thttps://www.inaturalist.org/observations/5\tAnimalia\tCorvidae\tCorvus\tCorvus corax"
    "\tCorvus corax Linnaeus, 1758\t48.9\t2.3\t2015-06-10\t2015\n"
    "92\t\tAnimalia\tCorvidae\tCorvus\t\tCorvus Linnaeus, 1758\t48.9\t2.3\t\t2016\n"
    "93\t\tPlantae\tRosaceae\tRosa\tRosa canina\tRosa canina L.\tx\t2.3\t\t2016\n"
)


def archive(path: Path, **members: str) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        for name, text in members.items():
            file.writestr(name.replace("__", "/").replace("_dot_", "."), text)
    return path


def test_an_archive_with_its_description(tmp_path: Path):
    meta = META.format(delimiter="\\t", quote="", location="data/occ.txt")
    path = archive(tmp_path / "dwca.zip", meta_dot_xml=meta, data__occ_dot_txt=TABLE)
    observations = read_observation_file(path)
    assert observations.name == "dwca"
    assert observations.image_ids == ("7", "8")
    assert observations.category_names == ('Corvus "corax"', "Danaus plexippus")
    assert observations.years.tolist() == [2015, 2015]
    assert observations.taxa[0].ranks == ("Animalia", "", "", "", "Corvidae", "Corvus")


def test_commas_and_quotes_as_described(tmp_path: Path):
    meta = META.format(delimiter=",", quote="&quot;", location="occ.csv")
    table = 'a,b,c,d,e,f\n7,2015,48.9,2.3,"Corvus corax, a raven",Corvidae\n'
    path = archive(tmp_path / "dwca.zip", meta_dot_xml=meta, occ_dot_csv=table)
    assert read_observation_file(path).category_names == ("Corvus corax, a raven",)


@pytest.mark.parametrize("packed", [True, False])
def test_a_gbif_download(packed: bool, tmp_path: Path):
    path = tmp_path / ("0001.zip" if packed else "occurrence.txt")
    if packed:
        archive(path, **{"0001_dot_csv": GBIF})
    else:
        path.write_text(GBIF, encoding="utf-8")
    observations = read_observation_file(path)
    assert observations.image_ids == ("91", "93")
    assert observations.category_names == ("Corvus corax", "Rosa canina")
    assert observations.years.tolist() == [2015, 2016]
    assert observations.latitude.tolist() == [48.9, float("inf")]
    assert observations.skipped == {NO_NAME: 1}


@pytest.mark.parametrize("name", ["../evil.txt", "/etc/evil.txt", "a/../../evil.txt", "..\\evil.txt", "C:\\evil.txt"])
def test_a_zip_that_leaves_its_folder_is_refused(name: str, tmp_path: Path):
    path = tmp_path / "evil.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("occurrence.txt", GBIF)
        file.writestr(name, "x")
    with pytest.raises(IgcdError, match="leaves its folder"):
        read_observation_file(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["evil.zip"]


GOOD_META = META.format(delimiter="\\t", quote="", location="occ.txt")


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({}, "must hold meta.xml, occurrence.txt or one table, got nothing"),
        ({"a_dot_csv": "", "b_dot_csv": ""}, "got a.csv, b.csv"),
        ({"meta_dot_xml": GOOD_META}, "meta.xml names 'occ.txt', which is not in the archive"),
        ({"meta_dot_xml": "<archive"}, "meta.xml cannot be read"),
        ({"meta_dot_xml": "<archive/>"}, "describes no core table"),
        ({"meta_dot_xml": '<!DOCTYPE a [<!ENTITY b "c">]><archive/>'}, "defines entities"),
        ({"meta_dot_xml": GOOD_META.replace("UTF-8", "no-such"), "occ_dot_txt": TABLE}, "encoding it claims"),
        *(
            ({"meta_dot_xml": GOOD_META.replace("UTF-8", name), "occ_dot_txt": TABLE}, "encoding it claims")
            for name in ("utf-16", "undefined", "hex", "utf-32-be")
        ),
        *(
            ({"meta_dot_xml": GOOD_META.replace("utf-8", name), "occ_dot_txt": TABLE}, "meta.xml cannot be read")
            for name in ("no-such", "hex", "utf-16", "big5")
        ),
        ({"meta_dot_xml": META.format(delimiter="\\n", quote="", location="o")}, "separated by one character"),
        ({"meta_dot_xml": META.format(delimiter=",", quote=",", location="o")}, "separated by one character"),
        (
            {"meta_dot_xml": GOOD_META.replace('Lines="1"', 'Lines="99999999999"'), "occ_dot_txt": TABLE},
            "ignoreHeaderLines in meta.xml must lie between 0 and 1,000, got 99999999999",
        ),
        (
            {"meta_dot_xml": GOOD_META.replace('Lines="1"', 'Lines="-1"'), "occ_dot_txt": TABLE},
            "ignoreHeaderLines in meta.xml must lie between 0 and 1,000, got -1",
        ),
        (
            {"meta_dot_xml": GOOD_META.replace('index="5"', 'index="-5"'), "occ_dot_txt": TABLE},
            "columns in meta.xml count from 0, got -5",
        ),
        (
            {"meta_dot_xml": GOOD_META, "occ_dot_txt": TABLE.replace("\n8\t", "\n\t")},
            "line 3 must have the id of its observation, got none",
        ),
        ({"meta_dot_xml": META.format(delimiter="||", quote="", location="o")}, "separated by one character"),
        ({"meta_dot_xml": GOOD_META, "occ_dot_txt": "h\n1\t2015\n"}, "line 2 must have 6 fields, it has 2"),
        ({"occurrence_dot_txt": "a\tb\n1\t2\n"}, "lacks the Darwin Core terms gbifID or occurrenceID.*it has a, b"),
        ({"occurrence_dot_txt": ""}, "lacks the Darwin Core terms"),
        ({"occurrence_dot_txt": GBIF + GBIF.splitlines()[1]}, "observation '91' is on line 2 and again on line 5"),
    ],
)
def test_bad_archives_are_refused_in_one_sentence(members: dict[str, str], message: str, tmp_path: Path):
    path = archive(tmp_path / "bad.zip", **members)
    with pytest.raises(IgcdError, match=message) as refused:
        read_observation_file(path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["", ".", "//"])
def test_a_member_without_a_name_is_left_out_or_refused(name: str, tmp_path: Path):
    path = archive(tmp_path / "whole.zip", occurrence_dot_txt=GBIF)
    with zipfile.ZipFile(path, "a") as file:
        file.writestr(zipfile.ZipInfo("x"), "")
        file.filelist[-1].filename = name
    assert len(read_observation_file(path)) == 2


def test_damaged_zips_are_refused(tmp_path: Path):
    path = archive(tmp_path / "whole.zip", occurrence_dot_txt=GBIF)
    cut = tmp_path / "cut.zip"
    cut.write_bytes(path.read_bytes()[:200])
    with pytest.raises(IgcdError, match="damaged or locked"):
        read_observation_file(cut)
    flipped = bytearray(path.read_bytes())
    flipped[flipped.index(b"Corvidae")] ^= 1  # still text, but not the text that was packed
    cut.write_bytes(flipped)
    with pytest.raises(IgcdError, match="damaged or locked"):
        read_observation_file(cut)


@pytest.mark.parametrize("packing", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
@pytest.mark.parametrize("member", ["meta.xml", "occ.txt"])
def test_damage_of_every_packing_is_refused(packing: int, member: str, tmp_path: Path):
    path = tmp_path / "packed.zip"
    with zipfile.ZipFile(path, "w", packing) as file:
        file.writestr("meta.xml", GOOD_META)
        file.writestr("occ.txt", TABLE)
    expected = read_observation_file(path)
    with zipfile.ZipFile(path) as file:
        start = file.getinfo(member).header_offset + 30 + len(member)
        n_bytes = file.getinfo(member).compress_size
    whole, n_refused = path.read_bytes(), 0
    for position in range(start, start + n_bytes):
        damaged = bytearray(whole)
        damaged[position] ^= 0xFF
        path.write_bytes(damaged)
        try:
            assert read_observation_file(path).image_ids == expected.image_ids  # a byte that means nothing
        except IgcdError as error:
            assert "packed.zip" in str(error)
            n_refused += 1
    assert n_refused > 0.9 * n_bytes


def test_a_table_shorter_than_its_header_has_no_observations(tmp_path: Path):
    meta = GOOD_META.replace('Lines="1"', 'Lines="900"')
    assert len(read_observation_file(archive(tmp_path / "x.zip", meta_dot_xml=meta, occ_dot_txt=TABLE))) == 0
