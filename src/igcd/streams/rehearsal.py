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
"""Of a known category's other images, to come back unlabeled."""


def rehearse(split: Split) -> Split:
    """A stage of labeled images and one with novel categories among known ones, both of stage 0 of a split."""
    given = split.stages[0].labeled
    names, categories = np.unique(np.asarray(given.categories), return_inverse=True)
    n_novel = round(NOVEL_SHARE * len(names))
    fewest = int(np.bincount(categories).min()) if len(names) else 0
    if n_novel < 1 or fewest < 4:
        raise IgcdError(
            f"a rehearsal needs 4 labeled categories of 4 images at stage 0 at least, {split.name} has {len(names)}, "
            f"and {fewest} of the smallest; label more, or choose options otherwise"
        )
    spec = StreamSpec(
        protocol="mi",
        categories_per_stage=(len(names) - n_novel, n_novel),
        images_old=max(1, round(RETURNING_SHARE * (1 - HELD_OUT) * fewest)),
        held_out=HELD_OUT,
    )
    return cut_by_category(
        spec,
        split.seed,
        name=f"{split.name}-rehearsal",
        source=split.source,
        image_ids=given.image_ids,
        categories=categories,
        category_names=names.tolist(),
        is_test=np.zeros(len(categories), dtype=bool),
    )
