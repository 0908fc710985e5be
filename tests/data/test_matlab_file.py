import random
import struct
import zlib

import numpy as np
import pytest
from scipy.io import loadmat, savemat
from tools.torture.byte_mutation import mutate_bytes

from igcd.data.matlab_file import NotMatlabError, read_variable

RECORDS = [("a.jpg", 1, 2.5), ("größe.jpg", 2, -1.0)]


@pytest.fixture(params=[False, True])
def path(request, tmp_path):
    records = np.array(RECORDS, dtype=[("fname", "O"), ("class", "O"), ("score", "O")])
    names = np.array(["Audi A3", "BMW M3"], dtype=object)
    values = {"other": np.arange(5), "names": names, "records": records, "one": 7, "text": "owl"}
    savemat(tmp_path / "x.mat", values, do_compression=request.param)
    return tmp_path / "x.mat"


def test_the_same_as_scipy_reads(path):
    assert read_variable(path, "records") == [
        dict(zip(("fname", "class", "score"), record, strict=True)) for record in RECORDS
    ]
    assert read_variable(path, "names") == loadmat(path, squeeze_me=True)["names"].tolist()
    assert read_variable(path, "other") == list(range(5))
    assert (read_variable(path, "one"), read_variable(path, "text")) == (7, "owl")


def test_a_variable_that_is_not_there(path):
    with pytest.raises(NotMatlabError, match="no variable birds"):
        read_variable(path, "birds")


def test_damaged_files_are_read_or_refused(path):
    """Some of these bytes end the whole process when scipy reads them."""
    content, n_refused = path.read_bytes(), 0
    for seed in range(300):
        path.write_bytes(mutate_bytes(content, random.Random(seed)))
        try:
            read_variable(path, "records")
        except NotMatlabError:
            n_refused += 1
    assert n_refused > 100


def test_a_bomb_is_refused(tmp_path):
    packed = zlib.compress(bytes(210_000_000), 9)
    head = b"x" * 124 + b"\0\x01IM"
    (tmp_path / "x.mat").write_bytes(head + struct.pack("<II", 15, len(packed)) + packed)
    with pytest.raises(NotMatlabError, match="too large"):
        read_variable(tmp_path / "x.mat", "records")
