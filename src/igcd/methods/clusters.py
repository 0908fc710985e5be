"""Which cluster stands for which category. Ids are permanent: a number once given is never given again."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict

import numpy as np
import torch
from torch import Tensor

from igcd.functional.assignment import contingency, match
from igcd.methods.method import Discovery
from igcd.types import UNLABELED, IntArray


class ClusterBook:
    """The clusters of a method: those with the label of a category, and those it discovered."""

    def __init__(self) -> None:
        self.cluster_of: dict[int, int] = {}  # category id of a label -> cluster
        self.found: dict[int, Discovery] = {}  # cluster -> where it was found
        self.n_clusters = 0

    def open(self, n: int) -> list[int]:
        """The ids of n new clusters."""
        self.n_clusters += n
        return list(range(self.n_clusters - n, self.n_clusters))

    def take_in_labels(self, labels: IntArray, predicted: IntArray, unnamed: Iterable[int]) -> set[int]:
        """Gives each newly labeled category a cluster, (n,), (n,); returns the discarded clusters.

        In IGCD-l the unlabeled images of the last stage come back with labels. Of the `unnamed` clusters, one that
        mostly holds images of a newly labeled category becomes that category and keeps its id, the others are
        discarded; a category that was not discovered gets a new cluster. `predicted` are the clusters of the labeled
        images before they are learned.
        """
        newly = sorted(set(labels.tolist()) - set(self.cluster_of))
        unnamed = sorted(unnamed)
        dropped: set[int] = set()
        if newly and unnamed:
            counts = contingency(np.where(np.isin(predicted, unnamed), predicted, UNLABELED), labels)
            for cluster, category in enumerate(match(counts).tolist()):
                if category in newly and 2 * counts[cluster, category] > counts[[cluster]].sum():
                    self.cluster_of[category] = cluster
            dropped = set(unnamed) - set(self.cluster_of.values())
        for category in newly:
            if category not in self.cluster_of:
                [self.cluster_of[category]] = self.open(1)
        return dropped

    def of(self, labels: IntArray) -> Tensor:
        """The cluster of each label, (n,) -> (n,)."""
        return torch.tensor([self.cluster_of[category] for category in labels.tolist()], dtype=torch.int64)

    def drop(self, clusters: Iterable[int]) -> None:
        """Forgets discarded clusters; their numbers are not given again."""
        for cluster in clusters:
            self.found.pop(cluster, None)

    def state_dict(self) -> dict[str, str]:
        """All of it as text."""
        return {
            "cluster_of": json.dumps(sorted(self.cluster_of.items())),
            "found": json.dumps([asdict(discovery) for discovery in self.found.values()]),
            "n_clusters": json.dumps(self.n_clusters),
        }

    @classmethod
    def from_state_dict(cls, metadata: Mapping[str, str]) -> "ClusterBook":
        """The inverse of `state_dict`."""
        book = cls()
        book.cluster_of = dict(json.loads(metadata["cluster_of"]))
        for entry in json.loads(metadata["found"]):
            book.found[entry["cluster"]] = Discovery(**entry | {"members": tuple(entry["members"])})
        book.n_clusters = json.loads(metadata["n_clusters"])
        return book
