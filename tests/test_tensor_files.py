"""Tensors on disk: what is read is what was written, or a sentence that names the file."""

import pytest
import torch
from safetensors.torch import save_file

from igcd.errors import IgcdError
from igcd.tensor_files import read_tensors, require_finite, write_tensors

TENSORS = {
    "whole": torch.arange(6).reshape(2, 3),
    "real": torch.tensor([1.5, float("nan"), -0.0]),
    "half": torch.ones(3, dtype=torch.bfloat16),
    "flags": torch.tensor([True, False]),
    "one": torch.tensor(7.0),
    "none": torch.empty(0, 4),
}
TEXT = {"names": '["ash", "b\u2028eech"]', "n": "3"}


@pytest.fixture
def path(tmp_path):
    write_tensors(tmp_path / "model" / "m.safetensors", TENSORS, TEXT)
    return tmp_path / "model" / "m.safetensors"


def test_what_is_written_is_read(path):
    tensors, text = read_tensors(path)
    assert text == TEXT and tensors.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        torch.testing.assert_close(tensors[name], tensor, rtol=0, atol=0, equal_nan=True)


def test_every_flipped_bit_is_noticed(path):
    whole = path.read_bytes()
    for position in range(len(whole)):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ (1 << position % 8)]) + whole[position + 1 :])
        try:
            tensors, text = read_tensors(path)
        except IgcdError as error:
            assert "m.safetensors" in str(error)
        else:  # padding of the header, or the order of its parts
            assert text == TEXT and all(torch.equal(tensors[name], TENSORS[name]) for name in ("whole", "half"))


def test_no_checksum_no_tensors(path):
    save_file({"a": torch.ones(2)}, path, {"n": "3"})
    with pytest.raises(IgcdError, match="its checksum does not fit"):
        read_tensors(path)


def test_a_file_that_is_missing_or_a_folder_is_a_sentence(tmp_path):
    with pytest.raises(IgcdError, match="is missing"):
        read_tensors(tmp_path / "m.safetensors")
    with pytest.raises(IgcdError, match="cannot be read"):
        read_tensors(tmp_path)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_are_none_are_refused(tmp_path, value):
    require_finite({"whole": torch.arange(3), "real": torch.ones(2)}, tmp_path / "m")
    with pytest.raises(IgcdError, match=r"m holds numbers that are not finite \(in real\)"):
        require_finite({"real": torch.tensor([1.0, value])}, tmp_path / "m")
