"""The person's loop on painted photos: what is known, what is new, names, and what the next stage makes of them."""

from collections import Counter

import numpy as np
import pytest
from workspace.painted_photos import PatternEncoder, paint, paint_categories

from igcd.errors import IgcdError
from igcd.workspace import decisions, queries
from igcd.workspace.accept import accept_stage
from igcd.workspace.catalog import ConflictError, open_catalog
from igcd.workspace.discover import discover
from igcd.workspace.init import init_workspace
from igcd.workspace.photo_map import photo_map
from igcd.workspace.photos import add_photos
from igcd.workspace.undo import undo

KNOWN = {"ash": (0, range(12)), "beech": (1, range(12)), "cedar": (2, range(12))}


@pytest.fixture
def encoder():
    return PatternEncoder()


@pytest.fixture
def workspace(tmp_path):
    """Three labeled categories; unlabeled photos of two of them, of two new ones, and one of nothing."""
    images = tmp_path / "photos"
    paint_categories(images, KNOWN)
    unlabeled = {"ash": (0, range(12, 18)), "beech": (1, range(12, 18))}
    unlabeled |= {"new-a": (7, range(14)), "new-b": (8, range(10))}
    for category, numbers in unlabeled.values():
        for number in numbers:
            paint(images / "unlabeled" / f"{category}-{number}.jpg", category, number)
    paint(images / "unlabeled" / "99-0.jpg", 99, 0)
    init_workspace(tmp_path / "ws", images, from_folders=True)
    with open_catalog(tmp_path / "ws") as catalog:
        yield catalog


def truth_of(photo):
    """The category a photo was painted as, from its name."""
    return int(photo.path.rsplit("/", 1)[-1].partition("-")[0])


def novel(catalog):
    """The categories to review by what they mostly are."""
    found = {}
    for category in queries.queue(catalog):
        kinds = Counter(truth_of(photo) for photo in queries.photos_of(catalog, category.id).photos)
        found[kinds.most_common(1)[0][0]] = category.id
    return found


def test_known_new_and_unsure_photos_are_told_apart(workspace, encoder):
    report = discover(workspace, encoder)
    assert report.sentence() == (
        "37 new photos: about 12 are very likely of your 3 categories, 2 new categories with 24 photos, 1 needs a look."
    )
    assert report.n_labeled == 36
    categories = {category.name: category for category in queries.categories(workspace)}
    for name in ("ash", "beech"):
        assert {truth_of(p) for p in queries.photos_of(workspace, categories[name].id).photos} == {KNOWN[name][0]}
    found = novel(workspace)
    assert set(found) == {7, 8}
    for kind, category_id in found.items():
        page = queries.photos_of(workspace, category_id)
        assert {truth_of(photo) for photo in page.photos} == {kind}
        assert page.photos[0].is_peak and sum(photo.is_peak for photo in page.photos) == 1
        typicality = [photo.typicality for photo in page.photos[1:]]
        assert typicality == sorted(typicality, reverse=True)
    assert [truth_of(photo) for photo in queries.photos_of(workspace, None).photos] == [99]
    assert queries.queue(workspace)[0].n_photos == 14  # the larger one helps more


def test_the_sentence_is_kept_and_everything_is_on_the_map(workspace, encoder):
    report = discover(workspace, encoder)
    (stage,) = queries.status(workspace).stages
    assert (stage.state, stage.summary, stage.n_waiting) == ("discovered", report.sentence(), 0)
    placed = photo_map(workspace)
    assert len(placed.photo_ids) == 73 and not placed.is_landmark.any()
    assert placed.xy.min() >= 0 and placed.xy.max() <= 1
    own = placed.category_ids == novel(workspace)[7]
    spread = np.linalg.norm(placed.xy[own] - placed.xy[own].mean(axis=0), axis=1).max()
    away = np.linalg.norm(placed.xy[~own] - placed.xy[own].mean(axis=0), axis=1).min()
    assert spread < away  # alike photos stand together


