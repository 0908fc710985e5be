import json
from collections import Counter

import pytest
from workspace.sample_catalog import sample_workspace

from igcd.errors import IgcdError
from igcd.types import UNLABELED
from igcd.workspace import decisions, queries
from igcd.workspace.catalog import ConflictError, open_catalog
from igcd.workspace.evidence import gather_evidence
from igcd.workspace.names import parse_name
from igcd.workspace.undo import undo

FOX, OWL, NEW, OTHER = 1, 2, 3, 4


@pytest.fixture
def sample(tmp_path):
    photo_ids = sample_workspace(tmp_path, known={"owl": 3, "fox": 2}, novel={"hare": 6, "mole": 4})
    with open_catalog(tmp_path / "ws") as catalog:
        yield catalog, photo_ids


def state_of(catalog):
    """All that decisions may change, but for versions."""
    with catalog.snapshot() as db:
        tables = {
            table: sorted(map(tuple, db.execute(f"SELECT * FROM {table}")), key=repr)
            for table in ("assignments", "labels", "stages", "nearest")
        }
        tables["categories"] = [
            tuple(row) for row in db.execute("SELECT id, name, parent, state, merged_into, is_deferred FROM categories")
        ]
    return tables


def test_a_name_accepts_a_discovered_category_and_its_photos(sample):
    catalog, photo_ids = sample
    decision = decisions.name(catalog, NEW, "Lepus / Lepus europaeus", author="ann")
    category = queries.category(catalog, NEW)
    assert (category.name, category.parent, category.state) == ("Lepus/Lepus europaeus", "Lepus", "accepted")
    assert category.n_confirmed == category.n_photos == len(photo_ids["hare"])
    assert decision.author == "ann" and decision.versions == {NEW: category.version}
    assert NEW not in [waiting.id for waiting in queries.queue(catalog)]


def test_a_known_category_is_renamed_and_nothing_else(sample):
    catalog, _ = sample
    before = queries.category(catalog, OWL)
    decisions.name(catalog, OWL, "eagle owl", author="ann")
    after = queries.category(catalog, OWL)
    assert after.name == "eagle owl" and (after.state, after.n_confirmed) == ("labeled", before.n_confirmed)


@pytest.mark.parametrize(
    "text", ["", "  ", "a/", "/a", "a\tb", "a\nb", "x" * 201, "\u200b", "owl/\u2060", "\u3164", "\u0301"]
)
def test_bad_names(sample, text):
    with pytest.raises(IgcdError, match="name"):
        decisions.name(sample[0], NEW, text, author="ann")


@pytest.mark.parametrize("text", ["…", "🦉", "梟", "می\u200cخواهم"])
def test_names_that_one_can_see(text):
    assert parse_name(text).full == text


def test_a_name_may_be_any_text(sample):
    decisions.name(sample[0], NEW, "<script>alert(1)</script>; DROP TABLE photos", author="ann")
    assert queries.category(sample[0], NEW).name == "<script>alert(1)</script>; DROP TABLE photos"


def test_two_categories_cannot_have_one_name(sample):
    with pytest.raises(IgcdError, match="category 2 is called 'owl' already; merge"):
        decisions.name(sample[0], NEW, "owl", author="ann")


def test_merging_moves_photos_and_keeps_the_id_as_a_pointer(sample):
    catalog, photo_ids = sample
    n_before = queries.category(catalog, OWL).n_photos
    decisions.merge(catalog, NEW, OWL, author="ann")
    assert queries.category(catalog, NEW).merged_into == OWL
    assert queries.category(catalog, OWL).n_photos == n_before + len(photo_ids["hare"])
    assert all(photo.is_confirmed for photo in queries.photos(catalog, photo_ids["hare"]))
    with pytest.raises(ConflictError, match="merged into 2"):
        decisions.accept_category(catalog, NEW, author="ann")


