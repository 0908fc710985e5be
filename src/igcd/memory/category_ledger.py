"""Ids and names of categories: ids are given in the order of arrival and never twice, names may be changed."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.multiclass import check_classification_targets  # type: ignore[import-untyped]

from igcd.errors import IgcdError
from igcd.memory.merging import Standing, merged
from igcd.types import IntArray

Label = int | float | str
LabelKind = Literal["int", "float", "text"]
Status = Literal["known", "novel", "merged", "rejected"]

MAX_LABEL = 2**62
"""Whole numbers that name categories are smaller, so that they fit 64 bits with room for those of new ones."""
LARGEST: Mapping[LabelKind, int] = {"int": MAX_LABEL - 1, "float": 2**53}
"""The largest number that a label can be, of those kinds that are numbers: above it floats skip whole numbers."""


class DiscovererError(IgcdError, ValueError):
    """Bad input to the estimator: an `IgcdError` that scikit-learn knows as the `ValueError` it expects."""


@dataclass(frozen=True)
class Category:
    """A category as it stands now. The id is forever; the label is what `predict` answers and may be changed."""

    id: int
    label: Label
    status: Status  # known: labeled or named by a person; novel: found and not named yet
    merged_into: int | None = None


def label_kind(values: Sequence[object]) -> LabelKind:
    """What kind of labels these are, those that are None left out; "int" where there is none.

    >>> label_kind([3, None]), label_kind(["fox", ""])
    ('int', 'text')
    """
    present = [value for value in values if value is not None]
    if all(isinstance(value, int) for value in present):
        return "int"
    if all(isinstance(value, int | float) for value in present):
        return "float"
    if all(isinstance(value, str) for value in present):
        return "text"
    names = ", ".join(sorted({type(value).__name__ for value in present}))
    raise DiscovererError(f"labels must be all numbers or all texts, got {names}; make them of one kind")


class CategoryLedger:
    """The categories there are and have been: ids in the order of arrival, never used twice, whatever their names."""

    def __init__(self, *, kind: LabelKind, unlabeled: Label, first_novel: int) -> None:
        self.kind: LabelKind = kind
        self.unlabeled = unlabeled  # what marks a row without a category
        self.first_novel = first_novel
        self.categories: list[Category] = []  # the position is the id
        self.id_of_name: dict[Label, int] = {}  # every name ever given

    def __contains__(self, label: Label) -> bool:
        try:
            return label in self.id_of_name
        except TypeError:  # a list, for one, is no label
            return False

    def read(self, y: npt.NDArray[Any]) -> list[Label | None]:
        """Labels as they are compared, None where a row has none. (n,) -> n.

        Unlabeled are None and the mark; among texts also "" and "-1", which numpy makes of a −1 in a list of texts.
        """
        values = y.tolist()
        kind = label_kind(values)
        if any(value is not None for value in values) and (kind == "text") != (self.kind == "text"):
            raise DiscovererError(
                f"labels must be of one kind at every call, {self.kind} as at the first, got {kind}; convert them"
            )
        for value in values:
            self._check_size(value)
        none = {None, self.unlabeled} | ({"", "-1"} if self.kind == "text" else set())
        labels = [None if value in none else value for value in values]
        present = np.unique([label for label in labels if label is not None] or [0])
        # Each twice: one label per category is usual here, and scikit-learn would warn that it may be a regression.
        check_classification_targets(np.repeat(present, 2))
        return [None if label is None else self._checked(label) for label in labels]

    def live(self, *statuses: Status) -> list[int]:
        """Ids of the categories with one of these statuses, rising."""
        return [category.id for category in self.categories if category.status in statuses]

    def current(self, category_id: int) -> Category:
        """The category that an id stands for now, behind all merges."""
        category = self.categories[category_id]
        while category.merged_into is not None:
            category = self.categories[category.merged_into]
        return category

    def find(self, label: Label) -> Category:
        """The live category that goes, or went, by this name."""
        if label not in self:
            names = ", ".join(repr(category.label) for category in self.categories if category.merged_into is None)
            raise DiscovererError(f"there is no category {label!r}; take one of {names or 'those that fit finds'}")
        category = self.current(self.id_of_name[label])
        if category.status == "rejected":
            raise DiscovererError(f"the category {label!r} has been rejected; give these rows another name")
        return category

    def open(self, label: Label | None = None) -> int:
        """A new category, known by its label or novel without one, and its id."""
        category_id = len(self.categories)
        name = self._next_novel_label() if label is None else self._checked(label)
        self.categories.append(Category(category_id, name, "novel" if label is None else "known"))
        self.id_of_name[name] = category_id
        return category_id

    def rename(self, category_id: int, label: Label) -> None:
        """Another label for a category, which is known from now on; the earlier one still leads to it."""
        name = self._checked(label)
        if name in self and self.current(self.id_of_name[name]).id != category_id:
            raise DiscovererError(
                f"the name {label!r} is or was that of another category; merge the two, or choose one"
            )
        self.categories[category_id] = replace(self.categories[category_id], label=name, status="known")
        self.id_of_name[name] = category_id

    def confirm(self, category_id: int) -> None:
        """A person has labeled images of this category: it is known."""
        self.categories[category_id] = replace(self.categories[category_id], status="known")

    def merge(self, into: int, other: int) -> None:
        """`other` is `into` from now on, by the rule of `igcd.memory.merging.merged`."""
        survivor, gone = self.categories[into], self.categories[other]
        standing = merged(
            Standing(survivor.status == "known", survivor.label), Standing(gone.status == "known", gone.label)
        )
        status = "known" if standing.is_known else survivor.status
        self.categories[into] = replace(survivor, label=standing.name, status=status)
        self.categories[other] = replace(gone, status="merged", merged_into=into)

    def reject(self, category_id: int) -> None:
        """Marks what turned out to be no category."""
        self.categories[category_id] = replace(self.categories[category_id], status="rejected")

    def labels(self, ids: Sequence[int] | IntArray) -> npt.NDArray[Any]:
        """The labels that ids stand for now; the unlabeled mark for −1 and for rejected ones. (n,) -> (n,)."""
        mark = [self.unlabeled]
        names = [mark[0] if (now := self.current(c.id)).status == "rejected" else now.label for c in self.categories]
        dtype = {"int": np.int64, "float": np.float64, "text": np.str_}[self.kind]
        return np.array(names + mark, dtype=dtype)[np.asarray(ids, dtype=np.int64)]  # −1 is the last, the mark

    def state(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return {
            "kind": self.kind,
            "unlabeled": self.unlabeled,
            "first_novel": self.first_novel,
            "categories": [asdict(category) for category in self.categories],
            "id_of_name": list(self.id_of_name.items()),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The inverse of `state`."""
        ledger = cls(kind=state["kind"], unlabeled=state["unlabeled"], first_novel=state["first_novel"])
        ledger.categories = [Category(**entry) for entry in state["categories"]]
        ledger.id_of_name = dict(state["id_of_name"])
        return ledger

    def _checked(self, label: Label) -> Label:
        is_right = isinstance(label, str) if self.kind == "text" else isinstance(label, int | float | np.number)
        self._check_size(label)
        if self.kind == "int":
            is_right = is_right and bool(np.isfinite(label)) and int(label) == label and abs(int(label)) < MAX_LABEL
        if not is_right or label in ("", self.unlabeled):
            wanted = {"text": "a text that is not empty", "int": "a whole number below 2**62", "float": "a number"}[
                self.kind
            ]
            wanted += "" if self.unlabeled == "" else f" other than {self.unlabeled!r}"
            raise DiscovererError(f"the name of a category must be {wanted} here, got {label!r}; choose another")
        return {"int": int, "float": float, "text": str}[self.kind](label)  # type: ignore[no-any-return]

    def _check_size(self, label: object) -> None:
        """Refuses numbers that an array of labels cannot hold, NaN among them."""
        if self.kind == "text" or not isinstance(label, int | float | np.integer | np.floating):
            return
        largest = LARGEST[self.kind]
        if not -largest <= label <= largest:
            raise DiscovererError(
                f"labels must be numbers from {-largest} to {largest}, got {label!r}; use smaller ones, or texts"
            )

    def _next_novel_label(self) -> Label:
        n = self.first_novel
        while (label := f"novel {n}" if self.kind == "text" else n) in self.id_of_name:
            n += 1
        if self.kind != "text" and n > LARGEST[self.kind]:
            raise DiscovererError(
                f"discoveries are counted from first_novel, {self.first_novel}, and the next number, {n}, is too large "
                "for a label; set a smaller first_novel"
            )
        return label
