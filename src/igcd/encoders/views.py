"""Augmented and plain views of a batch of images, on whole tensors.

The random numbers of a view are a function of (image key, seed, view number) alone. So a view is the same whatever
batch, stage or order of categories the image comes in, and a cache of views can serve all of them.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

from igcd.encoders.middle import side_with_middle
from igcd.encoders.weights import Normalization
from igcd.errors import IgcdError
from igcd.types import FloatArray, IntArray, Pixels

Words = npt.NDArray[np.uint64]

N_CROP_TRIES = 10
N_DRAWS = 2 * N_CROP_TRIES + 9

_LUMA = (0.299, 0.587, 0.114)
_RGB_TO_YIQ = ((0.299, 0.587, 0.114), (0.5959, -0.2746, -0.3213), (0.2115, -0.5227, 0.3112))


@dataclass(frozen=True)
class ViewRecipe:
    """How a view is drawn. Probabilities are of doing it at all; strengths are as in torchvision's ColorJitter."""

    area: tuple[float, float] = (0.5, 1.0)  # share of the image that the crop covers
    aspect: tuple[float, float] = (3 / 4, 4 / 3)  # width : height
    flip: float = 0.5
    jitter: float = 0.5
    brightness: float = 0.3
    contrast: float = 0.3
    saturation: float = 0.15
    hue: float = 0.1  # share of the color circle
    gray: float = 0.1

    def __post_init__(self) -> None:
        if not 0 < self.area[0] <= self.area[1] <= 1:
            raise IgcdError(f"area must be two shares, 0 < low <= high <= 1, got {self.area}; 0.5, 1.0 is UNO's")
        if not 0 < self.aspect[0] <= self.aspect[1]:
            raise IgcdError(f"aspect must be two ratios, 0 < low <= high, got {self.aspect}; 3/4, 4/3 is usual")
        for name in ("flip", "jitter", "gray", "brightness", "contrast", "saturation"):
            if not 0 <= getattr(self, name) <= 1:
                raise IgcdError(f"{name} must be between 0 and 1, got {getattr(self, name)}; 0 turns it off")
        if not 0 <= self.hue <= 0.5:
            raise IgcdError(f"hue must be between 0 and 0.5, got {self.hue}; 0 turns it off")


UNO = ViewRecipe()
"""UNO's for photos, which the paper adopts, without its blur."""
UNO_SMALL = ViewRecipe(area=(0.8, 1.0))
"""UNO's for 32 px images; its padded random crop, the other half of the time, is left out."""
SIMCLR = ViewRecipe(area=(0.08, 1.0), jitter=0.8, brightness=0.8, contrast=0.8, saturation=0.8, hue=0.2, gray=0.2)
"""SimCLR's at full strength, without its blur."""
RECIPES = {"uno": UNO, "uno_small": UNO_SMALL, "simclr": SIMCLR}


@dataclass(frozen=True)
class Transform:
    """From a decoded image to the network's input.

    size: side of the input in pixels. sees_middle: whether an image is looked at twice where nothing is drawn, as a
    whole and its middle enlarged.
    """

    size: int
    recipe: ViewRecipe = UNO
    sees_middle: bool = False

    def __post_init__(self) -> None:
        if self.size < 1:
            raise IgcdError(f"size must be at least 1, got {self.size}; 224 is usual")

    @property
    def canvas(self) -> int:
        """Side of the square that is decoded, of which every view is a part."""
        return side_with_middle(self.size) if self.sees_middle else self.size

    @property
    def looks(self) -> tuple[str, ...]:
        """The names of the views of which nothing is drawn."""
        return ("plain", "middle") if self.sees_middle else ("plain",)


def image_words(keys: Sequence[str]) -> Words:
    """Each image key as 64 bits, (n,): where its random numbers start."""
    digests = b"".join(hashlib.blake2b(key.encode(), digest_size=8).digest() for key in keys)
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)


