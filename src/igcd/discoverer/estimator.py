"""Category discovery on any embeddings, as a scikit-learn estimator: recognise what is known, find what is new, go on.

`CategoryLedger` keeps ids and names, `CategoryDiscoverer` the features. The maths is in `functional`, the few features
that are remembered of each category are in a `SupportSet` of `memory`.
"""
# ruff: noqa: N803 - X is what scikit-learn calls the features

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any, Literal, Self, TypeVar

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

from igcd.discoverer.all_or_nothing import all_or_nothing
from igcd.discoverer.arguments import check_labels, check_parameters, ledger_for
from igcd.discoverer.kept_rows import KeptRows
from igcd.discoverer.novel_peaks import find_novel_peaks
from igcd.discoverer.reports import Discovery, Support
from igcd.discoverer.rows import Batch, digests, one_label_each, rising
from igcd.discoverer.soundness import check_stored
from igcd.discoverer.space import ROWS_AT_A_TIME, Space
from igcd.errors import IgcdError
from igcd.functional.assignment import contingency, match
from igcd.functional.density import choose_n_neighbors
from igcd.functional.grouping import distinct
from igcd.functional.neighbors import neighbor_graph
from igcd.functional.novelty import calibrate_margin, match_known
from igcd.memory.category_ledger import CategoryLedger, DiscovererError, Label
from igcd.memory.support_set import SupportSet
from igcd.types import UNLABELED, BoolArray, IntArray

DEFAULT_K = 10
"""The paper's K, taken where too few rows are labeled to tell."""
DEFAULT_MARGIN = 0.03
"""Taken where too few rows are labeled to tell; from first experiments on image features."""
MAX_K = 40
"""The largest K that `auto` tries."""
MIN_LABELED = 5
"""A category with fewer labeled rows does not help to calibrate K, the margin and the threshold for unsure."""
UNSURE_SHARE = 0.02
"""The share of labeled rows that `unsure="auto"` would be unsure of, each compared with the others of its category."""
MAX_REJECTED = 100
"""Of so many rejected categories the features are remembered; the oldest are forgotten first."""
STATE_VERSION = 1
_FITTED_NUMBERS = (
    *("n_features_in_", "n_neighbors_", "margin_", "unsure_threshold_"),
    *("_dtype_name", "_n_batches", "_n_calibrated"),
)


