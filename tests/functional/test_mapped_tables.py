"""A large table is mapped from a file that nobody sees, and is a table like any other."""

from pathlib import Path

import pytest
import torch

from igcd.functional import mapped_tables
from igcd.functional.mapped_tables import half_table


def deleted_files():
    return sum("(deleted)" in line for line in Path("/proc/self/maps").read_text().splitlines())


@pytest.mark.skipif(not Path("/proc/self/maps").is_file(), reason="only Linux lists what is mapped")
def test_a_large_table_is_mapped_as_long_as_it_is_held(monkeypatch):
    monkeypatch.setattr(mapped_tables, "MAPPED_FROM", 1_000)
    before = deleted_files()
    table = half_table(100, 8)
    assert deleted_files() == before + 1
    rows = torch.randn(100, 8)
    for part, own in zip(torch.split(table, 30), torch.split(rows, 30), strict=True):
        part.copy_(own)
    assert table.dtype == torch.float16 and torch.equal(table, rows.half())
    some = table[3:5]
    del table, part
    assert torch.equal(some, rows[3:5].half())  # a part holds the whole
    del some
    assert deleted_files() == before


@pytest.mark.skipif(not Path("/proc/self/maps").is_file(), reason="only Linux lists what is mapped")
@pytest.mark.parametrize(("mapped_from", "n_mapped"), [(1_600, 1), (1_601, 0)])
def test_a_table_of_1600_bytes_is_mapped_from_1600_on(monkeypatch, mapped_from, n_mapped):
    monkeypatch.setattr(mapped_tables, "MAPPED_FROM", mapped_from)
    before = deleted_files()
    table = half_table(100, 8)
    assert deleted_files() == before + n_mapped
    del table


def test_a_small_table_is_in_memory():
    assert half_table(0, 8).shape == (0, 8) and half_table(3, 4).dtype == torch.float16
