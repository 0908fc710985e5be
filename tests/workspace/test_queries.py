import numpy as np
import pytest
from workspace.sample_catalog import sample_workspace

from igcd.errors import IgcdError
from igcd.workspace import decisions, queries
from igcd.workspace.catalog import open_catalog
from igcd.workspace.photo_map import UNSURE, photo_map
from igcd.workspace.undo import undo

FOX, OWL, HARE, MOLE = 1, 2, 3, 4


@pytest.fixture
def sample(tmp_path):
    photo_ids = sample_workspace(tmp_path, known={"owl": 3, "fox": 2}, novel={"hare": 6, "mole": 4}, n_unsure=2)
    with open_catalog(tmp_path / "ws") as catalog:
        yield catalog, photo_ids


def test_the_queue_has_larger_and_less_certain_categories_first(sample):
    catalog, photo_ids = sample
    assert [category.id for category in queries.queue(catalog)] == [HARE, MOLE]
    (hare, _) = queries.queue(catalog)
    expected = sum(2 - photo.probability for photo in queries.photos(catalog, photo_ids["hare"]))
    assert hare.helpfulness == pytest.approx(expected)
    with catalog.transaction() as db:  # the same number of photos, less certain
        db.execute("DELETE FROM assignments WHERE photo IN (?, ?)", photo_ids["hare"][:2])
        db.execute("UPDATE assignments SET probability = 0.1 WHERE category = ?", (MOLE,))
    assert [category.id for category in queries.queue(catalog)] == [MOLE, HARE]


def test_figures_of_categories_are_sums_over_their_photos(sample):
    catalog, photo_ids = sample
    decisions.move(catalog, photo_ids["hare"][:2], MOLE, author="ann")  # which confirms them
    for category in queries.categories(catalog):
        photos = queries.photos_of(catalog, category.id).photos
        guessed = [photo.probability for photo in photos if not photo.is_confirmed]
        assert (category.n_photos, category.n_confirmed) == (len(photos), len(photos) - len(guessed))
        assert category.mean_probability == (pytest.approx(np.mean(guessed)) if guessed else None)
        assert category.helpfulness == pytest.approx(sum(2 - photo.probability for photo in photos))
        assert category.cover == photos[0].id
        assert queries.category(catalog, category.id) == category


def test_an_empty_category_is_not_in_the_queue(sample):
    catalog, photo_ids = sample
    decisions.move(catalog, photo_ids["mole"], OWL, author="ann")
    assert [category.id for category in queries.queue(catalog)] == [HARE]
    assert queries.status(catalog).n_to_review == 1


def test_pages_of_photos_make_up_the_whole(sample):
    catalog, photo_ids = sample
    whole = queries.photos_of(catalog, HARE)
    assert [photo.id for photo in whole.photos] == photo_ids["hare"] == queries.photo_ids_of(catalog, HARE)
    pages = [queries.photos_of(catalog, HARE, offset=start, limit=4) for start in (0, 4)]
    assert [photo for page in pages for photo in page.photos] == list(whole.photos)
    assert {page.n_photos for page in pages} == {6}
    assert queries.photos_of(catalog, HARE, offset=100).photos == []
    assert [photo.id for photo in queries.photos_of(catalog, None).photos] == photo_ids["unsure"]


def test_a_photo_tells_where_it_comes_from(sample):
    catalog, photo_ids = sample
    photo = queries.photos(catalog, photo_ids["hare"][:1])[0]
    assert photo.path == "unlabeled/hare-0000.png" and (photo.width, photo.height) == (24, 24)
    assert photo.is_peak and not photo.is_confirmed and photo.category == HARE


def test_low_confidence_is_of_known_categories_and_unconfirmed(sample):
    catalog, photo_ids = sample
    page = queries.low_confidence(catalog)
    new_of_known = {*photo_ids["owl"][3:], *photo_ids["fox"][2:]}
    assert {photo.id for photo in page.photos} == new_of_known and page.n_photos == 4
    probabilities = [photo.probability for photo in page.photos]
    assert probabilities == sorted(probabilities)
    assert queries.low_confidence(catalog, max_probability=0.8).n_photos == 2
    decisions.move(catalog, [page.photos[0].id], page.photos[0].category, author="ann")  # yes, it is
    assert page.photos[0].id not in {photo.id for photo in queries.low_confidence(catalog).photos}


