"""The continent of a coordinate."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from igcd.data.geography import CONTINENTS, NO_CONTINENT, continent_map, continent_of

PLACES = {
    "Paris": (48.8566, 2.3522, "Europe"),
    "Nairobi": (-1.2864, 36.8172, "Africa"),
    "Sydney": (-33.8688, 151.2093, "Oceania"),
    "Lima": (-12.0464, -77.0428, "South America"),
    "Tokyo": (35.6762, 139.6503, "Asia"),
    "Istanbul, Hagia Sophia": (41.0086, 28.9802, "Europe"),
    "Istanbul, Ortaköy": (41.0479, 29.0269, "Europe"),
    "Istanbul, Rumeli Hisarı": (41.0849, 29.0558, "Europe"),
    "Istanbul, Üsküdar": (41.0236, 29.0152, "Asia"),
    "Istanbul, Kadıköy": (40.9900, 29.0270, "Asia"),
    "Istanbul, Kandilli": (41.0745, 29.0590, "Asia"),
    "Çanakkale": (40.1550, 26.4140, "Asia"),
    "Eceabat": (40.1840, 26.3570, "Europe"),
    "Cayenne": (4.9224, -52.3135, "South America"),
    "Ponta Delgada": (37.7412, -25.6756, "Europe"),
    "Saint-Denis de la Réunion": (-20.8823, 55.4504, "Africa"),
    "Las Palmas": (28.1235, -15.4363, "Africa"),
    "Funchal": (32.6669, -16.9241, "Africa"),
    "Ceuta": (35.8894, -5.3213, "Africa"),
    "Gibraltar": (36.1408, -5.3536, "Europe"),
    "Fort-de-France": (14.6161, -61.0588, "North America"),
    "Honolulu": (21.3069, -157.8583, "Oceania"),
    "Anchorage": (61.2181, -149.9003, "North America"),
    "Nuuk": (64.1835, -51.7216, "North America"),
    "Greenland's ice": (72.58, -38.46, "North America"),
    "Reykjavík": (64.1466, -21.9426, "Europe"),
    "Longyearbyen": (78.2232, 15.6267, "Europe"),
    "Nicosia": (35.1856, 33.3823, "Asia"),
    "Tbilisi": (41.7151, 44.8271, "Asia"),
    "Sochi": (43.6028, 39.7342, "Europe"),
    "Perm": (58.0105, 56.2502, "Europe"),
    "Yekaterinburg": (56.8389, 60.6057, "Asia"),
    "Vladivostok": (43.1198, 131.8869, "Asia"),
    "Uelen, beyond 180°": (66.1594, -169.8093, "Asia"),
    "Oral, west of the Ural river": (51.2333, 51.3667, "Europe"),
    "Almaty": (43.2220, 76.8512, "Asia"),
    "Cairo": (30.0444, 31.2357, "Africa"),
    "Sharm el-Sheikh": (27.9158, 34.3300, "Asia"),
    "Panama City": (8.9824, -79.5199, "North America"),
    "Medellín": (6.2442, -75.5812, "South America"),
    "Jayapura": (-2.5337, 140.7181, "Oceania"),
    "Ambon": (-3.6954, 128.1814, "Asia"),
    "Hanga Roa, Easter Island": (-27.1500, -109.4333, "Oceania"),
    "Galápagos": (-0.7439, -90.3139, "South America"),
    "Adamstown, Pitcairn": (-25.0667, -130.1000, "Oceania"),
    "Nauru": (-0.5228, 166.9315, "Oceania"),
    "Malé": (4.1755, 73.5093, "Asia"),
    "Kastellorizo": (36.1500, 29.5900, "Europe"),
    "Nukunonu, Tokelau": (-9.2000, -171.8500, "Oceania"),
    "Tristan da Cunha": (-37.0676, -12.3116, "Africa"),
    "Stanley": (-51.6977, -57.8517, "South America"),
    "Suva": (-18.1416, 178.4419, "Oceania"),
    "McMurdo": (-77.8419, 166.6863, "Antarctica"),
    "South Pole": (-90.0, 0.0, "Antarctica"),
    "8 km off Nice": (43.63, 7.32, "Europe"),
    "20 km off Lisbon": (38.70, -9.70, "Europe"),
}
NOWHERE = {
    "middle of the Atlantic": (30.0, -40.0),
    "90 km off Lisbon": (38.7, -10.6),
    "Null Island": (0.0, 0.0),
    "North Pole": (90.0, 0.0),
    "South Pacific": (-48.9, -123.4),
    "latitude 95": (95.0, 10.0),
    "longitude 200": (10.0, 200.0),
    "no latitude": (float("nan"), 10.0),
    "infinite": (float("inf"), float("-inf")),
}


@pytest.mark.parametrize("place", PLACES)
def test_places_are_on_their_continent(place: str):
    latitude, longitude, continent = PLACES[place]
    assert CONTINENTS[continent_of([latitude], [longitude])[0]] == continent


@pytest.mark.parametrize("place", NOWHERE)
def test_open_ocean_and_impossible_coordinates_have_no_continent(place: str):
    latitude, longitude = NOWHERE[place]
    assert continent_of([latitude], [longitude])[0] == NO_CONTINENT


def test_many_points_at_once_agree_with_one_at_a_time():
    rng = np.random.default_rng(0)
    latitude, longitude = rng.uniform(-90, 90, 300), rng.uniform(-180, 180, 300)
    one_at_a_time = [int(continent_of([lat], [lon])[0]) for lat, lon in zip(latitude, longitude, strict=True)]
    assert continent_of(latitude, longitude).tolist() == one_at_a_time


@given(st.floats(-90, 90))
def test_the_antimeridian_is_one_line(latitude: float):
    assert continent_of([latitude], [180.0]) == continent_of([latitude], [-180.0])


@given(st.floats(), st.floats())
def test_any_two_numbers_have_a_code(latitude: float, longitude: float):
    assert 0 <= continent_of([latitude], [longitude])[0] <= NO_CONTINENT


def test_shares_of_the_surface_are_those_of_the_earth():
    """Areas from any atlas, in percent of the Earth's surface; ours are larger by a belt of 30 km along the coasts."""
    land = {"Africa": 5.9, "Asia": 8.7, "Europe": 2.0, "North America": 4.8, "South America": 3.5}
    rng = np.random.default_rng(0)
    points = np.degrees(np.arcsin(rng.uniform(-1, 1, 200_000))), rng.uniform(-180, 180, 200_000)
    share = np.bincount(continent_of(*points), minlength=8) / 2_000
    for continent, percent in land.items():
        assert percent * 0.97 < share[CONTINENTS.index(continent)] < percent * 1.35, continent


def test_the_map_is_north_up():
    world = continent_map(1)
    assert world.shape == (180, 360)
    assert CONTINENTS[world[90 - 49, 180 + 2]] == "Europe"
    assert CONTINENTS[world[179, 0]] == "Antarctica"
