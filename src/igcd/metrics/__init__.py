"""Scores: accuracy by group, forgetting and discovery, category count, identity stability."""
