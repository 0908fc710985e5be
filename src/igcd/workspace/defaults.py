"""How a workspace looks at photos by default."""

from collections.abc import Mapping
from typing import Any

DEFAULT_SIZE = 224
NATIVE_SIZE: Mapping[str, int] = {"tf_efficientnet_lite0": 224, "tf_efficientnet_lite2": 260}
"""What the backbones from the package index were trained at: the size of a new workspace with one of them."""
FAST_SIZE = 112
"""What `igcd init --fast` takes, seen once: an eighth of the pixels. Workspaces that noted no size are of this one."""


def default_encoder(backbone: str | None, size: int | None = None) -> dict[str, Any]:
    """What a new workspace has that differs from the defaults of a recipe: size of the photos, and how they are seen.

    A second look at the middle finds more at any size, and the generalized mean from 224 px on (docs/encoders.md).
    Other backbones than the two from the package index look once and pool as they were trained to.

    >>> default_encoder(None), default_encoder("tf_efficientnet_lite2")
    ({'size': 224, 'pool': 'gem', 'middle': True}, {'size': 260, 'pool': 'gem', 'middle': True})
    >>> default_encoder(None, size=112), default_encoder("resnet18")
    ({'size': 112, 'pool': 'mean', 'middle': True}, {'size': 224, 'pool': 'mean', 'middle': False})
    """
    size = size or NATIVE_SIZE.get(backbone or "", DEFAULT_SIZE)
    is_tried = backbone is None or backbone in NATIVE_SIZE
    return {"size": size, "pool": "gem" if is_tried and size >= DEFAULT_SIZE else "mean", "middle": is_tried}
