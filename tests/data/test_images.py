"""Image sets: every kind has the same face, and every way an image can be broken has its reason."""

import io
import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from igcd.data.images import (
    MAX_PIXELS,
    ArchiveImages,
    ArrayImages,
    BrokenImageError,
    Concatenation,
    FileImages,
    decode_image,
    digest,
)
from igcd.data.sized_cache import cached_at_size
from igcd.errors import IgcdError


def encoded(image: Image.Image, form: str = "PNG", **options) -> bytes:
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def png_claiming(width: int, height: int) -> bytes:
    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0")) + chunk(b"IEND", b"")


@pytest.fixture
def array() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (6, 4, 5, 3), dtype=np.uint8)


@pytest.fixture
def three_faces(array, tmp_path):
    """The same six images as array, archive and files."""
    blobs = [encoded(Image.fromarray(image)) for image in array]
    ids = [f"{i}.png" for i in range(6)]
    for image_id, blob in zip(ids, blobs, strict=True):
        (tmp_path / image_id).write_bytes(blob)
    offsets = np.cumsum([0, *map(len, blobs)]).astype(np.uint32)
    archive = ArchiveImages(ids, np.frombuffer(b"".join(blobs), np.uint8), offsets)
    return [ArrayImages(ids, array), archive, FileImages(tmp_path, ids)]


def test_every_kind_of_set_gives_the_same_pixels(three_faces, array):
    for images in three_faces:
        assert len(images) == 6
        assert images.ids == tuple(f"{i}.png" for i in range(6))
        for i in range(6):
            np.testing.assert_array_equal(images.pixels(i), array[i])


def test_subsets_and_concatenations_keep_images_keys_and_ids_together(three_faces, array):
    for images in three_faces:
        both = Concatenation([images.take([4, 0]), images.take([3])])
        again = both.take([2, 0, 1])
        assert again.ids == ("3.png", "4.png", "0.png")
        for position, i in enumerate([3, 4, 0]):
            np.testing.assert_array_equal(again.pixels(position), array[i])
            np.testing.assert_array_equal(again.pixels_at_least(position, 1), array[i])
            assert again.key(position) == images.key(i)


def test_a_subset_does_not_follow_later_changes_of_its_index(array):
    idx = np.array([0, 1])
    subset = ArrayImages("abcdef", array).take(idx)
    idx[:] = 5
    np.testing.assert_array_equal(subset.pixels(0), array[0])


def test_keys_tell_images_apart_and_change_with_the_content(three_faces, tmp_path):
    for images in three_faces:
        assert len({images.key(i) for i in range(6)}) == 6
    files = three_faces[2]
    before = files.key(0)
    (tmp_path / "0.png").write_bytes((tmp_path / "1.png").read_bytes() + b" ")
    assert files.key(0) != before
    assert files.key(1) == FileImages(tmp_path, ["1.png"]).key(0)
    (tmp_path / "0.png").unlink()
    assert files.key(0) != before


