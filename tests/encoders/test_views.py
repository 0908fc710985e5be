"""Views follow the image, not the batch it comes in, and show what their parameters say."""

import math

import numpy as np
import pytest
import torch

from igcd.encoders.views import (
    N_CROP_TRIES,
    SIMCLR,
    UNO,
    Transform,
    ViewParameters,
    ViewRecipe,
    augmented_views,
    color_matrix,
    crop,
    crop_boxes,
    image_words,
    plain_views,
    to_tensor,
    uniform_draws,
    view_parameters,
)
from igcd.encoders.weights import IMAGENET, Normalization
from igcd.errors import IgcdError

GOLDEN_DRAWS = [0.11712996224520478, 0.6001192390788612, 0.42850975568392513]
NO_NORMALIZATION = Normalization((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
KEYS = [f"image-{i}" for i in range(12)]


def canvases(n: int = 12, side: int = 20) -> torch.Tensor:
    return torch.rand(n, 3, side, side, generator=torch.Generator().manual_seed(0))


def parameters(n: int = 1, **changes) -> ViewParameters:
    ones = torch.ones(n)
    values = {
        "boxes": torch.tensor([[0.0, 0.0, 1.0, 1.0]]).repeat(n, 1),
        "flips": ones,
        "brightness": ones,
        "contrast": ones,
        "saturation": ones,
        "hue": 0 * ones,
    }
    return ViewParameters(**{**values, **changes})


def views_of(keys, images, view_numbers, seed=0, recipe=SIMCLR):
    draws = uniform_draws(image_words(keys), np.asarray(view_numbers), seed=seed)
    return augmented_views(images, view_parameters(recipe, draws), 16, IMAGENET)


def test_a_view_does_not_depend_on_the_batch():
    images = canvases()
    together = views_of(KEYS, images, np.full(12, 3))
    order = np.random.default_rng(1).permutation(12)[:7]
    shuffled = views_of([KEYS[i] for i in order], images[torch.from_numpy(order)], np.full(7, 3))
    assert torch.allclose(shuffled, together[torch.from_numpy(order)], atol=1e-5)


def test_views_differ_by_number_seed_and_image():
    word = image_words(KEYS)
    zero = np.zeros(12, dtype=np.int64)
    base = uniform_draws(word, zero, seed=0)
    assert not np.isclose(base, uniform_draws(word, zero + 1, seed=0)).any(axis=1).all()
    assert not np.isclose(base, uniform_draws(word, zero, seed=1)).any(axis=1).all()
    assert len(np.unique(base[:, 0])) == 12


def test_draws_are_uniform_and_uncorrelated():
    draws = uniform_draws(image_words([str(i) for i in range(4000)]), np.arange(4000) % 5, seed=7)
    assert 0 <= draws.min() < draws.max() < 1
    for column in draws.T[:6]:  # Kolmogorov distance to the uniform distribution, 1.95/sqrt(n) is the 0.1% level
        assert np.abs(np.sort(column) - np.arange(4000) / 4000).max() < 1.95 / math.sqrt(4000)
    correlation = np.corrcoef(draws, rowvar=False) - np.eye(draws.shape[1])
    assert np.abs(correlation).max() < 0.08


def test_draws_are_the_same_on_every_machine():
    draws = uniform_draws(image_words(["owl"]), np.array([2]), seed=3, n_draws=3)
    assert draws[0].tolist() == GOLDEN_DRAWS


def slow_boxes(recipe, draws):
    """One image, one try at a time."""
    boxes = []
    for row in draws:
        width = height = 1.0
        for attempt in range(N_CROP_TRIES):
            area = recipe.area[0] + (recipe.area[1] - recipe.area[0]) * row[attempt]
            low, high = math.log(recipe.aspect[0]), math.log(recipe.aspect[1])
            aspect = math.exp(low + (high - low) * row[N_CROP_TRIES + attempt])
            w, h = math.sqrt(area * aspect), math.sqrt(area / aspect)
            if w <= 1 and h <= 1:
                width, height = w, h
                break
        boxes.append([(1 - width) * row[-2], (1 - height) * row[-1], width, height])
    return np.array(boxes)


@pytest.mark.parametrize("recipe", [UNO, SIMCLR, ViewRecipe(area=(0.99, 1.0), aspect=(0.5, 2.0))])
def test_crops_equal_a_plain_loop_and_stay_inside(recipe):
    draws = uniform_draws(image_words([str(i) for i in range(300)]), np.zeros(300, dtype=np.int64), seed=0)
    boxes = crop_boxes(recipe, draws)
    assert np.allclose(boxes, slow_boxes(recipe, draws))
    left, top, width, height = boxes.T
    assert (left >= 0).all() and (top >= 0).all()
    assert (left + width <= 1 + 1e-12).all() and (top + height <= 1 + 1e-12).all()
    assert (width * height >= recipe.area[0] - 1e-12).all()


def test_a_crop_of_whole_pixels_is_a_slice():
    image = canvases(1, 8)
    box = torch.tensor([[2 / 8, 4 / 8, 4 / 8, 4 / 8]])  # left, top, width, height
    assert torch.allclose(crop(image, box, torch.tensor([1.0]), 4), image[:, :, 4:8, 2:6], atol=1e-5)
    assert torch.allclose(crop(image, box, torch.tensor([-1.0]), 4), image[:, :, 4:8, 2:6].flip(-1), atol=1e-5)


def test_parameters_that_change_nothing_give_the_image():
    images = canvases(3, 16)
    assert torch.allclose(augmented_views(images, parameters(3), 16, NO_NORMALIZATION), images, atol=1e-5)


def test_colors_equal_torchvision_style_steps_one_by_one():
    image = 0.3 + 0.3 * canvases(1, 6)  # far enough from 0 and 1 that no step clips
    drawn = parameters(brightness=torch.tensor([1.2]), contrast=torch.tensor([0.7]), saturation=torch.tensor([0.5]))

    def luma(x):
        return (0.299 * x[:, 0] + 0.587 * x[:, 1] + 0.114 * x[:, 2])[:, None]

    expected = image * 1.2
    expected = 0.7 * expected + 0.3 * luma(expected).mean()
    expected = 0.5 * expected + 0.5 * luma(expected)
    assert torch.allclose(augmented_views(image, drawn, 6, NO_NORMALIZATION), expected, atol=1e-5)


def test_gray_has_no_color_whatever_the_hue():
    drawn = parameters(2, saturation=torch.zeros(2), hue=torch.tensor([0.0, 0.2]))
    view = augmented_views(canvases(2, 8), drawn, 8, NO_NORMALIZATION)
    assert torch.allclose(view[:, 0], view[:, 1], atol=2e-3) and torch.allclose(view[:, 1], view[:, 2], atol=2e-3)


def test_hue_keeps_gray_and_comes_back_after_a_full_turn():
    matrix, offset = color_matrix(parameters(2, hue=torch.tensor([0.25, 1.0])), torch.full((2, 3), 0.5))
    gray = torch.full((3,), 0.6)
    assert torch.allclose(matrix[0] @ gray + offset[0], gray, atol=2e-3)
    assert torch.allclose(matrix[1], torch.eye(3), atol=1e-3)
    assert not torch.allclose(matrix[0], torch.eye(3), atol=0.1)


def test_views_stay_within_the_range_of_colors_and_are_normalized():
    strong = parameters(2, brightness=torch.tensor([1.8, 0.1]), contrast=torch.tensor([1.8, 1.0]))
    plain = augmented_views(canvases(2, 8), strong, 8, NO_NORMALIZATION)
    assert plain.min() >= 0 and plain.max() <= 1
    mean, std = (torch.tensor(v)[:, None, None] for v in (IMAGENET.mean, IMAGENET.std))
    assert torch.allclose(augmented_views(canvases(2, 8), strong, 8, IMAGENET), (plain - mean) / std, atol=1e-5)


def test_the_plain_view_is_the_normalized_middle():
    image = canvases(1, 8)
    mean, std = (torch.tensor(v)[:, None, None] for v in (IMAGENET.mean, IMAGENET.std))
    assert torch.allclose(plain_views(image, 4, IMAGENET), (image[:, :, 2:6, 2:6] - mean) / std)
    assert Transform(112).canvas == 112


def test_both_layouts_of_pixels_are_taken():
    pixels = np.random.default_rng(0).integers(0, 256, (2, 5, 6, 3), dtype=np.uint8)
    last, first = to_tensor(pixels), to_tensor(np.ascontiguousarray(pixels.transpose(0, 3, 1, 2)))
    assert torch.equal(last, first)
    assert last.shape == (2, 3, 5, 6)
    assert last.max() <= 1
    with pytest.raises(IgcdError, match="uint8"):
        to_tensor(pixels.astype(np.float32))


@pytest.mark.parametrize("options", [{"area": (0.0, 1.0)}, {"aspect": (2.0, 1.0)}, {"flip": 1.5}, {"hue": 0.6}])
def test_impossible_recipes_are_refused(options):
    with pytest.raises(IgcdError, match=next(iter(options))):
        ViewRecipe(**options)


def test_probabilities_are_kept():
    draws = uniform_draws(image_words([str(i) for i in range(4000)]), np.zeros(4000, dtype=np.int64), seed=0)
    drawn = view_parameters(UNO, draws)
    assert (drawn.flips < 0).float().mean() == pytest.approx(0.5, abs=0.03)
    assert (drawn.saturation == 0).float().mean() == pytest.approx(0.1, abs=0.02)
    assert (drawn.brightness != 1).float().mean() == pytest.approx(0.5, abs=0.03)
    assert drawn.brightness.min() >= 0.7 and drawn.brightness.max() <= 1.3
    assert drawn.hue.abs().max() <= 0.1
