"""Draws the pictures of docs/how_it_works.md: one per step of the discovery core.

python -m tools.draw_how_it_works --out docs/images      from features of the built-in field guide
python -m tools.draw_how_it_works --digits --out FOLDER  from scikit-learn's digits, in seconds
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from igcd.functional import discovery, tree_cut
from igcd.functional.category_tree import CategoryTree, cut_tree
from igcd.functional.gaussian import scatter_statistics
from igcd.functional.held_out import explained_shares
from igcd.functional.map_equation import bits_per_step
from igcd.functional.projection import fit_projection
from igcd.functional.reach import Reach, growth
from igcd.functional.whitening import fit_whitening

WIDTH, HEIGHT, EDGE = 640, 420, 34
COLORS = ("#3b6fb6", "#d1742f", "#3d8f5a", "#b4475f", "#7a5bb0", "#937a2a", "#2f8f9b", "#a3548f", "#6b7f2f", "#555f8a")
GRAY = "#9aa1a9"
N_KNOWN, N_NEW, N_LABELS = 5, 5, 12

Points = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Example:
    """Rows of ten categories, of which five are known by a few labels; labeled rows come first."""

    rows: Tensor  # (m + n, d) projected
    truth: npt.NDArray[np.int64]  # (m + n,)
    labels: Tensor  # (m,)


def make_example(features: npt.NDArray[Any], categories: npt.NDArray[Any]) -> Example:
    """Ten categories of a set of features, the first ones that are large enough."""
    names, sizes = np.unique(categories, return_counts=True)
    chosen = names[sizes >= 2 * N_LABELS][: N_KNOWN + N_NEW]
    keep = np.isin(categories, chosen)
    truth = np.searchsorted(chosen, categories[keep])
    rank = np.array([np.sum(truth[:row] == truth[row]) for row in range(len(truth))])
    is_labeled = (truth < N_KNOWN) & (rank < N_LABELS)
    order = np.argsort(~is_labeled, kind="stable")
    x = torch.from_numpy(np.asarray(features[keep][order], dtype=np.float32))
    return Example(fit_projection(x, n_components=256)(x), truth[order], torch.from_numpy(truth[is_labeled]))


def draw(example: Example, out: Path) -> list[Path]:
    """All pictures, in the order of the steps."""
    rows, labels = example.rows, example.labels
    known = scatter_statistics(rows[: len(labels)], labels, n_categories=N_KNOWN)
    white = fit_whitening(rows, known, generator=torch.Generator().manual_seed(0))(rows)
    scene = discovery.Scene.of(white, labels, N_KNOWN)
    judging, apart = discovery.judging_scene(rows)
    assert judging.blind is not None and judging.reach is not None
    graph = discovery.neighbor_graph(white, discovery.N_NEIGHBORS)
    pulled = discovery.pull_together(white, graph)
    found = discovery.discover(rows[len(labels) :], rows[: len(labels)], labels)
    cut = found.cut
    category = np.concatenate([labels.numpy(), found.category.numpy()])
    shades = np.where(np.arange(len(rows)) < len(labels), category, -1)
    pictures = {
        "step-1-rows": scatter(_plane(rows), shades, len(labels)),
        "step-2-whitened": scatter(_plane(white), shades, len(labels)),
        "step-3-pulled-together": scatter(_plane(pulled), shades, len(labels)),
        "step-4-tree": dendrogram(scene.tree, cut.height, scene.sizes),
        "step-5-cut": curves(
            judging.blind, judging.node, apart, judging.neighbors, judging.reach, labels.numpy(), cut.n_groups
        ),
        "step-6-answer": scatter(_plane(pulled), category, len(labels)),
    }
    out.mkdir(parents=True, exist_ok=True)
    files = []
    for name, svg in pictures.items():
        files.append(out / f"{name}.svg")
        files[-1].write_text(svg, encoding="utf-8")
    return files


def scatter(points: Points, shades: npt.NDArray[np.int64], n_labeled: int) -> str:
    """Rows in a plane: labeled ones large, those of a category in its color, others gray."""
    low, high = points.min(axis=0), points.max(axis=0)
    at = EDGE / 2 + (points - low) / np.maximum(high - low, 1e-9) * (np.array([WIDTH, HEIGHT]) - EDGE)
    marks = []
    for row in [*range(n_labeled, len(at)), *range(n_labeled)]:
        color = GRAY if shades[row] < 0 else COLORS[int(shades[row]) % len(COLORS)]
        edge = ' stroke="#222" stroke-width="1"' if row < n_labeled else ""
        marks.append(
            f'<circle cx="{at[row, 0]:.1f}" cy="{at[row, 1]:.1f}" r="{5 if row < n_labeled else 3}" '
            f'fill="{color}" fill-opacity="0.75"{edge}/>'
        )
    return _svg(marks)


def dendrogram(tree: CategoryTree, height: float, sizes: npt.NDArray[np.int64], n_leaves: int = 36) -> str:
    """The top of the tree on a logarithmic scale, known categories in color, and the line where it is cut."""
    last = tree.heights[max(0, len(tree.heights) - n_leaves + tree.n_known) :]
    floor = float(last[0]) if len(last) else 1.0
    groups = cut_tree(tree, floor * 0.999)
    leaves = np.unique(groups)
    order = _leaf_order(tree, leaves.tolist(), floor)
    x_of = {leaf: EDGE + (WIDTH - 2 * EDGE) * place / max(len(order) - 1, 1) for place, leaf in enumerate(order)}
    top, bottom = float(tree.heights[-1]) * 1.3, floor * 0.7
    y = lambda h: HEIGHT - EDGE - (np.log(h / bottom) / np.log(top / bottom)) * (HEIGHT - 2 * EDGE)  # noqa: E731
    level = dict.fromkeys(order, bottom)
    marks = []
    for (stays, goes), h in zip(tree.pairs.tolist(), tree.heights.tolist(), strict=True):
        if h < floor:
            continue
        xa, xb = x_of[stays], x_of[goes]
        marks.append(
            f'<path d="M{xa:.1f} {y(level[stays]):.1f}V{y(h):.1f}H{xb:.1f}V{y(level[goes]):.1f}" fill="none" '
            f'stroke="#444" stroke-width="1.2"/>'
        )
        x_of[stays], level[stays] = (xa + xb) / 2, h
    rows_of = np.bincount(groups, weights=sizes, minlength=tree.n_nodes)
    for place, leaf in enumerate(order):
        color = COLORS[leaf % len(COLORS)] if leaf < tree.n_known else GRAY
        at = EDGE + (WIDTH - 2 * EDGE) * place / max(len(order) - 1, 1)
        radius = 2 + min(7.0, float(np.sqrt(rows_of[leaf])))
        marks.append(f'<circle cx="{at:.1f}" cy="{y(bottom):.1f}" r="{radius:.1f}" fill="{color}"/>')
    marks.append(
        f'<path d="M{EDGE / 2} {y(height):.1f}H{WIDTH - EDGE / 2}" stroke="#c0392b" stroke-width="1.5" '
        'stroke-dasharray="6 4"/>' + _text(WIDTH - EDGE / 2, y(height) - 6, "cut", anchor="end")
    )
    return _svg(marks)


def _leaf_order(tree: CategoryTree, leaves: Sequence[int], floor: float) -> list[int]:
    """Leaves so that no two lines of the tree cross."""
    under = {leaf: [leaf] for leaf in leaves}
    for (stays, goes), h in zip(tree.pairs.tolist(), tree.heights.tolist(), strict=True):
        if h >= floor:
            under[stays] += under.pop(goes)
    return [leaf for group in under.values() for leaf in group]


def curves(
    tree: CategoryTree,
    node: npt.NDArray[np.int64],
    rows: Tensor,
    neighbors: npt.NDArray[np.int64],
    reach: Reach,
    labels: npt.NDArray[np.int64],
    n_groups: int,
) -> str:
    """What each number of groups has for it, from 0 to 1: labels, distances, heights, bits, dimensions held out."""
    tried = np.unique(np.geomspace(2, min(len(node) // 4, 150), 50).astype(np.int64))
    groups = [np.unique(cut_tree(tree, tree.height_for(int(n)))[node], return_inverse=True)[1] for n in tried]
    right = [float(tree_cut._agreement(g[: len(labels)], labels, N_KNOWN)[0].mean()) for g in groups]
    fall = tree_cut.fall_of_heights(tree.heights, tried, n_rows=len(node))
    bits = np.array([bits_per_step(g, neighbors) for g in groups])
    lines = {
        "labeled rows right": np.array(right),
        "growth of distances": growth(reach, tried),
        "fall of heights": fall / max(float(fall.max()), 1e-9),
        "few bits per step": 1 - (bits - bits.min()) / max(float(np.ptp(bits)), 1e-9),
        "dimensions held out": explained_shares(rows, tried),
    }
    x = EDGE + (np.log(tried) - np.log(tried[0])) / np.log(tried[-1] / tried[0]) * (WIDTH - 2 * EDGE)
    marks = []
    for place, (color, (name, values)) in enumerate(zip(COLORS, lines.items(), strict=False)):
        y = HEIGHT - EDGE - values * (HEIGHT - 3.6 * EDGE)
        path = "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(x, y, strict=True))
        marks.append(f'<path d="M{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        marks.append(_text(WIDTH - EDGE / 2, EDGE / 2 + 16 * place + 6, name, anchor="end", color=color))
    at = EDGE + np.log(n_groups / tried[0]) / np.log(tried[-1] / tried[0]) * (WIDTH - 2 * EDGE)
    marks.append(
        f'<path d="M{at:.1f} {EDGE}V{HEIGHT - EDGE}" stroke="#c0392b" stroke-width="1.5" stroke-dasharray="6 4"/>'
        + _text(at + 5, EDGE + 4, f"{n_groups} groups")
    )
    for n in (2, 5, 10, 20, 50, 100):
        if tried[0] <= n <= tried[-1]:
            tick = EDGE + np.log(n / tried[0]) / np.log(tried[-1] / tried[0]) * (WIDTH - 2 * EDGE)
            marks.append(_text(tick, HEIGHT - EDGE / 2.5, str(n), anchor="middle"))
    return _svg(marks)


def _plane(rows: Tensor) -> Points:
    """The two directions of the largest spread. (n, d) -> (n, 2)."""
    centered = rows.double() - rows.double().mean(dim=0)
    _, _, directions = torch.linalg.svd(centered, full_matrices=False)
    return (centered @ directions[:2].T).numpy()


def _text(x: float, y: float, text: str, *, anchor: str = "start", color: str = "#333") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="13" text-anchor="{anchor}" fill="{color}">{text}</text>'


def _svg(marks: list[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">'
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="#fbfbf9"/>' + "".join(marks) + "</svg>\n"
    )


def main() -> None:
    """Reads features, draws."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--digits", action="store_true")
    args = parser.parse_args()
    if args.digits:
        from sklearn.datasets import load_digits  # type: ignore[import-untyped]

        features, categories = load_digits(return_X_y=True)
    else:
        sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
        from panel_sets import SETS

        found = SETS["fieldguide_24"].load("fieldguide_24", data=Path(), cache=Path.home() / ".cache/igcd/panel")
        features, categories = found.x, found.y
    for file in draw(make_example(features, categories), args.out):
        print(file)


if __name__ == "__main__":
    main()
