"""Torture of what reads data sets and observations."""

import gzip
import io
import json
import pickle
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from scipy.io import savemat
from tools.torture.byte_mutation import mutate_bytes
from tools.torture.formats import (
    mutate_csv,
    mutate_json,
    mutate_lines,
    mutate_npy,
    mutate_pickle,
    mutate_split,
    mutate_tar,
    mutate_tsv,
    mutate_xml,
    zip_mutation,
)
from tools.torture.judging import require
from tools.torture.reader import Reader

from igcd.cli.build import read_category_order
from igcd.data.dataset import Dataset, is_plain_name
from igcd.data.inat2021 import read_inat2021
from igcd.data.observation_files import read_observation_file
from igcd.data.observations import Observations
from igcd.data.sources import load_source
from igcd.data.taxonomy import RANKS, Taxon, format_taxonomy, read_taxonomy
from igcd.streams.split import Split, SplitStage, format_split, read_split
from igcd.types import Truth

TERMS = ("gbifID", "eventDate", "decimalLatitude", "decimalLongitude", "species", "kingdom", "family", "genus")
SEEN = [
    ["1", "2015-05-05", "48.86", "2.35", "Danaus plexippus", "Animalia", "Nymphalidae", "Danaus"],
    ["2", "2017-05-05", "-33.87", "151.21", "Corvus corax", "Animalia", "Corvidae", "Corvus"],
    ["3", "2018-05-05", "", "", "Panthera leo", "Animalia", "Felidae", "Panthera"],
]
META = (
    '<archive xmlns="http://rs.tdwg.org/dwc/text/"><core encoding="UTF-8" fieldsTerminatedBy="\\t" '
    'fieldsEnclosedBy="" ignoreHeaderLines="1" rowType="http://rs.tdwg.org/dwc/terms/Occurrence">'
    '<files><location>occurrence.txt</location></files><id index="0"/>'
    + "".join(f'<field index="{i}" term="http://rs.tdwg.org/dwc/terms/{term}"/>' for i, term in enumerate(TERMS))
    + '<field default="Life" term="http://rs.tdwg.org/dwc/terms/vernacularName"/></core></archive>'
)


def check_dataset(dataset: Dataset) -> None:
    """What holds of any data set."""
    require(len(dataset.images.ids) == len(dataset.categories) == len(dataset), "as many ids as categories")
    require(len(set(dataset.images.ids)) == len(dataset), "ids are unique")
    codes = dataset.categories
    require(not len(codes) or 0 <= codes.min() <= codes.max() < len(dataset.category_names), "codes have names")
    require(all(is_plain_name(name) for name in dataset.category_names), "names fit on a line")
    "".join([*dataset.images.ids, *dataset.category_names]).encode()


def check_observations(seen: Observations) -> None:
    """What holds of any observations."""
    n = len(seen)
    require(n == len(seen.image_ids) == len(seen.latitude) == len(seen.longitude), "columns are equally long")
    require(not n or 0 <= seen.categories.min() <= seen.categories.max() < len(seen.taxa), "codes have taxa")
    "".join(seen.image_ids).encode()


def check_split(folder: Path) -> None:
    """A split that is read is written as the same bytes."""
    split = read_split(folder / "split.tsv")
    again = format_split(split)
    (folder / "again.tsv").write_bytes(again)
    require(read_split(folder / "again.tsv") == split, "what is read is written and read again")


def picture_bytes(kind: str = "PNG", color: int = 90) -> bytes:
    """A small picture."""
    file = io.BytesIO()
    Image.fromarray(np.full((6, 6, 3), color, np.uint8)).save(file, kind)
    return file.getvalue()


