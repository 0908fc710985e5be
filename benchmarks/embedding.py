"""`igcd embed`: images per second by engine, and how near to the bare network reading and resizing leave it.

    python benchmarks/embedding.py                      # 112 and 224 px; torch and openvino
    python benchmarks/embedding.py --others             # also torch.compile and ONNX Runtime, bare only

Photos are JPEG files of 500 × 375 pixels, made-up field guide plates. `bare` is the network on a batch of 64 in memory,
`embed` is `make_shard` on the files: reading, decoding, resizing, hashing, network. Both in images per second of
processor time on one thread, which other work on the machine disturbs least, in turn and at their fastest; `share` is
embed / bare: what is left of the network's speed where reading and resizing run on the same core. `differs` is the
largest difference of a feature from torch's. With free cores decoding runs beside the network and the share rises.
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

from igcd.assembly import build_encoder
from igcd.config import EncoderConfig
from igcd.data.images import FileImages
from igcd.data.quarantine import Quarantine
from igcd.data.sources import load_source
from igcd.embedding.embed import make_shard
from igcd.embedding.engines import ENGINES, photo_encoder
from igcd.encoders.views import plain_views, to_tensor

N_IMAGES, BATCH = 128, 64


def write_photos(folder: Path) -> FileImages:
    """Plates of the field guide at the size that photos on the web have."""
    images = load_source("fieldguide", None, n_species=24, n_images=N_IMAGES).images
    for idx in range(N_IMAGES):
        Image.fromarray(images.pixels(idx)).resize((500, 375)).save(folder / f"{idx:04d}.jpg", quality=90)
    return FileImages(folder, [f"{idx:04d}.jpg" for idx in range(N_IMAGES)])


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
    print(f"{'px':>4} {'engine':>14} {'bare':>8} {'embed':>8} {'share':>6} {'differs':>9}")
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
                calls = [partial(encoder, pixels), partial(make_shard, files, encoder)]
                of_bare, of_embed = seconds_of(calls, options.repeats)
                bare, embed = BATCH / of_bare, N_IMAGES / of_embed
                differs = np.abs(found - expected).max()
                print(
                    f"{size:>4} {engine:>14} {bare:>8.1f} {embed:>8.1f} {embed / bare:>6.2f} {differs:>9.1e}",
                    flush=True,
                )
            if options.others:
                backbone = build_encoder(config, quarantine=Quarantine()).backbone
                inputs = plain_views(to_tensor(pixels), size, backbone.normalization).contiguous()
                for engine, call in other_engines(backbone, inputs, folder).items():
                    found = call()
                    found = found / np.linalg.norm(found, axis=1, keepdims=True)
                    bare, differs = BATCH / seconds_of([call], options.repeats)[0], np.abs(found - expected).max()
                    print(f"{size:>4} {engine:>14} {bare:>8.1f} {'':>8} {'':>6} {differs:>9.1e}", flush=True)


if __name__ == "__main__":
    main()
