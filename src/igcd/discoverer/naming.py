"""Which discoveries new labels are names of."""

from collections.abc import Sequence

import numpy as np

from igcd.discoverer.rows import rising
from igcd.functional.assignment import contingency, match
from igcd.memory.category_ledger import Label
from igcd.types import UNLABELED, IntArray


def named_by(
    labels: Sequence[Label], predicted: IntArray, *, newly: Sequence[Label], discoveries: Sequence[int]
) -> dict[Label, int]:
    """The discovery that turns out to be a newly labeled category, where there is one. n labels, (n,) predicted ids.

    Most labeled rows in it have that label, and most rows with that label are in it.

    >>> named_by(["fox", "fox", "owl"], np.array([4, 4, 0]), newly=["fox", "owl"], discoveries=[4])
    {'fox': 4}
    """
    names = rising({*labels})
    row_of_name = {name: row for row, name in enumerate(names)}
    categories = np.array([row_of_name[label] for label in labels], dtype=np.int64)
    is_found = np.isin(predicted, discoveries)
    if not is_found.any():
        return {}
    counts = contingency(predicted, categories).toarray()
    named = {}
    for category_id, column in enumerate(match(contingency(np.where(is_found, predicted, UNLABELED), categories))):
        if column == UNLABELED or names[column] not in newly:
            continue
        shared = counts[category_id, column]
        if 2 * shared > max(counts[category_id].sum(), (categories == column).sum()):
            named[names[column]] = category_id
    return named
