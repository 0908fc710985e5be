"""Data sets are checked when they are made."""

import numpy as np
import pytest

from igcd.data.dataset import Dataset
from igcd.data.images import ArrayImages
from igcd.errors import IgcdError


def make(**changes) -> Dataset:
    fields = {
        "name": "toy",
        "images": ArrayImages("abcd", np.arange(4 * 12, dtype=np.uint8).reshape(4, 2, 2, 3)),
        "categories": np.array([0, 1, 1, 0]),
        "category_names": ("owl", "fox"),
        "is_test": np.array([False, False, True, True]),
    }
    return Dataset(**{**fields, **changes})


def test_take_keeps_images_and_categories_together():
    dataset = make().take([3, 1])
    assert len(dataset) == 2
    assert dataset.images.ids == ("d", "b")
    assert dataset.categories.tolist() == [0, 1]
    assert dataset.is_test.tolist() == [True, False]
    assert dataset.category_names == ("owl", "fox")
    np.testing.assert_array_equal(dataset.images.pixels(0), make().images.pixels(3))


def test_taking_nothing_is_allowed():
    assert len(make().take(np.array([], dtype=np.int64))) == 0


def test_arrays_are_converted_and_locked_and_the_callers_stay_free():
    codes = np.array([0, 1, 1, 0], dtype=np.uint64)
    dataset = make(categories=codes)
    assert dataset.categories.dtype == np.int64
    codes[0] = 1
    assert dataset.categories[0] == 0
    with pytest.raises(ValueError, match="read-only"):
        dataset.categories[0] = 1


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"categories": np.array([0, 1])}, "one value for each of the 4 images"),
        ({"is_test": np.zeros((4, 1), bool)}, "one value for each of the 4 images"),
        ({"categories": np.array([0, 1, 2, 0])}, "between 0 and 1, got 0 to 2"),
        ({"categories": np.array([0, -1, 1, 0])}, "between 0 and 1, got -1 to 1"),
        ({"categories": np.array([0.0, 1.0, 1.0, 0.5])}, "must be int64, got float64"),
        ({"is_test": np.array([0, 1, 0, 1])}, "must be bool, got int64"),
        ({"category_names": ("owl", "owl")}, "'owl' twice"),
        ({"category_names": ("owl", "red\tfox")}, "without tabs"),
        ({"category_names": ("owl", "fox\n")}, "without tabs"),
        ({"category_names": ("owl", "f\udcf6x")}, "undecodable"),
        ({"category_names": ("owl", " ")}, "without tabs"),
    ],
)
def test_what_does_not_fit_together_is_refused(changes, sentence):
    with pytest.raises(IgcdError, match=sentence):
        make(**changes)
