"""Incremental generalized category discovery: find new categories in a growing stream of images."""

__version__ = "0.1.0"