class CategoryDiscoverer(ClassNamePrefixFeaturesOutMixin, ClassifierMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Recognises labeled categories in embeddings and finds the ones nobody labeled, however many there are.

    A row belongs to the category whose few support rows it is most similar to (a soft nearest neighbor classifier).
    Density peaks of the unlabeled rows that no known category explains become new categories. `partial_fit` goes on
    with a later batch: it recognises, extends and opens categories, and never renumbers one.

    Parameters
    ----------
    n_neighbors: K, the neighbors that make the density. "auto": the K at which the labeled categories come out as one
        density peak each.
    margin: how much denser than similar to a known category a peak must be to be new. "auto": told by the labeled
        rows, each category hidden in turn.
    n_support: rows per category that the classifier compares with.
    tau: its temperature.
    max_iou: of two peaks that share more of their neighbors than this, the denser stays.
    n_closest: similarity to a known category is the mean over so many of its closest rows.
    n_components: features are centered, reduced to so many principal components and normalised; None: normalised only.
    unsure: a row whose `n_closest` closest kept rows of one category are less similar than this is unsure. "auto":
        one in fifty labeled rows would be; None: never unsure.
    n_kept: rows per category kept to tell known from new and from unsure, also in later batches.
    unlabeled: the label that means "none". "auto": −1 among numbers; None, "" and "-1" among texts.
    first_novel: the number that discoveries are counted from. "auto": a power of ten, 1000 or more, with room for ten
        times the labels of `fit`; 1 for texts ("novel 1").

    Attributes
    ----------
    categories_, classes_: labels of the categories, in the order of their ids: the columns of `predict_proba`.
    category_ids_: their ids, which stay whatever they are renamed to.
    labels_: label of every row of the last call; the unlabeled mark (−1 or "") where unsure.
    n_novel_: how many of the categories were found and not named yet.
    discoveries_: how each category that was found was found, see `Discovery`.
    support_: what the classifier compares with, see `Support`.
    ledger_: every category there is or was, see `CategoryLedger`.
    n_neighbors_, margin_, unsure_threshold_: as given or as the labeled rows told.

    >>> X = np.array([[0, 1.0], [0.1, 1], [0.2, 1], [1, 0], [1, 0.1], [1, 0.2]])
    >>> model = CategoryDiscoverer().fit(X, ["up", "up", "", "right", "", ""])
    >>> model.predict([[0.3, 2.0], [3, 0.1]]).tolist()
    ['up', 'right']
    """

    def __init__(
        self,
        *,
        n_neighbors: int | Literal["auto"] = "auto",
        margin: float | Literal["auto"] = "auto",
        n_support: int = 5,
        tau: float = 0.1,
        max_iou: float = 0.6,
        n_closest: int = 5,
        n_components: int | None = 128,
        unsure: float | Literal["auto"] | None = "auto",
        n_kept: int = 50,
        unlabeled: int | str = "auto",
        first_novel: int | Literal["auto"] = "auto",
    ) -> None:
        self.n_neighbors = n_neighbors
        self.margin = margin
        self.n_support = n_support
        self.tau = tau
        self.max_iou = max_iou
        self.n_closest = n_closest
        self.n_components = n_components
        self.unsure = unsure
        self.n_kept = n_kept
        self.unlabeled = unlabeled
        self.first_novel = first_novel

    # Learning --------------------------------------------------------------------------------------------------------

    @all_or_nothing
    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike | None = None) -> Self:
        """Learns from labeled and unlabeled rows, and forgets what was before. (n, d), (n,).

        Without y nothing is known and every density peak is a category. Of equal rows with different labels the most
        frequent label counts for all. Like every call, it changes all it has to, or nothing where it raises.
        """
        check_parameters(self.get_params())
        features, labels = self._read(X, y, first=True)
        self._discoveries: list[Discovery] = []
        self._n_batches = 0
        self._n_calibrated = 0
        self.n_neighbors_ = DEFAULT_K if self.n_neighbors == "auto" else self.n_neighbors
        self.margin_ = DEFAULT_MARGIN if self.margin == "auto" else float(self.margin)
        self.unsure_threshold_ = None if self.unsure is None or self.unsure == "auto" else float(self.unsure)
        return self._learn(features, labels, first=True)

    @all_or_nothing
    def partial_fit(
        self, X: npt.ArrayLike, y: npt.ArrayLike | None = None, classes: npt.ArrayLike | None = None
    ) -> Self:
        """Goes on with a later batch. (n, d), (n,).

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
        keys, first_rows, of_row = np.unique(digests(X), return_index=True, return_inverse=True)
        rows = X[first_rows]
        if first:
            self._space = Space.fit(rows, n_components=self.n_components)
            kept = SupportSet(n_per_category=max(self.n_kept, self.n_support))
            kept.content = self._space.compare(rows[:1])[:0]
            self._kept = KeptRows(self.ledger_, kept, n_support=self.n_support)
        self._kept.n_support = self.n_support  # set_params may have changed it
        h = self._space.compare(rows)
        ids = self._take_in_labels(one_label_each(labels, of_row, len(keys)), keys, h)
        batch = Batch(keys, first_rows.astype(np.int64), h, ids)

        labeled_h, labeled_ids = _with_enough_rows(*self._kept.labeled_with(batch))
        # Of all calls the one with the most labeled rows has the say about what they tell.
        has_say = len(distinct(labeled_ids)[0]) >= 2 and len(labeled_h) >= self._n_calibrated
        if has_say:
            self._n_calibrated = len(labeled_h)
            self._calibrate(labeled_h, labeled_ids)
        is_labeled = (ids != UNLABELED).numpy()
        self._kept.remember(h[is_labeled], ids[is_labeled], keys[is_labeled].tolist())
        if has_say and self.unsure == "auto":
            self.unsure_threshold_ = self._kept.similarity_of_most(
                labeled_h, labeled_ids, n_closest=self.n_closest, unsure_share=UNSURE_SHARE
            )
        self._discover(batch)

        assigned = ids.clone()
        assigned[~is_labeled] = self._assign(h[~is_labeled])
        # A label that other labels of equal rows outnumbered everywhere is not a category.
        ledger = self.ledger_
        given = np.array(
            [UNLABELED if label is None or label not in ledger else ledger.find(label).id for label in labels]
        )
        self._row_ids = np.where(given != UNLABELED, given, assigned.numpy()[of_row]).astype(np.int64)
        self._row_keys = keys[of_row]
        self._n_batches += 1
        return self

    def _take_in_labels(self, labels: list[Label | None], keys: npt.NDArray[np.str_], h: Tensor) -> Tensor:
        """The category of each row, −1 where unlabeled. (u,).

        New labels name a discovery or open a category. A row that was labeled once and is still kept needs no label.
        """
        ledger = self.ledger_
        newly = rising({label for label in labels if label is not None and label not in ledger})
        named = self._discoveries_named_by(newly, labels, h)
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

    def _discoveries_named_by(self, newly: list[Label], labels: list[Label | None], h: Tensor) -> dict[Label, int]:
        """The discovery that turns out to be a newly labeled category, where there is one.

        Most labeled rows in it have that label, and most rows with that label are in it.
        """
        names = rising({label for label in labels if label is not None})
        row_of_name = {name: row for row, name in enumerate(names)}
        categories = np.array([row_of_name[label] for label in labels if label is not None], dtype=np.int64)
        predicted = self._assign(h[[label is not None for label in labels]]).numpy()
        is_found = np.isin(predicted, self.ledger_.live("novel"))
        if not newly or not is_found.any():
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

    def _calibrate(self, h: Tensor, ids: Tensor) -> None:
        """K and the margin as labeled rows tell them. (n, c), (n,)."""
        if self.n_neighbors == "auto":
            graph = neighbor_graph(h, min(2 * MAX_K, len(h) - 1))
            self.n_neighbors_ = choose_n_neighbors(graph, ids, count="total", max_iou=self.max_iou)
        if self.margin == "auto":
            # With all of n_closest: careful, for people label few of their many rows.
            # Where the few rows have no peak to learn from, what held before holds on.
            with suppress(IgcdError):
                margin = calibrate_margin(
                    h, ids, n_neighbors=self.n_neighbors_, n_closest=self.n_closest, max_iou=self.max_iou
                )
                # Below 0 when K is large for the labeled rows; but what is more similar than dense is surely known.
                self.margin_ = max(0.0, margin)

    def _discover(self, batch: Batch) -> None:
        """Density peaks of the unlabeled rows that no category there is explains open new ones."""
        rows = (batch.ids == UNLABELED).nonzero()[:, 0]
        if len(rows) < 3:
            return
        h, keys = batch.h[rows], batch.keys[rows.numpy()]
        # Whatever is kept explains a peak: known categories, earlier discoveries, and what was rejected.
        peaks = find_novel_peaks(
            h,
            *self._kept.all_with(batch),
            torch.from_numpy(np.isin(keys, self._kept.entries.image_ids)),
            n_neighbors=self.n_neighbors_,
            n_members=self._kept.entries.n_per_category,
            n_closest=self.n_closest,
            n_support=self.n_support,
            max_iou=self.max_iou,
            margin=self.margin_,
        )
        members = peaks.members
        ids = torch.tensor([self.ledger_.open() for _ in range(len(peaks.idx))], dtype=torch.int64)
        for peak in range(len(peaks.idx)):
            own = batch.first_rows[rows[members.idx[members.peak == peak]].numpy()].tolist()
            nearest_id = int(peaks.nearest.category[peak])
            self._discoveries.append(
                Discovery(
                    id=int(ids[peak]),
                    batch=self._n_batches,
                    peak=own[0],
                    members=tuple(own),
                    density=float(peaks.density[peak]),
                    nearest_id=None if nearest_id == UNLABELED else nearest_id,
                    similarity=None if nearest_id == UNLABELED else float(peaks.nearest.similarity[peak]),
                )
            )
        self._kept.add_guesses(h[members.idx], ids[members.peak], keys[members.idx.numpy()].tolist())

    # Answers ---------------------------------------------------------------------------------------------------------

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """The most probable category of each row, always one of `categories_`; see `assign`. (n, d) -> (n,)."""
        ids = self._predict_ids(self._compared(X))
        return self.ledger_.labels(ids.tolist())

    def predict_proba(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """The probability of each category, columns as in `categories_`. (n, d) -> (n, c), rows sum to 1."""
        return self._probs(self._compared(X)).numpy()

    def transform(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Cosine similarity to each support row, columns as in `support_`. (n, d) -> (n, s)."""
        h = self._compared(X)
        return (h @ self._kept.support.features.T).numpy()

    def assign(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Like `predict`, but with the unlabeled mark (−1 or "") for unsure rows. (n, d) -> (n,)."""
        ids = self._assign(self._compared(X))
        return self.ledger_.labels(ids.tolist())

    def is_unsure(self, X: npt.ArrayLike) -> BoolArray:
        """Which rows are far from everything, or nearest to a rejected category. (n, d) -> (n,)."""
        return self._unsure(self._compared(X)).numpy()

    def row_keys(self, X: npt.ArrayLike) -> list[str]:
        """A digest of the content of each row: how `support_` names rows. (n, d) -> n."""
        return [str(key) for key in digests(self._read_features(X))]

    def _probs(self, h: Tensor) -> Tensor:
        support = self._kept.support
        if len(support) == 0:
            return h.new_empty(len(h), 0)
        return torch.cat([support.log_probs(part, tau=self.tau).exp() for part in torch.split(h, ROWS_AT_A_TIME)])

    def _predict_ids(self, h: Tensor) -> Tensor:
        support = self._kept.support
        if len(support) == 0:
            return torch.full((len(h),), UNLABELED)
        parts = [support.log_probs(part, tau=self.tau).exp().argmax(dim=1) for part in torch.split(h, ROWS_AT_A_TIME)]
        return support.category_ids[torch.cat(parts)]

    def _assign(self, h: Tensor) -> Tensor:
        return self._predict_ids(h).masked_fill(self._unsure(h), UNLABELED)

    def _unsure(self, h: Tensor) -> Tensor:
        kept = self._kept.entries
        if self.unsure is None or len(self._kept.support) == 0:
            return torch.zeros(len(h), dtype=torch.bool)
        rejected = torch.tensor(self.ledger_.live("rejected"), dtype=torch.int64)
        nearest = match_known(h, kept.content, kept.categories, n_closest=self.n_closest)
        is_far = nearest.similarity < (-torch.inf if self.unsure_threshold_ is None else self.unsure_threshold_)
        return is_far | torch.isin(nearest.category, rejected)

    # A person's decisions --------------------------------------------------------------------------------------------

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
        self._kept.join(target.id, [other.id for other in gone])
        return self

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
        h = self._space.compare(features[first_rows])
        self._kept.remember(h, torch.full((len(h),), new_id), keys.tolist())
        self._row_ids = np.where(np.isin(self._row_keys, keys), new_id, self._row_ids)
        return self.ledger_.categories[new_id].label

    @all_or_nothing
    def reject(self, category: Label) -> Self:
        """Says that this is no category. Rows like it are unsure from now on, and found no category again.

        What was kept of it is remembered as a thing to stay away from, for the last 100 rejected categories.
        """
        check_is_fitted(self)
        self.ledger_.reject(self.ledger_.find(category).id)
        self._kept.forget(self.ledger_.live("rejected")[:-MAX_REJECTED])
        return self

    # What there is ---------------------------------------------------------------------------------------------------

    @property
    def category_ids_(self) -> IntArray:
        """Ids of the categories, rising. (c,)."""
        check_is_fitted(self)
        return np.asarray(self._kept.support.category_ids.numpy(), dtype=np.int64)

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
        return list(self._discoveries)

    @property
    def support_(self) -> Support:
        """What the classifier compares with."""
        check_is_fitted(self)
        support = self._kept.support
        return Support(
            features=support.features.numpy(),
            categories=self.ledger_.labels(support.categories.tolist()),
            keys=support.image_ids,
            is_pseudo=support.is_pseudo.numpy(),
        )

    @property
    def _n_features_out(self) -> int:
        return len(self._kept.support)

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
        kept_tensors, kept_metadata = self._kept.entries.state_dict()
        keys = np.char.encode(self._row_keys, "ascii")
        tensors = {f"kept.{name}": tensor for name, tensor in kept_tensors.items()}
        tensors |= {"mean": self._space.mean, "row_ids": torch.from_numpy(self._row_ids)}
        tensors["exponent"] = torch.tensor(self._space.exponent)
        tensors["row_keys"] = torch.tensor(np.frombuffer(b"".join(keys.tolist()), dtype=np.uint8)).reshape(
            len(keys), -1
        )
        if self._space.components is not None:
            tensors["components"] = self._space.components.contiguous()
        metadata = {f"kept.{name}": text for name, text in kept_metadata.items()}
        metadata |= {
            "version": json.dumps(STATE_VERSION),
            "parameters": json.dumps(self.get_params()),
            "ledger": json.dumps(self.ledger_.state()),
            "discoveries": json.dumps([asdict(discovery) for discovery in self._discoveries]),
            "fitted": json.dumps({name: getattr(self, name) for name in _FITTED_NUMBERS}),
        }
        if hasattr(self, "feature_names_in_"):
            metadata["feature_names_in"] = json.dumps(self.feature_names_in_.tolist())
        return tensors, metadata

    @classmethod
    def from_state_dict(cls, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> Self:
        """The inverse of `state_dict`."""
        try:
            version = json.loads(metadata["version"])
            if version != STATE_VERSION:
                raise DiscovererError(
                    f"a stored discoverer must be of version {STATE_VERSION}, got {version}; "
                    "read it with the version of igcd that wrote it"
                )
            model = cls(**json.loads(metadata["parameters"]))
            model.ledger_ = CategoryLedger.from_state(json.loads(metadata["ledger"]))
            model._discoveries = [
                Discovery(**entry | {"members": tuple(entry["members"])})
                for entry in json.loads(metadata["discoveries"])
            ]
            fitted = json.loads(metadata["fitted"])
            for name in _FITTED_NUMBERS:
                setattr(model, name, fitted[name])
            kept = SupportSet.from_state_dict(_part(tensors, "kept."), _part(metadata, "kept."))
            model._kept = KeptRows(model.ledger_, kept, n_support=model.n_support)
            exponent = int(tensors.get("exponent", torch.tensor(0)))  # earlier versions took rows as they came
            model._space = Space(tensors["mean"], tensors.get("components"), exponent)
            model._row_ids = tensors["row_ids"].numpy()
            model._row_keys = np.array(
                [bytes(key.tolist()).decode("ascii") for key in tensors["row_keys"]], dtype=np.str_
            )
            if "feature_names_in" in metadata:
                model.feature_names_in_ = np.array(json.loads(metadata["feature_names_in"]), dtype=object)
            check_parameters(model.get_params())
            check_stored(model.ledger_, model._kept, model._space, model._row_ids, fitted)
        except IgcdError:
            raise
        except KeyError as missing:
            raise DiscovererError(
                f"a stored discoverer needs the entry {missing}, it is absent; store it again"
            ) from None
        except Exception as error:  # whatever a damaged text or tensor leads to
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise DiscovererError(f"a stored discoverer is damaged ({reason}); store it again") from None
        return model

    # Reading what comes in -------------------------------------------------------------------------------------------

    @property
    def _dtype(self) -> np.dtype[Any]:
        """Of the computing: that of the first features, float32 or float64."""
        return np.dtype(self._dtype_name)

    def _read(
        self, X: npt.ArrayLike, y: npt.ArrayLike | None, *, first: bool
    ) -> tuple[npt.NDArray[Any], list[Label | None]]:
        dtypes = [np.float64, np.float32] if first else self._dtype
        features: npt.NDArray[Any]
        values: npt.NDArray[Any]
        if y is None:
            features = validate_data(self, X, dtype=dtypes, reset=first)
            values = np.full(len(features), None)
        else:
            features, values = validate_data(self, X, y, dtype=dtypes, reset=first)
        if first:
            self._dtype_name: str = features.dtype.name
            self.ledger_ = ledger_for(values, unlabeled=self.unlabeled, first_novel=self.first_novel)
        return features, self.ledger_.read(values)

    def _read_features(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        check_is_fitted(self)
        return validate_data(self, X, dtype=self._dtype, reset=False)  # type: ignore[no-any-return]

    def _compared(self, X: npt.ArrayLike) -> Tensor:
        """Features as they are compared: centered, reduced, of length 1. (n, d) -> (n, c)."""
        features = self._read_features(X)
        return self._space.compare(features)

    def _check_labels(self, y: npt.ArrayLike | None, classes: npt.ArrayLike | None) -> None:
        known = self.ledger_.id_of_name if self.__sklearn_is_fitted__() else ()
        check_labels(y, classes, known=known, unlabeled=self.unlabeled)


def _with_enough_rows(h: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
    """The rows of categories that have enough of them to calibrate with."""
    _, rows = distinct(ids)
    enough = torch.bincount(rows)[rows] >= MIN_LABELED
    return h[enough], ids[enough]


T = TypeVar("T")


def _part(entries: Mapping[str, T], prefix: str) -> dict[str, T]:
    return {name.removeprefix(prefix): entry for name, entry in entries.items() if name.startswith(prefix)}
