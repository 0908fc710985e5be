import base64

import pytest
from small_run import jpeg

from igcd.report.thumbnails import MAX_BYTES, Thumbnail, thumbnail


def test_a_jpeg_comes_as_it_is(tmp_path):
    (tmp_path / "a.jpg").write_bytes(jpeg())
    found = thumbnail(tmp_path, "a.jpg", "an owl")
    assert found.alt == "an owl"
    assert base64.b64decode(found.uri.removeprefix("data:image/jpeg;base64,")) == jpeg()


@pytest.mark.parametrize("path", ["absent.jpg", "../outside.jpg", "page.jpg", "large.jpg", "a\0.jpg", "", "folder"])
def test_what_is_no_thumbnail_is_blank(tmp_path, path):
    folder = tmp_path / "run"
    (folder / "folder").mkdir(parents=True)
    (tmp_path / "outside.jpg").write_bytes(jpeg())
    (folder / "page.jpg").write_text("<svg onload=alert(1)>")
    (folder / "large.jpg").write_bytes(jpeg() + bytes(MAX_BYTES))
    assert thumbnail(folder, path, "x") == Thumbnail(None, "x")


def test_a_link_out_of_the_folder_is_blank(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "outside.jpg").write_bytes(jpeg())
    (tmp_path / "run" / "link.jpg").symlink_to(tmp_path / "outside.jpg")
    assert thumbnail(tmp_path / "run", "link.jpg", "x").uri is None
