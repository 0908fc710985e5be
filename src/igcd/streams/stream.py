"""A split file and its images, made into the stages a method learns from and the truth the scorer keeps."""

from collections.abc import Iterator

import numpy as np

from igcd.data.images import ImageSet
from igcd.errors import IgcdError
from igcd.streams.randomness import generator, shuffled
from igcd.streams.split import Split, SplitStage
from igcd.streams.veil import VeiledImages, copied, new_secret
from igcd.types import IntArray, Stage, StageTruth, Truth


class SplitStream:
    """The stages of a split, one after the other, over the images it names. Implements `igcd.types.Stream`.

    The secret makes the ids under which a method gets the images: a run that is resumed needs the one it began with.
    """

    def __init__(self, split: Split, images: ImageSet, secret: bytes | None = None) -> None:
        self._split = split
        self._images = images
        self._secret = new_secret() if secret is None else secret
        self._position_of = {image_id: position for position, image_id in enumerate(images.ids)}
        missing = {
            image_id
            for stage in split.stages
            for truth in (stage.labeled, stage.unlabeled, stage.test)
            for image_id in truth.image_ids
            if image_id not in self._position_of
        }
        if missing:
            raise IgcdError(
                f"{len(missing):,} images of split {split.name} are not in the data, {min(missing)!r} for one; "
                f"point to the {split.source} data it was built from, or rebuild it"
            )

    def cut_by(self, split: Split) -> "SplitStream":
        """Another stream over the same images."""
        return SplitStream(split, self._images, self._secret)

    @property
    def name(self) -> str:
        """What the stream is called in records and tables."""
        return self._split.name

    def __len__(self) -> int:
        return len(self._split.stages)

    def __iter__(self) -> Iterator[tuple[Stage, StageTruth]]:
        names: list[str] = []  # of every category labeled so far, in the order in which their labels arrive
        for index, stage in enumerate(self._split.stages):
            names += sorted(set(stage.labeled.categories) - set(names))
            yield self._stage(index, stage, tuple(names))

    def _stage(self, index: int, stage: SplitStage, names: tuple[str, ...]) -> tuple[Stage, StageTruth]:
        labeled_truth, labeled = self._veil(stage.labeled, index, 0)
        unlabeled_truth, unlabeled = self._veil(stage.unlabeled, index, 1)
        test_truth, test_images = self._veil(stage.test, index, 2)
        code_of = {name: code for code, name in enumerate(names)}
        labels = np.asarray([code_of[category] for category in labeled_truth.categories], dtype=np.int64)
        return (
            Stage(
                index=index,
                labeled=labeled,
                labels=labels,
                unlabeled=unlabeled,
                category_names=copied(names),
            ),
            StageTruth(
                index=index,
                labeled=labeled_truth,
                unlabeled=unlabeled_truth,
                test_images=test_images,
                test=test_truth,
            ),
        )

    def _veil(self, truth: Truth, stage: int, role: int) -> tuple[Truth, VeiledImages]:
        """The truth and its images in the same random order: the order of a split file would reveal the categories."""
        order: IntArray = shuffled(len(truth.image_ids), generator(self._split.seed, stage, role))
        shuffled_truth = Truth(
            image_ids=tuple(truth.image_ids[i] for i in order),
            categories=tuple(truth.categories[i] for i in order),
            groups=tuple(truth.groups[i] for i in order),
        )
        positions = [self._position_of[image_id] for image_id in shuffled_truth.image_ids]
        return shuffled_truth, VeiledImages(self._images, positions, self._secret)
