"""The number of novel categories, on blobs one could draw: given, or estimated from whatever is known."""

import pytest
import torch
from torch.nn.functional import normalize

from igcd.errors import IgcdError
from igcd.functional.counting import count_by_kmeans
from igcd.methods.novel_count import EstimatedCount, GivenCounts

WIDTH = 16


def blobs(categories, n_each, seed=0):
    """Tight groups of unit vectors around axes of their own."""
    generator = torch.Generator().manual_seed(seed)
    clusters = torch.tensor(categories).repeat_interleave(n_each)
    noise = 0.1 * torch.randn(len(clusters), WIDTH, generator=generator)
    return normalize(torch.eye(WIDTH)[clusters] + noise, dim=1), clusters


KNOWN, CLUSTERS = blobs(range(6), 20)
UNLABELED, _ = blobs(range(9), 20, seed=1)
PROTOTYPES = torch.eye(WIDTH)[:6]
NOTHING = KNOWN[:0], CLUSTERS[:0]


def test_what_is_given_is_told_stage_by_stage():
    counts = GivenCounts((0, 4))
    assert [counts(stage, *NOTHING, UNLABELED) for stage in (0, 1)] == [0, 4]
    with pytest.raises(IgcdError, match="stage 2"):
        counts(2, *NOTHING, UNLABELED)


@pytest.mark.parametrize("by", ["density", "silhouette"])
def test_known_images_tell_how_many_others_there_are(by):
    assert EstimatedCount(by)(1, KNOWN, CLUSTERS, UNLABELED) == 3


def test_kmeans_draws_by_seed_and_stage():
    for seed, stage in ((3, 1), (0, 2)):
        generator = torch.Generator().manual_seed((seed << 20) + stage)
        expected = count_by_kmeans(KNOWN, CLUSTERS, UNLABELED, generator=generator).n_novel
        assert EstimatedCount("kmeans", seed=seed)(stage, KNOWN, CLUSTERS, UNLABELED) == expected


def test_one_prototype_each_is_enough_to_be_known():
    known = PROTOTYPES, torch.arange(6)
    assert EstimatedCount("density")(1, *known, UNLABELED) == 3
    assert EstimatedCount("density")(1, *known, UNLABELED[:120]) == 0  # the images of the six alone


def test_kmeans_with_nothing_to_compare_gives_way_to_the_silhouette():
    known = PROTOTYPES, torch.arange(6)
    by_silhouette = EstimatedCount("silhouette")(1, *known, UNLABELED)
    assert EstimatedCount("kmeans")(1, *known, UNLABELED) == by_silhouette
    assert 2 <= by_silhouette <= 4  # k-means from one start may cut a category in two


@pytest.mark.parametrize("by", ["density", "kmeans", "silhouette"])
def test_where_nothing_is_known_everything_is_novel(by):
    assert EstimatedCount(by)(0, *NOTHING, UNLABELED) == 9


def test_images_say_how_fine_to_look_and_prototypes_are_known_beside_them():
    """Two categories with images, four with a prototype: as when labels of a few arrive."""
    shows = CLUSTERS < 2
    known = torch.cat([KNOWN[shows], PROTOTYPES[2:]])
    clusters = torch.cat([CLUSTERS[shows], torch.arange(2, 6)])
    assert EstimatedCount("density")(1, known, clusters, UNLABELED) == 3


@pytest.mark.parametrize("by", ["density", "kmeans", "silhouette"])
@pytest.mark.parametrize("n_unlabeled", [0, 1, 2, 3, 5])
def test_few_unlabeled_images_are_no_trouble(by, n_unlabeled):
    for known, clusters in ((KNOWN, CLUSTERS), (PROTOTYPES, torch.arange(6)), NOTHING):
        assert 0 <= EstimatedCount(by)(0, known, clusters, UNLABELED[:n_unlabeled]) <= n_unlabeled
