"""How a workspace looks at photos by default."""

from collections.abc import Mapping
from typing import Any

DEFAULT_SIZE = 224
NATIVE_SIZE: Mapping[str, int] = {"tf_efficientnet_lite0": 224, "tf_efficientnet_lite2": 260}
"""What the backbones from the package index were trained at: the size of a new workspace with one of them."""
FAST_SIZE = 112
"""What `igcd init --fast` takes: a quarter of the pixels. Workspaces that have noted no size are of this one."""


def default_encoder(backbone: str | None, size: int | None = None) -> dict[str, Any]:
    """What a new workspace has that differs from the defaults of a recipe: size of the photos, and how it pools.

    The generalized mean finds more at 224 px and larger, less at 112 (docs/encoders.md). Other backbones than the two
    from the package index pool as they were trained to.

    >>> default_encoder(None), default_encoder("tf_efficientnet_lite2")
    ({'size': 224, 'pool': 'gem'}, {'size': 260, 'pool': 'gem'})
    >>> default_encoder(None, size=112), default_encoder("resnet18")
    ({'size': 112, 'pool': 'mean'}, {'size': 224, 'pool': 'mean'})
    """
    size = size or NATIVE_SIZE.get(backbone or "", DEFAULT_SIZE)
    is_tried = backbone is None or backbone in NATIVE_SIZE
    return {"size": size, "pool": "gem" if is_tried and size >= DEFAULT_SIZE else "mean"}
