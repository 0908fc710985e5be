"""One epoch of the tail from the trunk cache against one with the live trunk, decoding and views included.

    python benchmarks/trunk_cache.py                      Lite0 at 112 px and ResNet-18 at 224 px
    python benchmarks/trunk_cache.py --images 512 --repeats 5 --threads 2
    python benchmarks/trunk_cache.py --fill               the cache filled by one process and by two that share it

Both epochs do the same training: forward and backward of the tail on two views of each image in batches of 128, SGD.
They run in turn in one process, so that whatever else the machine does meets both; the ratio of the medians is what
counts. `--fill` compares the processor seconds of one process with those of the busier of two, of one thread each: on
free cores that is the wall clock, and on a busy machine it still says how evenly the work is shared.
Images are JPEGs of smooth noise, 500 × 375 for the larger size and 160 × 120 for the smaller one.
"""

import argparse
import io
import json
import multiprocessing
import statistics
import tempfile
import time
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch.nn.functional import normalize

from igcd.data.images import ArchiveImages
from igcd.encoders.backbone import Backbone, build_backbone
from igcd.encoders.trunk_cache import TrunkCache
from igcd.encoders.trunk_views import TrunkViews
from igcd.encoders.views import Transform

CASES = {
    "lite0-112": ("tf_efficientnet_lite0", "pip", 112, (160, 120)),
    "resnet18-224": ("resnet18", "random", 224, (500, 375)),
}
BATCH = 128


def noise_photos(n: int, width: int, height: int) -> ArchiveImages:
    """JPEGs of enlarged noise, about as large as photos of that size."""
    random = np.random.default_rng(0)
    blobs = []
    for _ in range(n):
        small = random.integers(0, 256, (height // 8, width // 8, 3), dtype=np.uint8)
        with io.BytesIO() as file:
            Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC).save(file, "JPEG", quality=90)
            blobs.append(file.getvalue())
    offsets = np.cumsum([0, *(len(blob) for blob in blobs)])
    return ArchiveImages([str(i) for i in range(n)], np.frombuffer(b"".join(blobs), dtype=np.uint8), offsets)


def seconds_of_epoch(views: TrunkViews, backbone: Backbone, n_images: int, seed: int) -> float:
    tail = backbone.new_tail()
    optimizer = torch.optim.SGD(tail.parameters(), lr=0.01, momentum=0.9)
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(n_images, generator=generator).numpy()
    start = time.perf_counter()
    for begin in range(0, n_images, BATCH):
        first, second = views.two_views(order[begin : begin + BATCH], generator)
        one, other = normalize(tail(first), dim=1), normalize(tail(second), dim=1)
        loss = -(one * other).sum(dim=1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return time.perf_counter() - start


def measure(case: str, n_images: int, n_views: int, repeats: int) -> dict[str, object]:
    name, weights, size, photo = CASES[case]
    backbone = build_backbone(name, weights=weights, size=size)
    images = noise_photos(n_images, *photo)
    with tempfile.TemporaryDirectory() as folder:
        cache = TrunkCache(Path(folder))
        start = time.perf_counter()
        cached = cache.views(backbone, images, Transform(size), n_views=n_views)
        fill = time.perf_counter() - start
        live = cache.live(backbone, images, Transform(size))
        start = time.perf_counter()
        TrunkCache(Path(folder)).views(backbone, images, Transform(size), n_views=n_views)
        reopen = time.perf_counter() - start
        seconds: dict[str, list[float]] = {"cached": [], "live": []}
        for repeat in range(repeats):
            seconds["cached"].append(seconds_of_epoch(cached, backbone, n_images, repeat))
            seconds["live"].append(seconds_of_epoch(live, backbone, n_images, repeat))
        n_bytes = cache.n_bytes()
    medians = {kind: statistics.median(values) for kind, values in seconds.items()}
    ratios = [live / cached for live, cached in zip(seconds["live"], seconds["cached"], strict=True)]
    return {
        "case": case,
        "images": n_images,
        "views": n_views,
        "threads": torch.get_num_threads(),
        "fill_seconds": round(fill, 2),
        "reopen_seconds": round(reopen, 3),
        "bytes_per_view": round(n_bytes / n_images / (1 + n_views)),
        "cached_epoch_seconds": round(medians["cached"], 3),
        "live_epoch_seconds": round(medians["live"], 3),
        "ratio": round(medians["live"] / medians["cached"], 2),
        "ratio_of_each_repeat": [round(ratio, 2) for ratio in ratios],
    }


def fill(case: str, n_images: int, n_views: int, folder: str, start: Barrier, seconds: Queue) -> None:  # type: ignore[type-arg]
    """One of the processes that fill a cache: puts its processor seconds into the queue."""
    name, weights, size, (width, height) = CASES[case]
    torch.set_num_threads(1)
    backbone, images = build_backbone(name, weights=weights), noise_photos(n_images, width, height)
    start.wait()
    began = time.process_time()
    TrunkCache(Path(folder)).views(backbone, images, Transform(size), n_views=n_views)
    seconds.put(time.process_time() - began)


def measure_filling(case: str, n_images: int, n_views: int) -> dict[str, float | str]:
    context = multiprocessing.get_context("spawn")
    taken = {}
    for n in (1, 2):
        with tempfile.TemporaryDirectory() as folder:
            start, seconds = context.Barrier(n), context.Queue()
            arguments = (case, n_images, n_views, folder, start, seconds)
            processes = [context.Process(target=fill, args=arguments) for _ in range(n)]
            for process in processes:
                process.start()
            taken[n] = max(seconds.get() for _ in processes)
            for process in processes:
                process.join()
    ratio = taken[1] / taken[2]
    return {"case": case, "one": round(taken[1], 2), "busier_of_two": round(taken[2], 2), "ratio": round(ratio, 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", choices=CASES, action="append")
    parser.add_argument("--images", type=int, default=256)
    parser.add_argument("--views", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--fill", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    for case in options.case or CASES:
        if options.fill:
            print(json.dumps(measure_filling(case, options.images, options.views)), flush=True)
            continue
        print(json.dumps(measure(case, options.images, options.views, options.repeats)), flush=True)


if __name__ == "__main__":
    main()
