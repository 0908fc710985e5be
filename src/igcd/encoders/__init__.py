"""Image to feature: frozen trunk, trained tail, views, and the trunk cache."""
