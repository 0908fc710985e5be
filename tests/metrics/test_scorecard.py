import json
import math
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from igcd.errors import IgcdError
from igcd.metrics.counts import CategoryCount
from igcd.metrics.scorecard import scorecard

NAMES = [
    "/".join(parts)
    for parts in product(["test", "unlabeled"], ["v2", "v1"], ["image", "category"], ["paper", "soft", "hard"])
]


def numbers(value):
    """Every number below a JSON value."""
    if isinstance(value, dict):
        return [number for below in value.values() for number in numbers(below)]
    if isinstance(value, list):
        return [number for below in value for number in numbers(below)]
    return [value] if isinstance(value, int | float) else []


def test_perfect_predictions_score_100_everywhere(perfect_stream):
    card = scorecard(perfect_stream)
    assert list(card.variants) == NAMES
    for name, variant in card.variants.items():
        percents = [percent for stage in variant.stages for percent in stage.scores.values() if percent is not None]
        assert percents, name
        assert set(percents) == {100.0}, name
        assert variant.discovery == {"paper": 100.0, "Happy": 100.0}, name
        forgetting = 0.0 if name.startswith("test") else None  # no unlabeled images at stage 0
        assert set(variant.forgetting.values()) == {forgetting}, name
    for detail in card.details:
        assert (detail.identity, detail.nmi, detail.ari) == (100.0, 100.0, 100.0)
        assert detail.count_all.error == detail.count_new.error == 0
        assert detail.count_new.true == 2


def test_groups_of_the_perfect_stream(perfect_stream):
    groups = [set(stage.scores) for stage in scorecard(perfect_stream).variants["test/v2/image/paper"].stages]
    if "S-1" in perfect_stream.group:  # IGCD-u
        assert groups == [{"All", "Old", "New"}, {"All", "Old", "New", "S-0"}, {"All", "Old", "New", "S-0", "S-1"}]
    else:
        assert groups == [{"All", "Old", "New"}, {"All", "Old", "New"}, {"All", "Old", "New", "S-0"}]


# Stage 0: a and b right. Stage 1: one of a's two images falls to c's cluster. Stage 2: a and b lie in one cluster, c
# and one of e's two images in another.
DRAWN = [
    (0, "test", "a1", "a", "1", "Old"),
    (0, "test", "a2", "a", "1", "Old"),
    (0, "test", "b1", "b", "2", "Old"),
    (1, "test", "a1", "a", "1", "Old"),
    (1, "test", "a2", "a", "3", "Old"),
    (1, "test", "b1", "b", "2", "Old"),
    (1, "test", "c1", "c", "3", "New"),
    (1, "test", "c2", "c", "3", "New"),
    (2, "test", "a1", "a", "1", "S-0"),
    (2, "test", "a2", "a", "1", "S-0"),
    (2, "test", "b1", "b", "1", "S-0"),
    (2, "test", "c1", "c", "3", "Old"),
    (2, "test", "c2", "c", "3", "Old"),
    (2, "test", "e1", "e", "3", "New"),
    (2, "test", "e2", "e", "-1", "New"),
]


@pytest.mark.parametrize(
    ("name", "stage_1", "stage_2", "forgetting", "discovery"),
    [
        (
            "test/v2/image/paper",
            {"All": 80, "Old": 200 / 3, "New": 100},
            {"All": 50, "Old": 100, "New": 0, "S-0": 200 / 3},
            {"paper": 100 / 3, "S-0 group": 100 / 3, "VB-CGCD": 100 / 3},
            {"paper": 400 / 7, "Happy": 50},
        ),
        (
            "test/v2/category/paper",
            {"All": 250 / 3, "Old": 75, "New": 100},
            {"All": 50, "Old": 100, "New": 0, "S-0": 50},
            {"paper": 50, "S-0 group": 50, "VB-CGCD": 50},
            {"paper": 50, "Happy": 50},
        ),
        (  # inside New, cluster 3 stands for e
            "test/v1/image/paper",
            {"All": 80, "Old": 200 / 3, "New": 100},
            {"All": 75, "Old": 100, "New": 50, "S-0": 200 / 3},
            {"paper": 100 / 3, "S-0 group": 100 / 3, "VB-CGCD": 100 / 3},
            {"paper": 500 / 7, "Happy": 75},
        ),
        (
            "test/v2/image/soft",
            {"All": 80, "Old": 200 / 3, "New": 100},
            {"All": 400 / 7, "Old": 80, "New": 0},
            {"paper": 100 / 3, "S-0 group": 100 / 3, "VB-CGCD": 100 / 3},
            {"paper": 400 / 7, "Happy": 50},
        ),
        (
            "test/v2/image/hard",
            {"All": 80, "Old": 200 / 3, "New": 100},
            {"All": 400 / 7, "Old": 200 / 3, "New": 50},
            {"paper": 100 / 3, "S-0 group": 100 / 3, "VB-CGCD": 100 / 3},
            {"paper": 400 / 7, "Happy": 75},
        ),
    ],
)
def test_variants_by_hand(make_table, name, stage_1, stage_2, forgetting, discovery):
    variant = scorecard(make_table(*DRAWN)).variants[name]
    assert variant.stages[0].scores == {"All": 100, "Old": 100, "New": None}
    assert variant.stages[1].scores == pytest.approx(stage_1)
    assert variant.stages[2].scores == pytest.approx(stage_2)
    assert variant.forgetting == pytest.approx(forgetting)
    assert variant.discovery == pytest.approx(discovery)


