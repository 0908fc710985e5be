"""Pictures of what a `CategoryDiscoverer` has learned, drawn with matplotlib: the extra `plot`."""
# ruff: noqa: N803 - X is what scikit-learn calls the features

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from PIL import Image
from torch import Tensor

from igcd.discoverer.reports import Discovery
from igcd.functional.landscape import lay_out
from igcd.memory.category_ledger import CategoryLedger, DiscovererError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_NAMES = 60
"""Categories whose names are written on the map, the largest first."""
UNSURE_COLOR = "#8a8f94"


class Plots:
    """The part of `CategoryDiscoverer` that draws. Nothing is learned here."""

    ledger_: CategoryLedger

    @property
    def discoveries_(self) -> list[Discovery]:
        """How the categories that were found were found."""
        raise NotImplementedError

    def assign(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """The category of each row, with the unlabeled mark for unsure ones. (n, d) -> (n,)."""
        raise NotImplementedError

    def _compared(self, X: npt.ArrayLike) -> Tensor:
        raise NotImplementedError

    def plot_map(self, X: npt.ArrayLike, *, ax: "Axes | None" = None, seed: int = 0) -> "Axes":
        """Draws rows in the plane, alike ones close together, in the colors of their categories. (n, d).

        Round: a known category. Diamond: one that was found. Cross: unsure. The same rows and seed give the same map.
        """
        pyplot = _pyplot()
        rows, labels = self._compared(X), self.assign(X)
        places = lay_out(rows.numpy().astype(np.float32), seed=seed)
        if ax is None:
            _, ax = pyplot.subplots(figsize=(8, 8), layout="constrained")
        is_unsure = labels == self.ledger_.unlabeled
        x, y = places[is_unsure].T
        ax.scatter(x, y, s=16, marker="x", linewidths=0.9, color=UNSURE_COLOR, label="unsure")
        present, counts = np.unique(labels[~is_unsure], return_counts=True)
        present = present[np.argsort(-counts, kind="stable")]
        in_legend = {"known": "known", "novel": "new"}
        for label in present.tolist():
            category = self.ledger_.find(label)
            x, y = places[labels == label].T
            color = category_color(category.id, is_new=category.status == "novel")
            size, marker = (13, "o") if category.status == "known" else (26, "D")
            entry = in_legend.pop(category.status, None)
            ax.scatter(x, y, s=size, marker=marker, color=color, alpha=0.8, linewidths=0, label=entry)
        for label in present[:MAX_NAMES].tolist():
            self._write_name(ax, label, places[labels == label])
        ax.set(xticks=[], yticks=[], aspect="equal")
        ax.spines[:].set_color("#d0d0d0")
        ax.legend(loc="lower right", framealpha=0.9)
        return ax

    def plot_categories(
        self, images: Sequence[Any], *, batch: int | None = None, n_images: int = 8, n_categories: int = 12
    ) -> "Figure":
        """Draws the most typical images of the categories that a call has found, the largest first, a row for each.

        `images` has one for each row of the X of that call: arrays, PIL images or paths. `batch` is the number of the
        call, 0 for `fit`; None: the last that found something. What was merged or rejected since is left out.
        """
        shown = self._live_discoveries(batch)[:n_categories]
        n_needed = 1 + max(row for found in shown for row in found.members[:n_images])
        if len(images) < n_needed:
            raise DiscovererError(
                f"images must have one for each row of the call that found these categories, at least {n_needed}, got "
                f"{len(images)}; give those of call {shown[0].batch}, or another batch"
            )
        drawn: tuple[Figure, npt.NDArray[Any]] = _pyplot().subplots(
            len(shown),
            n_images,
            figsize=(1.15 * n_images + 1.6, 1.35 * len(shown)),
            squeeze=False,
            layout="constrained",
        )
        figure, axes = drawn
        for found, row in zip(shown, axes, strict=True):
            for ax in row:
                ax.set_axis_off()
            for ax, member in zip(row, found.members[:n_images], strict=False):
                ax.imshow(_pixels(images[member]), cmap="gray")
            most_like = (
                "" if found.nearest_id is None else f", most like {self.ledger_.current(found.nearest_id).label}"
            )
            title = f"{found.label}: {found.n_rows:,} {'row' if found.n_rows == 1 else 'rows'}{most_like}"
            row[0].set_title(title, loc="left", fontsize=10)
        return figure

    def _live_discoveries(self, batch: int | None) -> list[Discovery]:
        live = [
            found
            for found in self.discoveries_
            if (now := self.ledger_.current(found.id)).id == found.id and now.status != "rejected"
        ]
        if batch is None:
            batch = max((found.batch for found in live), default=0)
        wanted = [found for found in live if found.batch == batch]
        if not wanted:
            calls = ", ".join(str(call) for call in sorted({found.batch for found in live})) or "none"
            raise DiscovererError(
                f"there is no category to draw that call {batch} found; calls that found some: {calls}; give another "
                "batch, or a higher granularity to `fit`"
            )
        return sorted(wanted, key=lambda found: (-found.n_rows, found.id))

    def _write_name(self, ax: "Axes", label: Any, own: npt.NDArray[np.float64]) -> None:  # noqa: ANN401 - any label
        """The name of a category over the row nearest to the middle of its rows."""
        from matplotlib.patheffects import withStroke

        middle = np.median(own, axis=0)
        x, y = own[((own - middle) ** 2).sum(axis=1).argmin()]
        is_new = self.ledger_.find(label).status == "novel"
        ax.annotate(
            str(label),
            (x, y),
            xytext=(0, 6),
            textcoords="offset points",
            ha="center",
            fontsize=9,
            fontweight="bold" if is_new else "normal",
            path_effects=[withStroke(linewidth=2.5, foreground="white")],
        )


def category_color(category_id: int, *, is_new: bool) -> tuple[float, float, float]:
    """A color for each id, vivid for new categories and muted for known ones. Ids that follow each other differ most.

    >>> [round(value, 2) for value in category_color(0, is_new=True)]
    [0.77, 0.37, 0.13]
    """
    from colorsys import hls_to_rgb

    hue = (category_id * 0.38197 + 0.064) % 1  # the golden angle
    return hls_to_rgb(hue, 0.45, 0.72) if is_new else hls_to_rgb(hue, 0.55, 0.28)


def _pyplot() -> ModuleType:
    try:
        from matplotlib import pyplot
    except ModuleNotFoundError:
        raise DiscovererError(
            "drawing needs matplotlib, which is not installed; install it with pip install 'igcd[plot]'"
        ) from None
    return pyplot


def _pixels(image: Any) -> npt.NDArray[Any]:  # noqa: ANN401 - an array, an image or a path
    if isinstance(image, str | Path):
        with Image.open(image) as opened:
            return np.asarray(opened.convert("RGB"))
    return np.asarray(image)
