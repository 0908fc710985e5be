"""Permanent ids, names that change: the ledger by itself, without an estimator around it."""

import json

import numpy as np
import pytest

from igcd.memory.category_ledger import LARGEST, MAX_LABEL, CategoryLedger, DiscovererError, label_kind


def ledger(kind="text", *, unlabeled=None, first_novel=None):
    unlabeled = ("" if kind == "text" else -1) if unlabeled is None else unlabeled
    return CategoryLedger(kind=kind, unlabeled=unlabeled, first_novel=first_novel or (1 if kind == "text" else 1000))


@pytest.mark.parametrize(
    ("values", "kind"),
    [([], "int"), ([None], "int"), ([1, None, 2], "int"), ([1, 2.5], "float"), (["a", None], "text")],
)
def test_kinds_of_labels(values, kind):
    assert label_kind(values) == kind


def test_mixed_kinds_are_refused():
    with pytest.raises(DiscovererError, match=r"all numbers or all texts, got int, str; make them of one kind"):
        label_kind([1, "a"])


def test_ids_count_up_and_are_never_used_twice():
    book = ledger()
    assert [book.open("fox"), book.open(), book.open("owl"), book.open()] == [0, 1, 2, 3]
    assert [category.label for category in book.categories] == ["fox", "novel 1", "owl", "novel 2"]
    assert [category.status for category in book.categories] == ["known", "novel", "known", "novel"]
    book.reject(1)
    book.merge(0, 2)
    assert book.open() == 4 and book.categories[4].label == "novel 3"
    assert book.live("known") == [0] and book.live("novel") == [3, 4] and book.live("known", "novel") == [0, 3, 4]


def test_numbers_of_discoveries_start_at_first_novel_and_skip_labels():
    book = ledger("int", first_novel=10)
    book.open(11)
    assert [book.categories[book.open()].label for _ in range(3)] == [10, 12, 13]


def test_an_old_name_leads_to_the_category():
    book = ledger()
    book.open()
    book.rename(0, "newt")
    assert book.find("novel 1") == book.find("newt") == book.categories[0]
    assert book.categories[0].status == "known"
    book.rename(0, "toad")
    assert book.find("newt").label == "toad" and "newt" in book and "frog" not in book and [] not in book
    book.rename(0, "newt")  # a name of its own from before is free for it
    assert book.find("toad").label == "newt"


def test_a_name_of_another_category_is_refused():
    book = ledger()
    book.open("fox")
    book.open()
    with pytest.raises(DiscovererError, match="is or was that of another category; merge the two"):
        book.rename(1, "fox")
    assert book.categories[1].label == "novel 1"


def test_merges_are_followed_to_the_end():
    book = ledger()
    for _ in range(3):
        book.open()
    book.merge(1, 2)
    book.merge(0, 1)
    assert book.current(2) == book.current(1) == book.categories[0] and book.find("novel 3").id == 0
    assert book.live("merged") == [1, 2]


@pytest.mark.parametrize(("into", "other"), [("known", "novel"), ("novel", "known")])
def test_merged_with_a_known_one_it_is_known_under_its_name(into, other):
    book = ledger()
    for status in (into, other):
        book.open("fox" if status == "known" else None)
    book.merge(0, 1)
    assert (book.categories[0].label, book.categories[0].status) == ("fox", "known")


def test_two_novel_ones_stay_novel_until_confirmed():
    book = ledger()
    book.open(), book.open()
    book.merge(0, 1)
    assert book.categories[0].status == "novel"
    book.confirm(0)
    assert book.categories[0].status == "known"


def test_rejected_names_are_refused_and_their_rows_unlabeled():
    book = ledger()
    book.open("fox"), book.open()
    book.reject(1)
    with pytest.raises(DiscovererError, match="'novel 1' has been rejected"):
        book.find("novel 1")
    assert book.labels([0, 1, -1]).tolist() == ["fox", "", ""]


