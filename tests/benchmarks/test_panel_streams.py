"""benchmarks/panel_streams.py: how rows are dealt out, and a stream of blobs that is easy."""

import sys

import numpy as np
import panel_streams
import pytest
from panel_sets import FeatureSet


def blobs(n_categories=20, n_each=40, width=30):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(n_categories), n_each)
    x = rng.normal(size=(n_categories, width))[y] + 0.3 * rng.normal(size=(len(y), width))
    return FeatureSet("blobs", x.astype(np.float32), y)


@pytest.mark.parametrize("returning", [0.0, 0.1, 0.8])
def test_every_row_arrives_once_and_new_categories_first_at_their_stage(returning):
    y = blobs().y
    stream = panel_streams.arrivals(y, returning, seed=1)
    dealt = np.concatenate([stream.labeled, *stream.unlabeled, stream.test])
    assert sorted(dealt) == list(range(len(y)))
    assert [len(group) for group in stream.categories] == [14, 2, 2, 2]
    assert set(y[stream.labeled]) == set(stream.categories[0])
    for stage, rows in enumerate(stream.unlabeled, start=1):
        seen = np.concatenate(stream.categories[: stage + 1])
        assert set(y[rows]) == (set(seen) if returning else set(stream.categories[stage]))
    n_labeled, n_back = len(stream.labeled), np.isin(y[stream.unlabeled[0]], stream.categories[0]).sum()
    assert n_back / n_labeled == pytest.approx(returning, abs=0.05)


def test_far_blobs_are_all_found():
    outcome = panel_streams.run_stream(blobs(), 0.4, seed=0)
    assert outcome.opened == outcome.true == [2, 2, 2]
    assert min(outcome.all, outcome.old, outcome.new) > 99
    assert panel_streams.off_by([outcome]) == 0


def test_far_blobs_are_all_found_where_most_categories_are_new():
    outcome = panel_streams.run_stream(blobs(), 0.4, seed=0, known=0.4, n_later=1)
    assert outcome.opened == outcome.true == [12]
    assert outcome.all > 99


def test_the_command_prints_a_table(tmp_path, monkeypatch, capsys):
    features = blobs()
    np.savez(tmp_path / "mine.npz", x=features.x, y=features.y)
    arguments = [str(tmp_path / "mine.npz"), "--sets", "mine", "--returning", "0.4", "--cache", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["panel_streams.py", *arguments])
    panel_streams.main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2].startswith("| mine | 0.4 | 100.0 |")
    assert lines[-1].startswith("| all |") and lines[-1].endswith("| 0% |")
