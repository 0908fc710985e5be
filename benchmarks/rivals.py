"""What the compared methods start from, on rehearsals: new prototypes, first centers of k-means, pairs by rank.

    python benchmarks/rivals.py cifar100-cpu stream.data=cifar100.npz --seeds 0 1 2
    python benchmarks/rivals.py cub-cpu stream.data=cub200_128px.npz --seeds 0 1 2 --tuned

Before the second stage of a rehearsal is trained, with the pretrained feature or, with --tuned, the one that SimGCD
has after the first. Known prototypes are the means of the labeled images, or SimGCD's. *Covered* are novel categories
that most images of some new cluster are of; *alone* are novel clusters of a single unlabeled image. The number of
novel categories is given. Only labeled images of stage 0 take part.
"""

import argparse
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from igcd.assembly import build_encoder, build_fabric, build_stream, count_novel_categories, method_maker
from igcd.config import read_recipe
from igcd.data.quarantine import Quarantine
from igcd.encoders.encoder import encode
from igcd.functional.kmeans import nearest_centers, semi_supervised_kmeans
from igcd.functional.novel_start import is_alone, novel_centers
from igcd.functional.rank_statistics import same_ranks
from igcd.metrics.accuracy import matched_hits
from igcd.types import Images


@dataclass(frozen=True)
class Scene:
    """The features of a rehearsal's second stage, categories as whole numbers, the known ones first."""

    labeled: Tensor  # (m, d)
    labels: Tensor  # (m,)
    unlabeled: Tensor  # (n, d)
    categories: np.ndarray  # (n,) of the unlabeled images
    test: Tensor  # (t, d)
    test_categories: np.ndarray  # (t,)
    known: Tensor  # (c, d) prototypes
    n_novel: int
    seed: int

    def generator(self) -> torch.Generator:
        """The same draws for every way that is compared."""
        return torch.Generator().manual_seed(self.seed)


def scene_of(recipe_name: str, overrides: list[str], seed: int, *, tuned: bool) -> Scene:
    changes = ["stream.rehearsal=true", "method.name=simgcd", f"seed={seed}"]
    recipe = read_recipe(recipe_name, [*overrides, *changes])
    built = build_stream(recipe.stream, seed)
    encoder = build_encoder(recipe.encoder, quarantine=Quarantine())
    (first, _), (second, truth) = list(built.stream)
    tail, known = encoder.backbone.tail, None
    if tuned:
        count = count_novel_categories(built.split)
        method = method_maker(recipe, encoder, build_fabric(recipe), count)(None, lambda _report: None)
        method.learn(first)
        tail, known = method._model.tail, method._prototypes
        order = [method.clusters_of_categories()[category] for category in range(len(first.category_names))]
        known = known[order]

    def features(images: Images) -> Tensor:
        h = encode(encoder.plain_views(images), tail, n_features=encoder.backbone.n_features)
        return normalize(h, dim=1).cpu()

    code_of = {name: code for code, name in enumerate(first.category_names)}
    for name in sorted(set(truth.unlabeled.categories)):
        code_of.setdefault(name, len(code_of))
    labeled, labels = features(first.labeled), torch.from_numpy(first.labels)
    means = torch.stack([labeled[labels == category].mean(dim=0) for category in range(len(first.category_names))])
    return Scene(
        labeled,
        labels,
        features(second.unlabeled),
        np.array([code_of[name] for name in truth.unlabeled.categories]),
        features(truth.test_images),
        np.array([code_of[name] for name in truth.test.categories]),
        normalize(means if known is None else known, dim=1),
        len(code_of) - len(first.category_names),
        seed,
    )


def scores(scene: Scene, centers: Tensor) -> dict[str, float]:
    """All, Old and New of the test images by the nearest center, and the novel categories covered."""
    n_known = len(scene.known)
    hits = matched_hits(nearest_centers(scene.test, centers).numpy(), scene.test_categories)
    is_new = scene.test_categories >= n_known
    clusters = nearest_centers(scene.unlabeled, centers).numpy()
    majorities = {
        int(np.bincount(scene.categories[clusters == cluster]).argmax())
        for cluster in set(clusters.tolist())
        if cluster >= n_known
    }
    return {
        "All": 100 * hits.mean(),
        "Old": 100 * hits[~is_new].mean(),
        "New": 100 * hits[is_new].mean(),
        "covered": sum(category >= n_known for category in majorities),
        "of": scene.n_novel,
    }


def starts(scene: Scene) -> dict[str, dict[str, float]]:
    """New prototypes beside the known ones, nothing trained yet."""
    rows = {}
    for start in ("all", "split"):
        new = novel_centers(scene.unlabeled, scene.known, scene.n_novel, start=start, generator=scene.generator())
        rows[f"prototypes, {start}"] = scores(scene, torch.cat([scene.known, normalize(new, dim=1)]))
    means = torch.stack([scene.labeled[scene.labels == category].mean(dim=0) for category in range(len(scene.known))])
    for start in ("k-means++", "split"):
        generator = scene.generator()
        first = None
        if start == "split":
            first = torch.cat([means, novel_centers(scene.unlabeled, means, scene.n_novel, generator=generator)])
        found = semi_supervised_kmeans(
            scene.labeled,
            scene.labels,
            scene.unlabeled,
            n_clusters=len(means) + scene.n_novel,
            generator=generator,
            initial_centers=first,
        )
        n_alone = int((is_alone(found.clusters) & (found.clusters >= len(means))).sum())
        rows[f"clamped k-means, {start}"] = scores(scene, found.centers) | {"alone": n_alone}
    return rows


def ranks(scene: Scene) -> dict[str, dict[str, float]]:
    """How many pairs of unlabeled images agree, how many of them are of one category, and how many such are found."""
    categories = torch.from_numpy(scene.categories)
    is_pair = ~torch.eye(len(categories), dtype=torch.bool)
    is_one_category = (categories[:, None] == categories) & is_pair
    rows = {}
    for ranked in ("feature", "known"):
        for k in (1, 2, 3, 5):
            cosines = scene.unlabeled @ scene.known.T
            agree = same_ranks(scene.unlabeled, cosines, ranked=ranked, k=k) & is_pair
            right = int((agree & is_one_category).sum())
            rows[f"pairs by {ranked}, {k}"] = {
                "pairs": int(agree.sum()) / 2,
                "percent right": 100 * right / max(int(agree.sum()), 1),
                "percent found": 100 * right / int(is_one_category.sum()),
            }
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe")
    parser.add_argument("overrides", nargs="*", help="key=value for the recipe")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--tuned", action="store_true")
    options = parser.parse_intermixed_args()
    torch.set_num_threads(1)
    rows: dict[str, list[dict[str, float]]] = defaultdict(list)
    for seed in options.seeds:
        scene = scene_of(options.recipe, options.overrides, seed, tuned=options.tuned)
        for name, figures in (starts(scene) | ranks(scene)).items():
            rows[name].append(figures)
    for name, figures in rows.items():
        means = {column: np.mean([one[column] for one in figures]) for column in figures[0]}
        print(f"{name:<28}", "  ".join(f"{column} {value:.1f}" for column, value in means.items()), flush=True)


if __name__ == "__main__":
    main()