def test_merging_into_an_open_category_confirms_nothing(sample):
    catalog, photo_ids = sample
    decisions.merge(catalog, NEW, OTHER, author="ann")
    assert not any(photo.is_confirmed for photo in queries.photos(catalog, photo_ids["hare"]))


def test_merging_known_categories_takes_their_labels_along(sample):
    catalog, _ = sample
    decisions.merge(catalog, FOX, OWL, author="ann")
    with catalog.snapshot() as db:
        assert {row["category"] for row in db.execute("SELECT category FROM labels")} == {OWL}


def usable_labels(catalog):
    """Photos with a label that a discovery at the open stage learns from, by category."""
    with catalog.snapshot() as db:
        evidence = gather_evidence(db, 0)
    return Counter(evidence.labels[evidence.labels != UNLABELED].tolist())


def test_a_photo_of_an_earlier_stage_that_is_confirmed_now_is_learned_from(sample):
    """It has no label yet; the labels of its stage count only as far as they are kept."""
    catalog, photo_ids = sample
    decisions.move(catalog, photo_ids["unsure"], FOX, author="ann")
    with catalog.snapshot() as db:
        evidence = gather_evidence(db, 1)
    learned = evidence.labels != UNLABELED
    assert evidence.photo_ids[learned].tolist() == photo_ids["unsure"]
    assert evidence.labels[learned].tolist() == [FOX]


def test_merging_a_labeled_category_into_a_discovered_one_keeps_its_labels_and_name(sample):
    catalog, photo_ids = sample
    assert usable_labels(catalog) == {FOX: 2, OWL: 3}
    decisions.merge(catalog, OWL, NEW, author="ann")
    survivor = queries.category(catalog, NEW)
    assert (survivor.name, survivor.state) == ("owl", "labeled")
    assert usable_labels(catalog) == {FOX: 2, NEW: 3 + len(photo_ids["hare"])}
    assert NEW not in [waiting.id for waiting in queries.queue(catalog)]
    with pytest.raises(IgcdError, match="has labels and cannot be rejected"):
        decisions.reject(catalog, NEW, author="ann")


def test_it_does_not_matter_which_of_two_categories_goes_into_the_other(sample):
    catalog, _ = sample
    states = []
    for gone, into in ((OWL, NEW), (NEW, OWL)):
        decisions.merge(catalog, gone, into, author="ann")
        rows = queries.photos_of(catalog, into).photos
        category = queries.category(catalog, into)
        states.append((category.name, category.state, {photo.id: photo.is_confirmed for photo in rows}))
        undo(catalog, author="ann")
    assert states[0] == states[1]


def test_merging_two_known_categories_confirms_no_guess(sample):
    catalog, _ = sample
    n_confirmed = sum(queries.category(catalog, known).n_confirmed for known in (FOX, OWL))
    decisions.merge(catalog, FOX, OWL, author="ann")
    assert queries.category(catalog, OWL).n_confirmed == n_confirmed


def test_splitting_makes_a_category_with_an_id_of_its_own(sample):
    catalog, photo_ids = sample
    chosen = photo_ids["hare"][2:4]
    decision = decisions.split(catalog, chosen, author="ann")
    new = queries.category(catalog, decision.payload["new"])
    assert new.id == 5 and new.state == "discovered" and new.n_photos == 2 and new.cover == chosen[0]
    assert queries.category(catalog, NEW).n_photos == len(photo_ids["hare"]) - 2
    assert [near.category.id for near in queries.nearest_known(catalog, new.id)] == [OWL, FOX]


def test_splitting_with_a_name_accepts(sample):
    catalog, photo_ids = sample
    decision = decisions.split(catalog, photo_ids["hare"][:2], name="leveret", author="ann")
    new = queries.category(catalog, decision.payload["new"])
    assert (new.name, new.state, new.n_confirmed) == ("leveret", "accepted", 2)