def test_new_photos_join_the_map_without_moving_the_old(workspace, encoder, tmp_path):
    discover(workspace, encoder)
    before = photo_map(workspace)
    paint_categories(tmp_path / "more", {"x": (7, range(20, 24))})
    add_photos(workspace, [tmp_path / "more"])
    discover(workspace, encoder)
    after = photo_map(workspace)
    assert after.photo_ids[:73].tolist() == before.photo_ids.tolist() and len(after.photo_ids) == 77
    assert np.array_equal(after.xy[:73], before.xy)
    own = after.xy[:73][before.category_ids == novel(workspace)[7]]
    for place in after.xy[73:]:  # among those of their kind
        assert np.linalg.norm(own - place, axis=1).min() < 0.1


def test_nearest_known_categories_come_with_photos(workspace, encoder):
    discover(workspace, encoder)
    near = queries.nearest_known(workspace, novel(workspace)[7], n_photos=4)
    assert {entry.category.name for entry in near} == {"ash", "beech", "cedar"}
    similarity = [entry.similarity for entry in near]
    assert similarity == sorted(similarity, reverse=True)
    assert all(len(entry.photos) == 4 for entry in near)


def test_only_new_photos_are_embedded(workspace, encoder, tmp_path):
    discover(workspace, encoder)
    assert encoder.n_seen == 73
    assert discover(workspace, encoder).sentence() == "no new photos; add some first."
    paint_categories(tmp_path / "more", {"x": (0, range(30, 34))})
    add_photos(workspace, [tmp_path / "more"])
    assert discover(workspace, encoder).sentence() == (
        "4 new photos, 37 more that you have not confirmed were decided again: about 16 are very likely of your 3 "
        "categories, 2 new categories with 24 photos, 1 needs a look."
    )
    assert encoder.n_seen == 77


def test_three_stages_keep_ids_and_names(workspace, encoder, tmp_path):
    discover(workspace, encoder)
    first = novel(workspace)
    decisions.name(workspace, first[7], "Fagus/Fagus sylvatica", author="ann")
    closed = accept_stage(workspace, author="ann")
    assert closed.payload["n_labels"] == 14 and closed.payload["categories"] == [first[7]]

    paint_categories(tmp_path / "june", {"x": (7, range(20, 26)), "y": (8, range(20, 26)), "z": (9, range(12))})
    add_photos(workspace, [tmp_path / "june"])
    assert queries.status(workspace).stages[1].state == "open"
    report = discover(workspace, encoder)
    assert (report.n_new, report.n_novel) == (24, 2) and report.n_known <= 2 and report.n_unsure <= 4
    second = novel(workspace)
    assert second[8] == first[8]  # nobody has named it; later photos extend it
    assert queries.category(workspace, first[8]).n_photos > 12
    assert second[9] > max(first.values())
    decisions.merge(workspace, second[8], second[9], author="ann")
    decisions.name(workspace, second[9], "oak", author="ann")
    accept_stage(workspace, author="ann")

    paint_categories(tmp_path / "july", {"x": (7, range(40, 44)), "y": (8, range(40, 44)), "z": (9, range(40, 44))})
    add_photos(workspace, [tmp_path / "july"])
    report = discover(workspace, encoder)
    assert (report.n_new, report.n_novel) == (12, 0) and report.n_known <= 3 and report.n_unsure <= 3
    assert queries.category(workspace, first[7]).name == "Fagus/Fagus sylvatica"
    assert queries.category(workspace, first[7]).n_photos >= 20
    merged = {truth_of(photo) for photo in queries.photos_of(workspace, second[9]).photos}
    assert merged == {8, 9}
    landmarks = photo_map(workspace).is_landmark
    assert landmarks.sum() > 0 and (~landmarks).sum() == 12