def test_the_key_of_a_file_says_nothing_of_its_name(tmp_path):
    """Nor does that of its small copy: what a method can ask for must not be a digest of a path."""
    for name in ("fox/1.png", "elsewhere/2.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("RGB", (9, 7), (1, 2, 3)).save(tmp_path / name)
    files = FileImages(tmp_path, ["fox/1.png", "elsewhere/2.png", "fox/gone.png", "elsewhere/gone.png"])
    small = cached_at_size(files, 5, tmp_path / "cache")
    for images in (files, small):
        assert images.key(0) == images.key(1) and images.key(2) == images.key(3) != images.key(0)
    assert files.stamp(0) != files.stamp(1)


def test_a_file_is_read_once_for_its_key(tmp_path, monkeypatch):
    Image.new("RGB", (9, 7)).save(tmp_path / "1.png")
    files = FileImages(tmp_path, ["1.png"])
    key = files.key(0)
    monkeypatch.setattr(FileImages, "_open", None)
    assert files.key(0) == key


def test_gray_arrays_become_rgb():
    gray = np.arange(8, dtype=np.uint8).reshape(2, 2, 2)
    images = ArrayImages("ab", gray)
    assert images.pixels(1).tolist() == [[[4] * 3, [5] * 3], [[6] * 3, [7] * 3]]
    np.testing.assert_array_equal(images.at_size(np.array([1, 0]), 2)[0], images.pixels(1))


def test_at_size_slices_only_what_lies_in_memory_at_that_size(three_faces):
    square = np.random.default_rng(1).integers(0, 256, (3, 4, 4, 3), dtype=np.uint8)
    in_memory = Concatenation([ArrayImages("ab", square[:2]), ArrayImages("c", square[2:])])
    np.testing.assert_array_equal(in_memory.take([2, 0]).at_size(np.array([1, 0]), 4), square[[0, 2]])
    assert in_memory.at_size(np.array([0]), 5) is None
    assert Concatenation([in_memory, three_faces[1]]).at_size(np.array([0, 5]), 4) is None
    assert three_faces[2].at_size(np.array([0]), 4) is None


@pytest.mark.parametrize(
    "wrong", [np.zeros((2, 3, 3, 4), np.uint8), np.zeros((2, 3, 3, 3)), np.zeros((1, 3, 3), np.uint8)]
)
def test_arrays_of_another_shape_or_type_are_refused(wrong):
    with pytest.raises(IgcdError, match="must be uint8 of shape"):
        ArrayImages("ab", wrong)


@pytest.mark.parametrize("offsets", [[0, 4], [0, 8, 4, 9], [0, 4, 8, 99], [-1, 4, 8, 9]])
def test_archives_with_wrong_offsets_are_refused(offsets):
    with pytest.raises(IgcdError, match="offsets"):
        ArchiveImages("abc", np.zeros(9, np.uint8), np.array(offsets))


def test_ids_must_be_unique(array):
    with pytest.raises(IgcdError, match="'b' twice"):
        ArrayImages("abcbcd", array)


@pytest.mark.parametrize("path", ["../secret.png", "/etc/passwd", "a/../../b.png", "", "a\\..\\b.png"])
def test_paths_that_leave_the_folder_are_refused(tmp_path, path):
    with pytest.raises(IgcdError, match="leaves the image folder"):
        FileImages(tmp_path, [path])


class TestBrokenFiles:
    """Each kind of broken file, and the reason it is set aside with."""

    @staticmethod
    def reason(folder: Path, name: str = "x.jpg") -> str:
        images = FileImages(folder, [name])
        with pytest.raises(BrokenImageError) as caught:
            images.pixels(0)
        with pytest.raises(BrokenImageError) as caught_reduced:
            images.pixels_at_least(0, 1)
        assert str(caught.value) == str(caught_reduced.value)
        return str(caught.value)

    def test_empty(self, tmp_path):
        (tmp_path / "x.jpg").touch()
        assert self.reason(tmp_path) == "file is empty"
        with pytest.raises(BrokenImageError, match="file is empty"):
            decode_image(b"")

    def test_missing(self, tmp_path):
        assert self.reason(tmp_path) == "file is missing"

    def test_text_with_the_name_of_an_image(self, tmp_path):
        (tmp_path / "x.jpg").write_text("I am no picture")
        assert self.reason(tmp_path) == "not an image"

    def test_postscript_is_not_run(self, tmp_path):
        (tmp_path / "x.jpg").write_text("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n(x) print\n")
        assert self.reason(tmp_path) == "not an image"

    @pytest.mark.parametrize("form", ["JPEG", "PNG", "GIF", "BMP", "TIFF"])
    @pytest.mark.parametrize("share", [0.5, 0.9])
    def test_truncated(self, tmp_path, photo, form, share):
        whole = encoded(photo(160, 120), form)
        (tmp_path / "x.jpg").write_bytes(whole[: int(share * len(whole))])
        assert self.reason(tmp_path) == "truncated"

    def test_truncated_by_two_bytes(self, tmp_path, photo):
        (tmp_path / "x.jpg").write_bytes(encoded(photo(160, 120), "JPEG")[:-2])
        assert self.reason(tmp_path) == "truncated"

    def test_truncated_webp(self, tmp_path, photo):
        whole = encoded(photo(160, 120), "WEBP")
        (tmp_path / "x.jpg").write_bytes(whole[: len(whole) // 2])
        assert self.reason(tmp_path).startswith("damaged")

    def test_garbled_inside(self, tmp_path, photo):
        whole = bytearray(encoded(photo(160, 120), "PNG"))
        middle = len(whole) // 2
        whole[middle : middle + 50] = bytes(50)
        (tmp_path / "x.jpg").write_bytes(whole)
        assert self.reason(tmp_path).startswith("damaged")

    def test_decompression_bomb(self, tmp_path):
        (tmp_path / "x.jpg").write_bytes(png_claiming(60_000, 60_000))
        assert self.reason(tmp_path) == f"claims more than {MAX_PIXELS:,} pixels"

    def test_folder_with_the_name_of_an_image(self, tmp_path):
        (tmp_path / "x.jpg").mkdir()
        assert self.reason(tmp_path) == "is a folder"

    def test_dangling_link(self, tmp_path):
        (tmp_path / "x.jpg").symlink_to(tmp_path / "gone.jpg")
        assert self.reason(tmp_path) == "link leads nowhere"

    def test_link_to_itself(self, tmp_path):
        (tmp_path / "x.jpg").symlink_to(tmp_path / "x.jpg")
        assert self.reason(tmp_path).startswith("file cannot be read")

    @pytest.mark.parametrize("through_folder", [False, True])
    def test_link_out_of_the_folder(self, tmp_path, paint, through_folder):
        outside = paint(tmp_path / "outside" / "x.jpg")
        (tmp_path / "inside").mkdir()
        if through_folder:
            (tmp_path / "inside" / "owl").symlink_to(outside.parent)
        else:
            (tmp_path / "inside" / "x.jpg").symlink_to(outside)
        name = "owl/x.jpg" if through_folder else "x.jpg"
        assert self.reason(tmp_path / "inside", name) == "link leads out of the image folder"

    def test_no_permission(self, tmp_path, paint, monkeypatch):
        paint(tmp_path / "x.jpg")

        def refuse(*_, **__):  # root may read everything, so rights alone cannot show it
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "open", refuse)
        assert self.reason(tmp_path) == "file cannot be read (Permission denied)"

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
    def test_pipe_is_not_waited_for(self, tmp_path):
        os.mkfifo(tmp_path / "x.jpg")
        assert self.reason(tmp_path) == "not a regular file"

    def test_name_that_no_file_can_have(self, tmp_path):
        assert self.reason(tmp_path, "x\0.jpg").startswith("file cannot be read")

    def test_floating_point_pixels(self, tmp_path):
        Image.fromarray(np.zeros((4, 4), np.float32)).save(tmp_path / "x.tif")
        assert self.reason(tmp_path, "x.tif") == "has pixels of an unknown range (mode F)"


def test_a_link_inside_the_folder_is_an_image(tmp_path, paint):
    paint(tmp_path / "a.png", 40)
    (tmp_path / "b.png").symlink_to(tmp_path / "a.png")
    assert FileImages(tmp_path, ["b.png"]).pixels(0)[0, 0].tolist() == [40, 40, 40]


def test_undecodable_names_can_be_read_and_keyed(tmp_path, paint):
    name = os.fsdecode(b"h\xe9ron.png")
    try:
        paint(tmp_path / name, 40)
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    images = FileImages(tmp_path, [name])
    assert images.pixels(0).shape == (10, 12, 3)
    assert len(images.key(0)) == 24


@pytest.mark.parametrize("orientation", range(1, 9))
def test_photos_are_turned_upright(photo, orientation):
    sideways = photo(8, 6)
    exif = Image.Exif()
    exif[0x0112] = orientation
    height, width = decode_image(encoded(sideways, "PNG", exif=exif)).shape[:2]
    assert (width, height) == ((8, 6) if orientation < 5 else (6, 8))


def test_turned_upright_as_the_camera_was_held():
    pixels = np.zeros((2, 3, 3), np.uint8)
    pixels[0, 0] = 255  # top left as stored; orientation 6 shows it at the top right
    exif = Image.Exif()
    exif[0x0112] = 6
    shown = decode_image(encoded(Image.fromarray(pixels), "PNG", exif=exif))
    assert shown.shape == (3, 2, 3)
    assert np.argwhere(shown[..., 0] == 255).tolist() == [[0, 1]]


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGBA", "CMYK", "LA"])
def test_every_color_mode_becomes_rgb(photo, mode):
    form = "TIFF" if mode == "CMYK" else "PNG"
    assert decode_image(encoded(photo(8, 6).convert(mode), form)).shape == (6, 8, 3)


def test_transparent_palettes_are_read_without_a_warning(photo, recwarn):
    palette = photo(8, 6).convert("P")
    assert decode_image(encoded(palette, "PNG", transparency=bytes(range(256)))).shape == (6, 8, 3)
    assert not recwarn.list


def test_sixteen_bits_keep_their_brightness():
    gray = np.array([[0, 1000, 32768, 65535]], dtype=np.uint16)
    assert decode_image(encoded(Image.fromarray(gray)))[0, :, 0].tolist() == [0, 3, 128, 255]


def test_a_large_jpeg_is_reduced_while_decoding_but_never_below_the_wanted_size(photo):
    large = encoded(photo(800, 600), "JPEG", quality=95)
    sizes = {at_least: decode_image(large, at_least=at_least).shape[:2] for at_least in (1, 75, 76, 150, 200, 300, 600)}
    assert sizes == {
        1: (75, 100), 75: (75, 100), 76: (150, 200), 150: (150, 200), 200: (300, 400), 300: (300, 400), 600: (600, 800)
    }  # fmt: skip
    small = np.asarray(Image.fromarray(decode_image(large)).resize((100, 75), Image.Resampling.BOX)).astype(int)
    assert np.abs(small - decode_image(large, at_least=75)).mean() < 2


def test_digest_depends_on_every_byte():
    assert len({digest(b"a"), digest(b"b"), digest(b"ab"), digest(b"")}) == 4


def test_the_reason_of_a_broken_image_is_one_printable_line():
    """Decoders repeat bytes of the file, with line breaks in them."""
    reason = str(BrokenImageError("damaged (unknown tag\n\0\u202e" + "x" * 70_000 + ")"))
    assert reason.isprintable() and len(reason) <= 200 and reason.startswith("damaged (unknown tag\\n")
