import hashlib

import numpy as np
import pytest

from igcd.errors import IgcdError
from igcd.streams.protocols import NOTHING, PROTOCOLS, StreamSpec, group_of_categories, igcd_l, stages_by_category
from igcd.streams.randomness import generator
from igcd.streams.split import Split, count_stages, format_split, make_split, read_split, write_split

CATEGORIES = np.array([0, 0, 1, 2, 2, 0, 1, 2])
IDS = ["train/a", "train/b", "train/c", "train/d", "train/é f", "test/a", "test/b", "test/c"]
NAMES = ["fox", "hen # red", "Ärger"]


@pytest.fixture
def split() -> Split:
    stages = igcd_l([np.array([0, 2]), np.array([1, 3, 4])], [np.array([5, 6]), np.array([7])])
    return make_split(
        name="toy-igcd-l",
        source="toy",
        seed=3,
        spec={"protocol": "igcd-l"},
        stages=stages,
        groups=group_of_categories(stages, CATEGORIES),
        image_ids=IDS,
        categories=CATEGORIES,
        category_names=NAMES,
    )


def test_the_file_is_what_the_docs_say(split):
    lines = format_split(split).decode().splitlines()
    assert lines[:8] == [
        "#igcd-split 1",
        "#name toy-igcd-l",
        "#source toy",
        "#seed 3",
        '#spec {"protocol":"igcd-l"}',
        "#columns stage role image category group",
        "0\tlabeled\ttrain/a\tfox\tOld",
        "0\tlabeled\ttrain/c\then # red\tOld",
    ]
    assert "1\tunlabeled\ttrain/é f\tÄrger\tNew" in lines
    body = "".join(f"{line}\n" for line in lines[:-1]).encode()
    assert lines[-1] == f"#sha256 {hashlib.sha256(body).hexdigest()}"


def test_golden_checksum():
    """The same spec and seed give the same bytes everywhere: these digests must never change."""
    categories = np.repeat(np.arange(20), 12)
    is_test = np.arange(240) % 12 >= 10
    digests = {}
    for protocol in PROTOCOLS:
        spec = StreamSpec(protocol=protocol, images_old=2)
        names = [f"category {code}" for code in range(20)]
        stages = stages_by_category(categories, is_test, names, spec, generator(7))
        split = make_split(
            name="golden",
            source="toy",
            seed=7,
            spec=spec.model_dump(exclude_none=True),
            stages=stages,
            groups=group_of_categories(stages, categories),
            image_ids=[f"{number:03d}" for number in range(240)],
            categories=categories,
            category_names=names,
        )
        digests[protocol] = hashlib.sha256(format_split(split)).hexdigest()[:12]
    assert digests == {
        "igcd-l": "3e72066aeca1",
        "igcd-u": "bb7f8c36076d",
        "mi": "ad09566e2679",
        "cgcd": "1668af46b4f6",
        "static": "73ca8a05251b",
    }


def test_reading_gives_back_what_was_written(split, tmp_path):
    write_split(split, tmp_path / "deep" / "split.tsv")
    assert read_split(tmp_path / "deep" / "split.tsv") == split
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["split.tsv"]  # nothing half-written stays


def test_counts(split):
    first, second = count_stages(split)
    assert (first.labeled, first.unlabeled, first.test_images, first.old, first.new) == (2, 0, 2, 2, 0)
    assert (second.labeled, second.unlabeled, second.test_images) == (2, 3, 3)
    assert (second.categories, second.old, second.new, second.absent) == (3, 2, 1, 0)


def test_a_test_image_of_a_category_nobody_met_is_left_out():
    stages = igcd_l([np.array([0]), NOTHING], [np.array([5, 7]), NOTHING])
    split = make_split(
        name="toy",
        source="toy",
        seed=0,
        spec={},
        stages=stages,
        groups=group_of_categories(stages, CATEGORIES),
        image_ids=IDS,
        categories=CATEGORIES,
        category_names=NAMES,
    )
    assert split.stages[0].test.image_ids == ("test/a",)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda content: content.replace(b"fox", b"dog"), "edited"),
        (lambda content: content[:-40], "truncated"),
        (lambda content: content[:60], "truncated"),
        (lambda content: content.replace(b"split 1", b"split 9"), "version 9"),
        (lambda _: b"stage,role\n", "not a split file"),
        (lambda _: b"", "not a split file"),
    ],
)
def test_a_damaged_file_gets_a_sentence(split, tmp_path, change, words):
    path = tmp_path / "split.tsv"
    path.write_bytes(change(format_split(split)))
    with pytest.raises(IgcdError, match=words):
        read_split(path)


def test_a_missing_file_gets_a_sentence(tmp_path):
    with pytest.raises(IgcdError, match="igcd build"):
        read_split(tmp_path / "none.tsv")


@pytest.mark.parametrize("name", ["two\nlines", "tab\there", "line\u2028separator"])
def test_names_that_would_break_a_line_are_refused(name):
    stages = igcd_l([np.array([0]), NOTHING], [NOTHING, NOTHING])
    with pytest.raises(IgcdError, match="rename"):
        format_split(
            make_split(
                name="toy",
                source="toy",
                seed=0,
                spec={},
                stages=stages,
                groups=group_of_categories(stages, np.array([0])),
                image_ids=["a"],
                categories=np.array([0]),
                category_names=[name],
            )
        )


