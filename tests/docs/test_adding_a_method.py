"""The example of docs/adding_a_method.md is complete, runs, and makes a method that keeps the rules."""

import re
from pathlib import Path

import pytest
import torch

from igcd.methods.method import Method
from igcd.methods.two_views import TwoViews

PAGE = Path(__file__).parents[2] / "docs" / "adding_a_method.md"
VERBS = [name for name in vars(Method) if not name.startswith("_")]


@pytest.fixture(scope="module")
def example():
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    printed: list[str] = []
    names = {"print": printed.append}
    exec(compile(code, PAGE.name, "exec"), names)
    return names | {"printed": printed, "code": code}


def test_it_learns_both_stages(example):
    assert example["printed"] == [
        "stage 0: 25 test images, 0 discoveries",
        "stage 1: 40 test images, 3 discoveries",
    ]
    clusters = {*example["method"].clusters_of_categories().values()}
    clusters |= {found.cluster for found in example["method"].discoveries()}
    assert clusters == set(range(8)) and set(example["clusters"].tolist()) <= clusters


def test_it_has_every_verb_and_the_page_names_each(example):
    assert VERBS and all(callable(getattr(example["method"], verb)) for verb in VERBS)
    assert all(f"`{verb}(" in PAGE.read_text(encoding="utf-8") for verb in VERBS)


def test_its_state_can_be_taken_up_again(example):
    method, brief = example["method"], example["brief"]
    again = example["ConfidentLabels"](
        example["context"], first_stage=brief, later_stages=brief, count_novel=example["GivenCounts"](())
    )
    again.load_state_dict(*method.state_dict())
    assert torch.equal(again.predict(example["truth"].test_images).cluster, example["clusters"])
    assert again.discoveries() == method.discoveries()


def test_its_loss_learns_from_confident_predictions_alone(example):
    """Two unlabeled images: the first view is sure of cluster 0, or not sure; only the former teaches the second."""
    sure, unsure, other = [0.9, 0.1], [0.5, 0.45], [0.3, 0.3]
    second = torch.tensor([other, other], requires_grad=True)
    nothing = torch.empty(2, 0)
    first = torch.tensor([sure, unsure])
    both = TwoViews((nothing, nothing), (nothing, nothing), (first, second), torch.empty(0, dtype=torch.int64))
    example["method"]._loss(both, None, 0).backward()
    assert second.grad[0, 0] < 0 < second.grad[0, 1]
    assert second.grad[1].tolist() == [0.0, 0.0]


def test_the_class_stays_short(example):
    start = example["code"].index("class ")
    n_lines = example["code"][start : example["code"].index("digits = ")].strip().count("\n") + 1
    assert n_lines <= 40