def test_what_is_not_confirmed_is_decided_anew_and_ids_stay(workspace, encoder):
    discover(workspace, encoder)
    found = novel(workspace)
    of_7 = queries.photo_ids_of(workspace, found[7])
    beech = next(category.id for category in queries.categories(workspace) if category.name == "beech")
    with workspace.transaction() as db:  # a discovery that was wrong about some photos
        db.execute("UPDATE assignments SET category = ? WHERE photo IN (?, ?)", (beech, *of_7[:2]))
    decisions.name(workspace, found[8], "elm", author="ann")
    photos = queries.photos_of(workspace, beech).photos
    own = [photo.id for photo in photos if truth_of(photo) == 1 and photo.path.startswith("unlabeled/")]
    decisions.move(workspace, own[-1:], beech, author="ann")  # only what was moved is confirmed, not all it is with
    report = discover(workspace, encoder)
    assert (report.n_new, report.n_anew) == (0, 26) and report.sentence().startswith("26 photos that you have not")
    assert novel(workspace) == {7: found[7]}  # the same category, with the photos it had lost
    assert set(queries.photo_ids_of(workspace, found[7])) == set(of_7)
    assert queries.category(workspace, found[8]).n_confirmed == 10
    assert discover(workspace, encoder).n_anew == 0  # nothing has changed since


def test_what_a_person_split_off_without_a_name_is_not_taken_apart(workspace, encoder):
    discover(workspace, encoder)
    of_7 = queries.photo_ids_of(workspace, novel(workspace)[7])
    new_id = decisions.split(workspace, of_7[:5], author="ann").payload["new"]
    discover(workspace, encoder)
    assert set(of_7[:5]) <= set(queries.photo_ids_of(workspace, new_id))


def test_finer_and_coarser(workspace, encoder):
    counts = {granularity: discover(workspace, encoder, granularity=granularity).n_novel for granularity in (0, 2, -3)}
    assert counts[2] >= counts[0] == 2 >= counts[-3]
    with workspace.snapshot() as db:
        assert queries.setting(db, "granularity") == -3
    assert discover(workspace, encoder).n_anew == 0  # as the last time


def test_an_encoder_of_another_size_computes_features_again_and_loses_nothing(workspace, encoder):
    discover(workspace, encoder)
    found = novel(workspace)
    decisions.name(workspace, found[7], "elm", author="ann")
    larger = PatternEncoder()
    larger.key = "larger"
    report = discover(workspace, larger)
    assert larger.n_seen == 73 and report.n_anew == 23
    assert queries.category(workspace, found[7]).n_confirmed == 14 and novel(workspace) == {8: found[8]}
    assert accept_stage(workspace, author="ann").payload["n_labels"] == 14


def test_what_helps_a_person_is_written_down(workspace, encoder):
    discover(workspace, encoder)
    odd = queries.photo_ids_of(workspace, None)
    with workspace.snapshot() as db:
        looks = {row["photo"]: row["look"] for row in db.execute("SELECT * FROM looks")}
        rows = db.execute("SELECT * FROM alternatives WHERE photo = ? ORDER BY place", (odd[0],)).fetchall()
    assert looks == dict.fromkeys(odd, 0)
    assert len(rows) == 3 and [row["probability"] for row in rows] == sorted(
        (row["probability"] for row in rows), reverse=True
    )


def test_what_was_rejected_is_not_found_again(workspace, encoder, tmp_path):
    discover(workspace, encoder)
    gone = novel(workspace)[8]
    decisions.reject(workspace, gone, author="ann")
    paint_categories(tmp_path / "more", {"x": (8, range(20, 32))})
    add_photos(workspace, [tmp_path / "more"])
    report = discover(workspace, encoder)
    assert report.n_new == 12 and set(novel(workspace)) == {7} and report.n_unsure > 8
    undo(workspace, author="ann")
    assert queries.category(workspace, gone).n_photos == 10


def test_a_split_category_stays_split(workspace, encoder, tmp_path):
    discover(workspace, encoder)
    found = novel(workspace)
    joined = decisions.merge(workspace, found[8], found[7], author="ann")
    of_8 = [p.id for p in queries.photos_of(workspace, found[7]).photos if truth_of(p) == 8]
    new_id = decisions.split(workspace, of_8, name="elm", author="ann").payload["new"]
    paint_categories(tmp_path / "more", {"x": (8, range(20, 24))})
    add_photos(workspace, [tmp_path / "more"])
    discover(workspace, encoder)
    assert queries.category(workspace, new_id).n_photos >= 13
    assert joined.payload["into"] == found[7]
    own = {photo.id for photo in queries.photos_of(workspace, found[7]).photos if truth_of(photo) == 7}
    assert len(own) == 14 and queries.category(workspace, found[7]).n_photos <= 15  # the odd one may join it


