"""The protocols as pure functions from (categories, spec, random generator) to positions of images.

Two questions make a stream, and they are answered apart:

1. Which images arrive at stage t, the sets D^0, D^1, … of the paper? `arrivals_by_category` answers for data sets with
   categories alone; `igcd.streams.inat_igcd` answers by year and continent.
2. Which of their labels does a method see, and when? `igcd_l`, `igcd_u` and `static` answer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, field_validator

from igcd.errors import IgcdError
from igcd.streams.randomness import shuffled
from igcd.types import BoolArray, IntArray

Protocol = Literal["igcd-l", "igcd-u", "mi", "cgcd", "static"]

PROTOCOLS: dict[Protocol, str] = {
    "igcd-l": "labels of a stage's unlabeled images arrive with the next stage; only some old categories come back",
    "igcd-u": "no labels after stage 0; only some old categories come back",
    "mi": "mixed incremental: no labels after stage 0; every earlier category comes back at every stage",
    "cgcd": "the layout of later work: mixed incremental with half of the categories labeled, then five stages",
    "static": "generalized category discovery in one stage: half of the categories, half of their images labeled",
}

NOTHING: IntArray = np.empty(0, dtype=np.int64)


class StreamSpec(BaseModel):
    """Everything that decides who is in which stage, apart from the images and the seed. Unset values have a rule."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    protocol: Protocol
    categories_per_stage: tuple[int, ...] | None = None
    """How many categories are met first at each stage; unset: 70/10/10/10 percent, cgcd 50 and five times 10."""
    old_presence: float | None = Field(default=None, ge=0, le=1)
    """Share of the earlier categories that come back at a later stage; unset: all in mi and cgcd, else half."""
    images_labeled: int | None = Field(default=None, ge=1)
    """Images per category at stage 0; unset: all that are not kept for later stages."""
    images_new: int | None = Field(default=None, ge=1)
    """Images per category at the later stage that meets it first; unset: all that are not kept for later ones."""
    images_old: int = Field(default=25, ge=1)
    """Images per category at each stage it comes back to; fewer where a category is small."""
    redraw: bool | None = None
    """Whether images of a category that comes back are drawn again at each stage and may come again; unset: no."""
    labeled_share: float = Field(default=0.5, gt=0, lt=1)
    """static: the share of a labeled category's images that is labeled."""
    test_per_category: int | None = Field(default=None, ge=1)
    """Test images per category; unset: all."""
    held_out: float | None = Field(default=None, gt=0, lt=1)
    """Share of each category's training images set aside as test images, for data without test images."""
    category_order: tuple[str, ...] | None = None
    """Categories in the order in which they are met; unset: drawn with the seed."""
    returning: Literal["old", "new"] = "old"
    """Where a category counts that was labeled at an earlier stage, is not now, and comes back unlabeled."""

    @field_validator("categories_per_stage")
    @classmethod
    def _positive(cls, sizes: tuple[int, ...] | None) -> tuple[int, ...] | None:
        if sizes is not None and (len(sizes) < 2 or min(sizes) < 1):
            raise ValueError(f"needs two or more stages of at least one category each, got {list(sizes)}")
        return sizes


@dataclass(frozen=True)
class StageIndices:
    """One stage as positions of images in a data set."""

    labeled_idx: IntArray
    unlabeled_idx: IntArray
    test_idx: IntArray


def default_sizes(protocol: Protocol, n_categories: int) -> tuple[int, ...]:
    """How many categories each stage meets first when nobody says.

    >>> default_sizes("mi", 100), default_sizes("mi", 200), default_sizes("cgcd", 100), default_sizes("static", 101)
    ((70, 10, 10, 10), (140, 20, 20, 20), (50, 10, 10, 10, 10, 10), (51, 50))
    >>> default_sizes("igcd-l", 10)
    (7, 1, 1, 1)
    """
    n_later, later_share = {"cgcd": (5, 0.1), "static": (1, 0.5)}.get(protocol, (3, 0.1))
    later = max(1, int(n_categories * later_share))
    first = n_categories - n_later * later
    if first < 1:
        raise IgcdError(
            f"protocol {protocol} needs at least {n_later + 1} categories, got {n_categories}; "
            "add categories or choose another protocol"
        )
    return (first, *[later] * n_later)


