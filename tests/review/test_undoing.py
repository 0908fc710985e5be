"""Which decision undo and redo mean."""

from igcd.review.sentences import decision_sentence
from igcd.review.undoing import next_redo, next_undo
from igcd.workspace.action import Decision


def entry(number, kind, *, undone=False, author="ada", **payload):
    return Decision(number, "", author, kind, payload), undone


def test_the_last_that_stands_is_undone_and_the_last_undo_is_redone():
    undo = Decision(3, "", "ada", "undo", {"decision": 2, "kind": "name"})
    history = [(undo, False), entry(2, "name", undone=True), entry(1, "accept")]
    assert next_undo(history, "ada").id == 1
    assert next_redo(history, "ada").id == 3


def test_others_decisions_are_theirs():
    history = [entry(2, "name", author="bo"), entry(1, "accept")]
    assert next_undo(history, "ada").id == 1 and next_undo(history, "bo").id == 2
    assert next_redo(history, "ada") is None


def test_a_closed_stage_is_left_to_the_command_line():
    history = [entry(2, "close", author="bo", stage=0), entry(1, "accept")]
    assert next_undo(history, "ada") is None
    reopened = [
        (Decision(3, "", "bo", "undo", {"decision": 2, "kind": "close"}), False),
        entry(2, "close", undone=True),
    ]
    assert next_redo(reopened, "bo") is None


def test_sentences_of_all_kinds():
    def said(kind, **payload):
        return decision_sentence(kind, payload, lambda category_id: f"c{category_id}")

    assert said("name", category=4, name="owl", was=None) == "named new 4 “owl”"
    assert said("name", category=4, name="owl", was="bird") == "named bird “owl”"
    assert said("accept", category=4) == "accepted c4"
    assert said("split", new=9, n_photos=2, name=None, **{"from": [4, 5]}) == "split 2 photos off c4 and 1 more as c9"
    assert said("split", new=9, n_photos=1, name=None, **{"from": []}) == "split 1 photo as c9"
    assert said("reject", category=4, n_photos=3) == "rejected c4 (3 photos unsure)"
    assert said("unsure", category=4) == "put off c4"
    assert said("unsure", n_photos=3, **{"from": [4]}) == "set 3 photos to unsure"
    assert said("move", to=4, n_photos=3, **{"from": [4]}) == "confirmed 3 photos of c4"
    assert said("move", to=4, n_photos=3, **{"from": [5]}) == "moved 3 photos to c4"
    assert said("close", stage=1) == "closed stage 1"
    undone = {"decision": 1, "kind": "accept", "undone": {"category": 4}}
    assert decision_sentence("undo", undone, str) == "undid: accepted 4"
    assert decision_sentence("undo", {"decision": 2, "kind": "undo", "undone": undone}, str) == "redid: accepted 4"
