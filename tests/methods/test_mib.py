"""Centers of most information; what holds for every newer method is in test_newer_methods."""

import torch

from igcd.functional.information import choose_conditional_weight, maximise_information
from igcd.functional.kmeans import kmeans
from igcd.methods.centers import Known
from igcd.methods.gcd import Gcd
from igcd.methods.mib import Mib
from igcd.training import numbered_generator


def test_centers_are_those_of_k_means_moved(make_method, stages):
    (stage, _), *_ = stages("mi")
    generator = torch.Generator().manual_seed(0)
    x, clusters = torch.randn(20, 6, generator=generator), torch.arange(20) % 4
    unlabeled = torch.randn(15, 6, generator=generator)
    known = Known(x, clusters)
    method = make_method(Mib, n_steps=7, n_starts=2, counts=(2,))
    twin = make_method(Gcd, features="frozen", n_starts=2, counts=(2,))
    for each in (method, twin):
        each._book.open(4)
    found = method._cluster(stage, known, known, unlabeled)
    twin._cluster(stage, known, known, unlabeled)
    rows, categories = torch.cat([x, unlabeled]), torch.cat([clusters, torch.full((15,), -1)])
    blind = kmeans(rows, n_clusters=6, generator=numbered_generator(0, 0)).centers
    weight = choose_conditional_weight(rows, categories, blind, n_steps=7)
    moved = maximise_information(rows, categories, twin._centers, conditional_weight=weight, n_steps=7)
    assert torch.equal(method._centers, moved)
    assert torch.equal(found, method._clusters[(unlabeled @ moved.T).argmax(dim=1)])
