"""From a data set and a spec to a split."""

from collections.abc import Sequence

from igcd.data.dataset import Dataset
from igcd.streams.protocols import StreamSpec, group_of_categories, stages_by_category
from igcd.streams.randomness import generator
from igcd.streams.split import Split, make_split
from igcd.types import BoolArray, IntArray


def split_by_category(dataset: Dataset, spec: StreamSpec, seed: int) -> Split:
    """The split of a data set that is staged by its categories: same data, spec and seed, same split."""
    return cut_by_category(
        spec,
        seed,
        name=f"{dataset.name}-{spec.protocol}",
        source=dataset.name,
        image_ids=dataset.images.ids,
        categories=dataset.categories,
        category_names=dataset.category_names,
        is_test=dataset.is_test,
    )


def cut_by_category(
    spec: StreamSpec,
    seed: int,
    *,
    name: str,
    source: str,
    image_ids: Sequence[str],
    categories: IntArray,
    category_names: Sequence[str],
    is_test: BoolArray,
) -> Split:
    """The same from names and codes alone: image ids, (n,), their categories, (n,), and which are test images, (n,)."""
    stages = stages_by_category(categories, is_test, category_names, spec, generator(seed))
    return make_split(
        name=name,
        source=source,
        seed=seed,
        spec=spec.model_dump(exclude_none=True),
        stages=stages,
        groups=group_of_categories(stages, categories, spec.returning),
        image_ids=image_ids,
        categories=categories,
        category_names=category_names,
    )
