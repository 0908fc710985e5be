"""ImageNet-1k (ILSVRC2012): 1.28 million + 50,000 photographs, 1,000 categories (Russakovsky et al., 2015)."""

from pathlib import Path

from igcd.data.dataset import Dataset
from igcd.data.wnid_folders import load_wnids, train_wnids
from igcd.errors import IgcdError

N_CATEGORIES = 1000


def load(root: Path) -> Dataset:
    """Folders `train/<wnid>/` and `val/<wnid>/` of all 1,000 categories."""
    wnids = train_wnids(root, source="ImageNet-1k")
    if len(wnids) != N_CATEGORIES:
        raise IgcdError(
            f"ImageNet-1k expects {N_CATEGORIES:,} folders in {root / 'train'}, got {len(wnids):,}; "
            "complete them, or use the source `folder` for a part"
        )
    return load_wnids(root, wnids, name="imagenet1k", source="ImageNet-1k")
