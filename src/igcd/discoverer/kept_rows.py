"""What is kept of the categories: some rows of each to tell known from new, the first few of them as support."""

from collections import Counter

import torch
from torch import Tensor

from igcd.discoverer.rows import Batch
from igcd.functional.grouping import distinct, rank_within_group
from igcd.functional.selection import herding, select_per_category
from igcd.memory.category_ledger import CategoryLedger
from igcd.memory.support_set import SupportSet
from igcd.types import UNLABELED


class KeptRows:
    """Rows kept of each category of a ledger, and S, of each the first few."""

    def __init__(self, ledger: CategoryLedger, entries: SupportSet, *, n_support: int) -> None:
        self.ledger, self.entries, self.n_support = ledger, entries, n_support
        self.support = SupportSet(n_per_category=n_support)
        self.refresh_support()

    def refresh_support(self) -> None:
        """S: of each category the first few rows of what is kept, labeled ones before guessed ones."""
        kept = self.entries
        self.support = SupportSet(n_per_category=self.n_support)
        self.support.content = kept.content[:0]
        live = torch.isin(kept.categories, torch.tensor(self.ledger.live("known", "novel"), dtype=torch.int64))
        for pseudo in (False, True):
            rows = (live & (kept.is_pseudo == pseudo)).nonzero()[:, 0]
            keys = [kept.image_ids[row] for row in rows.tolist()]
            self.support.add(kept.content[rows], kept.categories[rows], keys, pseudo_labeled=pseudo)

    # Adding ----------------------------------------------------------------------------------------------------------

    def remember(self, h: Tensor, ids: Tensor, keys: list[str]) -> None:
        """Keeps rows that a person gave a category: of each those that together have its mean, then others.

        (Herding, not the peak and its nearest as in the paper: as many rows, spread over the category, tell more.)

        A discovery that has lost all that was kept of it to another category was that one.
        """
        typical = select_per_category(h, ids, self.n_support, select=herding).tolist()
        order = typical + sorted(set(range(len(h))) - set(typical))
        former = dict(zip(self.entries.image_ids, self.entries.categories.tolist(), strict=True))
        self.entries.add(h[order], ids[order], [keys[row] for row in order], pseudo_labeled=False)

        emptied = set(former.values()) - set(self.entries.categories.tolist())
        for category_id in sorted(emptied & set(self.ledger.live("novel"))):
            now = Counter(now for key, now in zip(keys, ids.tolist(), strict=True) if former.get(key) == category_id)
            self.ledger.merge(min(now, key=lambda other: (-now[other], other)), category_id)
        self.refresh_support()

    def add_guesses(self, h: Tensor, ids: Tensor, keys: list[str]) -> None:
        """Keeps rows around novel peaks, the peak of each first. A row that is kept already stays where it is."""
        held = set(self.entries.image_ids)
        free = [row for row, key in enumerate(keys) if key not in held]
        self.entries.add(h[free], ids[free], [keys[row] for row in free], pseudo_labeled=True)
        self.refresh_support()

    # A person's decisions --------------------------------------------------------------------------------------------

    def confirm(self, category_id: int) -> None:
        """What was kept of a category counts as labeled from now on."""
        self.entries.is_pseudo = self.entries.is_pseudo & (self.entries.categories != category_id)
        self.refresh_support()

    def join(self, into: int, others: list[int]) -> None:
        """Gives what is kept of others to a category, the most typical of each in turn, so that S has some of all."""
        kept, is_known = self.entries, self.ledger.categories[into].status == "known"
        ids = torch.tensor([into, *others])
        rows = torch.cat([(kept.categories == category_id).nonzero()[:, 0] for category_id in ids])
        rows = rows[rank_within_group(kept.categories[rows]).argsort(stable=True)]
        h, keys = kept.content[rows], [kept.image_ids[row] for row in rows.tolist()]
        kept.remove(ids.tolist())
        kept.add(h, torch.full((len(h),), into), keys, pseudo_labeled=not is_known)
        self.refresh_support()

    def forget(self, category_ids: list[int]) -> None:
        """Keeps nothing of these categories."""
        self.entries.remove(category_ids)
        self.refresh_support()

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

    def labeled_with(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Features and categories of all labeled rows there are: of a batch, and kept ones that are not in it."""
        known = torch.tensor(self.ledger.live("known"), dtype=torch.int64)
        return self._joined(batch, ~self.entries.is_pseudo & torch.isin(self.entries.categories, known))

    def all_with(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The same of all that is kept: of known categories, of discoveries, and of what was rejected."""
        return self._joined(batch, torch.ones(len(self.entries), dtype=torch.bool))

    def _joined(self, batch: Batch, is_wanted: Tensor) -> tuple[Tensor, Tensor]:
        """Features and categories of the labeled rows of a batch and of the wanted kept rows, no row twice."""
        is_labeled = batch.ids != UNLABELED
        in_batch = set(batch.keys[is_labeled.numpy()].tolist())
        others = is_wanted & torch.tensor([key not in in_batch for key in self.entries.image_ids], dtype=torch.bool)
        h = torch.cat([batch.h[is_labeled], self.entries.content[others]])
        return h, torch.cat([batch.ids[is_labeled], self.entries.categories[others]])

    def similarity_of_most(self, h: Tensor, ids: Tensor, *, n_closest: int, unsure_share: float) -> float:
        """What all but a share of labeled rows reach in similarity to the closest other rows kept of their category."""
        similarity = []
        for category_id in distinct(ids)[0]:
            rows, kept = h[ids == category_id], self.entries.content[self.entries.categories == category_id]
            to_kept = rows @ kept.T
            for column in range(len(kept)):
                to_kept[(rows == kept[column]).all(dim=1), column] = -torch.inf
            closest = to_kept.topk(min(n_closest, len(kept) - 1), dim=1).values
            similarity.append(closest.mean(dim=1))
        ordered = torch.cat(similarity).sort().values
        return float(ordered[int(unsure_share * len(ordered))])
