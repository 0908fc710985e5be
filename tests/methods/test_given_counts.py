import pytest
import torch

from igcd.errors import IgcdError
from igcd.methods.novel_count import GivenCounts


def test_the_given_number_of_each_stage():
    features, clusters = torch.empty(0, 3), torch.empty(0, dtype=torch.int64)
    count = GivenCounts((0, 10, 7))
    assert [count(stage, features, clusters, features) for stage in range(3)] == [0, 10, 7]
    with pytest.raises(IgcdError, match="not given for stage 3"):
        count(3, features, clusters, features)
