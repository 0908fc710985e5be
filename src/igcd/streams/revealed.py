"""The stream of the upper bound: at each stage all images so far, with their true labels.

A method is handed this instead of the stream itself, so that what it may see stays a matter of the stream; no method
reaches for the truth.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from igcd.data.images import Concatenation
from igcd.streams.veil import copied
from igcd.types import Images, Stage, StageTruth, Stream, Truth


class RevealedStream:
    """The stages of a stream with nothing hidden and nothing gone. Implements `igcd.types.Stream`."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    @property
    def name(self) -> str:
        """What the stream is called in records and tables."""
        return self._stream.name

    def __len__(self) -> int:
        return len(self._stream)

    def __iter__(self) -> Iterator[tuple[Stage, StageTruth]]:
        # A generator refers to its variables: none of them is, or holds, what is handed over.
        seen: list[Images] = []
        truths: list[Truth] = []
        names: list[str] = []
        stages = iter(self._stream)
        for _ in range(len(self)):
            yield _reveal(*next(stages), seen, truths, names)


def _reveal(
    stage: Stage, truth: StageTruth, seen: list[Images], truths: list[Truth], names: list[str]
) -> tuple[Stage, StageTruth]:
    """The stage with all images so far and their labels. Adds its own images, truths and names to those lists."""
    for part, known in ((stage.labeled, truth.labeled), (stage.unlabeled, truth.unlabeled)):
        images, truth_of_images = _not_yet(part, known, {image_id for images in seen for image_id in images.ids})
        seen.append(images)
        truths.append(truth_of_images)
    everything = Truth(
        image_ids=tuple(image_id for known in truths for image_id in known.image_ids),
        categories=tuple(category for known in truths for category in known.categories),
        groups=tuple(group for known in truths for group in known.groups),
    )
    names += sorted(set(everything.categories) - set(names))
    code_of = {name: code for code, name in enumerate(names)}
    labels = np.array([code_of[category] for category in everything.categories], dtype=np.int64)
    labeled = Concatenation([images.take(range(len(images))) for images in seen])
    return (
        replace(stage, labeled=labeled, labels=labels, category_names=copied(names)),
        replace(truth, labeled=everything),
    )


def _not_yet(images: Images, truth: Truth, ids: set[str]) -> tuple[Images, Truth]:
    """The images whose ids are not among these: in IGCD-l a stage labels what the last one had unlabeled."""
    idx = [position for position, image_id in enumerate(images.ids) if image_id not in ids]
    kept = (tuple(values[i] for i in idx) for values in (truth.image_ids, truth.categories, truth.groups))
    return images.take(idx), Truth(*kept)
