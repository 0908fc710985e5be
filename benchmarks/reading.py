"""How fast images are read: python benchmarks/reading.py [--photos N].

Photos are drawn (smooth color fields with texture, saved as JPEG of quality 90), so nothing has to be there.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

from igcd.data.decoding import decode
from igcd.data.images import ArrayImages, FileImages, fit
from igcd.data.parallel import n_cores
from igcd.data.quarantine import Quarantine, inspect
from igcd.types import Pixels


def drawn_photo(width: int, height: int, rng: np.random.Generator) -> Pixels:
    coarse = Image.fromarray(rng.integers(0, 256, (height // 100, width // 100, 3), dtype=np.uint8))
    smooth = np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC), dtype=np.int16)
    texture = rng.integers(-12, 13, (height, width, 1), dtype=np.int16)
    return np.clip(smooth + texture, 0, 255).astype(np.uint8)


def rate(work: Callable[[], int]) -> str:
    """Images per second by the clock, and per second of computing, which a busy machine does not disturb."""
    start, cpu_start = time.perf_counter(), time.process_time()
    n_images = work()
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
    return f"{n_images / seconds:10,.1f} {n_images / cpu_seconds:10,.1f}"


def n_decoded(images: FileImages | ArrayImages, size: int, n_workers: int) -> int:
    return sum(len(idx) for idx, _ in decode(images, size, quarantine=Quarantine(), n_workers=n_workers))


def n_fitted(images: FileImages, size: int, at_least: int | None) -> int:
    for idx in range(len(images)):
        fit(images.pixels(idx) if at_least is None else images.pixels_at_least(idx, at_least), size)
    return len(images)


def n_usable(images: FileImages) -> int:
    return len(inspect(images, Quarantine()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--photos", type=int, default=24)
    n_photos = parser.parse_args().photos
    rng = np.random.default_rng(0)
    print(f"images per second and per CPU second, {n_cores()} cores")

    for width, height in ((500, 375), (4000, 3000)):
        with tempfile.TemporaryDirectory() as folder:
            n_files = n_photos * (20 if width == 500 else 1)
            for number in range(n_files):
                photo = Image.fromarray(drawn_photo(width, height, rng))
                photo.save(Path(folder, f"{number:04d}.jpg"), quality=90)
            images = FileImages(Path(folder), [f"{number:04d}.jpg" for number in range(n_files)])
            print(f"JPEG {width}×{height}")
            for size in (96, 224):
                print(f"  to {size:3} px, whole                 {rate(partial(n_fitted, images, size, None))}")
                print(f"  to {size:3} px, reduced in decoding   {rate(partial(n_fitted, images, size, 2 * size))}")
                for n_workers in sorted({1, n_cores()}):
                    decoding = rate(partial(n_decoded, images, size, n_workers))
                    print(f"  to {size:3} px, decode(), workers: {n_workers:2}  {decoding}")
                whole = fit(images.pixels(0), size).astype(int)
                difference = np.abs(whole - fit(images.pixels_at_least(0, 2 * size), size))
                print(
                    f"  reducing shifts levels by {difference.mean():.2f} of 255 on average, {difference.max()} at most"
                )
            print(f"  inspect()                         {rate(partial(n_usable, images))}")

    array = rng.integers(0, 256, (20_000, 32, 32, 3), dtype=np.uint8)
    in_memory = ArrayImages([str(number) for number in range(len(array))], array)
    print("array 32×32")
    for size in (32, 96):
        print(f"  to {size:3} px, decode()              {rate(partial(n_decoded, in_memory, size, n_cores()))}")


if __name__ == "__main__":
    main()
