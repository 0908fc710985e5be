"""Freed tensors stay with the process, so that the next step need not ask the system for zeroed pages again."""

import ctypes
import sys

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3  # of glibc's malloc.h
_LARGEST = 2**31 - 1


def keep_freed_memory() -> bool:
    """Asks glibc to give nothing back and to map nothing apart; whether it will. Elsewhere nothing happens.

    A training step allocates and frees the same hundreds of megabytes again and again. What it holds at its peak stays
    the same, and is held for longer.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
    if mallopt is None:
        return False
    wishes = ((M_MMAP_THRESHOLD, 2**30), (M_TRIM_THRESHOLD, _LARGEST), (M_TOP_PAD, 2**26))
    return all(mallopt(option, value) == 1 for option, value in wishes)