def hold_out(categories: IntArray, share: float, rng: np.random.Generator, groups: IntArray | None = None) -> BoolArray:
    """Marks a share of each category's images as test images, (n,); at least one of each stays for training.

    With `groups`, (n,), the share is of groups, and images of one group stay together: photos of one animal on one day
    show nearly the same, so one of them in training would give away another in the test. Groups of one image each
    give what no groups give.
    """
    is_test = np.zeros(len(categories), dtype=bool)
    if groups is None:
        groups = np.arange(len(categories))
    _refuse_mixed_groups(groups, categories)
    for idx in _by_category(categories):
        _, first, inverse = np.unique(groups[idx], return_index=True, return_inverse=True)
        position = np.argsort(np.argsort(first))[inverse]  # of each image's group, in order of first appearance
        n_test = min(round(share * len(first)), max(len(first) - 1, 0))
        chosen = shuffled(len(first), rng)[:n_test]
        is_test[idx[np.isin(position, chosen)]] = True
    return is_test


def _refuse_mixed_groups(groups: IntArray, categories: IntArray) -> None:
    by_group = np.argsort(groups, kind="stable")
    in_order, category = groups[by_group], categories[by_group]
    is_mixed = (in_order[1:] == in_order[:-1]) & (category[1:] != category[:-1])
    if is_mixed.any():
        raise IgcdError(
            f"images that are held out together must be of one category, group {in_order[1:][is_mixed][0]} has two; "
            "give each image its own group, or part the group by category"
        )