def test_unknown_names_are_refused_with_those_there_are():
    book = ledger()
    with pytest.raises(DiscovererError, match="there is no category 'cat'; take one of those that fit finds"):
        book.find("cat")
    book.open("fox"), book.open("owl"), book.merge(0, 1)
    with pytest.raises(DiscovererError, match=r"take one of 'fox'$"):
        book.find("cat")


@pytest.mark.parametrize("kind", ["int", "float", "text"])
def test_labels_have_the_type_of_their_kind(kind):
    book = ledger(kind)
    book.open({"int": 3, "float": 2.5, "text": "fox"}[kind])
    book.open()
    labels = book.labels([1, 0, -1])
    assert labels.dtype.kind == {"int": "i", "float": "f", "text": "U"}[kind]
    assert labels.tolist() == {"int": [1000, 3, -1], "float": [1000.0, 2.5, -1.0], "text": ["novel 1", "fox", ""]}[kind]


@pytest.mark.parametrize(
    ("kind", "y", "expected"),
    [
        ("text", ["fox", "", "-1", None], ["fox", None, None, None]),
        ("int", [3, -1, None], [3, None, None]),
        ("int", [3.0, -1.0], [3, None]),
        ("float", [2, -1], [2.0, None]),
    ],
)
def test_reading_labels(kind, y, expected):
    got = ledger(kind).read(np.array(y, dtype=object))
    assert got == expected and [type(one) for one in got] == [type(one) for one in expected]


def test_labels_of_another_kind_or_size_are_refused():
    with pytest.raises(DiscovererError, match="of one kind at every call, text as at the first, got int"):
        ledger().read(np.array([1, 2]))
    assert ledger().read(np.array([None, None], dtype=object)) == [None, None]  # nothing is of no kind
    assert LARGEST == {"int": 2**62 - 1, "float": 2**53}
    for kind, largest in LARGEST.items():
        assert ledger(kind).read(np.array([largest, -largest], dtype=object)) == [largest, -largest]
        for number in (largest + 2, -largest - 2):
            with pytest.raises(DiscovererError, match=f"labels must be numbers from {-largest} to {largest}"):
                ledger(kind).read(np.array([number], dtype=object))


@pytest.mark.parametrize(
    ("kind", "label", "words"),
    [
        ("text", "", "a text that is not empty here, got ''"),
        ("text", 3, "a text that is not empty here, got 3"),
        ("int", 2.5, "a whole number below 2\\*\\*62 other than -1 here, got 2.5"),
        ("int", -1, "a whole number below 2\\*\\*62 other than -1 here, got -1"),
        ("float", "fox", "a number other than -1 here, got 'fox'"),
    ],
)
def test_names_that_cannot_be_are_refused(kind, label, words):
    with pytest.raises(DiscovererError, match=words):
        ledger(kind).open(label)


def test_a_number_too_large_for_a_discovery_is_refused():
    book = ledger("int", first_novel=MAX_LABEL - 1)
    book.open()  # the largest that fits
    with pytest.raises(DiscovererError, match="is too large for a label; set a smaller first_novel"):
        book.open()


def test_the_state_is_json_and_comes_back():
    book = ledger()
    book.open("fox"), book.open(), book.open(), book.rename(1, "owl"), book.merge(0, 2)
    again = CategoryLedger.from_state(json.loads(json.dumps(book.state())))
    assert again.categories == book.categories and again.id_of_name == book.id_of_name
    assert again.open() == book.open() and again.categories == book.categories
    assert (again.kind, again.unlabeled, again.first_novel) == ("text", "", 1)


def test_a_ledger_never_uses_an_id_twice():
    ledger = CategoryLedger(kind="text", unlabeled="", first_novel=1)
    a, b, c = ledger.open("a"), ledger.open(), ledger.open()
    ledger.reject(b)
    ledger.merge(a, c)
    assert ledger.open() == 3 and ledger.labels([a, b, c, 3, -1]).tolist() == ["a", "", "a", "novel 3", ""]
    assert CategoryLedger.from_state(ledger.state()).categories == ledger.categories
    assert ledger.categories[c].status == "merged"
