import io

import numpy as np
import pytest
from PIL import Image
from small_run import ROWS

from igcd.data.images import fit
from igcd.errors import IgcdError
from igcd.report.picture_sheets import (
    COLUMNS,
    PER_SHEET,
    TILE,
    PlacedPicture,
    make_sheets,
    read_pictures,
    share_of_each,
    sheet_path,
    sheet_uri,
    write_index,
)


def test_every_picture_is_where_its_number_says():
    n = PER_SHEET + COLUMNS + 3
    colors = np.random.default_rng(0).integers(0, 256, (n, 3), dtype=np.uint8)
    sheets = make_sheets(np.broadcast_to(colors[:, None, None], (n, TILE, TILE, 3)))
    assert len(sheets) == 2
    for number in (0, COLUMNS - 1, COLUMNS, PER_SHEET - 1, PER_SHEET, n - 1):
        image = np.asarray(Image.open(io.BytesIO(sheets[number // PER_SHEET])).convert("RGB"), dtype=float)
        row, column = divmod(number % PER_SHEET, COLUMNS)
        tile = image[row * TILE : (row + 1) * TILE, column * TILE : (column + 1) * TILE]
        assert np.abs(tile[8:-8, 8:-8].mean(axis=(0, 1)) - colors[number]).max() < 12


def test_what_is_written_is_read(make_run):
    folder = make_run(pictures=True)
    pictures = read_pictures(folder)
    assert len(pictures.images) == len(ROWS) + 2
    assert [image.sheet for image in pictures.images] == [image.stage for image in pictures.images]  # one for each
    before = (folder / "pictures" / "index.csv").read_bytes()
    write_index(folder, [PlacedPicture(*(vars(image) | {"sheet": 0}).values()) for image in pictures.images])
    assert (folder / "pictures" / "index.csv").read_bytes() == before


def test_a_run_without_pictures(make_run):
    assert read_pictures(make_run()) is None


def spoil_tile(text):
    return text.replace(",0,0,0,", ",0,0,99999,", 1)


@pytest.mark.parametrize(
    "spoil",
    [
        spoil_tile,
        lambda text: text.replace("labeled,owl", "elsewhere,owl", 1),
        lambda text: text.replace(",0,0,0,0.", ",0,0,0,7.", 1),
        lambda text: text.replace("tile", "title", 1),
        lambda text: text.replace(",0,0,0,", ",0,5,0,", 1),
    ],
)
def test_a_spoiled_index_is_an_error_with_a_remedy(make_run, spoil):
    folder = make_run(pictures=True)
    path = folder / "pictures" / "index.csv"
    text = path.read_text()
    path.write_text(spoil(text))
    assert path.read_text() != text
    with pytest.raises(IgcdError, match="repeat the run, or remove"):
        read_pictures(folder)


@pytest.mark.parametrize("content", [b"", b"RIFF....WEBPnothing", b"\xff\xd8\xff"])
def test_a_spoiled_sheet_is_an_error_with_a_remedy(make_run, content):
    folder = make_run(pictures=True)
    sheet_path(folder, 0, 0).write_bytes(content)
    with pytest.raises(IgcdError, match="repeat the run, or remove"):
        read_pictures(folder)


def test_shares_are_in_proportion_and_within_the_limit():
    rng = np.random.default_rng(0)
    for _ in range(100):
        sizes, n = rng.integers(0, 50, 3).tolist(), int(rng.integers(1, 90))
        shares = share_of_each(sizes, n)
        assert sum(shares) <= max(n, 0) and all(0 <= share <= size for share, size in zip(shares, sizes, strict=True))
        assert sum(sizes) > n or shares == sizes


def test_a_picture_of_a_photo_is_small(shared_data):
    """5,000 photos as text in a page stay below 7 MB, which leaves 3 MB for all else."""
    photos = np.load(shared_data / "cub200_128px.npz")
    ends, content = photos["off_train"], photos["jpg_train"].tobytes()
    chosen = np.random.default_rng(0).permutation(len(ends) - 1)[:PER_SHEET]
    opened = (Image.open(io.BytesIO(content[ends[i] : ends[i + 1]])).convert("RGB") for i in chosen)
    (sheet,) = make_sheets(np.stack([fit(np.asarray(image), TILE) for image in opened]))
    assert 5_000 * len(sheet_uri(sheet)) / PER_SHEET < 7_000_000
