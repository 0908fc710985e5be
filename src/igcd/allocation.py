"""Memory of a run: freed tensors stay with the process, and what cannot be allocated is one sentence."""

import ctypes
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from igcd.errors import IgcdError

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3  # of glibc's malloc.h
_LARGEST = 2**31 - 1


_REFUSED = re.compile(r"can't allocate|not enough memory|out of memory|calculation overflowed", re.IGNORECASE)
"""What PyTorch says, in a RuntimeError, when it gets no memory."""


@contextmanager
def memory_in_a_sentence() -> Iterator[None]:
    """Where memory runs out, or nobody could have as much, the error says what makes a run smaller."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and not _REFUSED.search(str(error)):
            raise
        reason = next(iter(str(error).splitlines()), "") or "out of memory"
        raise IgcdError(
            f"the run needs more memory than there is ({reason[-80:]}); lower encoder.size, encoder.n_views or the "
            "batch_size of training, or use fewer images"
        ) from None


def keep_freed_memory() -> bool:
    """Asks glibc to give nothing back and to map nothing apart; whether it will. Elsewhere nothing happens.

    A training step, or a batch of images in the network, allocates and frees the same hundreds of megabytes again and
    again. What is held at the peak stays the same, and is held for longer: for commands that end, not for libraries.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
    if mallopt is None:
        return False
    wishes = ((M_MMAP_THRESHOLD, 2**30), (M_TRIM_THRESHOLD, _LARGEST), (M_TOP_PAD, 2**26))
    return all(mallopt(option, value) == 1 for option, value in wishes)
