"""Category discovery on any embeddings, as a scikit-learn estimator: recognise what is known, find what is new, go on.

`CategoryLedger` keeps ids and names, `KeptRows` some rows of each category, `CategoryMeans` is the classifier. What is
new and how many is answered by `functional.discovery`.
"""
# ruff: noqa: N803 - X is what scikit-learn calls the features

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import (  # type: ignore[import-untyped]
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils import Tags  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted, validate_data  # type: ignore[import-untyped]
from torch import Tensor
from torch.nn.functional import normalize

from igcd.discoverer.all_or_nothing import all_or_nothing
from igcd.discoverer.arguments import check_labels, check_parameters, ledger_for
from igcd.discoverer.category_means import CategoryMeans
from igcd.discoverer.certainty import Certainty
from igcd.discoverer.decisions import Decisions
from igcd.discoverer.kept_rows import KeptRows
from igcd.discoverer.naming import named_by
from igcd.discoverer.plots import Plots
from igcd.discoverer.reports import Discovery, novel_members
from igcd.discoverer.rows import Batch, answer_in_parts, are_among, digests, distinct_rows, rising, short_keys
from igcd.discoverer.storing import FITTED, from_state, to_state
from igcd.functional.calibration import DEFAULT_CONFIDENCE
from igcd.functional.discovery import Discovered, discover
from igcd.functional.projection import project_distinct
from igcd.functional.whitening import Whitening
from igcd.memory.category_ledger import DiscovererError, Label
from igcd.memory.support_set import SupportSet
from igcd.types import UNLABELED, BoolArray, IntArray


class CategoryDiscoverer(
    Decisions,
    Plots,
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    ClassifierMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Recognises labeled categories in embeddings and finds the ones nobody labeled, however many there are.

    Rows are whitened by the spread inside categories and pulled together with their neighbors; a tree grows over them
    in which known categories are fixed, and labels say where to cut it (docs/how_it_works.md). A row belongs to the
    category with the nearest mean. `partial_fit` goes on with a later batch: it recognises, extends and opens
    categories, and never renumbers one.

    Parameters
    ----------
    n_novel: how many categories are new in the rows of a call, if you know it. None: found from labels and the rows
        themselves.
    granularity: from coarse (negative) to fine (positive); 0 is what labels ask for. 1 cuts the tree at a height e
        times lower.
    n_components: features are centered, reduced to so many principal components and normalised; None: normalised only.
    unsure: a row whose best category is less probable than this is unsure, and so is one that is of none of the
        categories with a probability of 1 minus this (`predict_none`). None: never unsure.
    n_kept: rows per category kept to tell known from new in later batches.
    unlabeled: the label that means "none". "auto": −1 among numbers; None, "" and "-1" among texts.
    first_novel: the number that discoveries are counted from. "auto": a power of ten, 1000 or more, with room for ten
        times the labels of `fit`; 1 for texts ("novel 1").
    random_state: seed of the few draws that are made; the same rows and seed give the same answer.

    Attributes
    ----------
    categories_, classes_: labels of the categories, in the order of their ids: the columns of `predict_proba`.
    category_ids_: their ids, which stay whatever they are renamed to.
    labels_: label of every row of the last call; the unlabeled mark (−1 or "") where unsure.
    n_novel_: how many of the categories were found and not named yet.
    n_groups_: groups, known and new, at which the tree of the last call was cut.
    neighbor_recall_: share of the true neighbors that the last call looked at: 1, or with more than 100,000 rows an
        estimate, because neighbors are approximate there (docs/scale.md).
    discoveries_: how each category that was found was found, see `Discovery`.
    means_: the mean of each category in the whitened space, rows as in `categories_`.
    ledger_: every category there is or was, see `CategoryLedger`.

    >>> X = np.array([[0, 1.0], [0.1, 1], [0.2, 1], [1, 0], [1, 0.1], [1, 0.2]])
    >>> model = CategoryDiscoverer(n_novel=0).fit(X, ["up", "up", "", "right", "", ""])
    >>> model.predict([[0.3, 2.0], [3, 0.1]]).tolist()
    ['up', 'right']
    """

    def __init__(
        self,
        *,
        n_novel: int | None = None,
        granularity: float = 0.0,
        n_components: int | None = 256,
        unsure: float | None = 0.2,
        n_kept: int = 50,
        unlabeled: int | str = "auto",
        first_novel: int | Literal["auto"] = "auto",
        random_state: int = 0,
    ) -> None:
        self.n_novel = n_novel
        self.granularity = granularity
        self.n_components = n_components
        self.unsure = unsure
        self.n_kept = n_kept
        self.unlabeled = unlabeled
        self.first_novel = first_novel
        self.random_state = random_state

    # Learning --------------------------------------------------------------------------------------------------------

    @all_or_nothing
    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike | None = None) -> Self:
        """Learns from labeled and unlabeled rows, and forgets what was before. (n, d), (n,).

        Without y nothing is known and every category that is found is new. Of equal rows with different labels the most
        frequent label counts. Like every call, it changes all it has to, or nothing where it raises.
        """
        check_parameters(self.get_params())
        features, labels = self._read(X, y, first=True)
        self._discoveries: list[Discovery] = []
        self._n_batches = 0
        self._n_calibrated = 0
        return self._learn(features, labels, first=True)

    @all_or_nothing
    def partial_fit(
        self, X: npt.ArrayLike, y: npt.ArrayLike | None = None, classes: npt.ArrayLike | None = None
    ) -> Self:
        """Goes on with a later batch; where that fails, nothing has changed. (n, d), (n,).

        A label may be that of a known category, of an earlier discovery, or new; a new label whose rows are mostly in
        one discovery names it. Unlabeled rows are recognised or open new categories. `classes` lists the labels that
        are allowed beside those there are, to catch misspelled ones; None allows all.
        """
        if not self.__sklearn_is_fitted__():
            self._check_labels(y, classes)
            return self.fit(X, y)
        check_parameters(self.get_params())
        self._check_labels(y, classes)
        return self._learn(*self._read(X, y, first=False), first=False)

    def _learn(self, X: npt.NDArray[Any], labels: list[Label | None], *, first: bool) -> Self:
        for label in {label for label in labels if label is not None and label in self.ledger_}:
            self.ledger_.find(label)  # a rejected one is an error before anything has changed
        distinct = distinct_rows(X, labels)
        keys = distinct.keys
        if not first:
            h = self._projection.of_array(X, distinct.first_rows)
        else:
            self._projection, h = project_distinct(X, distinct.first_rows, n_components=self.n_components)
            kept, dtype = SupportSet(n_per_category=self.n_kept), self._projection.mean.dtype
            kept.content = h[:0].to(dtype)
            self._kept = KeptRows(self.ledger_, kept)
            self._means = CategoryMeans(Whitening(torch.eye(h.shape[1], dtype=dtype)), Certainty(DEFAULT_CONFIDENCE))
            self._learned_keys = short_keys(keys[:0])
        ids = self._take_in_labels(distinct.labels, keys, h)
        batch = Batch(keys, distinct.first_rows, h, ids)
        is_labeled = (ids != UNLABELED).numpy()
        asked = self._kept.not_among(batch)
        found = self._look(batch, asked, first=first)
        merged = self._kept.remember(h[is_labeled], ids[is_labeled], keys[is_labeled].tolist())
        for gone, into in merged.items():
            self._means.join(into, [gone])
        self._take_in(batch, asked, found)
        assigned = ids.clone()
        unlabeled = self._whitened(h[~is_labeled])
        assigned[~is_labeled] = self._assign(unlabeled, torch.ones(len(unlabeled), dtype=torch.bool))
        # A label that other labels of equal rows outnumbered everywhere is not a category.
        ledger = self.ledger_
        labeled_ids = np.array(
            [UNLABELED if label is None or label not in ledger else ledger.find(label).id for label in labels]
        )
        of_rows = assigned.numpy()[distinct.of_row]
        self._row_ids = np.where(labeled_ids != UNLABELED, labeled_ids, of_rows).astype(np.int64)
        self._row_keys = keys[distinct.of_row]
        self._learned_keys = np.union1d(self._learned_keys, short_keys(keys))
        self._n_batches += 1
        return self

    def _take_in_labels(self, labels: list[Label | None], keys: npt.NDArray[np.str_], h: Tensor) -> Tensor:
        """The category of each row, −1 where unlabeled. (u,).

        New labels name a discovery or open a category. A row that was labeled once and is still kept needs no label.
        """
        ledger = self.ledger_
        newly = rising({label for label in labels if label is not None and label not in ledger})
        named = {}
        if newly and len(self._means.ids):
            predicted = self._predict_ids(self._whitened(h[[label is not None for label in labels]])).numpy()
            names = [label for label in labels if label is not None]
            named = named_by(names, predicted, newly=newly, discoveries=ledger.live("novel"))
        for label in newly:
            if label in named:
                ledger.rename(named[label], label)
            else:
                ledger.open(label)
        remembered = self._kept.labeled_keys()
        ids = [
            remembered.get(key, UNLABELED) if label is None else ledger.find(label).id
            for key, label in zip(keys.tolist(), labels, strict=True)
        ]
        for label in {label for label in labels if label is not None}:
            ledger.confirm(ledger.find(label).id)
        return torch.tensor(ids, dtype=torch.int64)

    def _look(self, batch: Batch, asked: Tensor, *, first: bool) -> Discovered:
        """Asks the core about some rows, with all that is labeled or kept as known. (n,) positions.

        How rows are whitened is found again when labels have doubled; how sharply distances decide, also with every
        batch that is as large as what is known.
        """
        known, categories, is_guess = self._kept.all_with(batch)
        if self.n_novel == 0 and not len(known):
            raise DiscovererError("n_novel must be 1 or more where nothing is labeled, got 0; change it, or label rows")
        n_labeled = self._kept.n_labeled + int((batch.ids != UNLABELED).sum())
        recalibrates = first or n_labeled >= 2 * max(self._n_calibrated, 1)
        found = discover(
            batch.h[asked],  # without a name: the core lets go of this copy when it has made its own
            known,
            categories,
            is_guess=is_guess,
            n_novel=self.n_novel,
            granularity=self.granularity,
            whitening=None if recalibrates else self._means.whitening,
            seed=self.random_state,
        )
        self.n_groups_ = found.cut.n_groups
        self.neighbor_recall_ = found.recall
        if recalibrates or len(asked) >= len(known):
            unlabeled = batch.h[asked]
            self._means.calibrate(found, unlabeled, known, categories, is_guess=is_guess, seed=self.random_state)
        if recalibrates:
            self._n_calibrated = n_labeled
            self._means = self._means.only_known(found, known, categories, ~is_guess)
        else:
            for category_id in sorted({*batch.ids.tolist()} - {UNLABELED}):
                is_kept = np.isin(batch.keys, self._kept.keys_of(category_id))
                new = (batch.ids == category_id) & ~torch.from_numpy(is_kept)
                if new.any():
                    self._means.add(category_id, self._whitened(batch.h[new]).to(known.dtype))
        return found

    def _take_in(self, batch: Batch, rows: Tensor, found: Discovered) -> None:
        """Opens the categories that were found among some rows, and keeps some of each. (n,) positions."""
        kept, ids = [rows[:0]], [rows[:0]]
        for mean, own in novel_members(found, self._whitened(batch.h[rows])):
            members = own[: self._kept.entries.n_per_category]
            kept.append(members)
            nearest = self._means.most_alike(mean)
            category_id = self.ledger_.open()
            self._means.put(category_id, mean, len(own))
            first_rows = tuple(batch.first_rows[rows[members].numpy()].tolist())
            label = self.ledger_.current(category_id).label
            self._discoveries.append(
                Discovery(category_id, label, self._n_batches, first_rows[0], first_rows, len(own), *nearest)
            )
            ids.append(torch.full((len(members),), category_id))
        members = torch.cat(kept)
        keys = batch.keys[rows[members].numpy()].tolist()
        self._kept.add_guesses(batch.h[rows[members]], torch.cat(ids), keys)

    # Answers ---------------------------------------------------------------------------------------------------------

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """The most probable category of each row, always one of `categories_`; see `assign`. (n, d) -> (n,)."""
        ids = self._answer(X, lambda rows, _part: self._predict_ids(rows))
        return self.ledger_.labels(ids)

    def predict_proba(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """The probability of each category, columns as in `categories_`. (n, d) -> (n, c), rows sum to 1.

        Calibrated by rehearsals with hidden labels where there are enough of them. Rows that were not learned from lie
        farther from all means; how much farther is asked of rows that are left out.
        """
        return self._answer(X, lambda rows, part: self._means.probs(rows, self._live_ids(), self._was_learned(part)))

    def predict_none(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """The probability that a row is of none of the categories, assuming that half of the rows are. (n, d) -> (n,).

        Calibrated on labeled rows, each asked as if its own category were unknown: for rows that were learned from as
        they lie, for others on rows that are left out.
        """
        return self._answer(X, lambda rows, part: self._means.none_probs(rows, self._was_learned(part)))

    def transform(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Cosine similarity to the mean of each category, columns as in `categories_`. (n, d) -> (n, c)."""
        return self._answer(X, lambda rows, _part: rows @ normalize(torch.from_numpy(self.means_), dim=1).T)

    def assign(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Like `predict`, but with the unlabeled mark (−1 or "") for unsure rows. (n, d) -> (n,)."""
        ids = self._assigned(X)
        return self.ledger_.labels(ids)

    def is_unsure(self, X: npt.ArrayLike) -> BoolArray:
        """Which rows have no probable category, or are nearest to a rejected one. (n, d) -> (n,)."""
        return np.asarray(self._assigned(X) == UNLABELED)

    def row_keys(self, X: npt.ArrayLike) -> list[str]:
        """A digest of the content of each row. (n, d) -> n."""
        return [str(key) for key in digests(self._read_features(X))]

    def _answer(self, X: npt.ArrayLike, answer: Callable[[Tensor, npt.NDArray[Any]], Tensor]) -> npt.NDArray[Any]:
        """What is answered about rows as they are compared and as they came, part by part. (n, d) -> (n, …)."""
        check_is_fitted(self)
        project, whiten = self._projection.of_array, self._whitened
        return answer_in_parts(X, read=self._read_features, answer=lambda part: answer(whiten(project(part)), part))

    def _was_learned(self, part: npt.NDArray[Any]) -> Tensor:
        """Which rows were learned from, by their content; all where that makes no difference. (n, d) -> (n,)."""
        if self._means.later is None:
            return torch.ones(len(part), dtype=torch.bool)
        return torch.from_numpy(are_among(short_keys(digests(part)), self._learned_keys))

    def _assigned(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        return self._answer(X, lambda rows, part: self._assign(rows, self._was_learned(part)))

    def _predict_ids(self, rows: Tensor) -> Tensor:
        return self._means.predict(rows, self._live_ids())

    def _assign(self, rows: Tensor, was_learned: Tensor) -> Tensor:
        """The category of each row, −1 where unsure. A rejected category explains rows, and they are unsure then."""
        if self.unsure is None:
            return self._predict_ids(rows)
        return self._means.assign(rows, self._live_ids(), was_learned, unsure=self.unsure)

    def _live_ids(self) -> Tensor:
        """Ids of the categories that rows can be of, rising."""
        live = torch.tensor(self.ledger_.live("known", "novel"), dtype=torch.int64)
        return self._means.ids[torch.isin(self._means.ids, live)]

    def _whitened(self, h: Tensor) -> Tensor:
        return self._means.whitening(h)

    # What there is ---------------------------------------------------------------------------------------------------

    @property
    def category_ids_(self) -> IntArray:
        """Ids of the categories, rising. (c,)."""
        check_is_fitted(self)
        return np.asarray(self._live_ids().numpy(), dtype=np.int64)

    @property
    def categories_(self) -> npt.NDArray[Any]:
        """Labels of the categories, in the order of their ids. (c,)."""
        return self.ledger_.labels(self.category_ids_.tolist())

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The same, under scikit-learn's name."""
        return self.categories_

    @property
    def labels_(self) -> npt.NDArray[Any]:
        """The label of each row of the last call, with the decisions made since. (n,)."""
        check_is_fitted(self)
        return self.ledger_.labels(self._row_ids.tolist())

    @property
    def n_novel_(self) -> int:
        """How many categories were found and not named yet."""
        check_is_fitted(self)
        return len(self.ledger_.live("novel"))

    @property
    def discoveries_(self) -> list[Discovery]:
        """How the categories that were found were found, in that order, also of those renamed or gone since."""
        check_is_fitted(self)
        return [replace(found, label=self.ledger_.current(found.id).label) for found in self._discoveries]

    @property
    def means_(self) -> npt.NDArray[Any]:
        """The mean of each category in the whitened space. (c, d)."""
        check_is_fitted(self)
        return self._means.means[torch.isin(self._means.ids, self._live_ids())].numpy()

    @property
    def _n_features_out(self) -> int:
        return len(self._live_ids())

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_row_ids")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    # Storing ---------------------------------------------------------------------------------------------------------

    def state_dict(self) -> tuple[dict[str, Tensor], dict[str, str]]:
        """All of it as tensors and JSON texts, as `safetensors.torch.save_file(tensors, path, metadata)` takes them."""
        check_is_fitted(self)
        fitted = {name: value for name, value in vars(self).items() if name in FITTED}
        return to_state(self.get_params(), fitted)

    @classmethod
    def from_state_dict(cls, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> Self:
        """The inverse of `state_dict`."""
        parameters, fitted = from_state(tensors, metadata)
        model = cls(**parameters)
        model.__dict__.update(fitted)
        return model

    # Reading what comes in -------------------------------------------------------------------------------------------

    @property
    def _dtypes(self) -> list[np.dtype[Any]]:
        """What features are taken as: the type of the first ones, float32 or float64, and half precision as float32.

        Half precision is read part by part: a mapped file of it is never in memory as a whole.
        """
        dtype = np.dtype(self._dtype_name)
        return [dtype, np.dtype(np.float16)] if dtype == np.float32 else [dtype]

    def _read(
        self, X: npt.ArrayLike, y: npt.ArrayLike | None, *, first: bool
    ) -> tuple[npt.NDArray[Any], list[Label | None]]:
        dtypes = [np.float64, np.float32, np.float16] if first else self._dtypes
        features: npt.NDArray[Any]
        values: npt.NDArray[Any]
        if y is None:
            features = validate_data(self, X, dtype=dtypes, reset=first)
            values = np.full(len(features), None)
        else:
            features, values = validate_data(self, X, y, dtype=dtypes, reset=first)
        if first:
            self._dtype_name: str = np.promote_types(features.dtype, np.float32).name
            self.ledger_ = ledger_for(values, unlabeled=self.unlabeled, first_novel=self.first_novel)
        return features, self.ledger_.read(values)

    def _read_features(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        check_is_fitted(self)
        return validate_data(self, X, dtype=self._dtypes, reset=False)  # type: ignore[no-any-return]

    def _compared(self, X: npt.ArrayLike) -> Tensor:
        """Features as they are compared: centered, reduced, whitened, of length 1. (n, d) -> (n, c)."""
        features = self._read_features(X)
        return self._whitened(self._projection.of_array(features))

    def _check_labels(self, y: npt.ArrayLike | None, classes: npt.ArrayLike | None) -> None:
        known = self.ledger_.id_of_name if self.__sklearn_is_fitted__() else ()
        check_labels(y, classes, known=known, unlabeled=self.unlabeled)
