"""The examples of docs/estimator.md run and print what is shown."""

import re
from pathlib import Path

import numpy as np
import pytest

from igcd import CategoryDiscoverer

VERBS = ["rename", "merge", "split", "reject", "partial_fit", "state_dict", "assign", "sub_categories", "transform"]
VERBS += ["plot_map", "plot_categories", "predict_none", "is_unsure"]
ROOT = Path(__file__).parents[2]


def test_the_page_shows_what_is_printed(capsys, tmp_path, monkeypatch):
    page = (ROOT / "docs" / "estimator.md").read_text(encoding="utf-8")
    shown = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", page, flags=re.DOTALL)
    assert len(shown) == 2
    names: dict[str, object] = {}
    for code, text in shown:
        exec(compile(code, "docs/estimator.md", "exec"), names)
        printed = capsys.readouterr().out
        # A sum in another order may move single rows across the border to unsure.
        assert re.sub(r"unsure: .*", "", printed) == re.sub(r"unsure: .*", "", text)
        counts = [[int(n) for n in re.findall(r"\d+", line)] for line in re.findall("unsure: .*", printed + text)]
        assert not counts or counts[0] == pytest.approx(counts[1], rel=0.1)
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="drawing needs the extra `plot`")
    pyplot.switch_backend("Agg")
    monkeypatch.chdir(tmp_path)
    (drawing,) = re.findall(r"```python\n([^`]*?plot_map.*?)```", page, flags=re.DOTALL)
    exec(compile(drawing, "docs/estimator.md", "exec"), names)
    assert {path.name for path in tmp_path.iterdir()} == {"map.png", "categories.png"}


@pytest.mark.parametrize("name", [*VERBS, *CategoryDiscoverer().get_params()])
def test_every_verb_is_explained(name):
    assert f"`{name}" in (ROOT / "docs" / "estimator.md").read_text(encoding="utf-8")


def test_every_attribute_is_explained():
    model = CategoryDiscoverer().fit(np.eye(4), [0, 0, 1, 1])
    page = (ROOT / "docs" / "estimator.md").read_text(encoding="utf-8")
    names = {name for name in dir(model) if name.endswith("_") and not name.startswith("_")} - {"n_features_in_"}
    assert {"labels_", "n_groups_", "neighbor_recall_"} <= names
    assert not {name for name in names if f"`{name}`" not in page}
