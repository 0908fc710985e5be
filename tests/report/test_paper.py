import pytest

from igcd.report.paper import PUBLISHED, RESNET_18, differences


@pytest.mark.parametrize("stream", [stream for stream, rows in PUBLISHED.items() if rows[0].scores])
def test_forgetting_is_the_fall_of_the_first_categories(stream):
    """The paper's own definition, which its rows for ResNet-18 obey: a wrong figure here would break it."""
    (row,) = [row for row in PUBLISHED[stream] if row.backbone == RESNET_18]
    lowest = min(score for (_, group), score in row.scores.items() if group == "S-0")
    assert row.scores[0, "All"] - lowest == pytest.approx(row.forgetting, abs=0.051)


@pytest.mark.parametrize("row", [row for rows in PUBLISHED.values() for row in rows if (1, "All") in row.scores])
def test_all_lies_between_old_and_new(row):
    for stage in (1, 2, 3):
        assert row.scores[stage, "New"] <= row.scores[stage, "All"] <= row.scores[stage, "Old"]


def test_differences_name_the_encoder_and_what_makes_the_stream_small():
    config = {"encoder": {"backbone": "resnet18", "size": 112}}
    assert differences(config, {"images_labeled": None}) == ["our encoder is resnet18 at 112 px"]
    small = differences(config, {"images_labeled": 50, "images_new": None, "test_per_category": 20})[1]
    assert small == "our stream is a small one (50 images per category at stage 0, 20 test images per category)"
