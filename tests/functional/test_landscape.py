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
