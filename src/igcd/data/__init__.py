"""Pixels and metadata in: one small module per source, one `ImageSet` interface for all."""
