import torch

from igcd.functional.neighbor_lists import is_another
from igcd.functional.neighbors import nearest_neighbors


def test_equals_slow_twin():
    lists = torch.tensor([[3, 1, 2], [1, 0, 2], [0, 1, 2], [5, 6, 7]])
    rows = [3, 0, 2, 1]
    for row, entries, stays in zip(rows, lists.tolist(), is_another(lists, torch.tensor(rows)).tolist(), strict=True):
        expected = [entry for entry in entries if entry != row] if row in entries else entries[:-1]
        assert [entry for entry, stay in zip(entries, stays, strict=True) if stay] == expected


def test_every_list_loses_one_even_among_copies():
    """Of ten copies each list of four holds the first four, so six rows are not in their own."""
    found = nearest_neighbors(torch.ones(10, 3), torch.ones(10, 3), 4).idx
    stays = is_another(found, torch.arange(10))
    assert (found == torch.arange(10)[:, None]).any(dim=1).sum() < 10
    assert stays.sum(dim=1).tolist() == [3] * 10
    assert not (found[stays].reshape(10, 3) == torch.arange(10)[:, None]).any()
