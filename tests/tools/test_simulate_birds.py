"""The figures of the simulated person, counted by hand."""

from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the review page needs the extra `review`")
pytest.importorskip("httpx", reason="the routes are asked with httpx")

TOOLS = Path(__file__).parents[2] / "tools"
TRUTH = {"a": "owl", "b": "owl", "c": "crow", "d": "crow", "e": "wren", "f": "wren"}


@pytest.fixture
def birds(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))  # it is a script beside those it uses
    import simulate_birds

    return simulate_birds


def test_named_categories_count_by_name_and_others_by_the_best_matching(birds):
    now = birds.Assigned({"a": 1, "b": 2, "c": 2, "d": 2, "e": 3, "f": None}, {1: "owl", 2: None, 3: None})
    stems = set(TRUTH)
    # Named: a. Without a name: 2 holds two crows (the owl has a name already), 3 a wren.
    assert birds.right_share(now, TRUTH, stems, matched=True) == pytest.approx(4 / 6)
    assert birds.right_share(now, TRUTH, stems, matched=False) == pytest.approx(1 / 6)
    assert birds.found_species(now, TRUTH, stems) == {"crow", "wren"}


def test_a_photo_under_another_name_is_wrong(birds):
    now = birds.Assigned({"a": 1, "c": 1}, {1: "owl"})
    assert birds.right_share(now, TRUTH, {"a", "c"}, matched=True) == 0.5


def test_photos_are_dealt_out_as_the_scene_says(birds, tmp_path):
    photos = {
        f"species {number}": [lambda path: path.write_bytes(b"a photo")] * birds.N_PER_SPECIES
        for number in range(birds.N_SPECIES)
    }
    birds.write_photos(photos, tmp_path, seed=1)
    n_in = {
        name: len(list((tmp_path / "photos" / name).rglob("*.jpg")))
        for name in ("known", "known3", "batch1", "batch2", "all")
    }
    assert n_in == {"known": 600, "known3": 90, "batch1": 360, "batch2": 360, "all": 1320}
    labeled = {path.stem for path in (tmp_path / "photos" / "known").rglob("*.jpg")}
    assert {path.stem for path in (tmp_path / "photos" / "known3").rglob("*.jpg")} < labeled
    batches = [{path.stem for path in (tmp_path / "photos" / f"batch{n}").iterdir()} for n in (1, 2)]
    assert not batches[0] & batches[1] and not (batches[0] | batches[1]) & labeled
