"""Incremental generalized category discovery: find new categories in a growing stream of images."""

from typing import TYPE_CHECKING

__version__ = "0.1.0"
__all__ = ["CategoryDiscoverer", "__version__"]

if TYPE_CHECKING:
    from igcd.discoverer import CategoryDiscoverer


def __getattr__(name: str) -> object:
    """The estimator is imported when it is first asked for: the command line must not wait for torch."""
    if name == "CategoryDiscoverer":
        from igcd.discoverer import CategoryDiscoverer

        return CategoryDiscoverer
    raise AttributeError(f"module 'igcd' has no attribute {name!r}")
