"""What is kept of the categories: some rows of each, to tell known from new in later batches."""

from collections import Counter

import numpy as np
import torch
from torch import Tensor

from igcd.discoverer.rows import Batch
from igcd.functional.grouping import rank_within_group
from igcd.functional.selection import herding, select_per_category
from igcd.memory.category_ledger import CategoryLedger
from igcd.memory.support_set import SupportSet
from igcd.types import UNLABELED

N_HERDED = 5
"""The first rows kept of a category are those that together have its mean."""


class KeptRows:
    """Rows kept of each category of a ledger."""

    def __init__(self, ledger: CategoryLedger, entries: SupportSet) -> None:
        self.ledger, self.entries = ledger, entries

    # Adding ----------------------------------------------------------------------------------------------------------

    def remember(self, h: Tensor, ids: Tensor, keys: list[str]) -> dict[int, int]:
        """Keeps rows that a person gave a category: of each those that together have its mean, then others.

        (Herding, not the peak and its nearest as in the paper: as many rows, spread over the category, tell more.)

        A discovery that has lost all that was kept of it to another category was that one; which was which is returned.
        """
        h = h.to(self.entries.content.dtype)
        typical = select_per_category(h, ids, N_HERDED, select=herding).tolist()
        order = typical + sorted(set(range(len(h))) - set(typical))
        former = dict(zip(self.entries.image_ids, self.entries.categories.tolist(), strict=True))
        self.entries.add(h[order], ids[order], [keys[row] for row in order], pseudo_labeled=False)

        emptied = set(former.values()) - set(self.entries.categories.tolist())
        merged = {}
        for category_id in sorted(emptied & set(self.ledger.live("novel"))):
            now = Counter(now for key, now in zip(keys, ids.tolist(), strict=True) if former.get(key) == category_id)
            merged[category_id] = min(now, key=lambda other: (-now[other], other))
            self.ledger.merge(merged[category_id], category_id)
        return merged

    def add_guesses(self, h: Tensor, ids: Tensor, keys: list[str]) -> None:
        """Keeps rows of new categories, the most typical of each first. A row that is kept already stays."""
        held = set(self.entries.image_ids)
        free = [row for row, key in enumerate(keys) if key not in held]
        h = h.to(self.entries.content.dtype)
        self.entries.add(h[free], ids[free], [keys[row] for row in free], pseudo_labeled=True)

    # A person's decisions --------------------------------------------------------------------------------------------

    def confirm(self, category_id: int) -> None:
        """What was kept of a category counts as labeled from now on."""
        self.entries.is_pseudo = self.entries.is_pseudo & (self.entries.categories != category_id)

    def join(self, into: int, others: list[int]) -> None:
        """Gives what is kept of others to a category, the most typical of each in turn, so that all have a share."""
        kept, is_known = self.entries, self.ledger.categories[into].status == "known"
        ids = torch.tensor([into, *others])
        rows = torch.cat([(kept.categories == category_id).nonzero()[:, 0] for category_id in ids])
        rows = rows[rank_within_group(kept.categories[rows]).argsort(stable=True)]
        h, keys = kept.content[rows], [kept.image_ids[row] for row in rows.tolist()]
        kept.remove(ids.tolist())
        kept.add(h, torch.full((len(h),), into), keys, pseudo_labeled=not is_known)

    def forget(self, category_ids: list[int]) -> None:
        """Keeps nothing of these categories."""
        self.entries.remove(category_ids)

    # Asking ----------------------------------------------------------------------------------------------------------

    def keys_of(self, category_id: int) -> list[str]:
        """The rows kept of a category."""
        kept = zip(self.entries.image_ids, self.entries.categories.tolist(), strict=True)
        return [key for key, kept_id in kept if kept_id == category_id]

    def labeled_keys(self) -> dict[str, int]:
        """The category of each kept row that a person labeled; rejected categories left out."""
        kept = self.entries
        return {
            key: category_id
            for key, category_id, is_pseudo in zip(
                kept.image_ids, kept.categories.tolist(), kept.is_pseudo.tolist(), strict=True
            )
            if not is_pseudo and self.ledger.categories[category_id].status != "rejected"
        }

    def all_with(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Features and categories of the labeled rows of a batch and of all kept rows beside them; which are guesses.

        Of known categories, of discoveries, and of what was rejected: all of it explains rows.
        """
        is_labeled = batch.ids != UNLABELED
        labeled = set(batch.keys[is_labeled.numpy()].tolist())
        others = torch.tensor([key not in labeled for key in self.entries.image_ids], dtype=torch.bool)
        h = torch.cat([batch.h[is_labeled].to(self.entries.content.dtype), self.entries.content[others]])
        is_guess = torch.cat([torch.zeros(int(is_labeled.sum()), dtype=torch.bool), self.entries.is_pseudo[others]])
        return h, torch.cat([batch.ids[is_labeled], self.entries.categories[others]]), is_guess

    def not_among(self, batch: Batch) -> Tensor:
        """Positions of the unlabeled rows of a batch that are not kept: what nothing is known about. -> (n,)."""
        is_kept = torch.from_numpy(np.isin(batch.keys, self.entries.image_ids))
        return ((batch.ids == UNLABELED) & ~is_kept).nonzero()[:, 0]

    def rows_of(self, category_id: int) -> Tensor:
        """The features kept of a category, (n, c)."""
        return self.entries.content[self.entries.categories == category_id]

    @property
    def n_labeled(self) -> int:
        """How many kept rows a person labeled."""
        return int((~self.entries.is_pseudo).sum())
