"""`igcd embed`: images per second by engine, and how near to the bare network reading and resizing leave it.

    python benchmarks/embedding.py                      # 112 and 224 px; torch and openvino
    python benchmarks/embedding.py --others             # also torch.compile and ONNX Runtime, bare only
    python benchmarks/embedding.py --threads 2          # by the clock, on two cores that have nothing else to do
    python benchmarks/embedding.py --give-back --at-once 64   # the network as PyTorch runs it when left alone
    python benchmarks/embedding.py --reading            # a shard without a network, and beside one that takes no core
    python benchmarks/embedding.py --filters            # only how far PyTorch's filter is from Pillow's

Photos are JPEG files of 500 × 375 pixels, made-up field guide plates. `bare` is the network on a batch of 64 in memory,
`embed` is `make_shard` on the files: reading, decoding, resizing, hashing, network. Both in images per second of
processor time on one thread, which other work on the machine disturbs least, in turn and at their fastest; `share` is
embed / bare: what is left of the network's speed where reading and resizing run on the same core. Both keep freed
memory and take 16 images at once through the network, as the command does, unless --give-back or --at-once say other.
`differs` is the largest difference of a feature from torch's. With free cores decoding runs beside the network and the
share rises.
`filter` and `quick` are `embed` with cheaper reading, which igcd does not do because features change (`cosine` to the
others, on average, and the largest difference of a feature): `filter` resizes by PyTorch's filter instead of Pillow's,
`quick` also reduces a JPEG while decoding as far as it stays large enough. PyTorch cannot begin half a pixel off, where
the center square of 500 × 375 pixels lies. `--filters` cuts photos to squares first, so that only the filters differ.
"""

import argparse
import io
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO
from unittest.mock import patch

import numpy as np
import torch
from PIL import Image
from torch.nn.functional import interpolate

from igcd.allocation import keep_freed_memory
from igcd.assembly import build_encoder
from igcd.config import EncoderConfig
from igcd.data.images import FORMATS, REDUCTION_MARGIN, FileImages, decode_image
from igcd.data.quarantine import Quarantine
from igcd.data.sources import load_source
from igcd.embedding.embed import make_shard
from igcd.embedding.engines import ENGINES, photo_encoder
from igcd.embedding.shards import Shard
from igcd.encoders.views import plain_views, to_tensor
from igcd.types import Pixels
from igcd.workspace.feature_store import Features
from igcd.workspace.features import PART_ON_CPU, PhotoEncoder

N_IMAGES, BATCH = 128, 64
N_COPIES = 5
"""Of each photo with --reading: the first batch, which nothing runs beside, is then one of ten."""
NETWORK_SECONDS = {112: 0.0039, 224: 0.0145}
"""What torch takes for an image on one core."""


def write_photos(folder: Path) -> FileImages:
    """Plates of the field guide at the size that photos on the web have."""
    images = load_source("fieldguide", None, n_species=24, n_images=N_IMAGES).images
    for idx in range(N_IMAGES):
        Image.fromarray(images.pixels(idx)).resize((500, 375)).save(folder / f"{idx:04d}.jpg", quality=90)
    return FileImages(folder, [f"{idx:04d}.jpg" for idx in range(N_IMAGES)])


def resized_by_torch(file: BinaryIO, *, square: int, margin: int) -> Pixels:
    """The center square, (square, square, 3), of a JPEG reduced while decoding to `margin` times that at least."""
    with Image.open(file, formats=FORMATS) as image:
        image.draft("RGB", (margin * square, margin * square))
        side = min(image.size)
        left, top = (image.width - side) // 2, (image.height - side) // 2
        cut = torch.from_numpy(np.array(image.crop((left, top, left + side, top + side))))
    resized = interpolate(cut.permute(2, 0, 1)[None], (square, square), mode="bicubic", antialias=True)
    return resized[0].permute(1, 2, 0).numpy()


READERS = (decode_image, partial(resized_by_torch, margin=REDUCTION_MARGIN), partial(resized_by_torch, margin=1))
"""What `embed`, `filter` and `quick` read with."""


def shard_read_by(reader: Callable[..., Pixels], files: FileImages, encoder: PhotoEncoder) -> Shard:
    """What `make_shard` makes, with another reader of files."""
    with patch("igcd.embedding.embed.decode_image", reader):
        return make_shard(files, encoder)


def compare_filters(files: FileImages, encoder: PhotoEncoder) -> str:
    """How far PyTorch's filter is from Pillow's, and features with it, on photos that are square."""
    both: list[list[Pixels]] = [[], []]
    for idx in range(len(files)):
        photo = Image.fromarray(files.pixels(idx))
        content = io.BytesIO()
        photo.crop((0, 0, photo.height, photo.height)).save(content, "PNG")
        for resized, reader in zip(both, READERS, strict=False):
            resized.append(reader(io.BytesIO(content.getvalue()), square=encoder.size))
    ours, theirs = np.stack(both[0]), np.stack(both[1])
    apart = np.abs(ours.astype(np.int16) - theirs)
    features, others = encoder(ours), encoder(theirs)
    return (
        f"{encoder.size:>4} px: {(apart > 0).mean():.2%} of the values differ, by {apart.max()} of 255 at most; "
        f"features by {np.abs(features - others).max():.1e}, lowest cosine {(features * others).sum(axis=1).min():.6f}"
    )


class Elsewhere:
    """A network that takes so many seconds per image and none of this machine's cores."""

    key = "elsewhere"

    def __init__(self, size: int, seconds: float) -> None:
        self.size, self._seconds = size, seconds

    def __call__(self, pixels: Pixels) -> Features:
        """Nothing, after a while: (n, size, size, 3) -> (n, 1280)."""
        time.sleep(self._seconds * len(pixels))
        return np.zeros((len(pixels), 1280), dtype=np.float32)