def test_photos_wait_whether_they_are_new_or_old(sample):
    catalog, photo_ids = sample
    assert sum(stage.n_waiting for stage in queries.status(catalog).stages) == 0
    with catalog.transaction() as db:
        db.execute("DELETE FROM assignments WHERE photo = (SELECT MAX(id) FROM photos)")
    assert [stage.n_waiting for stage in queries.status(catalog).stages][-1] == 1
    with catalog.transaction() as db:
        db.execute("DELETE FROM assignments WHERE photo = ?", (photo_ids["hare"][0],))
        stages = [
            row["stage"]
            for row in db.execute("SELECT stage FROM photos WHERE id NOT IN (SELECT photo FROM assignments)")
        ]
    waiting = {stage.stage: stage.n_waiting for stage in queries.status(catalog).stages if stage.n_waiting}
    assert waiting == {stage: stages.count(stage) for stage in stages}
    with catalog.transaction() as db:
        db.execute("UPDATE photos SET broken = 'torn' WHERE id = (SELECT MAX(id) FROM photos)")
    assert sum(stage.n_waiting for stage in queries.status(catalog).stages) == 1


def test_nearest_known_follows_merges(sample):
    catalog, _ = sample
    assert [near.category.id for near in queries.nearest_known(catalog, HARE)] == [OWL, FOX]
    decisions.merge(catalog, OWL, FOX, author="ann")
    (only,) = queries.nearest_known(catalog, HARE, n_photos=3)
    assert only.category.id == FOX and only.similarity == 0.9 and len(only.photos) == 3


def test_the_map_has_every_photo(sample):
    catalog, photo_ids = sample
    placed = photo_map(catalog)
    assert sorted(placed.photo_ids.tolist()) == sorted(photo for ids in photo_ids.values() for photo in ids)
    category_of = dict(zip(placed.photo_ids.tolist(), placed.category_ids.tolist(), strict=True))
    assert {category_of[photo] for photo in photo_ids["unsure"]} == {UNSURE}
    assert placed.xy.shape == (len(category_of), 2) and placed.xy.dtype == np.float64
    assert sorted(set(placed.kinds.tolist())) == [0, 2, 3]  # labeled, guessed and of no category
    assert (placed.kinds[placed.is_confirmed] == 0).all()


def test_status_counts(sample):
    catalog, _ = sample
    status = queries.status(catalog)
    assert (status.n_photos, status.n_labels, status.n_unsure) == (21, 5, 2)
    assert (status.n_known, status.n_to_review, status.n_accepted, status.n_decisions) == (2, 2, 0, 0)


def tallies_are_true(catalog):
    """Whether what triggers have kept is what counting gives."""
    with catalog.snapshot() as db:
        kept = [dict(row) for row in db.execute("SELECT * FROM tallies ORDER BY stage")]
        names = [name for name in kept[0] if name != "stage"]
        sums = ", ".join(f"COALESCE(SUM({name}), 0) AS {name}" for name in names)
        counted = db.execute(
            f"SELECT s.stage, {sums} FROM stages s LEFT JOIN tallied t ON t.stage = s.stage GROUP BY s.stage"
        )
        return kept == [dict(row) for row in counted]


def test_tallies_follow_whatever_is_decided_and_undone(sample):
    catalog, photo_ids = sample
    assert tallies_are_true(catalog)
    steps = [
        lambda: decisions.split(catalog, photo_ids["hare"][:2], author="ann"),
        lambda: decisions.name(catalog, HARE, "hare", author="ann"),
        lambda: decisions.merge(catalog, HARE, OWL, author="ann"),
        lambda: decisions.move(catalog, photo_ids["unsure"][:1], FOX, author="ann"),
        lambda: decisions.move(catalog, photo_ids["fox"][:1], OWL, author="ann"),  # a given label is one no longer
        lambda: undo(catalog, author="ann"),
        lambda: undo(catalog, author="ann"),
        lambda: undo(catalog, author="ann"),
    ]
    for step in steps:
        step()
        assert tallies_are_true(catalog)


