"""Groups and ranks within them, against loops."""

import pytest
import torch

from igcd.functional.grouping import distinct, rank_within_group


@pytest.mark.parametrize(("n", "n_groups"), [(0, 1), (1, 1), (7, 3), (5_000, 40)])
def test_ranks_count_earlier_elements_of_the_group(n, n_groups):
    groups = 3 * torch.randint(n_groups, (n,), generator=torch.Generator().manual_seed(n)) - 2
    seen = dict.fromkeys(groups.tolist(), 0)
    expected = []
    for group in groups.tolist():
        expected.append(seen[group])
        seen[group] += 1
    assert rank_within_group(groups).tolist() == expected


def test_distinct_values_rise_and_rows_lead_back_to_them():
    groups = torch.tensor([7, -3, 7, 12, -3])
    different, rows = distinct(groups)
    assert different.tolist() == [-3, 7, 12] and torch.equal(different[rows], groups)
