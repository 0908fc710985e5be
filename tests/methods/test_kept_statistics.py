import itertools

import torch

from igcd.methods.kept_statistics import KeptStatistics


def means_of(kept):
    return dict(zip(kept.clusters.tolist(), kept.of.means.ravel().tolist(), strict=True))


def test_what_is_known_of_a_cluster_is_replaced_by_as_many_images_and_of_the_others_stays():
    kept = KeptStatistics(1)
    kept.put(torch.tensor([[1.0], [3.0], [7.0]]), torch.tensor([4, 4, 2]))
    assert kept.clusters.tolist() == [2, 4]
    assert kept.of.means.ravel().tolist() == [7.0, 2.0] and kept.of.variances.ravel().tolist() == [0.0, 1.0]
    kept.put(torch.tensor([[5.0], [9.0], [6.0]]), torch.tensor([4, 9, 4]))
    assert means_of(kept) == {2: 7.0, 4: 5.5, 9: 9.0}
    kept.remove([2, 11])
    assert means_of(kept) == {4: 5.5, 9: 9.0} and sorted(kept.of.counts.tolist()) == [1, 2]


def test_a_few_images_that_come_back_do_not_displace_many():
    kept = KeptStatistics(1)
    kept.put(torch.tensor([[1.0], [3.0], [7.0]]), torch.tensor([4, 4, 2]))
    kept.put(torch.tensor([[100.0], [9.0]]), torch.tensor([4, 9]))
    assert means_of(kept) == {2: 7.0, 4: 2.0, 9: 9.0}
    kept.put(torch.tensor([[100.0]]), torch.tensor([4]))
    assert means_of(kept) == {2: 7.0, 4: 2.0, 9: 9.0}


def test_the_largest_set_of_each_cluster_is_kept_whatever_the_order():
    """Law: with sets of different sizes, in any order, each cluster ends with the statistics of its largest one."""
    generator = torch.Generator().manual_seed(0)
    sets = [
        (torch.randn(n, 2, generator=generator), torch.full((n,), cluster)) for n in (1, 2, 5) for cluster in (0, 3)
    ]
    for order in itertools.permutations(range(len(sets))):
        kept = KeptStatistics(2)
        for number in order:
            kept.put(*sets[number])
        for cluster, (rows, _) in zip((0, 3), sets[-2:], strict=True):
            torch.testing.assert_close(kept.of.means[kept.clusters == cluster][0], rows.mean(dim=0))


def test_nothing_is_put_and_nothing_is_kept_of_images():
    kept = KeptStatistics(3)
    kept.put(torch.empty(0, 3), torch.empty(0, dtype=torch.int64))
    assert len(kept) == 0 and kept.kept().images == 0 and kept.kept().bytes == 0
    kept.put(torch.ones(2, 3), torch.tensor([0, 0]))
    assert kept.kept().images == 0 and kept.kept().bytes == 8 + 12 + 12 + 8


def test_the_state_comes_back():
    kept = KeptStatistics(2)
    kept.put(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1, 0]))
    again = KeptStatistics.from_state_dict(kept.state_dict())
    assert again.clusters.tolist() == [0, 1] and torch.equal(again.of.means, kept.of.means)
