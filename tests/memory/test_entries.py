import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import save_file

from igcd.errors import IgcdError
from igcd.memory.entries import Account, Entries


def pixels(*values):
    return torch.tensor(values, dtype=torch.uint8)[:, None, None, None].expand(-1, 3, 2, 2).clone()


def add(buffer, ids, categories, *, pseudo_labeled=False):
    buffer.add(pixels(*range(len(ids))), torch.tensor(categories), ids, pseudo_labeled=pseudo_labeled)


def test_keeps_the_first_of_each_category():
    buffer = Entries(n_per_category=2)
    add(buffer, "abcde", [1, 1, 1, 5, 5])
    assert buffer.image_ids == ("a", "b", "d", "e")
    assert buffer.categories.tolist() == [1, 1, 5, 5]
    assert buffer.content[:, 0, 0, 0].tolist() == [0, 1, 3, 4]
    assert buffer.content.dtype == torch.uint8
    add(buffer, "fg", [5, 6])
    assert buffer.image_ids == ("a", "b", "d", "e", "g")


def test_a_labeled_image_takes_the_place_of_a_guess():
    buffer = Entries(n_per_category=2)
    add(buffer, "ab", [1, 1], pseudo_labeled=True)
    add(buffer, "c", [1])
    assert buffer.image_ids == ("a", "c")
    assert buffer.is_pseudo.tolist() == [True, False]
    add(buffer, "d", [1], pseudo_labeled=True)
    assert buffer.image_ids == ("a", "c")


def test_a_revealed_label_corrects_a_guess():
    buffer = Entries(n_per_category=3)
    add(buffer, "ab", [9, 9], pseudo_labeled=True)
    add(buffer, "a", [4])
    assert dict(zip(buffer.image_ids, buffer.categories.tolist(), strict=True)) == {"b": 9, "a": 4}
    assert buffer.account().pseudo_labeled == 1


def test_categories_are_forgotten():
    buffer = Entries(n_per_category=2)
    add(buffer, "abcd", [1, 1, 2, 3])
    buffer.remove([3, 77])
    assert buffer.image_ids == ("a", "b", "c")
    assert buffer.categories.tolist() == [1, 1, 2]


def test_account():
    buffer = Entries(n_per_category=2)
    assert buffer.account() == Account(images=0, categories=0, pseudo_labeled=0, bytes=0)
    add(buffer, "ab", [1, 2])
    add(buffer, "c", [2], pseudo_labeled=True)
    assert buffer.account() == Account(images=3, categories=2, pseudo_labeled=1, bytes=3 * (12 + 8 + 1 + 1))


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.integers(0, 9)), max_size=25), st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_equals_slow_twin_and_holds_its_bound(additions, n_per_category):
    buffer = Entries(n_per_category=n_per_category)
    rows = []
    for category, pseudo, image in additions:
        add(buffer, [str(image)], [category], pseudo_labeled=pseudo)
        rows = [row for row in rows if row[2] != str(image)] + [(category, pseudo, str(image))]
        kept = []
        for c in range(4):
            kept += sorted((row for row in rows if row[0] == c), key=lambda row: row[1])[:n_per_category]
        rows = [row for row in rows if row in kept]
    assert list(zip(buffer.categories.tolist(), buffer.is_pseudo.tolist(), buffer.image_ids, strict=True)) == rows
    assert all(buffer.categories.tolist().count(c) <= n_per_category for c in range(4))


@pytest.mark.parametrize("n_images", [0, 3])
def test_survives_being_written_and_read(tmp_path, n_images):
    buffer = Entries(n_per_category=2)
    half = torch.randn(n_images, 4, 5, generator=torch.Generator().manual_seed(0)).half()
    buffer.add(half, torch.arange(n_images), [f"plot ü/{i}.jpg" for i in range(n_images)], pseudo_labeled=True)
    tensors, metadata = buffer.state_dict()
    save_file(tensors, tmp_path / "r.safetensors", metadata)
    with safe_open(tmp_path / "r.safetensors", "pt") as file:
        again = Entries.from_state_dict({name: file.get_tensor(name) for name in file.keys()}, file.metadata())  # noqa: SIM118
    assert (again.image_ids, again.n_per_category) == (buffer.image_ids, 2)
    for name, tensor in again.state_dict()[0].items():
        assert torch.equal(tensor, tensors[name])
    add_shape = (1, 4, 5)
    again.add(torch.zeros(add_shape).half(), torch.tensor([50]), ["new"], pseudo_labeled=False)
    assert len(again) == n_images + 1


def test_bad_input_is_an_error():
    with pytest.raises(IgcdError, match="at least one image per category"):
        Entries(n_per_category=0)
    buffer = Entries(n_per_category=2)
    with pytest.raises(IgcdError, match="got 2, 2 and 1 of 2"):
        add(buffer, ["a", "a"], [1, 1])
    add(buffer, "a", [1])
    with pytest.raises(IgcdError, match="shape of what is stored"):
        buffer.add(torch.zeros(1, 7), torch.tensor([1]), ["b"], pseudo_labeled=False)
    tensors, metadata = buffer.state_dict()
    with pytest.raises(IgcdError, match="needs the entry 'content'"):
        Entries.from_state_dict({}, metadata)
    with pytest.raises(IgcdError, match="equally long"):
        Entries.from_state_dict(tensors | {"categories": torch.zeros(5, dtype=torch.int64)}, metadata)