def test_photos_a_person_is_unsure_of_are_left_alone(workspace, encoder, tmp_path):
    discover(workspace, encoder)
    photo = queries.photos_of(workspace, novel(workspace)[7]).photos[3]
    decisions.set_unsure(workspace, [photo.id], author="ann")
    paint_categories(tmp_path / "more", {"x": (7, range(20, 24))})
    add_photos(workspace, [tmp_path / "more"])
    discover(workspace, encoder)
    assert queries.photos(workspace, [photo.id])[0].category is None


def test_near_duplicates_are_grouped_and_go_together(workspace, encoder, tmp_path):
    from PIL import Image

    source = tmp_path / "photos" / "unlabeled" / "7-3.jpg"
    labeled = tmp_path / "photos" / "ash" / "00-000.jpg"
    (tmp_path / "copies").mkdir()
    for name, original in (("7-copy.jpg", source), ("0-copy.jpg", labeled)):
        Image.open(original).resize((80, 80)).save(tmp_path / "copies" / name, quality=80)
    add_photos(workspace, [tmp_path / "copies"])
    report = discover(workspace, encoder)
    assert report.n_near_duplicates == 2 and report.n_new == 39
    with workspace.snapshot() as db:
        rows = db.execute(
            "SELECT pp.path, p.near_duplicate_of, first.path AS first, a.category FROM photos p "
            "JOIN photo_paths pp ON pp.photo = p.id JOIN photo_paths first ON first.photo = p.near_duplicate_of "
            "JOIN assignments a ON a.photo = p.id"
        ).fetchall()
    first_of = {row["path"]: row["first"] for row in rows}
    assert first_of == {"7-copy.jpg": "unlabeled/7-3.jpg", "0-copy.jpg": "ash/00-000.jpg"}
    category_of = {row["path"]: row["category"] for row in rows}
    assert category_of["7-copy.jpg"] == novel(workspace)[7]
    assert queries.category(workspace, category_of["0-copy.jpg"]).name == "ash"


def test_without_labels_everything_is_new(tmp_path, encoder):
    paint_categories(tmp_path / "photos", {"x": (3, range(30)), "y": (4, range(30))})
    init_workspace(tmp_path / "ws", tmp_path / "photos")
    with open_catalog(tmp_path / "ws") as catalog:
        report = discover(catalog, encoder)
        assert report.n_new == 60 and report.n_recognized == 0 and report.n_in_novel + report.n_unsure == 60
        assert set(novel(catalog)) == {3, 4}


def test_labels_alone(tmp_path, encoder):
    paint_categories(tmp_path / "photos", KNOWN)
    init_workspace(tmp_path / "ws", tmp_path / "photos", from_folders=True)
    with open_catalog(tmp_path / "ws") as catalog:
        assert discover(catalog, encoder).sentence() == "no new photos; 36 labeled ones were looked at."
        assert accept_stage(catalog, author="ann").payload["n_labels"] == 0


def test_one_photo(tmp_path, encoder):
    paint(tmp_path / "photos" / "a.jpg", 0, 0)
    init_workspace(tmp_path / "ws", tmp_path / "photos")
    with open_catalog(tmp_path / "ws") as catalog:
        assert discover(catalog, encoder).sentence() == "1 new photo: no new category, 1 needs a look."


