"""Does it hurt to reduce a JPEG while decoding? Neighbors among real photos, read whole and at half their size.

    python benchmarks/reduced_decoding.py cub200_128px.npz

Photos of 128 pixels (training images of CUB-200-2011) stand in for larger ones: they are resized to 38 pixels as photos
of 375 pixels are to 112, once from all their pixels and once from a half in each direction, which the decoder gives for
less. Both are enlarged to the encoder's size. `margin` is how many times the wanted size is left after decoding, of
which igcd asks 2 (`igcd.data.images.REDUCTION_MARGIN`). For each photo: the mean precision among its 29 nearest
neighbors (mAP@R) and a vote of 10; differences with their standard errors, by photo. `cosine` is between both features.
"""

import argparse
import io
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from igcd.allocation import keep_freed_memory
from igcd.assembly import build_encoder
from igcd.config import EncoderConfig
from igcd.data.quarantine import Quarantine
from igcd.types import FloatArray, IntArray, Pixels
from igcd.workspace.feature_store import Features
from igcd.workspace.features import FrozenEncoder

SIDE, N_NEIGHBORS, N_VOTES, TAU = 128, 29, 10, 0.07


def read(encoded: bytes, target: int, size: int, *, is_reduced: bool) -> Pixels:
    """A photo at `target` pixels, from all of its pixels or from half as many each way, enlarged to `size`."""
    with Image.open(io.BytesIO(encoded)) as image:
        if is_reduced:
            image.draft("RGB", (SIDE // 2, SIDE // 2))
        small = image.convert("RGB").resize((target, target), Image.Resampling.BICUBIC)
    return np.asarray(small.resize((size, size), Image.Resampling.BICUBIC))


def scores(features: Features, categories: IntArray) -> tuple[FloatArray, FloatArray]:
    """For each photo the mean precision at its neighbors of the same category, and whether the vote is right. (n,)."""
    cosines = torch.from_numpy(features @ features.T).fill_diagonal_(-2.0)
    nearest, idx = cosines.topk(N_NEIGHBORS, dim=1)
    found = categories[idx.numpy()]
    is_same = found == categories[:, None]
    precision = np.cumsum(is_same, axis=1) / np.arange(1, N_NEIGHBORS + 1)
    weights = np.exp(nearest[:, :N_VOTES].numpy() / TAU)
    votes = np.zeros((len(found), categories.max() + 1))
    np.add.at(votes, (np.arange(len(found))[:, None], found[:, :N_VOTES]), weights)
    return (precision * is_same).sum(axis=1) / N_NEIGHBORS, (votes.argmax(axis=1) == categories).astype(np.float64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archive", type=Path)
    parser.add_argument("--targets", type=int, nargs="+", default=[32, 38, 48, 60])
    parser.add_argument("--size", type=int, default=112)
    options = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    archive = np.load(options.archive)
    blob, offsets, categories = archive["jpg_train"], archive["off_train"], archive["y_train"].astype(np.int64)
    photos = [blob[start:stop].tobytes() for start, stop in pairwise(offsets)]
    encoder = FrozenEncoder(build_encoder(EncoderConfig(size=options.size, cache=None), quarantine=Quarantine()))
    for target in options.targets:
        whole, reduced = (
            np.concatenate(
                [
                    encoder(np.stack([read(photo, target, options.size, is_reduced=is_reduced) for photo in part]))
                    for part in (photos[start : start + 64] for start in range(0, len(photos), 64))
                ]
            )
            for is_reduced in (False, True)
        )
        cosine = (whole * reduced).sum(axis=1)
        row = f"{target:>3} px, margin {SIDE / 2 / target:.2f}: cosine {cosine.mean():.4f}, lowest {cosine.min():.3f}"
        for name, before, after in zip(
            ("mAP@R", "vote"), scores(whole, categories), scores(reduced, categories), strict=True
        ):
            differences = after - before
            error = differences.std() / len(differences) ** 0.5
            row += f"; {name} {before.mean():.4f} {differences.mean():+.4f} ± {error:.4f}"
        print(row, flush=True)


if __name__ == "__main__":
    main()
