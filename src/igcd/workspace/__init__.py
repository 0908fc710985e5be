"""A person's photos: what is known, what is new, names for it, and ids that never change."""
