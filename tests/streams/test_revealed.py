import pytest

from igcd.data.sources import load_source
from igcd.streams.build import split_by_category
from igcd.streams.protocols import StreamSpec
from igcd.streams.revealed import RevealedStream
from igcd.streams.stream import SplitStream


@pytest.mark.parametrize("protocol", ["igcd-l", "igcd-u", "mi"])
def test_every_image_so_far_is_labeled_once_with_the_truth(protocol):
    digits = load_source("digits")
    spec = StreamSpec(
        protocol=protocol,
        categories_per_stage=(4, 2, 2),
        images_labeled=9,
        images_new=9,
        images_old=3,
        test_per_category=2,
    )
    stream = SplitStream(split_by_category(digits, spec, seed=0), digits.images)
    category_of: dict[str, str] = {}
    for (stage, truth), (hidden, known) in zip(RevealedStream(stream), stream, strict=True):
        for images, part in ((hidden.labeled, known.labeled), (hidden.unlabeled, known.unlabeled)):
            category_of |= dict(zip(images.ids, part.categories, strict=True))
        names = [stage.category_names[label] for label in stage.labels.tolist()]
        assert dict(zip(stage.labeled.ids, names, strict=True)) == category_of
        assert len(stage.labeled.ids) == len(category_of)
        assert truth.labeled.categories == tuple(names)
        assert stage.unlabeled.ids == hidden.unlabeled.ids and truth.test == known.test
        some = next(iter(range(len(stage.labeled))))
        assert stage.labeled.pixels(some).shape == (8, 8, 3)
