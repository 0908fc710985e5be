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