def test_splitting_off_everything_is_refused(sample):
    catalog, photo_ids = sample
    with pytest.raises(IgcdError, match="leaves none behind"):
        decisions.split(catalog, photo_ids["hare"], author="ann")


def test_rejecting_leaves_photos_unsure(sample):
    catalog, photo_ids = sample
    decisions.reject(catalog, NEW, author="ann")
    assert queries.category(catalog, NEW).state == "rejected"
    assert set(photo_ids["hare"]) < {photo.id for photo in queries.photos_of(catalog, None).photos}


def test_a_labeled_category_cannot_be_rejected(sample):
    with pytest.raises(IgcdError, match="has labels"):
        decisions.reject(sample[0], OWL, author="ann")


def test_putting_off_sends_to_the_end_of_the_queue(sample):
    catalog, _ = sample
    assert [category.id for category in queries.queue(catalog)] == [NEW, OTHER]
    decisions.defer(catalog, NEW, author="ann")
    assert [category.id for category in queries.queue(catalog)] == [OTHER, NEW]


def test_photos_move_and_are_confirmed(sample):
    catalog, photo_ids = sample
    decisions.move(catalog, photo_ids["unsure"], FOX, author="ann")
    (photo,) = queries.photos(catalog, photo_ids["unsure"])
    assert photo.category == FOX and photo.is_confirmed


def test_a_moved_label_is_corrected(sample):
    catalog, photo_ids = sample
    decisions.move(catalog, photo_ids["owl"][:1], FOX, author="ann")
    with catalog.snapshot() as db:
        assert db.execute("SELECT category FROM labels WHERE photo = ?", photo_ids["owl"][:1]).fetchone()[0] == FOX


def test_unsure_photos_lose_category_and_label(sample):
    catalog, photo_ids = sample
    decisions.set_unsure(catalog, photo_ids["owl"][:1], author="ann")
    (photo,) = queries.photos(catalog, photo_ids["owl"][:1])
    assert photo.category is None and photo.is_confirmed  # later discoveries leave it alone
    with catalog.snapshot() as db:
        assert not db.execute("SELECT 1 FROM labels WHERE photo = ?", photo_ids["owl"][:1]).fetchall()


def test_one_decision_covers_near_duplicates_of_the_same_category(sample):
    catalog, photo_ids = sample
    first, second, third = photo_ids["hare"][:3]
    elsewhere = photo_ids["mole"][0]
    with catalog.transaction() as db:
        for photo in (second, third, elsewhere):
            db.execute("UPDATE photos SET near_duplicate_of = ? WHERE id = ?", (first, photo))
    decision = decisions.move(catalog, [second], OWL, author="ann")
    assert decision.payload["n_photos"] == 3
    assert {photo.category for photo in queries.photos(catalog, [first, second, third])} == {OWL}
    assert queries.photos(catalog, [elsewhere])[0].category == OTHER
    undo(catalog, author="ann")
    assert decisions.move(catalog, [second], OWL, author="ann", with_near_duplicates=False).payload["n_photos"] == 1


def test_closing_a_stage_makes_labels_of_what_was_confirmed(sample):
    catalog, photo_ids = sample
    decisions.name(catalog, NEW, "hare", author="ann")
    decisions.move(catalog, photo_ids["unsure"], OWL, author="ann")
    decision = decisions.close_stage(catalog, 0, author="ann")
    assert decision.payload["n_labels"] == len(photo_ids["hare"]) + 1
    assert queries.category(catalog, NEW).state == "labeled"
    assert queries.category(catalog, OTHER).state == "discovered"  # nobody has decided about it
    assert queries.status(catalog).stages[0].state == "accepted"