def with_checksum(body: bytes) -> bytes:
    return body + b"#sha256 " + hashlib.sha256(body).hexdigest().encode() + b"\n"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"0\tlabeled\ttrain/a\tfox\tOld", b"0\tlabeled\ttrain/a\tfox", "line 7 must have 5 fields, it has 4"),
        (b"0\tlabeled\ttrain/a\tfox", b"0\tlabeled\ttrain/a\tfox\tred", "line 7 must have 5 fields, it has 6"),
        (b"0\tlabeled\ttrain/a\tfox\tOld\n", b"\n", "line 7 must have 5 fields, it has 0"),
        (b"0\tlabeled\ttrain/a", b"one\tlabeled\ttrain/a", "line 7 must begin with the number of a stage.*'one'"),
        (b"0\tlabeled\ttrain/a", b"-1\tlabeled\ttrain/a", "line 7 must begin with the number of a stage.*'-1'"),
        (b"0\tlabeled\ttrain/a", b"\xd9\xa1\tlabeled\ttrain/a", "line 7 must begin with the number of a stage"),
        (b"0\tlabeled\ttrain/a", b"1000000000\tlabeled\ttrain/a", "line 7 must begin with the number of a stage"),
        (b"0\tlabeled\ttrain/a", b"0\tLabeled\ttrain/a", "line 7 must have the role labeled, unlabeled or test"),
        (b"train/a\tfox\tOld\n0\t", b"train/a\tfox\told\n0\t", "line 7 must have the group Old, New or S-t, got 'old'"),
        (b"train/a\tfox\tOld\n0\t", b"train/a\tfox\tS-0\n0\t", "line 7 must have a group of an earlier stage than 0"),
        (b"0\tlabeled\ttrain/a", b"0\tlabeled\t", "line 7 must name the image"),
        (b"train/a\tfox\tOld\n0\t", b"train/a\t\tOld\n0\t", "line 7 must name the category"),
        (
            b"0\tlabeled\ttrain/c",
            b"0\tlabeled\ttrain/a",
            "line 8 has 'train/a' as labeled.* stage 0 already.* as labeled",
        ),
        (b"0\ttest\ttest/a", b"0\ttest\ttrain/a", "line 9 has 'train/a' as test, which stage 0 already has as labeled"),
        (b"train/a\tfox", b"train/a\tf\xe2\x80\xa8ox", "line 7 has a line break inside a name"),
        *(
            (old, old + line_break.encode(), f"line {line} has a line break inside a name")
            for line_break in ("\r", "\x0b", "\x1c", "\x85", "\u2028")
            for old, line in ((b"#name toy", 2), (b"train/a\tfox", 7), (b"train/a\tfox\tOld", 7))
        ),
        (b"train/a\tfox", b"train/a\tf\xffox", "line 7 must be UTF-8 text"),
        (b"#seed 3", b"#seed three", "line 4 must hold the seed, a whole number, got 'three'"),
        (b"#seed 3", b"#seed -3", "line 4 must hold the seed"),
        (b"#seed 3", b"#sed 3", "line 4 must begin with #seed, it is '#sed 3'"),
        (b"#source toy\n", b"", "line 3 must begin with #source"),
        (b'{"protocol":"igcd-l"}', b"{", "line 5 must hold the spec, a JSON object, got '{'"),
        (b'{"protocol":"igcd-l"}', b"[]", "line 5 must hold the spec, a JSON object"),
        (b'{"protocol":"igcd-l"}', b"[" * 100_000, "line 5 must hold the spec, a JSON object"),
        (b"#columns stage role", b"#columns role stage", "other columns"),
    ],
)
def test_a_wrong_line_under_a_fitting_checksum_gets_a_sentence(split, tmp_path, old, new, message):
    body = format_split(split).rpartition(b"#sha256 ")[0]
    assert old in body
    path = tmp_path / "split.tsv"
    path.write_bytes(with_checksum(body.replace(old, new, 1)))
    with pytest.raises(IgcdError, match=message) as refused:
        read_split(path)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 400


def test_a_file_that_stops_in_its_header_or_in_a_line_gets_a_sentence(split, tmp_path):
    path = tmp_path / "split.tsv"
    path.write_bytes(with_checksum(b"#igcd-split 1\n"))
    with pytest.raises(IgcdError, match="line 2 must begin with #name"):
        read_split(path)
    path.write_bytes(with_checksum(format_split(split).rpartition(b"\n#sha256 ")[0]))
    with pytest.raises(IgcdError, match="must end before the checksum"):
        read_split(path)


def test_converted_line_ends_are_named(split, tmp_path):
    path = tmp_path / "split.tsv"
    body = format_split(split).replace(b"\n", b"\r\n")
    for content in (body, with_checksum(body.rpartition(b"#sha256 ")[0])):
        path.write_bytes(content)
        with pytest.raises(IgcdError, match="end in CR and LF"):
            read_split(path)


def test_stages_without_images_and_files_without_stages_are_read(split, tmp_path):
    path = tmp_path / "split.tsv"
    header = b"".join(line + b"\n" for line in format_split(split).split(b"\n")[:6])
    path.write_bytes(with_checksum(header))
    assert read_split(path).stages == ()
    path.write_bytes(with_checksum(header + b"2\ttest\ta\tfox\tS-1\n"))
    assert [len(stage.test.image_ids) for stage in read_split(path).stages] == [0, 0, 1]


def test_an_image_may_come_back_at_another_stage(split, tmp_path):
    write_split(split, tmp_path / "split.tsv")
    first, second = read_split(tmp_path / "split.tsv").stages
    assert set(first.test.image_ids) <= set(second.test.image_ids)
    assert set(first.labeled.image_ids) == set(second.labeled.image_ids)
