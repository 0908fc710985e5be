"""The smallest things of each kind: a recipe that runs in a second, and photos for a workspace."""

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

BACKBONE = "test_resnet"
"""timm's network for tests: half a million parameters."""
SIZE = 32
RECIPE = """
stream:
  source: digits
  by_category: {{protocol: igcd-l, categories_per_stage: [3, 2], images_labeled: 8, images_new: 8, images_old: 4,
                test_per_category: 4}}
encoder: {{backbone: test_resnet, weights: random, size: 32, n_views: 2, cache: {cache}}}
training: {{first_stage: {{epochs: {epochs}, batch_size: 16}}, later_stages: {{epochs: {epochs}, batch_size: 16}}}}
method: {method}
accelerator: cpu
"""
SNN_DENSITY = "{name: snn_density, features: dual, K: 3, K_d: 6}"
FROZEN = "{name: frozen_snn}"


def write_recipe(path: Path, *, cache: Path, method: str = SNN_DENSITY, epochs: int = 2) -> Path:
    """A recipe of two stages of digits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(RECIPE.format(cache=cache, method=method, epochs=epochs))
    return path


def paint(path: Path, category: int, number: int, *, size: int = 40) -> None:
    """Writes a photo: 4 × 4 colors of its category, and noise of its own."""
    pattern = np.random.default_rng(1000 + category).integers(0, 256, (4, 4, 3)).astype(float)
    rng = np.random.default_rng([category, number])
    colors = pattern + rng.normal(0, 18.0, pattern.shape)
    pixels = np.kron(colors, np.ones((size // 4, size // 4, 1))) + rng.normal(0, 25, (size, size, 3))
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(path, quality=95)


def paint_folders(folder: Path, kinds: dict[str, tuple[int, range]]) -> Path:
    """Writes photos `folder/NAME/…jpg`: for each name a category, and which of its photos."""
    for name, (category, numbers) in kinds.items():
        for number in numbers:
            paint(folder / name / f"{category:02d}-{number:03d}.jpg", category, number)
    return folder


def photos(folder: Path) -> Path:
    """Two labeled categories and photos of a third and of the second."""
    return paint_folders(
        folder,
        {
            "ash": (0, range(6)),
            "beech": (1, range(6)),
            "unlabeled/a": (7, range(8)),
            "unlabeled/b": (1, range(30, 34)),
        },
    )


def more_photos(folder: Path) -> Path:
    """A second batch: a category that was found before, and another one."""
    return paint_folders(folder, {"c": (9, range(6)), "d": (7, range(30, 36))})


@contextlib.contextmanager
def quiet() -> Iterator[io.StringIO]:
    """Without a word on standard output and error; what was printed is in what it gives."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
        yield said
