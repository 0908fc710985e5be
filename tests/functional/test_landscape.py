import numpy as np
import pytest

from igcd.functional import landscape
from igcd.functional.landscape import lay_out


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 8, 40])
def test_any_number_of_photos_has_a_place_in_the_square(n):
    features = np.random.default_rng(0).normal(size=(n, 16)).astype(np.float32)
    places = lay_out(features)
    assert places.shape == (n, 2) and np.isfinite(places).all()
    assert n == 0 or (places.min() >= -1e-9 and places.max() <= 1 + 1e-9)


def test_copies_of_one_photo():
    assert np.isfinite(lay_out(np.ones((20, 4), dtype=np.float32))).all()


def test_photos_that_are_not_drawn_go_to_their_likes(monkeypatch):
    monkeypatch.setattr(landscape, "N_DRAWN", 60)
    rng = np.random.default_rng(0)
    centers = np.eye(3, 12)
    kinds = np.repeat([0, 1, 2], 60)
    features = (centers[kinds] + rng.normal(0, 0.05, (180, 12))).astype(np.float32)
    places = lay_out(features)
    means = np.stack([places[kinds == kind].mean(axis=0) for kind in range(3)])
    nearest = np.linalg.norm(places[:, None] - means, axis=2).argmin(axis=1)
    assert (nearest == kinds).all()
    assert np.array_equal(places, lay_out(features))


@pytest.mark.parametrize(("n_placed", "stays"), [(landscape.MIN_PLACED, True), (landscape.MIN_PLACED - 1, False)])
def test_places_stay_where_there_are_enough_of_them(n_placed, stays):
    features = np.random.default_rng(0).normal(size=(40, 16)).astype(np.float32)
    places = np.full((40, 2), np.nan)
    places[:n_placed] = np.random.default_rng(1).uniform(size=(n_placed, 2))
    found = lay_out(features, places)
    assert np.isfinite(found).all() and np.isnan(places[n_placed:]).all(), "the places that were given are not changed"
    assert np.array_equal(found[:n_placed], places[:n_placed]) == stays
    assert np.array_equal(found, lay_out(features)) != stays


def test_a_new_photo_goes_between_the_three_it_is_most_like():
    features = np.concatenate([np.eye(20), np.eye(20)[:1]]).astype(np.float32)  # the last is a copy of the first
    places = np.random.default_rng(0).uniform(size=(21, 2))
    places[20] = np.nan
    others_weigh = 2 * np.exp(-10)  # cosines are 1 and about 0, and are divided by 0.1
    assert lay_out(features, places)[20] == pytest.approx(places[0], abs=3 * others_weigh)


def test_the_start_of_the_layout_is_small_and_has_no_two_rows_at_one_spot():
    rows = np.random.default_rng(0).normal(size=(200, 3)).astype(np.float32) * [[5.0, 1.0, 9.0]]
    start = landscape._start(rows.astype(np.float32), np.random.default_rng(1))
    assert start[:, 0].std() == pytest.approx(1e-4, rel=0.01)
    assert np.corrcoef(start[:, 0], rows[:, 0])[0, 1] > 0.999 and np.corrcoef(start[:, 1], rows[:, 1])[0, 1] > 0.99
    assert abs(start[:, 0].mean() - 1e-4 * rows[:, 0].mean() / rows[:, 0].std()) < 3e-7
    same = landscape._start(np.ones((5, 3), dtype=np.float32), np.random.default_rng(1))
    assert len({tuple(row) for row in same.tolist()}) == 5
