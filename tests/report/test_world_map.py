import base64
import io

import numpy as np
import pytest
from PIL import Image

from igcd.report.run_records import Places
from igcd.report.world_map import MAX_MARKERS, NORTH, SOUTH, world_map


def places(rows):
    stage, latitude, longitude, images = (np.array(column) for column in zip(*rows, strict=True))
    return Places(stage.astype(np.int64), latitude.astype(float), longitude.astype(float), images.astype(np.int64))


@pytest.fixture(scope="module")
def paris_and_sydney():
    return world_map(places([(0, 48.9, 2.4, 9), (0, 49.9, 2.4, 1), (1, -33.9, 151.2, 4)]))


def test_land_is_where_land_is(paris_and_sydney):
    content = base64.b64decode(paris_and_sydney.land_uri.removeprefix("data:image/png;base64,"))
    assert len(content) < 60_000
    land = Image.open(io.BytesIO(content)).convert("RGBA")
    scale = land.width / 360
    assert land.height == (NORTH - SOUTH) * scale

    def opacity(latitude, longitude):
        return land.getpixel((int((longitude + 180) * scale), int((NORTH - latitude) * scale)))[3]

    assert opacity(48.9, 2.4) > 0 and opacity(-25, 134) > 0
    assert opacity(30, -40) == 0 and opacity(-40, -120) == 0


def test_a_marker_per_cell_and_a_label_over_it(paris_and_sydney):
    europe, oceania = paris_and_sydney.stages
    assert (europe.n_images, oceania.n_images) == (10, 4)
    assert (europe.path.count("M"), oceania.path.count("M")) == (2, 1)
    assert europe.shape != oceania.shape
    over_paris, over_sydney = paris_and_sydney.labels
    assert over_paris.stage == 0 and over_paris.x == pytest.approx(182.4) and over_paris.y < NORTH - 49.9
    assert over_sydney.stage == 1 and over_sydney.x == pytest.approx(331.2)


def test_many_cells_are_joined_and_no_image_is_lost():
    rng = np.random.default_rng(0)
    n = 6_000
    rows = zip(np.zeros(n), rng.uniform(-50, 80, n), rng.uniform(-180, 180, n), np.ones(n), strict=True)
    (stage,) = world_map(places(rows)).stages
    assert MAX_MARKERS / 8 < stage.path.count("M") <= MAX_MARKERS
    assert stage.n_images == n


def test_a_stage_beyond_the_map_has_no_marker():
    assert world_map(places([(0, -80.0, 0.0, 5)])).stages == ()
