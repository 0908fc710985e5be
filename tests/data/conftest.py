"""Small pictures for the trees that the tests of sources build."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image


@pytest.fixture
def paint() -> Callable[..., Path]:
    """`paint(path, level)`: writes a plain picture of that brightness, with the folders it needs."""

    def write(path: Path, level: int = 100, size: tuple[int, int] = (12, 10)) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", size, (level, level, level)).save(path)
        return path

    return write


@pytest.fixture
def photo() -> Callable[..., Image.Image]:
    """`photo(width, height, seed)`: a smooth random picture, so that every part of it differs from the others."""

    def draw(width: int, height: int, seed: int = 0) -> Image.Image:
        coarse = np.random.default_rng(seed).integers(0, 256, (6, 8, 3), dtype=np.uint8)
        return Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)

    return draw
