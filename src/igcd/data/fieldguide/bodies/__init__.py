"""One module per body plan: which traits it has and how it is drawn."""
