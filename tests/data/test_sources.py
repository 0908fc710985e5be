"""The list of sources, and the one that comes with a dependency."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from igcd.data.sources import SOURCES, load_source
from igcd.errors import IgcdError

N_CATEGORIES = {"cifar100": 100, "cifar10": 10, "cub": 200, "cars": 196, "imagenet100": 100, "imagenet1k": 1000}
N_CATEGORIES |= {"tiny-imagenet": 200, "digits": 10}


@pytest.mark.parametrize("name", SOURCES)
def test_every_source_has_a_module_that_loads_and_a_description(name):
    source = SOURCES[name]
    assert source.name == name
    assert callable(import_module(source.module).load)
    assert source.description
    assert source.expects


@pytest.mark.parametrize(("name", "n_categories"), N_CATEGORIES.items())
def test_the_default_stages_use_every_category(name, n_categories):
    assert sum(SOURCES[name].split_sizes) == n_categories


def test_unknown_sources_and_options_are_answered_with_the_known(tmp_path):
    with pytest.raises(IgcdError, match="unknown source 'cifar'; choose one of fieldguide, cifar100, cifar10, cub"):
        load_source("cifar")
    with pytest.raises(IgcdError, match="cifar100 has no option 'label'; it knows labels"):
        load_source("cifar100", tmp_path, label="fine")


@pytest.mark.parametrize("name", [name for name, source in SOURCES.items() if source.needs_root])
def test_a_missing_root_is_answered_with_what_is_expected(name, tmp_path):
    with pytest.raises(IgcdError, match="it expects"):
        load_source(name)
    with pytest.raises(IgcdError, match="does not exist; the source"):
        load_source(name, tmp_path / "nowhere")


def test_the_list_is_at_hand_without_loading_numpy():
    code = "import sys, igcd.data.sources; print('numpy' in sys.modules, 'PIL' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.split() == ["False", "False"]


def test_digits():
    dataset = load_source("digits")
    assert len(dataset) == 1797
    assert dataset.images.pixels(0).shape == (8, 8, 3)
    brightest = max(int(dataset.images.pixels(i).max()) for i in range(100))
    assert (brightest, int(dataset.images.pixels(0).min())) == (255, 0)
    in_test = np.bincount(dataset.categories[dataset.is_test]) / np.bincount(dataset.categories)
    assert ((in_test > 0.24) & (in_test <= 0.25)).all()
    assert all(
        (image_id.split("/")[0] == "test") == test
        for image_id, test in zip(dataset.images.ids, dataset.is_test, strict=True)
    )
    assert load_source("digits", Path()).images.ids == dataset.images.ids
