"""Data sets in their official layouts: six categories of sixteen noisy images each, a quarter of them for testing."""

import io
import json
import pickle

import numpy as np
from inat2021_annotations import BOSTON, SYDNEY, annotations
from PIL import Image
from scipy.io import savemat

N_CATEGORIES, N_TRAIN, N_TEST = 6, 12, 4
NAMES = [f"Secretus species{code}" for code in range(N_CATEGORIES)]
WNIDS = [f"n{10_000_000 + code}" for code in range(100)]


def noise(*seed, size=32):
    return np.random.default_rng([*seed]).integers(0, 256, (size, size, 3), dtype=np.uint8)


def png(*seed):
    file = io.BytesIO()
    Image.fromarray(noise(*seed)).save(file, "PNG")
    return file.getvalue()


def write(path, *seed):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(png(*seed))


def members():
    """(category, number, is it for testing) of every image."""
    return [(code, number, number >= N_TRAIN) for code in range(N_CATEGORIES) for number in range(N_TRAIN + N_TEST)]


def cifar100(root):
    """The .npz of encoded images."""
    arrays = {"class_names": np.array(NAMES)}
    for split, is_test in (("train", False), ("test", True)):
        rows = [(code, number) for code, number, of_test in members() if of_test == is_test]
        blobs = [png(*row) for row in rows]
        arrays[f"png_{split}"] = np.frombuffer(b"".join(blobs), np.uint8)
        arrays[f"off_{split}"] = np.cumsum([0, *map(len, blobs)])
        arrays[f"y_{split}"] = np.array([code for code, _ in rows])
        arrays[f"file_{split}"] = np.array([f"secret_{code}_{number}.png" for code, number in rows])
    root.mkdir()
    np.savez(root / "cifar100.npz", **arrays)


def cifar10(root):
    """The pickles of the official archive."""
    folder = root / "cifar-10-batches-py"
    folder.mkdir(parents=True)
    rows = {False: [], True: []}
    for code, number, is_test in members():
        rows[is_test].append((code, number))
    parts = {f"data_batch_{i + 1}": rows[False][i::5] for i in range(5)} | {"test_batch": rows[True]}
    for name, part in parts.items():
        batch = {
            "data": np.stack([noise(*row).transpose(2, 0, 1).reshape(-1) for row in part]),
            "labels": [code for code, _ in part],
            "filenames": [f"secret_{code}_{number}.png" for code, number in part],
        }
        (folder / name).write_bytes(pickle.dumps(batch, protocol=3))
    (folder / "batches.meta").write_bytes(pickle.dumps({"label_names": NAMES}, protocol=3))


def cub(root):
    """The lists of CUB-200-2011 and its folder of images."""
    lists = {"images": [], "image_class_labels": [], "train_test_split": []}
    for image, (code, number, is_test) in enumerate(members(), start=1):
        path = f"{code + 1:03d}.{NAMES[code].replace(' ', '_')}/{number}.jpg"
        write(root / "images" / path, code, number)
        lists["images"].append(f"{image} {path}")
        lists["image_class_labels"].append(f"{image} {code + 1}")
        lists["train_test_split"].append(f"{image} {int(not is_test)}")
    lists["classes"] = [f"{code + 1} {code + 1:03d}.{name.replace(' ', '_')}" for code, name in enumerate(NAMES)]
    for name, lines in lists.items():
        (root / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines))


def cars(root):
    """The annotations of Stanford Cars and its two folders."""
    for folder, name, is_test in (
        ("cars_train", "cars_train_annos", False),
        ("cars_test", "cars_test_annos_withlabels", True),
    ):
        rows = [(code, number) for code, number, of_test in members() if of_test == is_test]
        noted = np.zeros((1, len(rows)), dtype=[("class", "O"), ("fname", "O")])
        for at, row in enumerate(rows):
            noted[0, at]["class"], noted[0, at]["fname"] = np.uint8(row[0] + 1), f"{at:05d}.jpg"
            write(root / folder / f"{at:05d}.jpg", *row)
        savemat(root / f"{name}.mat", {"annotations": noted})
    names = np.empty((1, N_CATEGORIES), dtype=object)
    names[0, :] = NAMES
    savemat(root / "cars_meta.mat", {"class_names": names})


def tiny_imagenet(root):
    """The folders and lists of Tiny-ImageNet."""
    noted = []
    for code, number, is_test in members():
        if is_test:
            write(root / "val" / "images" / f"val_{code}_{number}.JPEG", code, number)
            noted.append(f"val_{code}_{number}.JPEG\t{WNIDS[code]}\t0\t0\t1\t1\n")
        else:
            write(root / "train" / WNIDS[code] / "images" / f"{WNIDS[code]}_{number}.JPEG", code, number)
    (root / "val" / "val_annotations.txt").write_text("".join(noted))
    (root / "wnids.txt").write_text("".join(f"{wnid}\n" for wnid in WNIDS[:N_CATEGORIES]))
    (root / "words.txt").write_text("".join(f"{wnid}\t{name}\n" for wnid, name in zip(WNIDS, NAMES, strict=False)))


def imagenet100(root):
    """A hundred folders in train/ and val/."""
    for code, wnid in enumerate(WNIDS):
        for number in range(3):
            write(root / "train" / wnid / f"{wnid}_{number}.JPEG", code, number)
        write(root / "val" / wnid / f"ILSVRC2012_val_{code}.JPEG", code, 9)


def inat2021(root):
    """The annotations of iNat2021 and the images they name: half of the categories arrive at the second stage."""
    for split, n_images in (("train", 8), ("val", 2)):
        rows = [(code, "2012-07-14", BOSTON) for code in (0, 1, 2) for _ in range(n_images)]
        rows += [(code, "2017-07-14", SYDNEY) for code in (2, 3, 4) for _ in range(n_images)]
        noted = annotations(rows, split, first_id=0 if split == "train" else 1000)
        for at, image in enumerate(noted["images"]):
            write(root / image["file_name"], at, n_images)
        (root / f"{split}.json").write_text(json.dumps(noted))
