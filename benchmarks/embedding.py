"""`igcd embed`: images per second by engine, and how near to the bare network reading and resizing leave it.

    python benchmarks/embedding.py                      # 112 and 224 px; torch and openvino
    python benchmarks/embedding.py --others             # also torch.compile and ONNX Runtime, bare only

Photos are JPEG files of 500 × 375 pixels, made-up field guide plates. `bare` is the network on a batch of 64 in memory,
`embed` is `make_shard` on the files: reading, decoding, resizing, hashing, network. Both in images per second of
processor time on one thread, which other work on the machine disturbs least, in turn and at their fastest; `share` is
embed / bare: what is left of the network's speed where reading and resizing run on the same core. `differs` is the
largest difference of a feature from torch's. With free cores decoding runs beside the network and the share rises.
`quick` is `embed` with cheaper reading, which igcd does not do because features change (`cosine` to the others, on
average): JPEG reduced while decoding as far as it stays large enough, and PyTorch's resizing instead of Pillow's.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch.nn.functional import interpolate

from igcd.assembly import build_encoder
from igcd.config import EncoderConfig
from igcd.data.images import FileImages
from igcd.data.quarantine import Quarantine
from igcd.data.sources import load_source
from igcd.embedding.embed import make_shard
from igcd.embedding.engines import ENGINES, photo_encoder
from igcd.encoders.views import plain_views, to_tensor
from igcd.types import Pixels

N_IMAGES, BATCH = 128, 64


def write_photos(folder: Path) -> FileImages:
    """Plates of the field guide at the size that photos on the web have."""
    images = load_source("fieldguide", None, n_species=24, n_images=N_IMAGES).images
    for idx in range(N_IMAGES):
        Image.fromarray(images.pixels(idx)).resize((500, 375)).save(folder / f"{idx:04d}.jpg", quality=90)
    return FileImages(folder, [f"{idx:04d}.jpg" for idx in range(N_IMAGES)])


class QuickFiles(FileImages):
    """The same files, read as fast as possible, with other pixels."""

    def square(self, idx: int, size: int) -> Pixels:
        """The center square, (size, size, 3)."""
        with Image.open(self.root / self.ids[idx]) as image:
            image.draft("RGB", (size, size))
            pixels = torch.from_numpy(np.array(image))
        side = min(pixels.shape[:2])
        top, left = (pixels.shape[0] - side) // 2, (pixels.shape[1] - side) // 2
        square = pixels[top : top + side, left : left + side].permute(2, 0, 1)[None]
        return interpolate(square, (size, size), mode="bicubic", antialias=True)[0].permute(1, 2, 0).numpy()


def seconds_of(calls: Sequence[Callable[[], object]], n_times: int) -> list[float]:
    """Processor seconds of each call at its fastest; they run in turn, so that what disturbs one disturbs all."""
    best = [float("inf")] * len(calls)
    for turn in range(n_times + 1):
        for number, call in enumerate(calls):
            start = time.process_time()
            call()
            if turn:  # the first warms up
                best[number] = min(best[number], time.process_time() - start)
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
    options = parser.parse_args()
    torch.set_num_threads(1)
    titles = ("bare", "embed", "share", "quick", "share", "cosine", "differs")
    print(f"{'px':>4} {'engine':>14} {' '.join(f'{title:>8}' for title in titles)}")
    with tempfile.TemporaryDirectory() as name, torch.inference_mode():
        folder = Path(name)
        files = write_photos(folder)
        quick_files = QuickFiles(folder, files.ids)
        for size in options.sizes:
            config = EncoderConfig(size=size, cache=None)
            pixels = np.random.default_rng(0).integers(0, 256, (BATCH, size, size, 3), dtype=np.uint8)
            expected = None
            for engine in options.engines:
                encoder = photo_encoder(build_encoder(config, quarantine=Quarantine()), engine)
                found = encoder(pixels)
                expected = found if expected is None else expected
                shards = [partial(make_shard, each, encoder) for each in (files, quick_files)]
                of_bare, of_embed, of_quick = seconds_of([partial(encoder, pixels), *shards], options.repeats)
                bare, embed, quick = BATCH / of_bare, N_IMAGES / of_embed, N_IMAGES / of_quick
                features = [shard().features.astype(np.float32) for shard in shards]
                cosine, differs = (features[0] * features[1]).sum(axis=1).mean(), np.abs(found - expected).max()
                print(
                    f"{size:>4} {engine:>14} {bare:>8.1f} {embed:>8.1f} {embed / bare:>8.2f} {quick:>8.1f} "
                    f"{quick / bare:>8.2f} {cosine:>8.4f} {differs:>8.1e}",
                    flush=True,
                )
            if options.others:
                backbone = build_encoder(config, quarantine=Quarantine()).backbone
                inputs = plain_views(to_tensor(pixels), size, backbone.normalization).contiguous()
                for engine, call in other_engines(backbone, inputs, folder).items():
                    found = call()
                    found = found / np.linalg.norm(found, axis=1, keepdims=True)
                    bare, differs = BATCH / seconds_of([call], options.repeats)[0], np.abs(found - expected).max()
                    print(f"{size:>4} {engine:>14} {bare:>8.1f} {'':>44} {differs:>8.1e}", flush=True)


if __name__ == "__main__":
    main()
