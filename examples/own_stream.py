"""A stream of one's own with a method of one's own, scored like all others.

    python examples/own_stream.py

Images are an array, stages come from a protocol, and the method is any object with `learn` and `predict`.
"""

import numpy as np
from sklearn.datasets import load_digits

from igcd import CategoryDiscoverer
from igcd.data.dataset import Dataset
from igcd.data.images import ArrayImages
from igcd.metrics.predictions import join_predictions, stage_predictions
from igcd.metrics.scorecard import Scorecard, scorecard
from igcd.streams.build import split_by_category
from igcd.streams.protocols import StreamSpec
from igcd.streams.stream import SplitStream
from igcd.types import Images, Stage


class PixelDiscoverer:
    """Discovers categories in gray values, stage after stage."""

    def __init__(self) -> None:
        self.model = CategoryDiscoverer()

    def learn(self, stage: Stage) -> None:
        """Labels where there are some, -1 elsewhere. Images of earlier stages are gone."""
        labels = np.concatenate([stage.labels, np.full(len(stage.unlabeled), -1)])
        self.model.partial_fit(np.concatenate([rows_of(stage.labeled), rows_of(stage.unlabeled)]), labels)

    def predict(self, images: Images) -> list[int]:
        """The cluster of each image: a known category or a discovered one."""
        return self.model.predict(rows_of(images)).tolist()


def rows_of(images: Images) -> np.ndarray:
    """Gray values as rows, (n, 64)."""
    return np.array([images.pixels(idx)[..., 0].ravel() for idx in range(len(images))]).reshape(-1, 64)


def main() -> Scorecard:
    """Six labeled digits first, then four new ones in two stages."""
    data = load_digits()
    images = ArrayImages([f"digit-{i:04}" for i in range(len(data.target))], (data.images * 15).astype(np.uint8))
    dataset = Dataset("digits", images, data.target, tuple("0123456789"), is_test=np.arange(len(images)) % 4 == 0)
    split = split_by_category(dataset, StreamSpec(protocol="mi", categories_per_stage=(6, 2, 2)), seed=0)
    method, parts = PixelDiscoverer(), []
    for stage, truth in SplitStream(split, images):  # the method never gets hold of the truth
        method.learn(stage)
        parts.append(stage_predictions(stage.index, {"test": method.predict(truth.test_images)}, truth))
    card = scorecard(join_predictions(parts))
    print(*card.variants[card.default].stages, sep="\n")
    return card


if __name__ == "__main__":
    main()
