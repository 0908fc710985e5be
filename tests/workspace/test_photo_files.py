import pytest
from workspace.painted_photos import paint

from igcd.data.images import BrokenImageError
from igcd.errors import IgcdError
from igcd.workspace.catalog import open_catalog
from igcd.workspace.init import init_workspace
from igcd.workspace.photo_files import photo_path, photo_pixels


@pytest.fixture
def catalog(tmp_path):
    paint(tmp_path / "photos" / "a.jpg", 0, 0, size=400)
    init_workspace(tmp_path / "ws", tmp_path / "photos")
    with open_catalog(tmp_path / "ws") as catalog:
        yield catalog


def test_a_photo_is_reached_by_its_id(catalog, tmp_path):
    assert photo_path(catalog, 1) == tmp_path / "photos" / "a.jpg"
    assert photo_pixels(catalog, 1, at_least=90).shape == (100, 100, 3)  # a quarter, while decoding
    for read in (photo_path, lambda catalog, photo: photo_pixels(catalog, photo, at_least=8)):
        with pytest.raises(IgcdError, match="no photo 2"):
            read(catalog, 2)


def test_a_file_that_was_exchanged_for_a_link_is_not_followed(catalog, tmp_path):
    secret = paint(tmp_path / "secret.jpg", 1, 1)
    (tmp_path / "photos" / "a.jpg").unlink()
    (tmp_path / "photos" / "a.jpg").symlink_to(secret)
    with pytest.raises(IgcdError, match="no longer below"):
        photo_path(catalog, 1)
    with pytest.raises(BrokenImageError, match="leads out"):
        photo_pixels(catalog, 1, at_least=8)


@pytest.mark.parametrize("path", ["../secret.jpg", "../secret.heic"])
def test_a_path_that_climbs_out_of_its_folder_is_refused(catalog, path):
    with catalog.transaction() as db:
        db.execute("UPDATE photo_paths SET path = ?", (path,))
    with pytest.raises(IgcdError, match="no longer below"):
        photo_path(catalog, 1)
    with pytest.raises((IgcdError, BrokenImageError), match=r"leaves the image folder|leads out"):
        photo_pixels(catalog, 1, at_least=8)


def test_another_copy_serves_where_the_first_is_gone(catalog, tmp_path):
    from igcd.workspace.photos import add_photos

    copy = tmp_path / "backup" / "b.jpg"
    copy.parent.mkdir()
    copy.write_bytes((tmp_path / "photos" / "a.jpg").read_bytes())
    add_photos(catalog, [copy.parent])
    (tmp_path / "photos" / "a.jpg").unlink()
    assert photo_path(catalog, 1) == copy
    copy.unlink()
    with pytest.raises(IgcdError, match="no longer below"):
        photo_path(catalog, 1)