def test_a_broken_photo_is_set_aside_and_said(workspace, encoder, tmp_path):
    whole = (tmp_path / "photos" / "ash" / "00-000.jpg").read_bytes()
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "half.jpg").write_bytes(whole[: len(whole) // 2])
    add_photos(workspace, [tmp_path / "more"])
    report = discover(workspace, encoder)
    assert report.broken == {"truncated": 1} and report.sentence().endswith("1 set aside: truncated 1.")
    assert queries.broken_photos(workspace) == [(str(tmp_path / "more" / "half.jpg"), "truncated")]
    assert queries.status(workspace).stages[0].n_waiting == 0


def test_a_file_that_changed_since_it_was_added_is_set_aside(workspace, encoder, tmp_path):
    paint(tmp_path / "photos" / "unlabeled" / "7-3.jpg", 5, 5)
    report = discover(workspace, encoder)
    assert report.broken == {"the file has changed since it was added; add it again": 1}
    add_photos(workspace, [tmp_path / "photos"])
    assert discover(workspace, encoder).n_new == 1


def test_a_touched_file_is_the_same_photo(workspace, encoder, tmp_path):
    (tmp_path / "photos" / "unlabeled" / "7-3.jpg").touch()
    assert discover(workspace, encoder).broken == {}


def test_a_decision_made_meanwhile_counts(workspace, encoder, monkeypatch):
    import igcd.workspace.discover as module

    draw, asked = module.lay_out, []

    def decide_while_drawing(features, places):
        if not asked:
            ash = next(c for c in queries.categories(workspace) if c.name == "ash")
            asked.append(decisions.name(workspace, ash.id, "mountain ash", author="bob"))
        return draw(features, places)

    monkeypatch.setattr(module, "lay_out", decide_while_drawing)
    assert discover(workspace, encoder).n_new == 37
    assert encoder.n_seen == 73


def test_decisions_without_end_are_a_conflict(workspace, encoder, monkeypatch):
    import igcd.workspace.discover as module

    draw = module.lay_out

    def rename(features, places):
        ash = queries.categories(workspace)[0]
        decisions.name(workspace, ash.id, f"{ash.name}x", author="bob")
        return draw(features, places)

    monkeypatch.setattr(module, "lay_out", rename)
    with pytest.raises(ConflictError, match="discover again"):
        discover(workspace, encoder)
    assert queries.status(workspace).stages[0].state == "open"


def test_a_stage_is_accepted_once_and_after_discovery(workspace, encoder):
    with pytest.raises(IgcdError, match="37 photos that were not discovered yet"):
        accept_stage(workspace, author="ann")
    discover(workspace, encoder)
    accept_stage(workspace, author="ann")
    with pytest.raises(IgcdError, match="stage 0 is accepted already"):
        accept_stage(workspace, author="ann")


def test_the_replay_buffer_stays_within_its_budget(workspace, encoder):
    discover(workspace, encoder)
    decisions.name(workspace, novel(workspace)[7], "elm", author="ann")
    accept_stage(workspace, author="ann", n_replay=8)
    with workspace.snapshot() as db:
        rows = db.execute("SELECT role, category, COUNT(*) AS n FROM kept GROUP BY role, category").fetchall()
    assert [(row["role"], row["n"]) for row in rows] == [("replay", 8)] * 4  # four known categories


def test_undoing_the_acceptance_opens_the_stage_again(workspace, encoder):
    discover(workspace, encoder)
    decisions.name(workspace, novel(workspace)[7], "elm", author="ann")
    accept_stage(workspace, author="ann")
    undo(workspace, author="ann")
    assert queries.status(workspace).stages[0].state == "discovered"
    with workspace.snapshot() as db:
        assert not db.execute("SELECT 1 FROM kept").fetchall()
        assert not db.execute("SELECT 1 FROM labels WHERE source = 'confirmed'").fetchall()
    assert accept_stage(workspace, author="ann").payload["n_labels"] == 14


def test_the_same_photos_give_the_same_catalog(tmp_path):
    def findings(folder):
        paint_categories(folder / "photos", KNOWN)
        paint_categories(folder / "photos" / "unlabeled", {"a": (7, range(12)), "b": (1, range(20, 24))})
        init_workspace(folder / "ws", folder / "photos", from_folders=True)
        with open_catalog(folder / "ws") as catalog:
            discover(catalog, PatternEncoder())
            with catalog.snapshot() as db:
                rows = db.execute("SELECT * FROM assignments ORDER BY photo").fetchall()
                places = db.execute("SELECT * FROM places ORDER BY photo").fetchall()
            return [tuple(row) for row in rows], [tuple(row) for row in places]

    assert findings(tmp_path / "one") == findings(tmp_path / "two")
