"""How large a number may be."""

MAX_SEED = 2**63 - 1
"""What every generator of random numbers takes, and every file holds."""
