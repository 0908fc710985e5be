"""The simulated person does with a workspace what a person would: everything gets its name, in few decisions."""

import pytest

pytest.importorskip("fastapi", reason="the review page needs the extra `review`")
pytest.importorskip("httpx", reason="the routes are asked with httpx")

from tools.reviewing_person import Person, all_photos, open_page
from workspace.painted_photos import PatternEncoder, paint, paint_categories

from igcd.workspace import queries
from igcd.workspace.catalog import open_catalog
from igcd.workspace.discover import discover
from igcd.workspace.init import init_workspace
from igcd.workspace.similar import PhotoIndex

NAMES = {0: "ash", 1: "beech", 2: "cedar", 7: "elm", 8: "fir"}


def kind_at(path):
    """What a photo was painted as, from its name."""
    return NAMES[int(path.rsplit("/", 1)[-1].partition("-")[0])]


def kind_of(photo):
    return kind_at(photo.path)


@pytest.fixture
def workspace(tmp_path):
    """Three labeled categories; unlabeled photos of two of them and of two new ones, discovered."""
    images = tmp_path / "photos"
    paint_categories(images, {NAMES[kind]: (kind, range(12)) for kind in (0, 1, 2)})
    for kind, numbers in {0: range(12, 18), 1: range(12, 18), 7: range(14), 8: range(10)}.items():
        for number in numbers:
            paint(images / "unlabeled" / f"{kind}-{number}.jpg", kind, number)
    init_workspace(tmp_path / "ws", images, from_folders=True)
    with open_catalog(tmp_path / "ws") as catalog:
        discover(catalog, PatternEncoder())
        yield catalog


def test_new_categories_are_named_in_one_decision_each(workspace):
    with open_page(workspace) as page:
        person = Person(page, kind_at, lambda: discover(workspace, PatternEncoder()))
        person.review(6)
    named = {category.name: category for category in queries.categories(workspace)}
    assert {"elm", "fir"} <= set(named) and person.made.total() <= 6
    assert person.made.total() <= person.n_named <= person.n_shown and person.n_clicks <= person.n_named + 6 * 2
    for name in ("elm", "fir"):
        photos = queries.photos_of(workspace, named[name].id).photos
        assert {kind_of(photo) for photo in photos if photo.is_confirmed} == {name}


def test_more_like_this_finds_its_kind_and_leaves_out_what_is_confirmed(workspace):
    index = PhotoIndex(workspace)
    elms = [
        photo for category in queries.queue(workspace) for photo in queries.photos_of(workspace, category.id).photos
    ]
    first = next(photo for photo in elms if kind_of(photo) == "elm")
    found = index.nearest([first.id], n=13)
    assert [kind_of(photo) for photo in queries.photos(workspace, [one.photo for one in found])] == ["elm"] * 13
    similarity = [one.similarity for one in found]
    assert similarity == sorted(similarity, reverse=True)
    everything = index.nearest([first.id], n=400)
    assert len(everything) == 35 and first.id not in {one.photo for one in everything}  # 36 are not confirmed


def test_what_is_more_like_a_known_category_is_told_apart(workspace):
    index = PhotoIndex(workspace)
    categories = [category.id for category in queries.categories(workspace)]
    photos = [photo for category in categories for photo in all_photos(workspace, category)]
    open_ids = [photo.id for photo in photos if not photo.is_confirmed]
    kinds = {photo.id: kind_of(photo) for photo in queries.photos(workspace, open_ids)}
    for kind in ("elm", "ash"):
        own = [photo for photo in open_ids if kinds[photo] == kind]
        others = [photo for photo in open_ids if photo not in own[:2]]
        elsewhere = index.elsewhere(others, own[:2])
        assert elsewhere == sorted(elsewhere) and not set(elsewhere) & set(own)
        assert {photo for photo in others if kinds[photo] == "beech"} <= set(elsewhere)
    assert index.elsewhere([], own[:1]) == []


def test_the_tree_joins_what_is_alike_and_holds_every_category_once(workspace):
    def leaves(branch):
        return [branch.category] if branch.category is not None else [c for part in branch.parts for c in leaves(part)]

    tree = PhotoIndex(workspace).tree()
    assert sorted(leaves(tree)) == [category.id for category in queries.categories(workspace)]
    assert tree.height >= max(part.height for part in tree.parts)
