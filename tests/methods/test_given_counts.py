import pytest
import torch

from igcd.errors import IgcdError
from igcd.methods.density_gaussian import DensityGaussian
from igcd.methods.novel_count import EstimatedCount, GivenCounts, given_number
from igcd.methods.snn_density import SnnDensity


def test_the_given_number_of_each_stage():
    features, clusters = torch.empty(0, 3), torch.empty(0, dtype=torch.int64)
    count = GivenCounts((0, 10, 7))
    assert [count(stage, features, clusters, features) for stage in range(3)] == [0, 10, 7]
    with pytest.raises(IgcdError, match="not given for stage 3"):
        count(3, features, clusters, features)


def test_only_a_given_number_is_used():
    assert [given_number(GivenCounts((0, 10)), stage) for stage in range(2)] == [0, 10]
    assert given_number(EstimatedCount("density"), 1) is None


@pytest.mark.parametrize("kind", [SnnDensity, DensityGaussian])
@pytest.mark.parametrize("n_novel", [1, 3])
def test_methods_that_find_the_number_take_a_given_one(make_method, stages, kind, n_novel):
    method = make_method(kind, counts=(0, n_novel), features="frozen")
    (first, _), (second, _), *_ = stages("igcd-u")
    method.learn(first)
    method.learn(second)
    assert len(method.discoveries()) == n_novel
