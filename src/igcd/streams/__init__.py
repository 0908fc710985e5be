"""Who is in which stage: protocols as pure index functions, and the split files they end in."""
