"""Augmented views per second: ours, batched, against torchvision's v2 transforms one image at a time.

    python benchmarks/views.py --threads 1
    python benchmarks/views.py --images 128 --repeats 5

The same recipe for both: random resized crop, flip, color jitter, gray, normalization, from images of the view's size.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch

from igcd.encoders.torchvision_guard import import_torchvision
from igcd.encoders.views import UNO, augmented_views, image_words, to_tensor, uniform_draws, view_parameters
from igcd.encoders.weights import IMAGENET


def ours(pixels: np.ndarray, keys: list[str]) -> Callable[[], object]:
    def work() -> object:
        draws = uniform_draws(image_words(keys), np.zeros(len(keys), dtype=np.int64), seed=0)
        return augmented_views(to_tensor(pixels), view_parameters(UNO, draws), pixels.shape[1], IMAGENET)

    return work


def torchvision_views(pixels: np.ndarray) -> Callable[[], object] | None:
    if import_torchvision() is None:
        return None
    from torchvision.transforms import v2

    transform = v2.Compose(
        [
            v2.RandomResizedCrop(pixels.shape[1], UNO.area, antialias=True),
            v2.RandomHorizontalFlip(UNO.flip),
            v2.RandomApply([v2.ColorJitter(UNO.brightness, UNO.contrast, UNO.saturation, UNO.hue)], p=UNO.jitter),
            v2.RandomGrayscale(UNO.gray),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(IMAGENET.mean, IMAGENET.std),
        ]
    )
    images = torch.from_numpy(pixels).permute(0, 3, 1, 2).contiguous()
    return lambda: torch.stack([transform(image) for image in images])


def per_second(work: Callable[[], object], n: int, repeats: int) -> float:
    work()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return n / statistics.median(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    for size in (32, 112, 224):
        pixels = np.random.default_rng(0).integers(0, 256, (options.images, size, size, 3), dtype=np.uint8)
        keys = [str(i) for i in range(options.images)]
        rates = {"ours": per_second(ours(pixels, keys), options.images, options.repeats)}
        reference = torchvision_views(pixels)
        if reference is not None:
            rates["torchvision_v2"] = per_second(reference, options.images, options.repeats)
        rounded = {kind: round(rate) for kind, rate in rates.items()}
        print(json.dumps({"size": size, "threads": options.threads, "views_per_second": rounded}), flush=True)


if __name__ == "__main__":
    main()
