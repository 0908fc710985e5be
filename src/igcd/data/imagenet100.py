"""ImageNet-100: 100 categories of ImageNet-1k. There is no one list of them, so the list is yours to give."""

from pathlib import Path

from igcd.data.dataset import Dataset
from igcd.data.files import read_lines
from igcd.data.wnid_folders import load_wnids, train_wnids
from igcd.errors import IgcdError

N_CATEGORIES = 100


def load(root: Path, *, wnids: Path | None = None) -> Dataset:
    """Folders `train/<wnid>/` and `val/<wnid>/` of the wnids in a text file, one per line.

    Without the file, `train/` must hold exactly 100 folders. What follows a wnid on its line is ignored.
    """
    if wnids is None:
        chosen = train_wnids(root, source="ImageNet-100")
        origin = str(root / "train")
        remedy = "give a text file with 100 wnids (wnids=FILE; igcd build: --option wnids=FILE)"
    else:
        chosen = [line.split()[0] for line in read_lines(Path(wnids))]
        origin = str(wnids)
        remedy = "list each once, one per line"
    if len(chosen) != N_CATEGORIES or len(set(chosen)) != N_CATEGORIES:
        raise IgcdError(
            f"ImageNet-100 expects {N_CATEGORIES} different wnids in {origin}, got {len(set(chosen))} of {len(chosen)} "
            f"entries; {remedy}"
        )
    return load_wnids(root, chosen, name="imagenet100", source="ImageNet-100")
