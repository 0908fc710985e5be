"""What Happy, VB-CGCD and PromptCCD report, against loops over the rows of a drawn stream."""

import numpy as np
import pytest

from igcd.functional.assignment import contingency, match
from igcd.metrics.scorecard import scorecard


def test_perfect_predictions_score_100_by_every_definition(perfect_stream):
    reported = scorecard(perfect_stream).later_work
    assert set(reported) == {"Happy", "VB-CGCD", "PromptCCD"}
    for scores in reported.values():
        assert {value for name, value in scores.items() if name != "M_f"} == {100.0}
        assert scores.get("M_f", 0.0) == 0.0


# Stage 1 brings c, its unlabeled images lie in cluster 3; stage 2 brings d, whose unlabeled images lie in 4. At the end
# the test images of d lie in 3 and those of c in 4: a fresh matching calls all of them right, names fixed before none.
SWAPPED = [
    (0, "test", "a1", "a", "1", "Old"),
    (0, "test", "b1", "b", "2", "Old"),
    (1, "unlabeled", "c8", "c", "3", "New"),
    (1, "test", "a1", "a", "1", "Old"),
    (1, "test", "b1", "b", "1", "Old"),
    (1, "test", "c1", "c", "3", "New"),
    (2, "unlabeled", "d8", "d", "4", "New"),
    (2, "unlabeled", "c9", "c", "3", "New"),
    (2, "test", "a1", "a", "1", "Old"),
    (2, "test", "b1", "b", "2", "Old"),
    (2, "test", "c1", "c", "4", "New"),
    (2, "test", "d1", "d", "3", "New"),
]


def test_by_hand(make_table):
    reported = scorecard(make_table(*SWAPPED)).later_work
    assert reported["Happy"] == pytest.approx({"All": 100, "Old": 100, "New": 100, "M_f": 50, "M_d": 100})
    assert reported["VB-CGCD"] == pytest.approx({"All": 50, "Old": 200 / 3, "New": 0, "M_f": 0})
    assert reported["PromptCCD"] == pytest.approx({"All": (200 / 3 + 100) / 2, "Old": 75, "New": 100})


def test_nothing_is_reported_of_one_stage(make_table):
    assert scorecard(make_table(*SWAPPED[:2])).later_work == {}


def slow_names(rows):
    """Names stage by stage, row by row, and the share of test rows of the last stage that have their own."""
    name_of: dict[int, int] = {}
    right = []
    for stage in sorted({row[0] for row in rows}):
        now = [row for row in rows if row[0] == stage]
        naming = [row for row in now if row[3] == "unlabeled"] or now
        free = [row for row in naming if row[2] >= 0 and row[2] not in name_of and row[1] not in name_of.values()]
        clusters, categories = np.array([row[2] for row in free]), np.array([row[1] for row in free])
        matched = match(contingency(clusters, categories)).tolist() if free else []
        name_of |= {cluster: category for cluster, category in enumerate(matched) if category >= 0}
        right = [name_of.get(row[2]) == row[1] for row in now if row[3] == "test"]
    return 100 * sum(right) / len(right)


@pytest.mark.parametrize("seed", range(12))
def test_fixed_names_as_the_slow_twin_gives_them(make_table, seed):
    """Three stages of three categories each; most images lie in the cluster of their category, some in any, or none."""
    rng = np.random.default_rng(seed)
    rows = []
    for stage in range(3):
        for category in range(3 * stage + 3):
            for split in ("test", "unlabeled") if stage else ("test",):
                usual = (category + stage * rng.integers(2)) % 9
                drawn = np.where(rng.random(20 + 3 * category) < 0.7, usual, rng.integers(-1, 11))
                rows += [(stage, category, cluster, split) for cluster in drawn.tolist()]
    groups = {row[1]: "Old" if row[1] < 3 else "New" for row in rows}
    table = make_table(
        *(
            (stage, split, f"{number}", f"{category:02d}", f"{cluster}", groups[category])
            for number, (stage, category, cluster, split) in enumerate(rows)
        )
    )
    assert scorecard(table).later_work["VB-CGCD"]["All"] == pytest.approx(slow_names(rows))
