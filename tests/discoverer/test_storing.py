"""Everything a model has learned, as tensors and texts and back."""

# ruff: noqa: N806 - X is what scikit-learn calls the features
import pickle

import numpy as np
import pytest
from discoverer.easy_rows import a_start, blobs
from safetensors import safe_open
from safetensors.torch import save_file

from igcd.discoverer import CategoryDiscoverer
from igcd.errors import IgcdError
from igcd.memory.category_ledger import DiscovererError


def a_life(model):
    """What a model answers now and after more has happened to it."""
    later, _ = blobs([1, 4, 6, 7], seed=1)
    answers = [model.labels_, model.predict_proba(later), model.categories_, model.category_ids_, model.assign(later)]
    model.partial_fit(later)
    return [
        *answers,
        model.labels_,
        model.categories_,
        model.means_,
        model._kept.entries.content.numpy(),
        np.array(model.n_groups_),
    ]


@pytest.mark.parametrize("labels", ["int", "float", "text"])
def test_a_stored_model_goes_on_as_if_it_had_never_stopped(tmp_path, labels):
    X, y, _ = a_start()
    y = {"int": y, "float": y.astype(float), "text": np.array(["a", "b", "c", "d", ""])[y]}[labels]
    model = CategoryDiscoverer(granularity=0.1).fit(X, y)
    first, second = model.categories_[-2:].tolist()
    model.rename(first, "fox" if labels == "text" else 42)
    model.reject(second)
    tensors, metadata = model.state_dict()
    save_file(tensors, tmp_path / "model.safetensors", metadata)
    with safe_open(tmp_path / "model.safetensors", framework="pt") as file:
        stored = {name: file.get_tensor(name) for name in tensors}
        again = CategoryDiscoverer.from_state_dict(stored, file.metadata())
    assert again.get_params() == model.get_params() and again.discoveries_ == model.discoveries_
    pickled = pickle.loads(pickle.dumps(model))
    for one, other, third in zip(a_life(model), a_life(again), a_life(pickled), strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(one, third)
        assert one.dtype == other.dtype


def test_an_incomplete_or_newer_state_is_said_so(model):
    tensors, metadata = model.state_dict()
    for name in tensors:
        with pytest.raises(IgcdError, match=r"needs the entry '.*', it is absent"):
            CategoryDiscoverer.from_state_dict({n: t for n, t in tensors.items() if n != name}, metadata)
    for name in metadata:
        with pytest.raises(IgcdError, match=r"needs the entry '.*', it is absent"):
            CategoryDiscoverer.from_state_dict(tensors, {n: text for n, text in metadata.items() if n != name})
    with pytest.raises(DiscovererError, match="must be of version 3, got 4"):
        CategoryDiscoverer.from_state_dict(tensors, metadata | {"version": "4"})
