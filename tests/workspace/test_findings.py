import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from igcd.workspace.findings import largest_columns


@given(arrays(np.float32, (4, 5), elements=st.sampled_from([0.0, 0.25, 0.5, 1.0])), st.integers(1, 5))
def test_the_largest_columns_are_those_a_sorted_row_begins_with(values, n):
    before = values.copy()
    expected = [sorted(range(5), key=lambda column, row=row: (-row[column], column))[:n] for row in values.tolist()]
    assert largest_columns(values, n).tolist() == expected
    np.testing.assert_array_equal(values, before)