def _npz(arrays: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def _archive() -> bytes:
    arrays: dict[str, Any] = {"class_names": np.array(["ash", "beech"])}
    for split in ("train", "test"):
        blobs = [picture_bytes(color=c) for c in (10, 200)]
        arrays[f"png_{split}"] = np.frombuffer(b"".join(blobs), np.uint8)
        arrays[f"off_{split}"] = np.cumsum([0, *map(len, blobs)])
        arrays[f"y_{split}"] = np.array([0, 1])
        arrays[f"file_{split}"] = np.array(["a.png", "b.png"])
    arrays |= {"coarse_names": np.array(["tree"]), "fine_to_coarse": np.array([0, 0])}
    return _npz(arrays)


def _cifar() -> dict[str, bytes]:
    def batch(n: int, labels: dict[str, list[int]]) -> dict[str, Any]:
        data = np.zeros((n, 3072), np.uint8)
        return {"data": data, "filenames": [f"p{i}.png" for i in range(n)], **labels}

    members = {
        "train": batch(2, {"fine_labels": [0, 1], "coarse_labels": [0, 0]}),
        "test": batch(1, {"fine_labels": [1], "coarse_labels": [0]}),
        "meta": {"fine_label_names": ["ash", "beech"], "coarse_label_names": ["tree"]},
    }
    return {f"cifar-100-python/{name}": pickle.dumps(record, protocol=3) for name, record in members.items()}


def _tar(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return gzip.compress(out.getvalue(), mtime=0)


def _zip(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def _mat(record: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    savemat(out, record)  # type: ignore[arg-type]  # any file will do
    return out.getvalue()


def _cars() -> dict[str, bytes]:
    names = np.array(["Audi A3", "BMW M3"], dtype=object)
    fields = [("fname", "O"), ("class", "O")]
    return {
        "cars_meta.mat": _mat({"class_names": names}),
        "cars_train_annos.mat": _mat({"annotations": np.array([("1.jpg", 1), ("2.jpg", 2)], dtype=fields)}),
        "cars_test_annos_withlabels.mat": _mat({"annotations": np.array([("1.jpg", 2)], dtype=fields)}),
        "cars_train/1.jpg": b"",
        "cars_test/1.jpg": b"",
    }


def _annotations() -> dict[str, Any]:
    ranks = dict(zip(RANKS, ("Animalia", "Arthropoda", "Insecta", "Lepidoptera", "Nymphalidae", "Danaus"), strict=True))
    return {
        "info": {"year": 2021},
        "images": [
            {"id": i, "file_name": f"train/{i}.jpg", "date": "2015-05-05", "latitude": 48.8, "longitude": 2.3}
            for i in range(3)
        ],
        "categories": [{"id": 0, "name": "Danaus plexippus", "common_name": "Monarch", **ranks}],
        "annotations": [{"id": i, "image_id": i, "category_id": 0} for i in range(3)],
    }


def sample_split() -> Split:
    """A split of two stages."""
    old = Truth(("a/1.png", "b/1.png"), ("ash", "beech"), ("Old", "Old"))
    new = Truth(("c/1.png", "a/2.png"), ("oak", "ash"), ("New", "Old"))
    none = Truth((), (), ())
    test = Truth(("a/9.png", "b/9.png", "c/9.png"), ("ash", "beech", "oak"), ("Old", "S-0", "New"))
    stages = (SplitStage(old, none, Truth(("a/9.png",), ("ash",), ("Old",))), SplitStage(none, new, test))
    return Split(name="wood-igcd-l", source="folder", seed=3, spec={"protocol": "igcd-l", "n": [1, 2]}, stages=stages)


def data_readers() -> list[Reader]:
    """The readers, each with its sample."""
    listed = b"path,category,split\na/1.png,ash,train\na/2.png,ash,test\nb/1.png,beech,\n"
    dwc = "\n".join("\t".join(row) for row in [TERMS, *SEEN]).encode()
    inat = "id,observed_on,latitude,longitude,scientific_name,common_name,iconic_taxon_name,file_name\n" + "".join(
        f"{i},2015-05-0{i},48.8,2.3,Corvus corax,Raven,Aves,{i}.jpg\n" for i in range(1, 4)
    )
    cub = {
        "classes.txt": b"1 001.Ash\n2 002.Beech\n",
        "images.txt": b"1 a/1.jpg\n2 b/1.jpg\n3 b/2.jpg\n",
        "image_class_labels.txt": b"1 1\n2 2\n3 2\n",
        "train_test_split.txt": b"1 1\n2 1\n3 0\n",
        "images/a/1.jpg": b"",
    }
    tiny = {
        "wnids.txt": b"n01\nn02\n",
        "words.txt": b"n01\tash\nn02\tbeech, big\n",
        "train/n01/images/1.JPEG": b"",
        "train/n02/images/1.JPEG": b"",
        "val/val_annotations.txt": b"v1.JPEG\tn01\t0\t0\t1\t1\nv2.JPEG\tn02\t0\t0\t1\t1\n",
        "val/images/v1.JPEG": b"",
    }
    hundred = [f"n{number:08d}" for number in range(100)]
    wnids = {f"{part}/{wnid}/1.JPEG": b"" for part in ("train", "val") for wnid in hundred}
    wnids["wnids.txt"] = "".join(f"{wnid}\n" for wnid in hundred).encode()
    annotations = json.dumps(_annotations()).encode()
    cifar, cars = _cifar(), _cars()
    taxa = [Taxon("Danaus plexippus", ("A", "B", "C", "D", "E", "F"), "Monarch"), Taxon("oak", ("",) * 6, "")]

    def source(name: str, **options: Any) -> Any:  # noqa: ANN401 - options of the source
        return lambda folder: check_dataset(load_source(name, folder, **options))

    def observed(name: str) -> Any:  # noqa: ANN401 - a function
        return lambda folder: check_observations(read_observation_file(folder / name))

    return [
        Reader(
            "table",
            {"t.csv": listed},
            {"t.csv": mutate_csv},
            lambda f: check_dataset(load_source("table", f / "t.csv")),
        ),
        Reader("split file", {"split.tsv": format_split(sample_split())}, {"split.tsv": mutate_split}, check_split),
        Reader("inaturalist csv", {"o.csv": inat.encode()}, {"o.csv": mutate_csv}, observed("o.csv")),
        Reader("darwin core table", {"o.tsv": dwc}, {"o.tsv": mutate_tsv}, observed("o.tsv")),
        Reader(
            "darwin core archive",
            {"o.zip": _zip({"meta.xml": META.encode(), "occurrence.txt": dwc})},
            {"o.zip": zip_mutation({".xml": mutate_xml, ".txt": mutate_tsv})},
            observed("o.zip"),
        ),
        Reader(
            "gbif download",
            {"o.zip": _zip({"occurrence.txt": dwc})},
            {"o.zip": zip_mutation({".txt": mutate_tsv})},
            observed("o.zip"),
        ),
        Reader(
            "inat2021",
            {"train.json": annotations},
            {"train.json": mutate_json},
            lambda f: check_observations(read_inat2021(f / "train.json")),
        ),
        Reader(
            "inat2021 gz",
            {"train.json.gz": gzip.compress(annotations, mtime=0)},
            {"train.json.gz": lambda content, rng: gzip.compress(mutate_json(gzip.decompress(content), rng), mtime=0)},
            lambda f: check_observations(read_inat2021(f / "train.json.gz")),
        ),
        Reader(
            "taxonomy",
            {"taxonomy.csv": format_taxonomy(taxa).encode()},
            {"taxonomy.csv": mutate_csv},
            lambda f: read_taxonomy(f / "taxonomy.csv"),
        ),
        Reader(
            "category order",
            {"order.txt": b"ash\nbeech\noak\n"},
            {"order.txt": mutate_lines},
            lambda f: read_category_order(f / "order.txt"),
        ),
        Reader(
            "npz archive",
            {"cifar100.npz": _archive()},
            {"cifar100.npz": zip_mutation({".npy": mutate_npy})},
            source("cifar100"),
        ),
        Reader(
            "npz archive, coarse",
            {"cifar100.npz": _archive()},
            {"cifar100.npz": zip_mutation({".npy": mutate_npy})},
            source("cifar100", labels="coarse"),
        ),
        Reader("cifar pickles", cifar, dict.fromkeys(cifar, mutate_pickle), source("cifar100")),
        Reader(
            "cifar tar",
            {"cifar-100-python.tar.gz": _tar(cifar)},
            {"cifar-100-python.tar.gz": mutate_tar},
            source("cifar100"),
        ),
        Reader("cub", cub, dict.fromkeys([name for name in cub if name.endswith("txt")], mutate_lines), source("cub")),
        Reader(
            "cars",
            cars,
            dict.fromkeys([name for name in cars if name.endswith("mat")], mutate_bytes),
            source("cars"),
            0.5,
        ),
        Reader(
            "tiny-imagenet", tiny, {name: mutate_tsv for name in tiny if name.endswith("txt")}, source("tiny-imagenet")
        ),
        Reader(
            "imagenet100",
            wnids,
            {"wnids.txt": mutate_lines},
            lambda f: check_dataset(load_source("imagenet100", f, wnids=f / "wnids.txt")),
            0.1,
        ),
    ]