def test_tallies_follow_photos_that_move_break_and_go(sample):
    catalog, photo_ids = sample
    photo, labeled = photo_ids["hare"][0], photo_ids["fox"][0]
    upsert = (
        "INSERT INTO assignments (photo, stage, category, probability, typicality) VALUES ({photo}, 0, NULL, 1.0, 1.0) "
        "ON CONFLICT (photo) DO UPDATE SET category = excluded.category"
    )
    statements = [
        "INSERT INTO stages (stage, state, opened) VALUES (7, 'open', 'now')",
        f"UPDATE photos SET stage = 7 WHERE id IN ({photo}, {labeled})",
        upsert.format(photo=photo),
        f"DELETE FROM assignments WHERE photo = {photo}",
        f"UPDATE photos SET broken = 'torn' WHERE id = {photo}",
        f"UPDATE photos SET broken = NULL, near_duplicate_of = {labeled} WHERE id = {photo}",
        upsert.format(photo=photo),
        f"UPDATE assignments SET is_confirmed = 0 WHERE photo = {labeled}",
        f"DELETE FROM labels WHERE photo = {labeled}",
        f"DELETE FROM photos WHERE id = {photo}",
        "UPDATE photos SET stage = 0 WHERE stage = 7",
        "DELETE FROM stages WHERE stage = 7",
    ]
    for statement in statements:
        with catalog.transaction() as db:
            db.execute(statement)
        assert tallies_are_true(catalog), statement


def test_what_does_not_exist(sample):
    with pytest.raises(IgcdError, match="no category 99"):
        queries.category(sample[0], 99)
    assert queries.photos(sample[0], [999]) == []


def test_reading_a_category_asks_the_index_and_nothing_per_photo(sample):
    """However many photos a category has, a page of it is three statements."""
    catalog, _ = sample
    statements = []
    with catalog.snapshot() as db:
        db.set_trace_callback(statements.append)
        queries.photos_of(catalog, HARE, limit=3)
        few = len(statements)
        queries.photos_of(catalog, HARE, limit=6)
        db.set_trace_callback(None)
        assert len(statements) == 2 * few <= 6
        plan = db.execute(
            "EXPLAIN QUERY PLAN SELECT photo FROM assignments WHERE category IS 3 "
            "ORDER BY is_peak DESC, typicality DESC, photo LIMIT 10"
        ).fetchall()
    assert "assignments_by_category" in plan[0]["detail"] and len(plan) == 1  # no sorting step


def test_a_photo_on_the_map_is_where_its_last_stage_put_it(sample):
    catalog, photo_ids = sample
    moved, forgotten = photo_ids["unsure"][0], photo_ids["unsure"][1]
    with catalog.transaction() as db:
        db.execute("INSERT INTO stages (stage, state, opened) VALUES (1, 'discovered', 'now')")
        db.execute("INSERT INTO places VALUES (1, ?, 0.25, 0.75)", (moved,))
        db.execute("DELETE FROM assignments WHERE photo = ?", (forgotten,))
        slow = {}  # twin: a plain loop
        for row in db.execute("SELECT stage, photo, x, y FROM places ORDER BY stage"):
            slow[row["photo"]] = (row["x"], row["y"])
    placed = photo_map(catalog)
    assert dict(zip(placed.photo_ids.tolist(), map(tuple, placed.xy.tolist()), strict=True)) == slow
    assert slow[moved] == (0.25, 0.75) and placed.is_landmark.all()  # none was taken in the last stage
    at = placed.photo_ids.tolist().index(forgotten)
    assert placed.category_ids[at] == UNSURE and placed.kinds[at] == 3 and not placed.is_confirmed[at]
