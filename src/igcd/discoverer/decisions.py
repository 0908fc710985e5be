"""What a person decides about the categories of a `CategoryDiscoverer`: rename, merge, split, reject."""
# ruff: noqa: N803 - X is what scikit-learn calls the features

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]

from igcd.discoverer.all_or_nothing import all_or_nothing
from igcd.discoverer.arguments import check_grouping
from igcd.discoverer.category_means import CategoryMeans
from igcd.discoverer.kept_rows import KeptRows
from igcd.discoverer.rows import digests
from igcd.functional.discovery import discover
from igcd.functional.projection import Projection
from igcd.memory.category_ledger import CategoryLedger, DiscovererError, Label
from igcd.types import IntArray

MAX_REJECTED = 100
"""Of so many rejected categories the features are remembered; the oldest are forgotten first."""


class Decisions:
    """The part of `CategoryDiscoverer` that changes categories without learning. An error changes nothing."""

    ledger_: CategoryLedger
    _kept: KeptRows
    _means: CategoryMeans
    _projection: Projection
    _row_ids: IntArray
    _row_keys: npt.NDArray[np.str_]
    random_state: int

    def _read_features(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        raise NotImplementedError

    @all_or_nothing
    def rename(self, category: Label, name: Label) -> Self:
        """Gives a category a name. A discovery is known from now on, and what was kept of it counts as labeled."""
        check_is_fitted(self)
        category_id = self.ledger_.find(category).id
        self.ledger_.rename(category_id, name)
        self._kept.confirm(category_id)
        return self

    @all_or_nothing
    def merge(self, into: Label, others: Label | Sequence[Label]) -> Self:
        """Makes other categories part of one, which keeps its id and label; their names lead to it from now on."""
        check_is_fitted(self)
        others = [others] if isinstance(others, str) or not isinstance(others, Sequence | np.ndarray) else list(others)
        target, gone = self.ledger_.find(into), [self.ledger_.find(other) for other in others]
        if not gone or target in gone or len(set(gone)) < len(gone):
            raise DiscovererError(
                f"merging needs one or more categories other than {into!r}, each once, got {others}; name others"
            )
        for other in gone:
            self.ledger_.merge(target.id, other.id)
        gone_ids = [other.id for other in gone]
        self._kept.join(target.id, gone_ids)
        self._means.join(target.id, gone_ids)
        return self

    def sub_categories(
        self, category_or_rows: Label | npt.ArrayLike, *, n: int | None = None, granularity: float = 0.0
    ) -> IntArray:
        """Groups inside a category, numbered from the largest: a preview for `split`. -> (n,), the group of each row.

        Of the rows kept of a category, by its name, in the order of `kept_keys`; or of any rows (n, d). `n` says how
        many groups, if that is known, and `granularity` is that of `fit`.
        """
        check_is_fitted(self)
        if np.ndim(category_or_rows) == 0:  # a name
            h = self._kept.rows_of(self.ledger_.find(category_or_rows).id)  # type: ignore[arg-type]  # no table
        else:
            h = self._projection.of_array(self._read_features(category_or_rows))
        check_grouping(n, granularity, n_rows=len(h))
        if len(h) < 2:
            return np.zeros(len(h), dtype=np.int64)
        found = discover(
            h,
            h[:0],
            torch.empty(0, dtype=torch.int64),
            n_novel=n,
            granularity=granularity,
            whitening=self._means.whitening,
            seed=self.random_state,
        )
        return np.asarray(found.category.numpy(), dtype=np.int64)

    def kept_keys(self, category: Label) -> list[str]:
        """The rows kept of a category, as `row_keys` digests them."""
        check_is_fitted(self)
        return self._kept.keys_of(self.ledger_.find(category).id)

    @all_or_nothing
    def split(self, category: Label, X: npt.ArrayLike, *, name: Label | None = None) -> Label:
        """Makes rows of a category a category of their own and returns its label. (n, d).

        Without a name it is novel, with a new label. The rows need not be among those that are remembered.
        """
        check_is_fitted(self)
        category_id = self.ledger_.find(category).id
        features = self._read_features(X)
        keys, first_rows = np.unique(digests(features), return_index=True)
        taken = set(keys.tolist())
        held = self._kept.keys_of(category_id)
        if taken.issuperset(held):
            raise DiscovererError(
                f"splitting must leave some of the {len(held)} rows kept of {category!r} in it, got all of them; "
                "rename it, or split off fewer"
            )
        if name is not None and name in self.ledger_:
            raise DiscovererError(f"the name {name!r} is or was that of another category; choose a new one")
        new_id = self.ledger_.open(name)
        h = self._projection.of_array(features, first_rows)
        self._kept.remember(h, torch.full((len(h),), new_id), keys.tolist())
        self._means.put(new_id, self._means.whitening(h).mean(dim=0), len(h))
        left = self._means.whitening(self._kept.rows_of(category_id))
        self._means.put(category_id, left.mean(dim=0), len(left))
        self._row_ids = np.where(np.isin(self._row_keys, keys), new_id, self._row_ids)
        return self.ledger_.categories[new_id].label

    @all_or_nothing
    def reject(self, category: Label) -> Self:
        """Says that this is not a category. Rows like it are unsure from now on and open no new one.

        What was kept of it is remembered as a thing to stay away from, for the last 100 rejected categories.
        """
        check_is_fitted(self)
        self.ledger_.reject(self.ledger_.find(category).id)
        forgotten = self.ledger_.live("rejected")[:-MAX_REJECTED]
        self._kept.forget(forgotten)
        self._means.remove(forgotten)
        return self
