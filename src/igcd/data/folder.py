"""Your own images, a folder per category."""

from pathlib import Path, PurePosixPath

from igcd.data.dataset import Dataset
from igcd.data.files import image_paths, looks_like_image, subfolders
from igcd.data.ordering import listed
from igcd.errors import IgcdError

SPLITS = ("train", "test")


def load(root: Path) -> Dataset:
    """Images in `<category>/`, all for training, or in `train/<category>/` and `test/<category>/`.

    What lies deeper in a category's folder belongs to it. Folders without images are no categories.
    """
    if not root.is_dir():
        raise IgcdError(f"expected a folder with one folder of images per category, got {root}, which is not a folder")
    folders = subfolders(root)
    is_split = "train" in folders and _holds_categories(root / "train")
    if is_split and not set(folders) <= set(SPLITS):
        others = ", ".join(sorted(set(folders) - set(SPLITS))[:3])
        raise IgcdError(f"{root} holds train/ with categories and also {others}; leave only train/ and test/ in it")

    rows = []
    for place in [split for split in SPLITS if split in folders] if is_split else ["."]:
        for category in subfolders(root / place):
            folder = (PurePosixPath(place) / category).as_posix()
            rows += [(path, category, place == "test") for path in image_paths(root, folder)]
    if not rows:
        loose = sum(looks_like_image(path.name) for path in root.iterdir())
        raise IgcdError(
            f"expected images in {root}/<category>/ or {root}/train/<category>/, found none in {len(folders)} folders "
            f"and {loose} images outside of any; make one folder per category"
        )
    names = sorted({category for _, category, _ in rows})
    codes = {category: code for code, category in enumerate(names)}
    coded = ((path, codes[category], is_test) for path, category, is_test in rows)
    return listed(root.resolve().name or "folder", root, coded, names)


def _holds_categories(folder: Path) -> bool:
    """Whether `train/` is a split and not a category of trains."""
    return bool(subfolders(folder)) and not any(looks_like_image(path.name) for path in folder.iterdir())
