# ruff: noqa: N806 - X is what scikit-learn calls the features
"""A call that fails leaves the model as it was."""

import numpy as np
import pytest
from discoverer.easy_rows import a_start, blob

from igcd.discoverer import CategoryDiscoverer, category_means, estimator
from igcd.memory.category_ledger import DiscovererError


def a_picture(model):
    """All that a model holds, to be compared."""
    tensors, metadata = model.state_dict()
    return {name: tensor.tolist() for name, tensor in tensors.items()}, metadata


def out_of_memory(*_args, **_options):
    raise MemoryError


def test_numbers_too_large_for_a_label_change_nothing(model):
    X, y, _ = a_start()
    for label in (2**62, 2**62 - 1, 10**30):
        with pytest.raises(
            DiscovererError,
            match=r"labels (leave no room|must be numbers from) ",
        ):
            CategoryDiscoverer().fit(X, [label if value == 3 else value for value in y.tolist()])
    before = a_picture(model)
    for name in (10**30, 10**400, 2**62, -(2**62), float("inf")):
        with pytest.raises(DiscovererError, match=r"labels must be numbers from .* to 4611686018427387903, got "):
            model.rename(1000, name)
        with pytest.raises(DiscovererError, match="labels must be numbers from "):
            model.split(1000, X[model.labels_ == 1000][:3], name=name)
    for label in (2**62, 10**30):
        with pytest.raises(DiscovererError, match="labels must be numbers from "):
            model.partial_fit(blob(9, 2), [label, -1])
    with pytest.raises(
        DiscovererError, match=r"first_novel must be .* to 2\*\*62 - 1, or 'auto', got 10{30}; change it"
    ):
        model.set_params(first_novel=10**30).fit(X, y)
    model.set_params(first_novel="auto")
    assert a_picture(model) == before


def test_a_call_that_fails_changes_nothing(model, monkeypatch):
    X = np.concatenate([blob(4, 6, seed=2), blob(4, 6, seed=2), blob(9, 40)])
    y = [70] * 6 + [71] * 6 + [-1] * 40  # equal rows under two labels, both new
    for failing in ("rehearsed_confidence", "discover", "Discovery"):
        before = a_picture(model)
        with monkeypatch.context() as patch:
            patch.setattr(category_means if failing == "rehearsed_confidence" else estimator, failing, out_of_memory)
            patch.setattr(model, "_n_calibrated", 1)
            calibrated = model._n_calibrated
            for learn in (model.partial_fit, model.fit):
                with pytest.raises(MemoryError):
                    learn(X, y)
                assert model._n_calibrated == calibrated
        assert a_picture(model) == before
