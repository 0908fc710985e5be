"""Embeddings from any timm or CLIP model, then category discovery.

    python examples/model_features.py FEATURES.npy LABELS.npy     # embeddings that you have
    python examples/model_features.py timm:resnet50 FOLDER        # downloads the weights from the hub

LABELS.npy has a text per row, "" for unlabeled. FOLDER/<category>/ has labeled images, FOLDER/unlabeled/ the others.
CLIP works the same way: `embed` needs a function that turns an image into a tensor, and one that turns a batch of them
into features. For open_clip these are `preprocess` and `model.encode_image`.
"""

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import timm
import torch
from PIL import Image
from torch import Tensor

from igcd import CategoryDiscoverer


@torch.inference_mode()
def embed(
    paths: Sequence[Path], preprocess: Callable[[Image.Image], Tensor], encode: Callable[[Tensor], Tensor]
) -> np.ndarray:
    """The feature of each image, (n, d), 32 at a time."""
    batches = [paths[start : start + 32] for start in range(0, len(paths), 32)]
    rows = [encode(torch.stack([preprocess(Image.open(path).convert("RGB")) for path in batch])) for batch in batches]
    return torch.cat(rows).numpy()


def timm_functions(name: str, *, pretrained: bool = True) -> tuple[Callable[[Image.Image], Tensor], torch.nn.Module]:
    """The two functions `embed` needs, of a timm model without its classifier."""
    model = timm.create_model(name, pretrained=pretrained, num_classes=0).eval()
    return timm.data.create_transform(**timm.data.resolve_model_data_config(model)), model


def show(features: np.ndarray, labels: np.ndarray) -> CategoryDiscoverer:
    """Discovers categories and says what was found."""
    model = CategoryDiscoverer().fit(features, labels)
    for label, n_rows in Counter(model.labels_.tolist()).most_common():
        print(f"{label or 'unsure'}: {n_rows} rows, {(labels == label).sum() if label else 0} of them labeled")
    return model


if __name__ == "__main__":
    if sys.argv[1].startswith("timm:"):
        files = sorted(path for path in Path(sys.argv[2]).rglob("*") if path.suffix.lower() in (".jpg", ".png"))
        names = np.array(["" if path.parent.name == "unlabeled" else path.parent.name for path in files])
        show(embed(files, *timm_functions(sys.argv[1].removeprefix("timm:"))), names)
    else:
        show(np.load(sys.argv[1]), np.load(sys.argv[2]))
