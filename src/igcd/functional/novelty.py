"""Is a density peak of the unlabeled images a known category or a novel one? The paper leaves the rule open."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize

from igcd.errors import IgcdError
from igcd.functional.density import find_density_peaks
from igcd.functional.grouping import distinct, rank_within_group
from igcd.functional.neighbors import neighbor_graph


@dataclass(frozen=True)
class KnownMatch:
    """The known category each peak is most like."""

    category: Tensor  # (p,)
    similarity: Tensor  # (p,)


def match_known(
    peak_features: Tensor, features: Tensor, categories: Tensor, *, n_closest: int = 5, hidden: Tensor | None = None
) -> KnownMatch:
    """For each peak the labeled category whose closest images are most similar to it. (p, d), (n, d), (n,).

    Similarity to a category is the mean cosine to its `n_closest` most similar labeled images, or to all of them where
    it has fewer. Of equal categories the lower id is taken. `hidden` (p,) names for each peak a category to be treated
    as if it were not known.
    """
    if len(features) == 0:
        raise IgcdError("matching with known categories needs at least one labeled image, got none; give some")
    ids, rows = distinct(categories)
    by_category = torch.split(normalize(features[rows.argsort(stable=True)], dim=1), torch.bincount(rows).tolist())
    unit_peaks = normalize(peak_features, dim=1)
    best = torch.full_like(unit_peaks[:, 0], -torch.inf)
    best_category = ids.new_zeros(len(peak_features))
    for category, images in zip(ids, by_category, strict=True):
        similarity = (unit_peaks @ images.T).topk(min(n_closest, len(images)), dim=1).values.mean(dim=1)
        if hidden is not None:
            similarity = similarity.masked_fill(hidden == category, -torch.inf)
        better = similarity > best
        best, best_category = best.where(~better, similarity), best_category.where(~better, category)
    return KnownMatch(best_category, best)


def is_novel(peak_density: Tensor, known_similarity: Tensor, *, margin: float = 0.03) -> Tensor:
    """Which peaks are novel categories. (p,), (p,) -> (p,) bool.

    The rule: **a peak is novel when it is denser among the unlabeled images, by more than a margin, than it is similar
    to the five closest labeled images of its best known category.** Density is eq. 8 in the graph of the unlabeled
    images alone, similarity that of `match_known`, both cosines on features that went through one `Projection`. A peak
    of a known category has labeled images about as close as its unlabeled neighbors; a novel one has not.
    """
    return peak_density > known_similarity + margin


def choose_margin(excess_known: Tensor, excess_hidden: Tensor) -> float:
    """The margin that best separates peaks of known categories from peaks whose category is hidden. (p,), (q,).

    Excess is density minus similarity to the best known category: small where the category is known, large where it is
    hidden. The margin is the middle of the gap with the largest sum of both shares classified correctly.
    """
    if len(excess_known) == 0 or len(excess_hidden) == 0:
        raise IgcdError(
            f"choosing a margin needs peaks of known and of hidden categories, got {len(excess_known)} and "
            f"{len(excess_hidden)}; give more labeled images or set the margin"
        )
    ordered = torch.cat([excess_known, excess_hidden]).sort().values
    borders = (ordered[:-1] + ordered[1:]) / 2
    share_known = (excess_known <= borders[:, None]).double().mean(dim=1)
    share_hidden = (excess_hidden > borders[:, None]).double().mean(dim=1)
    return float(borders[(share_known + share_hidden).argmax()])


def calibrate_margin(
    features: Tensor, categories: Tensor, *, n_neighbors: int, n_closest: int = 2, max_iou: float = 0.6
) -> float:
    """The margin that labeled images themselves ask for, by hiding their categories. (n, d) projected, (n,).

    Every second image of each category plays the unlabeled, the others the labeled, and the other way round. Peaks of
    the one are matched with the other, once as they are and once with their own category hidden, and `choose_margin`
    separates the two. Half the images need half of K, and half of the `n_closest` that peaks will be matched with:
    five of ten images are less similar than five of twenty, so with all five known categories look stranger than they
    are, and the margin comes out careful. That suits where unlabeled images outnumber the labeled ones by far and are
    denser for it. The right margin moves with K and with the images per category.
    """
    n_neighbors = max(1, n_neighbors // 2)
    half = rank_within_group(categories) % 2
    excess_known: list[Tensor] = []
    excess_hidden: list[Tensor] = []
    for plays_unlabeled in (half == 0, half == 1):
        unlabeled, labeled = features[plays_unlabeled], features[~plays_unlabeled]
        if len(labeled) == 0 or len(unlabeled) <= 2 * n_neighbors:
            continue
        graph = neighbor_graph(unlabeled, 2 * n_neighbors)
        peaks = find_density_peaks(graph, n_neighbors=n_neighbors, n_overlap_neighbors=2 * n_neighbors, max_iou=max_iou)
        density, own = peaks.density[peaks.idx], categories[plays_unlabeled][peaks.idx]
        for excess, hidden in ((excess_known, None), (excess_hidden, own)):
            match = match_known(
                unlabeled[peaks.idx], labeled, categories[~plays_unlabeled], n_closest=n_closest, hidden=hidden
            )
            excess.append((density - match.similarity)[match.similarity.isfinite()])  # hiding the only one leaves none
    nothing = features.new_empty(0)
    return choose_margin(torch.cat([nothing, *excess_known]), torch.cat([nothing, *excess_hidden]))