def arrivals_by_category(
    categories: IntArray, order: IntArray, spec: StreamSpec, rng: np.random.Generator
) -> list[IntArray]:
    """The images of each stage: D^0 … D^T as positions into `categories`, (n,), no image twice in a stage.

    `order` lists category codes as they are met. A category's images are dealt once: a share for each later stage it
    comes back to, the rest for the stage that meets it first. With `redraw` each later stage draws from all of a
    category's images, and of stage 0's categories from those that were not labeled there.
    """
    sizes = spec.categories_per_stage or default_sizes(spec.protocol, len(order))
    if sum(sizes) > len(order):
        raise IgcdError(
            f"the stages ask for {sum(sizes)} categories ({', '.join(map(str, sizes))}), the data has {len(order)}; "
            "ask for fewer"
        )
    presence = spec.old_presence
    if presence is None:
        presence = 1.0 if spec.protocol in ("mi", "cgcd") else 0.5
    first_stage = np.repeat(np.arange(len(sizes)), sizes)  # of the categories in order
    comes_back = np.zeros((len(sizes), sum(sizes)), dtype=bool)
    for later in range(1, len(sizes)):
        n_earlier = sum(sizes[:later])
        comes_back[later, shuffled(n_earlier, rng)[: round(presence * n_earlier)]] = True

    idx_by_category = _by_category(categories, order)
    arrivals: list[list[IntArray]] = [[] for _ in sizes]
    for position, category in enumerate(order[: sum(sizes)]):
        idx = idx_by_category[category]
        idx = idx[shuffled(len(idx), rng)]
        later_stages = np.flatnonzero(comes_back[:, position]).tolist()
        first = first_stage[position]
        if spec.redraw:
            idx, others = _first_and_others(idx, spec, is_labeled=first == 0)
            for stage in later_stages:
                arrivals[stage].append(others[shuffled(len(others), rng)][: spec.images_old])
            arrivals[first].append(idx)
            continue
        n_later = min(spec.images_old, len(idx) // (len(later_stages) + 1))
        for stage in later_stages:
            arrivals[stage].append(idx[:n_later])
            idx = idx[n_later:]
        arrivals[first].append(idx[: spec.images_labeled if first == 0 else spec.images_new])
    return [np.sort(np.concatenate(parts)) for parts in arrivals]


def _first_and_others(idx: IntArray, spec: StreamSpec, *, is_labeled: bool) -> tuple[IntArray, IntArray]:
    """A category's images at the stage that meets it, and those that later stages draw from. (n,) -> (a,), (b,)."""
    if not is_labeled:
        return idx[: spec.images_new], idx
    n_labeled = spec.images_labeled or max(1, len(idx) - spec.images_old)
    others = idx[n_labeled:]
    return idx[:n_labeled], others if len(others) else idx


def evaluation_by_category(
    categories: IntArray,
    order: IntArray,
    sizes: Sequence[int],
    test_per_category: int | None,
    rng: np.random.Generator,
) -> list[IntArray]:
    """The test images of the categories met first at each stage, as positions into `categories`, (n,)."""
    idx_by_category = _by_category(categories, order)
    ends = np.cumsum(sizes)
    arrivals = []
    for start, end in zip(ends - np.asarray(sizes), ends, strict=True):
        parts = [idx_by_category[category] for category in order[start:end]]
        parts = [idx[shuffled(len(idx), rng)][:test_per_category] for idx in parts]
        arrivals.append(np.sort(np.concatenate(parts)) if parts else NOTHING)
    return arrivals


def igcd_l(arrivals: Sequence[IntArray], test_arrivals: Sequence[IntArray]) -> list[StageIndices]:
    """IGCD-l: stage 0 has D^0 labeled alone; stage t has D^(t-1) labeled and D^t unlabeled.

    >>> stages = igcd_l([np.array([0]), np.array([1]), np.array([2])], [NOTHING] * 3)
    >>> [(stage.labeled_idx.tolist(), stage.unlabeled_idx.tolist()) for stage in stages]
    [([0], []), ([0], [1]), ([1], [2])]
    """
    labeled = [arrivals[0], *arrivals[:-1]]
    unlabeled = [NOTHING, *arrivals[1:]]
    return _with_tests(labeled, unlabeled, test_arrivals)


def igcd_u(arrivals: Sequence[IntArray], test_arrivals: Sequence[IntArray]) -> list[StageIndices]:
    """IGCD-u and MI: stage 0 has D^0 labeled, every later stage its D^t unlabeled and nothing else.

    >>> stages = igcd_u([np.array([0]), np.array([1]), np.array([2])], [NOTHING] * 3)
    >>> [(stage.labeled_idx.tolist(), stage.unlabeled_idx.tolist()) for stage in stages]
    [([0], []), ([], [1]), ([], [2])]
    """
    labeled = [arrivals[0], *[NOTHING] * (len(arrivals) - 1)]
    unlabeled = [NOTHING, *arrivals[1:]]
    return _with_tests(labeled, unlabeled, test_arrivals)


LABEL_RULES: dict[str, Callable[[Sequence[IntArray], Sequence[IntArray]], list[StageIndices]]] = {
    "igcd-l": igcd_l,
    "igcd-u": igcd_u,
    "mi": igcd_u,
    "cgcd": igcd_u,
}


def static(
    categories: IntArray, is_test: BoolArray, order: IntArray, spec: StreamSpec, rng: np.random.Generator
) -> list[StageIndices]:
    """Static GCD: one stage; of the first categories a share of the images is labeled, all else is unlabeled."""
    sizes = spec.categories_per_stage or default_sizes("static", len(order))
    if len(sizes) != 2 or sum(sizes) > len(order):
        raise IgcdError(
            f"static takes two numbers, labeled and novel categories, at most {len(order)} together; got {list(sizes)}"
        )
    train_idx = np.flatnonzero(~is_test)
    idx_by_category = _by_category(categories[train_idx], order)
    labeled, unlabeled = [], []
    for position, category in enumerate(order[: sum(sizes)]):
        idx = train_idx[idx_by_category[category]]
        idx = idx[shuffled(len(idx), rng)]
        is_known = position < sizes[0]
        idx = idx[: spec.images_labeled if is_known else spec.images_new]
        n_labeled = max(1, round(spec.labeled_share * len(idx))) if is_known else 0
        labeled.append(idx[:n_labeled])
        unlabeled.append(idx[n_labeled:])
    test_idx = np.flatnonzero(is_test)
    test = evaluation_by_category(categories[test_idx], order, [sum(sizes)], spec.test_per_category, rng)
    return [
        StageIndices(
            np.sort(np.concatenate(labeled)), np.sort(np.concatenate(unlabeled)), test_idx[test[0]].astype(np.int64)
        )
    ]


def stages_by_category(
    categories: IntArray, is_test: BoolArray, category_names: Sequence[str], spec: StreamSpec, rng: np.random.Generator
) -> list[StageIndices]:
    """The stages of a data set that has categories and nothing else, for any protocol. (n,), (n,) -> positions."""
    order = _category_order(category_names, spec.category_order, rng)
    if spec.held_out is not None:
        if is_test.any():
            raise IgcdError("the data has test images of its own; leave held_out unset")
        is_test = hold_out(categories, spec.held_out, rng)
    if spec.protocol == "static":
        return static(categories, is_test, order, spec, rng)
    train_idx, test_idx = np.flatnonzero(~is_test), np.flatnonzero(is_test)
    arrivals = arrivals_by_category(categories[train_idx], order, spec, rng)
    sizes = spec.categories_per_stage or default_sizes(spec.protocol, len(order))
    test_arrivals = evaluation_by_category(categories[test_idx], order, sizes, spec.test_per_category, rng)
    return LABEL_RULES[spec.protocol]([train_idx[idx] for idx in arrivals], [test_idx[idx] for idx in test_arrivals])


def group_of_categories(
    stages: Sequence[StageIndices], categories: IntArray, returning: Literal["old", "new"] = "old"
) -> list[dict[int, str]]:
    """For each stage, the group of every category met so far: Old, New or S-t (docs/protocol.md).

    Old is labeled now, or was labeled earlier and comes back; New is present and was never labeled; S-t is absent now
    and was met first at stage t.
    """
    first_stage: dict[int, int] = {}
    labeled_ever: set[int] = set()
    groups = []
    for index, stage in enumerate(stages):
        labeled_now = set(np.unique(categories[stage.labeled_idx]).tolist())
        unlabeled_now = set(np.unique(categories[stage.unlabeled_idx]).tolist())
        labeled_ever |= labeled_now
        for category in labeled_now | unlabeled_now:
            first_stage.setdefault(category, index)
        old = labeled_now | (labeled_ever & unlabeled_now if returning == "old" else set())
        groups.append(
            {
                category: "Old" if category in old else "New" if category in unlabeled_now else f"S-{first}"
                for category, first in first_stage.items()
            }
        )
    return groups


def _with_tests(
    labeled: Sequence[IntArray], unlabeled: Sequence[IntArray], test_arrivals: Sequence[IntArray]
) -> list[StageIndices]:
    """Stages tested on the test images of every stage so far."""
    return [
        StageIndices(labeled[stage], unlabeled[stage], np.sort(np.concatenate(test_arrivals[: stage + 1])))
        for stage in range(len(labeled))
    ]


def _by_category(categories: IntArray, order: IntArray = NOTHING) -> list[IntArray]:
    """Positions of the images of each category, by code; codes in `order` without images get none."""
    n_categories = 1 + max(categories.max(initial=-1), order.max(initial=-1))
    by_category = np.argsort(categories, kind="stable").astype(np.int64)
    ends = np.cumsum(np.bincount(categories, minlength=n_categories))
    return np.split(by_category, ends[:-1])


def _category_order(
    category_names: Sequence[str], listed: tuple[str, ...] | None, rng: np.random.Generator
) -> IntArray:
    """Category codes in the order in which they are met: drawn by name, so that the codes do not matter."""
    by_name = np.argsort(np.asarray(category_names, dtype=np.str_), kind="stable").astype(np.int64)
    if listed is None:
        return by_name[shuffled(len(by_name), rng)]
    code_of = {name: code for code, name in enumerate(category_names)}
    unknown = [name for name in listed if name not in code_of]
    if unknown or len(set(listed)) != len(listed):
        wrong = f"{unknown[0]!r} is not a category of the data" if unknown else "a category is listed twice"
        raise IgcdError(f"the category order must list each category once: {wrong}; correct the file")
    return np.asarray([code_of[name] for name in listed], dtype=np.int64)
