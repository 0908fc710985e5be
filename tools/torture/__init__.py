"""`make torture`: mutated inputs and images, kills, a full disk and a crowd on the review page, counted and judged."""