def uniform_draws(words: Words, views: IntArray, *, seed: int, n_draws: int = N_DRAWS) -> FloatArray:
    """Numbers in [0, 1) that depend on image word, view number and seed only. (n,), (n,) -> (n, n_draws).

    Counter-based: a 64-bit mixing function (splitmix64's) of the state instead of a generator per image.
    """
    state = _mix(words ^ _mix(views.astype(np.uint64) + _mix(np.full(1, seed % 2**64, dtype=np.uint64))))
    counter = np.arange(1, n_draws + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    bits: Words = _mix(state[:, None] + counter)
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mix(word: Words) -> Words:
    word = word + np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


def crop_boxes(recipe: ViewRecipe, draws: FloatArray) -> FloatArray:
    """Random resized crops, (n, 2 * tries + 2) numbers in [0, 1) -> (n, 4): left, top, width, height as shares.

    Area uniform, aspect log-uniform, the first of ten tries that fits into the image; the whole image where none does.
    """
    areas = _between(draws[:, :N_CROP_TRIES], *recipe.area)
    aspects = np.exp(_between(draws[:, N_CROP_TRIES : 2 * N_CROP_TRIES], *np.log(recipe.aspect)))
    widths, heights = np.sqrt(areas * aspects), np.sqrt(areas / aspects)
    fits = (widths <= 1) & (heights <= 1)
    first = fits.argmax(axis=1)[:, None]
    has_fit = fits.any(axis=1)
    width = np.where(has_fit, np.take_along_axis(widths, first, axis=1)[:, 0], 1.0)
    height = np.where(has_fit, np.take_along_axis(heights, first, axis=1)[:, 0], 1.0)
    left, top = (1 - width) * draws[:, -2], (1 - height) * draws[:, -1]
    return np.stack([left, top, width, height], axis=1)


def _between(draws: FloatArray, low: float, high: float) -> FloatArray:
    return low + (high - low) * draws


@dataclass(frozen=True)
class ViewParameters:
    """What was drawn for n views, as tensors."""

    boxes: Tensor  # (n, 4) left, top, width, height as shares of the canvas
    flips: Tensor  # (n,) -1 where mirrored, else 1
    brightness: Tensor  # (n,) factors, 1 where left alone
    contrast: Tensor
    saturation: Tensor  # 0 for a gray view
    hue: Tensor  # (n,) turns of the color circle


def view_parameters(recipe: ViewRecipe, draws: FloatArray) -> ViewParameters:
    """(n, N_DRAWS) numbers in [0, 1) -> the parameters of n views."""
    jittered = draws[:, -3] < recipe.jitter

    def factors(column: int, strength: float) -> Tensor:
        drawn = _between(draws[:, column], 1 - strength, 1 + strength)
        return torch.from_numpy(np.where(jittered, drawn, 1.0).astype(np.float32))

    hue = np.where(jittered, _between(draws[:, -7], -recipe.hue, recipe.hue), 0.0)
    is_gray = torch.from_numpy(draws[:, -9] < recipe.gray)
    saturation = factors(-6, recipe.saturation)
    return ViewParameters(
        boxes=torch.from_numpy(crop_boxes(recipe, draws).astype(np.float32)),
        flips=torch.from_numpy(np.where(draws[:, -8] < recipe.flip, -1.0, 1.0).astype(np.float32)),
        brightness=factors(-4, recipe.brightness),
        contrast=factors(-5, recipe.contrast),
        saturation=torch.where(is_gray, torch.zeros_like(saturation), saturation),
        hue=torch.from_numpy(hue.astype(np.float32)),
    )


def to_tensor(pixels: Pixels | Tensor, device: torch.device | str = "cpu") -> Tensor:
    """uint8 images, (n, h, w, 3) or (n, 3, h, w) -> float (n, 3, h, w) between 0 and 1."""
    tensor = torch.as_tensor(pixels)
    if tensor.ndim != 4 or tensor.dtype != torch.uint8 or 3 not in (tensor.shape[-1], tensor.shape[1]):
        raise IgcdError(
            f"a batch of images must be uint8, (n, h, w, 3) or (n, 3, h, w), got {tensor.dtype} {tuple(tensor.shape)}; "
            "decode it first"
        )
    if tensor.shape[-1] == 3:
        tensor = tensor.permute(0, 3, 1, 2)
    return tensor.to(device).contiguous().float() / 255


def plain_views(canvas: Tensor, size: int, normalization: Normalization) -> Tensor:
    """The middle of each image. (n, 3, c, c) between 0 and 1 -> (n, 3, size, size), normalized."""
    margin_top, margin_left = (canvas.shape[-2] - size) // 2, (canvas.shape[-1] - size) // 2
    if min(margin_top, margin_left) < 0:
        raise IgcdError(f"images of {tuple(canvas.shape[-2:])} px cannot be cropped to {size}; resize them first")
    crop = canvas[..., margin_top : margin_top + size, margin_left : margin_left + size]
    mean, std = _columns(normalization, canvas)
    return (crop - mean[..., None]) / std[..., None]


def augmented_views(canvas: Tensor, parameters: ViewParameters, size: int, normalization: Normalization) -> Tensor:
    """One view of each image. (n, 3, c, c) between 0 and 1 -> (n, 3, size, size), normalized."""
    parameters = ViewParameters(**{name: value.to(canvas.device) for name, value in vars(parameters).items()})
    crops = crop(canvas, parameters.boxes, parameters.flips, size)
    colors = crops.flatten(2)
    matrix, offset = color_matrix(parameters, colors.mean(dim=2))
    mean, std = _columns(normalization, canvas)
    # Normalization rides along in the matrix; clamping to its image of [0, 1] is clamping the colors to [0, 1].
    colors = torch.baddbmm((offset[..., None] - mean) / std, matrix / std, colors)
    return torch.clamp(colors, (0 - mean) / std, (1 - mean) / std).view(crops.shape)


def crop(canvas: Tensor, boxes: Tensor, flips: Tensor, size: int) -> Tensor:
    """Crop, mirror and resize in one bilinear lookup. (n, 3, h, w), (n, 4), (n,) -> (n, 3, size, size)."""
    left, top, width, height = boxes.unbind(dim=1)
    theta = torch.zeros(len(boxes), 2, 3, device=canvas.device)
    theta[:, 0, 0] = width * flips
    theta[:, 0, 2] = 2 * left + width - 1
    theta[:, 1, 1] = height
    theta[:, 1, 2] = 2 * top + height - 1
    grid = affine_grid(theta, [len(boxes), 3, size, size], align_corners=False)
    return grid_sample(canvas, grid, mode="bilinear", padding_mode="border", align_corners=False)


def color_matrix(parameters: ViewParameters, mean_color: Tensor) -> tuple[Tensor, Tensor]:
    """Brightness, contrast, saturation and hue as one affine map of RGB. -> matrix (n, 3, 3), offset (n, 3).

    Contrast pulls toward the mean gray of the view, `mean_color` (n, 3). Hue is a turn about the gray axis in YIQ,
    where torchvision turns in HSV; the order is fixed and colors are clamped once, at the end.
    """
    n, device = len(mean_color), mean_color.device
    luma = torch.tensor(_LUMA, device=device)
    to_gray = luma.expand(3, 3)
    unit = torch.eye(3, device=device)
    to_yiq = torch.tensor(_RGB_TO_YIQ, device=device)
    angle = 2 * torch.pi * parameters.hue
    turn = torch.eye(3, device=device).repeat(n, 1, 1)
    turn[:, 1, 1] = turn[:, 2, 2] = torch.cos(angle)
    turn[:, 1, 2], turn[:, 2, 1] = -torch.sin(angle), torch.sin(angle)
    saturation = parameters.saturation[:, None, None]
    chroma = torch.linalg.inv(to_yiq) @ turn @ to_yiq @ (saturation * unit + (1 - saturation) * to_gray)
    brightness, contrast = parameters.brightness, parameters.contrast
    mean_gray = brightness * (mean_color @ luma)
    offset = ((1 - contrast) * mean_gray)[:, None].expand(n, 3)
    return chroma * (brightness * contrast)[:, None, None], (chroma @ offset[..., None])[..., 0]


def _columns(normalization: Normalization, like: Tensor) -> tuple[Tensor, Tensor]:
    mean = torch.tensor(normalization.mean, device=like.device)[:, None]
    return mean, torch.tensor(normalization.std, device=like.device)[:, None]