ACTIONS = {
    "name": lambda catalog, _: decisions.name(catalog, NEW, "hare", author="ann"),
    "rename": lambda catalog, _: decisions.name(catalog, OWL, "eagle owl", author="ann"),
    "accept": lambda catalog, _: decisions.accept_category(catalog, NEW, author="ann"),
    "merge": lambda catalog, _: decisions.merge(catalog, NEW, OWL, author="ann"),
    "merge known": lambda catalog, _: decisions.merge(catalog, OWL, FOX, author="ann"),
    "split": lambda catalog, ids: decisions.split(catalog, ids["hare"][:2], author="ann"),
    "split named": lambda catalog, ids: decisions.split(catalog, ids["owl"][:2], name="x", author="ann"),
    "merge known into new": lambda catalog, _: decisions.merge(catalog, OWL, NEW, author="ann"),
    "reject": lambda catalog, _: decisions.reject(catalog, NEW, author="ann"),
    "defer": lambda catalog, _: decisions.defer(catalog, NEW, author="ann"),
    "unsure": lambda catalog, ids: decisions.set_unsure(catalog, ids["owl"][:2], author="ann"),
    "move": lambda catalog, ids: decisions.move(catalog, ids["hare"][:2] + ids["owl"][:1], FOX, author="ann"),
    "close": lambda catalog, _: decisions.close_stage(catalog, 0, author="ann"),
}


@pytest.mark.parametrize("kind", ACTIONS)
def test_every_decision_can_be_undone_and_the_undo_too(sample, kind):
    catalog, photo_ids = sample
    before, revision = state_of(catalog), queries.revision(catalog)
    decision = ACTIONS[kind](catalog, photo_ids)
    after = state_of(catalog)
    assert after != before
    undone = undo(catalog, author="bob")
    assert state_of(catalog) == before and undone.payload["decision"] == decision.id
    assert queries.revision(catalog) > revision + 1  # an old version never comes back
    (_, is_undone), (logged, was_undone) = queries.history(catalog)
    assert not is_undone and was_undone and logged.kind == decision.kind
    if kind == "close":
        with pytest.raises(IgcdError, match="igcd accept"):
            undo(catalog, undone.id, author="bob")
        return
    undo(catalog, undone.id, author="bob")
    assert state_of(catalog) == after


def test_all_decisions_one_after_the_other_are_undone_one_after_the_other(sample):
    catalog, photo_ids = sample
    states = []
    for kind in ("rename", "split", "move", "defer", "name", "unsure", "close"):
        states.append(state_of(catalog))
        ACTIONS[kind](catalog, photo_ids)
    for state in reversed(states):
        undo(catalog, author="ann")
        assert state_of(catalog) == state
    with pytest.raises(IgcdError, match="no decision to undo"):
        undo(catalog, author="ann")


def test_an_earlier_decision_is_undone_alone_where_nothing_rests_on_it(sample):
    catalog, _ = sample
    first = decisions.name(catalog, NEW, "hare", author="ann")
    decisions.name(catalog, OTHER, "mole", author="ann")
    undo(catalog, first.id, author="ann")
    assert queries.category(catalog, NEW).name is None and queries.category(catalog, OTHER).name == "mole"


def test_a_decision_others_rest_on_is_not_undone_first(sample):
    catalog, photo_ids = sample
    first = decisions.set_unsure(catalog, photo_ids["hare"][:1], author="ann")
    second = decisions.move(catalog, photo_ids["hare"][:1], OWL, author="ann")  # no category in common, but a photo
    with pytest.raises(ConflictError, match=f"decision {second.id} was made after decision {first.id}"):
        undo(catalog, first.id, author="ann")


def test_an_undo_is_not_taken_back_where_an_earlier_decision_was_undone_since(sample):
    catalog, _ = sample
    first = decisions.name(catalog, NEW, "hare", author="ann")
    decisions.name(catalog, NEW, "mountain hare", author="ann")
    undo_second = undo(catalog, author="ann")
    undo(catalog, first.id, author="ann")
    with pytest.raises(ConflictError, match="undo it first"):
        undo(catalog, undo_second.id, author="ann")


