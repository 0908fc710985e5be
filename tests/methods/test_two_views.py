"""What every trained method relies on: both views of a batch in one pass, and columns that skip closed clusters."""

import numpy as np
import pytest
import torch
from torch import nn

from igcd.methods.cosine_head import CosineHead
from igcd.methods.two_views import two_views
from igcd.training import Batch


class NumberedViews:
    """Image i has the views 10 i + 1 and 10 i + 2, as one-dimensional trunk output. Positions 1 and 3 are broken."""

    usable_idx = np.array([0, 2, 4])

    def two_views(self, rows, generator, *, part):  # noqa: ARG002
        first = torch.from_numpy(10.0 * rows[part])[:, None].float()
        return first + 1, first + 2


class Counting(nn.Module):
    """Hands the trunk output on as feature and projection, with the cosines of a head; counts its passes."""

    def __init__(self, head):
        super().__init__()
        self.head, self.n_passes = head, 0

    def forward(self, x):
        self.n_passes += 1
        return x, -x, self.head(torch.cat([x, torch.ones_like(x)], dim=1))


@pytest.fixture
def head():
    head = CosineHead(2)
    head.grow(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    head.close([1])
    return head


def batch(labeled, unlabeled):
    rows = (np.array(part, dtype=np.int64) for part in (labeled, unlabeled))
    return Batch(*rows, torch.Generator())


COLUMNS = torch.tensor([1, 0, 1])  # of clusters 2, 0, 2 when cluster 1 is closed


def test_labeled_images_first_and_the_same_image_in_both_views(head):
    model = Counting(head)
    views = two_views(model, batch([2, 0], [1]), NumberedViews(), COLUMNS, NumberedViews(), head.is_open)
    assert model.n_passes == 1
    assert [h[:, 0].tolist() for h in views.h] == [[41, 1, 21], [42, 2, 22]]
    assert [z[:, 0].tolist() for z in views.z] == [[-41, -1, -21], [-42, -2, -22]]
    assert views.targets.tolist() == [1, 1]
    assert views.z_labeled[1][:, 0].tolist() == [-42, -2]


def test_the_order_of_the_forward_pass_changes_nothing_but_itself(head):
    seen = []
    model = Counting(head)
    model.register_forward_pre_hook(lambda _model, inputs: seen.append(inputs[0][:, 0].tolist()))
    both = NumberedViews(), COLUMNS, NumberedViews()
    views, apart = (two_views(model, batch([2, 0], [1]), *both, labeled_apart=flag) for flag in (False, True))
    assert seen == [[41, 1, 21, 42, 2, 22], [41, 1, 42, 2, 21, 22]]
    for name in ("h", "z", "cosines"):
        assert all(torch.equal(*pair) for pair in zip(getattr(views, name), getattr(apart, name), strict=True))
    assert views.labeled_h[:, 0].tolist() == [41, 1, 42, 2]
    assert [h[:, 0].tolist() for h in views.unlabeled_h] == [[21], [22]]


def test_a_model_without_a_head_has_no_cosines():
    views = two_views(lambda x: (x, -x), batch([2, 0], [1]), NumberedViews(), COLUMNS, NumberedViews())
    assert views.cosines[0].shape == (3, 0) and views.h[1][:, 0].tolist() == [42, 2, 22]


def test_a_closed_cluster_has_no_column(head):
    views = two_views(Counting(head), batch([1], [0]), NumberedViews(), COLUMNS, NumberedViews(), head.is_open)
    assert views.cosines[0].shape == (2, 2) and torch.isfinite(torch.cat(views.cosines)).all()
    assert torch.allclose(views.cosines[0][:, 0], views.h[0][:, 0])  # the first column is cluster 0
    assert torch.equal(views.labeled_cosines, torch.stack([views.cosines[0][0], views.cosines[1][0]]))


def test_either_half_may_be_missing(head):
    without_labels = two_views(
        Counting(head), batch([], [0, 1]), NumberedViews(), COLUMNS, NumberedViews(), head.is_open
    )
    assert without_labels.labeled_cosines.shape == (0, 2) and len(without_labels.h[0]) == 2
    only_labels = two_views(Counting(head), batch([0, 1], []), NumberedViews(), COLUMNS, None, head.is_open)
    assert len(only_labels.h[0]) == 2 and only_labels.targets.tolist() == [1, 0]


def test_the_second_view_is_the_partners(head):
    """Labeled images 0 and 2 have partners 1 and 0 of the labeled set, the unlabeled one has partner 2."""
    rows = np.array([1, 0]), np.array([2])
    views = two_views(
        Counting(head), batch([0, 2], [1]), NumberedViews(), COLUMNS, NumberedViews(), head.is_open, partners=rows
    )
    assert [h[:, 0].tolist() for h in views.h] == [[1, 41, 21], [22, 2, 42]]
    assert views.targets.tolist() == [1, 1]  # of the images themselves
