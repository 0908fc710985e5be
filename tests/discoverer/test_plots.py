"""What the estimator draws, read back from the figure."""

import json
import sys

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="drawing needs the extra `plot`")

from matplotlib import pyplot
from PIL import Image

from igcd import CategoryDiscoverer
from igcd.errors import IgcdError

pyplot.switch_backend("Agg")


@pytest.fixture
def scene():
    """Two labeled blobs and a third without a label, far apart, in twelve dimensions."""
    rng = np.random.default_rng(0)
    kinds = np.repeat([0, 1, 2], 60)
    rows = np.eye(3, 12)[kinds] * 4 + rng.normal(0, 0.25, (180, 12))
    y = np.where(kinds == 0, "owl", np.where(kinds == 1, "fox", "")).astype(object)
    y[::2] = ""
    return rows, y, kinds


@pytest.fixture
def model(scene):
    rows, y, _ = scene
    yield CategoryDiscoverer().fit(rows, y.tolist())
    pyplot.close("all")


def test_a_discovery_carries_its_label(model):
    (found,) = model.discoveries_
    assert found.label == "novel 1"
    model.rename("novel 1", "hare")
    assert model.discoveries_[0].label == "hare"
    model.merge("owl", "hare")
    assert model.discoveries_[0].label == "owl"


def test_a_state_stored_without_labels_has_them_again(model):
    tensors, texts = model.state_dict()
    entries = [{k: v for k, v in one.items() if k != "label"} for one in json.loads(texts["discoveries"])]
    again = CategoryDiscoverer.from_state_dict(tensors, texts | {"discoveries": json.dumps(entries)})
    assert again.discoveries_ == model.discoveries_


def test_every_row_is_on_the_map_once(model, scene):
    rows, _, kinds = scene
    ax = model.plot_map(rows)
    drawn = [collection.get_offsets() for collection in ax.collections]
    assert sum(len(points) for points in drawn) == len(rows)
    names = {text.get_text() for text in ax.texts}
    assert names == {"owl", "fox", "novel 1"}
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert set(legend) == {"unsure", "known", "new"}
    again = model.plot_map(rows)
    for points, others in zip(drawn, (one.get_offsets() for one in again.collections), strict=True):
        assert np.array_equal(points, others)
    # Rows of one kind are nearer to each other than to the others.
    labels = model.assign(rows)
    for kind, label in ((0, "owl"), (1, "fox"), (2, "novel 1")):
        assert (labels[kinds == kind] == label).mean() > 0.8


def test_it_draws_into_axes_of_ones_own(model, scene):
    _, ax = pyplot.subplots()
    assert model.plot_map(scene[0], ax=ax) is ax


def test_categories_show_their_most_typical_images(model, scene):
    shades = np.arange(180, dtype=np.uint8)[:, None, None] * np.ones((1, 4, 4), np.uint8)
    figure = model.plot_categories(images=shades, n_images=5)
    (found,) = model.discoveries_
    shown = [int(ax.images[0].get_array()[0, 0]) for ax in figure.axes if ax.images]
    assert shown == list(found.members[:5])
    assert figure.axes[0].get_title(loc="left") == f"novel 1: {found.n_rows} rows, most like {_nearest(model)}"
    assert set(np.flatnonzero(scene[2] == 2)) >= set(shown)


def _nearest(model):
    return model.ledger_.current(model.discoveries_[0].nearest_id).label


def test_images_may_be_paths(model, tmp_path):
    paths = [tmp_path / f"{number}.png" for number in range(180)]
    for path in paths:
        Image.new("RGB", (6, 6), (10, 20, 30)).save(path)
    figure = model.plot_categories(images=paths, n_images=3)
    assert [ax.images[0].get_array().shape for ax in figure.axes] == [(6, 6, 3)] * 3


def test_what_cannot_be_drawn_is_said(model, scene):
    with pytest.raises(IgcdError, match="images must have one for each row"):
        model.plot_categories(images=[np.zeros((2, 2))])
    with pytest.raises(IgcdError, match="calls that found some: 0"):
        model.plot_categories(images=np.zeros((180, 2, 2)), batch=3)
    model.reject("novel 1")
    with pytest.raises(IgcdError, match="calls that found some: none"):
        model.plot_categories(images=np.zeros((180, 2, 2)))
    with pytest.raises(ValueError, match="features"):
        model.plot_map(scene[0][:, :3])


def test_without_matplotlib_the_error_names_the_extra(model, scene, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(IgcdError, match=r"pip install 'igcd\[plot\]'"):
        model.plot_map(scene[0])
