"""How a workspace looks at photos by default."""

from collections.abc import Mapping
from typing import Any

DEFAULT_ENCODER: Mapping[str, Any] = {"size": 224}
"""What a new workspace has that differs from the defaults of a recipe: photos are seen at 224 px."""
FAST_SIZE = 112
"""What `igcd init --fast` takes: a quarter of the pixels. Workspaces that have noted no size are of this one."""
