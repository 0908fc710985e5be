"""The report reads what the runner really writes."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("lightning_fabric")

from igcd.data.images import ArrayImages  # noqa: E402
from igcd.data.quarantine import Quarantine  # noqa: E402
from igcd.methods.method import Assignment, Discovery, Kept  # noqa: E402
from igcd.records import write_json  # noqa: E402
from igcd.report.page import write_report  # noqa: E402
from igcd.report.run_records import read_run  # noqa: E402
from igcd.runner import run  # noqa: E402
from igcd.types import Stage, StageTruth, Truth  # noqa: E402

CONFIG = {
    "method": {"name": "snn_density"},
    "seed": 3,
    "encoder": {"backbone": "resnet18", "weights": "hub", "size": 8},
}


def images(*brightness):
    """One gray image per value; the value is in the id too."""
    array = np.stack([np.full((8, 8, 3), value, np.uint8) for value in brightness])
    return ArrayImages((f"{value}" for value in brightness), array)


def truth(part, categories, groups):
    return Truth(tuple(part.ids), categories, groups)


class TwoStages:
    """A dark category is labeled at stage 0, a bright one arrives at stage 1."""

    name = "shades-igcd-u"

    def __len__(self):
        return 2

    def __iter__(self):
        labeled, nothing = images(10, 20), images(99).take([])
        tested, unlabeled = images(30, 200), images(210, 220, 230)
        yield (
            Stage(0, labeled, np.array([0, 0]), nothing, ("dark",)),
            StageTruth(
                0,
                truth(labeled, ("dark",) * 2, ("Old",) * 2),
                truth(nothing, (), ()),
                tested.take([0]),
                truth(tested.take([0]), ("dark",), ("Old",)),
            ),
        )
        yield (
            Stage(1, nothing, np.array([], dtype=np.int64), unlabeled, ("dark",)),
            StageTruth(
                1,
                truth(nothing, (), ()),
                truth(unlabeled, ("bright",) * 3, ("New",) * 3),
                tested,
                truth(tested, ("dark", "bright"), ("S-0", "New")),
            ),
        )


class Threshold:
    """Bright images are cluster 1 from the moment it has seen some."""

    def __init__(self):
        self.found = []

    def learn(self, stage):
        if len(stage.unlabeled):
            self.found = [Discovery(1, stage.index, tuple(stage.unlabeled.ids[:2]), 0)]

    def predict(self, shown):
        clusters = [int(bool(self.found) and shown.pixels(i)[0, 0, 0] > 100) for i in range(len(shown))]
        return Assignment(torch.tensor(clusters, dtype=torch.int64), torch.ones(len(clusters)))

    def clusters_of_categories(self):
        return {0: 0}

    def discoveries(self):
        return self.found

    def kept(self):
        return Kept(1, 2, 2, 0, 100)

    def state_dict(self):
        return {"nothing": torch.zeros(1)}, {}

    def load_state_dict(self, _tensors, _metadata):
        raise AssertionError("this run is not resumed")


def test_a_run_and_its_page(tmp_path):
    out = tmp_path / "run"
    write_json(out / "config.json", CONFIG)
    run(TwoStages(), lambda _checkpoint, _report: Threshold(), out, config=CONFIG, quarantine=Quarantine())
    read = read_run(out)
    assert read.results.stream == "shades-igcd-u"
    assert [len(record.discoveries) for record in read.stages] == [0, 1]
    page = write_report(out).read_text()
    assert "The one new category was found, in 1 cluster; in the end 100.0" in page
    assert "never fell below its start" in page
    assert (
        page.count("data:image/jpeg;base64,") == 1 + 3 + 2
    )  # the page opens with the first found; the three, and two examples of the known one
    assert "no picture" not in page