def compare_reading(folder: Path, size: int, n_times: int) -> str:
    """Processor time of a shard without a network, and by the clock how much of it a network elsewhere hides."""
    paths = sorted(path.name for path in folder.glob("*.jpg"))
    for path in paths:
        for number in range(1, N_COPIES):
            (folder / f"{number}-{path}").write_bytes((folder / path).read_bytes())
    files = FileImages(folder, sorted(path.name for path in folder.glob("*.jpg")))
    (alone,) = seconds_of([partial(make_shard, files, Elsewhere(size, 0))], n_times)
    beside = Elsewhere(size, NETWORK_SECONDS[size])
    (both,) = seconds_of([partial(make_shard, files, beside)], n_times, time.perf_counter)
    network = len(files) * NETWORK_SECONDS[size]
    return f"{size:>4} px: {1e3 * alone / len(files):.2f} ms of the processor per photo; share {network / both:.2f}"


def seconds_of(
    calls: Sequence[Callable[[], object]], n_times: int, clock: Callable[[], float] = time.process_time
) -> list[float]:
    """Seconds of each call at its fastest; they run in turn, so that what disturbs one disturbs all."""
    best = [float("inf")] * len(calls)
    for turn in range(n_times + 1):
        for number, call in enumerate(calls):
            start = clock()
            call()
            if turn:  # the first warms up
                best[number] = min(best[number], clock() - start)
    return best


def other_engines(network: torch.nn.Module, inputs: torch.Tensor, folder: Path) -> dict[str, Callable[[], np.ndarray]]:
    import onnxruntime

    path = str(folder / "network.onnx")
    axes = {"x": {0: "n"}}
    torch.onnx.export(network, (inputs,), path, dynamo=False, input_names=["x"], dynamic_axes=axes)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    compiled = torch.compile(network)
    return {
        "onnxruntime": lambda: session.run(None, {"x": inputs.numpy()})[0],
        "torch.compile": lambda: compiled(inputs).numpy(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[112, 224])
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=ENGINES)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--others", action="store_true")
    parser.add_argument("--filters", action="store_true")
    parser.add_argument("--reading", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--give-back", action="store_true", help="freed memory goes back to the system")
    parser.add_argument("--at-once", type=int, default=PART_ON_CPU, help="images in the network at once")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    clock = time.process_time if options.threads == 1 else time.perf_counter
    if not options.give_back:
        keep_freed_memory()
    with (
        patch("igcd.workspace.features.PART_ON_CPU", options.at_once),
        patch("igcd.embedding.engines.PART_ON_CPU", options.at_once),
    ):
        measure(options, clock)


def measure(options: argparse.Namespace, clock: Callable[[], float]) -> None:
    """Prints the rows."""
    if options.reading:
        for size in options.sizes:
            with tempfile.TemporaryDirectory() as name:
                write_photos(Path(name))
                print(compare_reading(Path(name), size, options.repeats), flush=True)
        return
    if options.filters:
        with tempfile.TemporaryDirectory() as name, torch.inference_mode():
            files = write_photos(Path(name))
            for size in options.sizes:
                encoder = build_encoder(EncoderConfig(size=size, cache=None), quarantine=Quarantine())
                print(compare_filters(files, photo_encoder(encoder, options.engines[-1])), flush=True)
        return
    titles = ("bare", "differs", "embed", "share", *("filter", "share", "cosine", "differs"))
    print(f"{'px':>4} {'engine':>14} {' '.join(f'{title:>8}' for title in (*titles, 'quick', *titles[-3:]))}")
    with tempfile.TemporaryDirectory() as name, torch.inference_mode():
        folder = Path(name)
        files = write_photos(folder)
        for size in options.sizes:
            config = EncoderConfig(size=size, cache=None)
            pixels = np.random.default_rng(0).integers(0, 256, (BATCH, size, size, 3), dtype=np.uint8)
            expected = None
            for engine in options.engines:
                encoder = photo_encoder(build_encoder(config, quarantine=Quarantine()), engine)
                found = encoder(pixels)
                expected = found if expected is None else expected
                shards = [partial(shard_read_by, reader, files, encoder) for reader in READERS]
                of_bare, *of_shards = seconds_of([partial(encoder, pixels), *shards], options.repeats, clock)
                bare, embed, *others = BATCH / of_bare, *(N_IMAGES / seconds for seconds in of_shards)
                own, *changed = (shard().features.astype(np.float32) for shard in shards)
                differs = np.abs(found - expected).max()
                row = f"{size:>4} {engine:>14} {bare:>8.1f} {differs:>8.1e} {embed:>8.1f} {embed / bare:>8.2f}"
                for speed, features in zip(others, changed, strict=True):
                    cosine, differs = (own * features).sum(axis=1).mean(), np.abs(own - features).max()
                    row += f" {speed:>8.1f} {speed / bare:>8.2f} {cosine:>8.4f} {differs:>8.1e}"
                print(row, flush=True)
            if options.others:
                backbone = build_encoder(config, quarantine=Quarantine()).backbone
                inputs = plain_views(to_tensor(pixels), size, backbone.normalization).contiguous()
                for engine, call in other_engines(backbone, inputs, folder).items():
                    found = call()
                    found = found / np.linalg.norm(found, axis=1, keepdims=True)
                    bare, differs = (
                        BATCH / seconds_of([call], options.repeats, clock)[0],
                        np.abs(found - expected).max(),
                    )
                    print(f"{size:>4} {engine:>14} {bare:>8.1f} {differs:>8.1e}", flush=True)


if __name__ == "__main__":
    main()
