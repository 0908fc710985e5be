"""The report of a run: one page to open in a browser. It reads what the run has written down, never a model."""
