"""A stream to choose options on: the labeled images of stage 0 alone, some of their categories playing novel ones.

Whoever has the labels knows all of it, so an option chosen by its scores was chosen without a test image of the real
stream and without a hidden label.
"""

import numpy as np

from igcd.errors import IgcdError
from igcd.streams.build import cut_by_category
from igcd.streams.protocols import StreamSpec
from igcd.streams.split import Split

NOVEL_SHARE = 1 / 7
"""Of the labeled categories; the real streams meet 10 new ones beside 70."""
HELD_OUT = 0.3
"""Of each category's images, to score on."""
RETURNING_SHARE = 0.2
"""Of a known category's other images, to come back unlabeled, where the stream does not say how many do."""


def rehearse(split: Split, like: StreamSpec | None = None) -> Split:
    """A stage of labeled images and one with novel categories among known ones, both of stage 0 of a split.

    Where the spec of the stream says how many images a category has at each of its stages, those of the rehearsal are
    in the same proportions, as many as the labels allow.
    """
    labeled = split.stages[0].labeled
    names, categories = np.unique(np.asarray(labeled.categories), return_inverse=True)
    n_novel = round(NOVEL_SHARE * len(names))
    fewest = int(np.bincount(categories).min()) if len(names) else 0
    if n_novel < 1 or fewest < 4:
        raise IgcdError(
            f"a rehearsal needs 4 labeled categories of 4 images at stage 0 at least, {split.name} has {len(names)}, "
            f"and {fewest} of the smallest; label more, or choose options otherwise"
        )
    spec = _images_per_category(fewest - round(HELD_OUT * fewest), like).model_copy(
        update={"categories_per_stage": (len(names) - n_novel, n_novel), "held_out": HELD_OUT}
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


def _images_per_category(n_images: int, like: StreamSpec | None) -> StreamSpec:
    """How many images of a category arrive at stage 0, at the stage that meets it first, and at its return.

    >>> spec = _images_per_category(14, StreamSpec(protocol="mi", images_labeled=20, images_new=30, images_old=6))
    >>> spec.images_labeled, spec.images_new, spec.images_old
    (9, 14, 3)
    """
    if like is None or like.images_labeled is None or like.images_new is None:
        return StreamSpec(protocol="mi", images_old=max(1, round(RETURNING_SHARE * n_images)))
    scale = n_images / max(like.images_new, like.images_labeled + like.images_old)
    return StreamSpec(
        protocol="mi",
        images_labeled=max(1, round(scale * like.images_labeled)),
        images_new=max(1, round(scale * like.images_new)),
        images_old=max(1, round(scale * like.images_old)),
    )
