import numpy as np

from igcd.metrics.groups import first_stages, regroup, rows_by_code
from igcd.metrics.predictions import ABSENT, NEW, OLD

S_0, S_1 = ABSENT, ABSENT + 1


def regrouped(rows, old):
    """Groups under a definition of Old, for rows of (stage, category, group)."""
    return list(regroup(*np.array(rows).T, old=old))


# The test images of IGCD-l: category 0 is labeled at stage 0, category 1 found at stage 1, category 2 at stage 2.
IGCD_L = [(0, 0, OLD), (1, 0, OLD), (1, 1, NEW), (2, 0, S_0), (2, 1, OLD), (2, 2, NEW)]
# The same in IGCD-u, where nothing is labeled after stage 0 and a category that does not come back is S-t.
IGCD_U = [(0, 0, OLD), (1, 0, S_0), (1, 1, NEW), (2, 0, S_0), (2, 1, S_1), (2, 2, NEW)]


def test_paper_is_what_the_file_says():
    assert regrouped(IGCD_L, "paper") == [group for _, _, group in IGCD_L]


def test_soft_has_every_category_seen_before_as_old():
    for stream in (IGCD_L, IGCD_U):
        assert regrouped(stream, "soft") == [OLD, OLD, NEW, OLD, OLD, NEW]


def test_hard_has_the_categories_of_stage_0_as_old():
    for stream in (IGCD_L, IGCD_U):
        assert regrouped(stream, "hard") == [OLD, OLD, NEW, OLD, NEW, NEW]


def test_a_file_that_starts_at_stage_1_tells_the_same():
    for stream in (IGCD_L, IGCD_U):
        assert regrouped(stream[1:], "soft") == [OLD, NEW, OLD, OLD, NEW]
        assert regrouped(stream[1:], "hard") == [OLD, NEW, OLD, NEW, NEW]


def test_a_file_that_starts_later_does_not_tell_who_was_labeled_at_stage_0():
    assert regroup(*np.array(IGCD_L[3:]).T, old="hard") is None
    assert regrouped(IGCD_L[3:], "soft") == [OLD, OLD, NEW]


def test_a_category_first_met_as_absent_was_known_before():
    """Category 3 was found at stage 1 and only the test images of stage 2 show it."""
    rows = [(0, 0, OLD), (2, 0, S_0), (2, 3, S_1)]
    assert regrouped(rows, "soft") == [OLD, OLD, OLD]
    assert regrouped(rows, "hard") == [OLD, OLD, NEW]


def test_a_never_labeled_category_that_comes_back_is_old_to_soft_only():
    rows = [(0, 0, OLD), (1, 1, NEW), (2, 1, NEW)]
    assert regrouped(rows, "soft") == [OLD, NEW, OLD]
    assert regrouped(rows, "hard") == [OLD, NEW, NEW]


def test_static_discovery_keeps_its_groups():
    rows = [(0, 0, OLD), (0, 1, NEW)]
    for old in ("paper", "soft", "hard"):
        assert regrouped(rows, old) == [OLD, NEW]


def test_first_stages_and_rows_by_code():
    np.testing.assert_array_equal(first_stages(np.array([2, 1, 0]), np.array([0, 0, 1])), [1, 0])
    assert rows_by_code(np.empty(0, dtype=np.int64)) == {}
    assert {code: list(rows) for code, rows in rows_by_code(np.array([5, 3, 5])).items()} == {3: [1], 5: [0, 2]}
