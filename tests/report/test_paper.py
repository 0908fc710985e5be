import pytest

from igcd.errors import IgcdError
from igcd.report.paper import PUBLISHED, RESNET_18, TABLES, differences, published_count, published_figures


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


@pytest.mark.parametrize("name", TABLES)
def test_every_row_has_a_figure_for_every_column(name):
    table = TABLES[name]
    assert all(len(row) == len(table["columns"]) for row in table["rows"].values())


def test_a_reference_picks_a_table_a_data_set_and_a_row():
    assert published_figures("cifar100_igcd_l", "gm").figures["S3.S-0"] == 49.8
    assert published_figures("backbone.vit_b/gm", "snn_density").figures == {"M_f": 29.1, "M_d": 24.8}
    assert "M_f" not in published_figures("cifar100_igcd_l", "supervised").figures  # the paper prints none
    with pytest.raises(IgcdError, match="there is no table 'mj'; choose one of"):
        published_figures("mj.cub", "gm")
    with pytest.raises(IgcdError, match="no columns of 'cup'; choose one of cifar100, cub"):
        published_figures("mi.cup", "gm")


def test_counts_of_the_paper():
    assert published_count("cifar100-mi", "snn_density").found == (13, 10, 12)
    assert published_count("cifar100-mi", "orca") is None and published_count("cub-mi", "gm") is None