def test_details_by_hand(make_table):
    details = scorecard(make_table(*DRAWN)).details
    assert [detail.n_images for detail in details] == [3, 5, 7]
    assert [(detail.count_all.found, detail.count_all.true) for detail in details] == [(2, 2), (3, 3), (2, 4)]
    assert [(detail.count_new.found, detail.count_new.true) for detail in details] == [(2, 2), (1, 1), (0, 1)]
    assert [(detail.count_won.found, detail.count_won.true) for detail in details] == [(0, 0), (1, 1), (0, 1)]
    assert [detail.identity for detail in details] == pytest.approx([100, 80, 400 / 7])


STATIC = [
    (0, "test", "a1", "a", "1", "Old"),
    (0, "test", "b1", "b", "1", "New"),
    (0, "unlabeled", "a2", "a", "1", "Old"),
    (0, "unlabeled", "b2", "b", "2", "New"),
]


def test_static_is_scored_on_the_unlabeled_images(make_table):
    card = scorecard(make_table(*STATIC))
    assert card.default == "unlabeled/v2/image/paper" and card.details[0].n_images == 2
    assert card.to_json()["stages"][0]["scores"] == {"All": 100, "Old": 100, "New": 100}
    assert card.details[0].count_won == CategoryCount(found=1, true=1)  # a is known, b is to be found
    assert set(card.variants) == set(NAMES)
    later = [(1, "test", "a1", "a", "1", "Old")]
    assert scorecard(make_table(*STATIC, *later)).default == "test/v2/image/paper"
    assert scorecard(make_table(*STATIC[:2])).default == "test/v2/image/paper"


def test_json_has_the_promised_shape(make_table):
    card = json.loads(json.dumps(scorecard(make_table(*DRAWN)).to_json(), allow_nan=False))
    assert card["M_f"] == pytest.approx(100 / 3)
    assert card["M_d"] == pytest.approx(400 / 7)
    assert [stage["stage"] for stage in card["stages"]] == [0, 1, 2]
    assert card["stages"][2]["scores"]["S-0"] == pytest.approx(200 / 3)
    assert card["stages"][0]["scores"]["New"] is None
    assert list(card["variants"]) == [name for name in NAMES if name.startswith("test")]
    default = card["variants"]["test/v2/image/paper"]
    assert default["M_f"] == card["M_f"]
    assert default["stages"][2]["scores"] == card["stages"][2]["scores"]


def test_without_test_images_the_unlabeled_ones_are_scored(make_table):
    card = scorecard(make_table((1, "unlabeled", "a", "cat", "1", "New"), (1, "unlabeled", "b", "dog", "1", "Old")))
    assert card.default == "unlabeled/v2/image/paper"
    assert card.variants[card.default].stages[0].scores["All"] == 50


def test_hard_is_undefined_where_the_file_does_not_tell(make_table):
    variants = scorecard(make_table((3, "test", "a", "cat", "1", "Old"))).variants
    assert variants["test/v1/category/hard"].to_json()["stages"] == [
        {"stage": 3, "scores": {"All": None, "Old": None, "New": None}}
    ]
    assert variants["test/v1/category/hard"].discovery["paper"] is None
    assert variants["test/v1/category/soft"].stages[0].scores["Old"] == 100


def test_scorecard_checks_what_it_scores(make_table):
    with pytest.raises(IgcdError, match=r"mine\.csv, line 2"):
        scorecard(make_table((0, "test", "a", "cat", "1", "Other")), source="mine.csv")


@st.composite
def streams(draw):
    """Any predictions: 3 stages, up to 6 categories with a group per stage and split, up to 5 clusters and none."""
    n_categories = draw(st.integers(1, 6))
    rows = []
    for stage, split in product(range(3), ["test", "unlabeled"]):
        possible = ["Old", "New", *(f"S-{k}" for k in range(stage))]
        groups = draw(st.lists(st.sampled_from(possible), min_size=n_categories, max_size=n_categories))
        images = draw(st.lists(st.tuples(st.integers(0, n_categories - 1), st.integers(-1, 4)), max_size=12))
        rows += [
            (stage, split, f"image-{category}-{i}", f"category-{category}", str(cluster), groups[category])
            for i, (category, cluster) in enumerate(images)
        ]
    return rows or [(0, "test", "image-0", "category-0", "0", "Old")]


@settings(max_examples=40)
@given(rows=streams(), random=st.randoms(use_true_random=False))
def test_laws(make_table, rows, random):
    card = scorecard(make_table(*rows)).to_json()
    json.dumps(card, allow_nan=False)
    assert all(math.isfinite(number) for number in numbers(card))

    for variant in card["variants"].values():
        for stage in variant["stages"]:
            scores = stage["scores"]
            parts = [scores[group] for group in ("Old", "New") if scores[group] is not None]
            assert (scores["All"] is None) == (not parts)
            if parts:
                assert min(parts) - 1e-9 <= scores["All"] <= max(parts) + 1e-9
            assert all(0 <= percent <= 100 for percent in scores.values() if percent is not None)

    names = random.sample(["x", "07", "cluster", "9", "é"], 5)
    renamed = [(*row[:4], row[4] if row[4] == "-1" else names[int(row[4])], row[5]) for row in rows]
    random.shuffle(renamed)
    card_renamed = scorecard(make_table(*renamed)).to_json()
    assert card_renamed["variants"] == card["variants"]
    assert [stage["identity"] for stage in card_renamed["stages"]] == [stage["identity"] for stage in card["stages"]]
    assert numbers(card_renamed) == pytest.approx(numbers(card))
