import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from igcd.errors import IgcdError
from igcd.functional.snn import soft_nearest_neighbor
from igcd.memory.support_set import SupportSet


def a_set():
    support = SupportSet(n_per_category=2)
    support.add(torch.eye(4)[:3], torch.tensor([7, 7, 2]), ["a", "b", "c"], pseudo_labeled=False)
    support.add(torch.eye(4)[3:], torch.tensor([11]), ["d"], pseudo_labeled=True)
    return support


def test_predicts_category_ids_not_columns():
    support = a_set()
    assert support.category_ids.tolist() == [2, 7, 11]
    queries = torch.eye(4) + 0.1
    categories, probs = support.predict(queries, tau=0.1)
    assert categories.tolist() == [7, 7, 2, 11]
    expected = soft_nearest_neighbor(queries, torch.eye(4), torch.tensor([1, 1, 0, 2]), n_categories=3, tau=0.1)
    torch.testing.assert_close(probs, expected.max(dim=1).values)
    torch.testing.assert_close(support.log_probs(queries, tau=0.1).exp(), expected)


def test_refreshed_features_are_those_compared_with():
    support = a_set()
    support.refresh(torch.eye(4).flip(0))
    assert support.predict(torch.eye(4), tau=0.1)[0].tolist() == [11, 2, 7, 7]
    with pytest.raises(IgcdError, match="one feature per support image, 4, got 3"):
        support.refresh(torch.eye(3))


def test_gradient_reaches_support_features():
    support = a_set()
    features = torch.eye(4, requires_grad=True)
    support.refresh(features)
    support.log_probs(torch.ones(1, 4), tau=0.5)[0, 0].backward()
    assert features.grad.abs().max() > 0


def test_survives_being_written_and_read(tmp_path):
    support = a_set()
    tensors, metadata = support.state_dict()
    save_file(tensors, tmp_path / "s.safetensors", metadata)
    with safe_open(tmp_path / "s.safetensors", "pt") as file:
        again = SupportSet.from_state_dict({name: file.get_tensor(name) for name in file.keys()}, file.metadata())  # noqa: SIM118
    assert again.image_ids == support.image_ids
    assert again.n_per_category == 2
    assert again.is_pseudo.tolist() == [False, False, False, True]
    torch.testing.assert_close(again.log_probs(torch.eye(4), tau=0.1), support.log_probs(torch.eye(4), tau=0.1))


def test_empty_set_says_so():
    with pytest.raises(IgcdError, match="the support set is empty"):
        SupportSet(n_per_category=5).predict(torch.eye(2), tau=0.1)
