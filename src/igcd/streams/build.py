"""From a data set and a spec to a split."""

from igcd.data.dataset import Dataset
from igcd.streams.protocols import StreamSpec, group_of_categories, stages_by_category
from igcd.streams.randomness import generator
from igcd.streams.split import Split, make_split


def split_by_category(dataset: Dataset, spec: StreamSpec, seed: int) -> Split:
    """The split of a data set that is staged by its categories: same data, spec and seed, same split."""
    stages = stages_by_category(dataset.categories, dataset.is_test, dataset.category_names, spec, generator(seed))
    return make_split(
        name=f"{dataset.name}-{spec.protocol}",
        source=dataset.name,
        seed=seed,
        spec=spec.model_dump(exclude_none=True),
        stages=stages,
        groups=group_of_categories(stages, dataset.categories, spec.returning),
        image_ids=dataset.images.ids,
        categories=dataset.categories,
        category_names=dataset.category_names,
    )
