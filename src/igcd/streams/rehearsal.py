"""A stream to choose options on: the labeled images of stage 0 alone, some of their categories playing novel ones.

Whoever has the labels knows all of it, so an option chosen by its scores was chosen without a test image of the real
stream and without a hidden label.
"""

import numpy as np

from igcd.errors import IgcdError
from igcd.streams.build import cut_by_category
from igcd.streams.protocols import StreamSpec
from igcd.streams.split import Split

KNOWN_PER_NOVEL = 6
"""Categories of stage 0 for each new one of a later stage; the real streams meet 10 new ones beside 70."""
HELD_OUT = 0.3
"""Of each category's images, to score on."""
RETURNING_SHARE = 0.2
"""Of a known category's other images, to come back unlabeled, where the stream does not say how many do."""


def rehearse(split: Split, like: StreamSpec | None = None, *, n_later: int = 1) -> Split:
    """A stage of labeled images and later ones with novel categories among known ones, all of stage 0 of a split.

    With one later stage each has most images of a category; as many as the stream has show what adds up over them.
    Where the spec of the stream says how many images a category has at each of its stages, those of the rehearsal are
    in the same proportions, as many as the labels allow.
    """
    labeled = split.stages[0].labeled
    names, categories = np.unique(np.asarray(labeled.categories), return_inverse=True)
    n_novel = round(len(names) / (KNOWN_PER_NOVEL + n_later))
    fewest = int(np.bincount(categories).min()) if len(names) else 0
    n_categories, n_images = KNOWN_PER_NOVEL // 2 + n_later, 3 + n_later
    if n_novel < 1 or len(names) < n_categories or fewest < n_images:
        raise IgcdError(
            f"a rehearsal needs {n_categories} labeled categories of {n_images} images at stage 0 at least, "
            f"{split.name} has {len(names)}, and {fewest} of the smallest; label more, or choose options otherwise"
        )
    spec = _images_per_category(fewest - round(HELD_OUT * fewest), like, n_later).model_copy(
        update={"categories_per_stage": (len(names) - n_later * n_novel, *[n_novel] * n_later), "held_out": HELD_OUT}
    )
    return cut_by_category(
        spec,
        split.seed,
        name=f"{split.name}-rehearsal",
        source=split.source,
        image_ids=labeled.image_ids,
        categories=categories,
        category_names=names.tolist(),
        is_test=np.zeros(len(categories), dtype=bool),
    )


def _images_per_category(n_images: int, like: StreamSpec | None, n_later: int) -> StreamSpec:
    """How many images of a category arrive at stage 0, at the stage that meets it first, and at each return.

    >>> like = StreamSpec(protocol="mi", images_labeled=20, images_new=30, images_old=6)
    >>> for n_later in (1, 3):
    ...     spec = _images_per_category(14, like, n_later)
    ...     print(spec.images_labeled, spec.images_new, spec.images_old)
    9 14 3
    7 10 2
    """
    if like is None or like.images_labeled is None or like.images_new is None:
        return StreamSpec(protocol="mi", images_old=max(1, round(RETURNING_SHARE * n_images / n_later)))
    n_new, n_labeled = (
        n_first + n_returns * like.images_old
        for n_first, n_returns in ((like.images_new, n_later - 1), (like.images_labeled, n_later))
    )
    scale = n_images / max(n_new, n_labeled)
    return StreamSpec(
        protocol="mi",
        images_labeled=max(1, round(scale * like.images_labeled)),
        images_new=max(1, round(scale * like.images_new)),
        images_old=max(1, round(scale * like.images_old)),
    )
