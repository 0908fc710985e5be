"""Images to features on disk: many images, in shards, stopped and continued at will, on one machine or on several."""
