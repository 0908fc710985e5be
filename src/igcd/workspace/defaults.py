"""How a workspace looks at photos by default."""

from collections.abc import Mapping
from typing import Any

DEFAULT_SIZE = 224
NATIVE_SIZE: Mapping[str, int] = {"tf_efficientnet_lite2": 260}
"""The size of a new workspace with one of these backbones: what they were trained at."""
FAST_SIZE = 112
"""What `igcd init --fast` takes: a quarter of the pixels. Workspaces that have noted no size are of this one."""


def default_encoder(backbone: str | None) -> dict[str, Any]:
    """What a new workspace has that differs from the defaults of a recipe: the size at which photos are seen.

    >>> default_encoder(None), default_encoder("tf_efficientnet_lite2")
    ({'size': 224}, {'size': 260})
    """
    return {"size": NATIVE_SIZE.get(backbone or "", DEFAULT_SIZE)}
