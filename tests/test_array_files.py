"""Arrays that anybody may have made: damage is one kind of error."""

import numpy as np
import pytest

from igcd.array_files import DamagedArrayError, read_npy, read_npz, values_of


@pytest.fixture
def file(tmp_path):
    np.save(tmp_path / "rows.npy", np.arange(6).reshape(3, 2))
    return tmp_path / "rows.npy"


@pytest.mark.parametrize("mapped", [False, True])
def test_an_array_is_read_as_it_was_written(file, mapped):
    assert np.array_equal(read_npy(file, mapped=mapped), [[0, 1], [2, 3], [4, 5]])


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.filterwarnings("error")
def test_flipped_bits_of_the_header_are_damage_or_another_array(file, mapped):
    content = file.read_bytes()
    damaged = 0
    with file.open("r+b", buffering=0) as opened:  # a file that is written anew each time waits for the disk
        for position in range(128):
            for bit in range(8):
                flipped = bytearray(content)
                flipped[position] ^= 1 << bit
                opened.seek(0)
                opened.write(flipped)
                try:
                    read_npy(file, mapped=mapped)
                except DamagedArrayError as error:
                    assert len(str(error).splitlines()) == 1
                    damaged += 1
    assert damaged > 400


@pytest.mark.parametrize("order", ["<", ">"])
def test_texts_are_letters(order):
    assert values_of(np.array(["ash", ""], dtype=f"{order}U3")) == ["ash", ""]
    broken = np.array([97, 0x110000], dtype=f"{order}u4").view(f"{order}U2")
    with pytest.raises(DamagedArrayError, match="letters"):
        values_of(broken)


def test_a_missing_file_is_no_damage(tmp_path):
    for read in (read_npy, read_npz):
        with pytest.raises(FileNotFoundError):
            read(tmp_path / "absent.npy")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x93NUMPY\x01\x00", b"\x80\x04K\x01."])
def test_what_is_no_archive_is_damage(tmp_path, content):
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(DamagedArrayError):
        read_npz(tmp_path / "a.npz")


def test_a_single_array_is_no_archive(file):
    with pytest.raises(DamagedArrayError):
        read_npz(file)