@pytest.mark.parametrize("kind", ["name", "accept", "merge", "reject", "defer", "split", "move", "unsure"])
def test_two_people_do_not_overwrite_each_other(sample, kind):
    catalog, photo_ids = sample
    seen = {category.id: category.version for category in queries.categories(catalog)}
    mine = {
        "name": lambda: decisions.name(catalog, NEW, "a", author="ann", seen=seen),
        "accept": lambda: decisions.accept_category(catalog, NEW, author="ann", seen=seen),
        "merge": lambda: decisions.merge(catalog, OWL, NEW, author="ann", seen=seen),
        "reject": lambda: decisions.reject(catalog, NEW, author="ann", seen=seen),
        "defer": lambda: decisions.defer(catalog, NEW, author="ann", seen=seen),
        "split": lambda: decisions.split(catalog, photo_ids["hare"][:1], author="ann", seen=seen),
        "move": lambda: decisions.move(catalog, photo_ids["hare"][:1], OWL, author="ann", seen=seen),
        "unsure": lambda: decisions.set_unsure(catalog, photo_ids["hare"][:1], author="ann", seen=seen),
    }[kind]
    decisions.name(catalog, NEW, "b", author="bob", seen=seen)
    before = state_of(catalog)
    with pytest.raises(ConflictError, match=f"somebody else changed category {NEW} meanwhile"):
        mine()
    assert state_of(catalog) == before


def test_the_answer_to_a_decision_has_the_versions_for_the_next_one(sample):
    catalog, _ = sample
    seen = {category.id: category.version for category in queries.categories(catalog)}
    seen |= decisions.name(catalog, NEW, "a", author="ann", seen=seen).versions
    decisions.name(catalog, NEW, "b", author="ann", seen=seen)


def test_what_does_not_exist(sample):
    catalog, _ = sample
    with pytest.raises(IgcdError, match="no category 99"):
        decisions.name(catalog, 99, "a", author="ann")
    with pytest.raises(IgcdError, match="photo 999"):
        decisions.move(catalog, [999], OWL, author="ann")
    with pytest.raises(IgcdError, match="none was chosen"):
        decisions.move(catalog, [], OWL, author="ann")
    with pytest.raises(IgcdError, match="no decision 7"):
        undo(catalog, 7, author="ann")
    with pytest.raises(IgcdError, match="into itself"):
        decisions.merge(catalog, OWL, OWL, author="ann")


def test_reopening_takes_in_photos_added_since(sample):
    catalog, _ = sample
    decisions.close_stage(catalog, 0, author="ann")
    with catalog.transaction() as db:
        db.execute("INSERT INTO stages (stage, state, opened) VALUES (1, 'open', 'x')")
        db.execute("INSERT INTO photos (content_hash, n_bytes, stage) VALUES ('abc', 1, 1)")
    undo(catalog, author="ann")
    with catalog.snapshot() as db:
        assert {row["stage"] for row in db.execute("SELECT stage FROM photos")} == {0}
        assert len(db.execute("SELECT * FROM stages").fetchall()) == 1


def test_a_stage_that_others_build_on_stays_closed(sample):
    catalog, _ = sample
    decisions.close_stage(catalog, 0, author="ann")
    with catalog.transaction() as db:
        db.execute("INSERT INTO stages (stage, state, opened) VALUES (1, 'discovered', 'x')")
    with pytest.raises(ConflictError, match="stage 1 was discovered since"):
        undo(catalog, author="ann")


def test_decisions_are_noted_down_with_time_and_author(sample):
    catalog, _ = sample
    decisions.name(catalog, NEW, "hare", author="ann")
    with catalog.snapshot() as db:
        row = db.execute("SELECT * FROM decisions").fetchone()
    assert row["author"] == "ann" and row["time"].endswith("+00:00")
    assert json.loads(row["payload"]) == {"category": NEW, "name": "hare", "was": None}
