"""Whether the parts of a stored discoverer fit each other: damage is refused before anything is built on it."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, get_args

import numpy as np
import torch

from igcd.discoverer.arguments import MAX_COUNT, is_count, is_finite_number
from igcd.discoverer.category_means import CategoryMeans
from igcd.discoverer.certainty import Certainty
from igcd.discoverer.kept_rows import KeptRows
from igcd.functional.projection import Projection
from igcd.memory.category_ledger import LARGEST, CategoryLedger, DiscovererError, Status
from igcd.types import UNLABELED, IntArray


def check_stored(
    ledger: CategoryLedger,
    kept: KeptRows,
    projection: Projection,
    means: CategoryMeans,
    row_ids: IntArray,
    fitted: Mapping[str, Any],
) -> None:
    """Raises `DiscovererError` for the first part that cannot have been stored by a discoverer."""
    n_features, n, entries = fitted["n_features_in_"], len(ledger.categories), kept.entries
    mean, components, whitening = projection.mean, projection.components, means.whitening.matrix
    width = len(components)
    numbers = [mean, components, whitening, entries.content, means.means]
    counts = [fitted["_n_batches"], fitted["_n_calibrated"], fitted["n_groups_"]]
    checks = {
        "ids": [category.id for category in ledger.categories] == list(range(n)),
        "names": all(category_id in range(n) for category_id in ledger.id_of_name.values()),
        "labels": all(_is_label(ledger, category.label) for category in ledger.categories),
        "statuses": all(category.status in get_args(Status) for category in ledger.categories),
        "merges": _merges_end(ledger),
        "mean": mean.shape == (n_features,) and mean.is_floating_point(),
        "components": components.shape == (width, n_features),
        "whitening": whitening.shape == (width, width),
        "counts": all(isinstance(number, int) and 0 <= number <= MAX_COUNT for number in counts),
        "exponent": abs(projection.exponent) < 2000,
        "certainty": all(_is_certainty(each) for each in (means.learned, means.later or means.learned)),
        "recall": 0 <= fitted["neighbor_recall_"] <= 1,
        "kept rows": entries.content.ndim == 2 and (len(entries) == 0 or entries.content.shape[1] == width),
        "rows per category": is_count(entries.n_per_category),
        "categories of kept rows": _are_ids(entries.categories, n) and bool((entries.categories != UNLABELED).all()),
        "guesses": entries.is_pseudo.dtype == torch.bool,
        "categories of means": _are_ids(means.ids, n) and bool((means.ids.diff() > 0).all()),
        "means": means.means.ndim == 2 and len(means.means) == len(means.ids) == len(means.counts),
        "categories of rows": _are_ids(torch.from_numpy(row_ids), n),
        "keys": fitted["_learned_keys"].ndim == 1 and bool((np.diff(fitted["_learned_keys"]) > 0).all()),
        "types": {str(part.dtype) for part in numbers if len(part)} == {f"torch.{fitted['_dtype_name']}"},
        "numbers": all(bool(part.isfinite().all()) for part in numbers),
    }
    for name, is_sound in checks.items():
        if not is_sound:
            raise DiscovererError(f"a stored discoverer is damaged, its {name} do not fit the rest; store it again")


def _are_ids(ids: torch.Tensor, n: int) -> bool:
    """Whether these are positions of categories, or −1."""
    is_row = ids.ndim == 1 and ids.dtype == torch.int64
    return is_row and (len(ids) == 0 or (int(ids.min()) >= UNLABELED and int(ids.max()) < n))


def _is_certainty(certainty: Certainty) -> bool:
    sharpness, stray = certainty.confidence.sharpness, certainty.confidence.stray
    of_none = () if certainty.none is None else asdict(certainty.none).values()
    return all(map(is_finite_number, (sharpness, stray, *of_none))) and sharpness > 0 and 0 <= stray < 1


def _is_label(ledger: CategoryLedger, label: object) -> bool:
    if ledger.kind == "text":
        return isinstance(label, str)
    return isinstance(label, int | float) and abs(label) <= LARGEST["int"]


def _merges_end(ledger: CategoryLedger) -> bool:
    """Whether every merge leads to a category that there is, and none in a circle."""
    for category in ledger.categories:
        seen = {category.id}
        into = category.merged_into
        while into is not None:
            if into in seen or into not in range(len(ledger.categories)):
                return False
            seen.add(into)
            into = ledger.categories[into].merged_into
    return True
