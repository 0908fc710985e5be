"""Images that cannot be used are set aside with the reason, and the run goes on, unless there are too many."""

import csv
import io
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np

from igcd.data.dataset import is_plain_name
from igcd.data.images import BrokenImageError
from igcd.data.parallel import map_in_order, n_cores
from igcd.errors import IgcdError
from igcd.records import write_bytes
from igcd.types import Images, IntArray

N_EXAMPLES = 3
INSPECTED_AT_ONCE = 8  # images per piece of work, so that handing it over costs little beside decoding


class TooManyBrokenError(IgcdError):
    """More of a set of images cannot be used than the limit allows."""

    def __init__(self, reasons: Mapping[str, str], n_images: int, limit: float) -> None:
        super().__init__(
            f"{len(reasons):,} of {n_images:,} images ({len(reasons) / max(n_images, 1):.1%}) cannot be used, the "
            f"limit is {limit:.1%}; repair or remove them, or allow a larger share (limit, --max-broken, max_broken of "
            "a recipe)",
            details=[f"{name!r}: {reason}" for name, reason in [*reasons.items()][:N_EXAMPLES]],
        )
        self.reasons = dict(reasons)
        self.n_images = n_images
        self.limit = limit


class Quarantine:
    """The list of broken images of a run. `limit` is the share of all images that may be broken."""

    def __init__(self, limit: float = 0.05) -> None:
        if not 0 <= limit <= 1:
            raise IgcdError(f"the limit of broken images must be a share from 0 to 1, got {limit}; 0.05 means 5%")
        self.limit = limit
        self._reasons: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._reasons)

    def __contains__(self, image_id: object) -> bool:
        return image_id in self._reasons

    @property
    def reasons(self) -> Mapping[str, str]:
        """The reason of each broken image by its id, in the order they were found."""
        return MappingProxyType(self._reasons)

    def add(self, image_id: str, reason: str) -> None:
        """Set an image aside. The first reason stands: an image read in every epoch counts once."""
        self._reasons.setdefault(image_id, reason)

    def counts(self) -> dict[str, int]:
        """How many images each reason has, the most frequent first."""
        counts = Counter(self._reasons.values())
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def summary(self) -> str:
        """One line for people.

        >>> quarantine = Quarantine()
        >>> quarantine.add("owl/3.jpg", "truncated")
        >>> quarantine.add("owl/7.jpg", "truncated")
        >>> quarantine.add("owl/9.jpg", "file is empty")
        >>> quarantine.summary()
        '3 images set aside: truncated 2, file is empty 1'
        """
        if not self:
            return "no images set aside"
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in self.counts().items())
        return f"{len(self):,} image{'s' if len(self) > 1 else ''} set aside: {reasons}"

    def check(self, n_images: int) -> None:
        """Raise when more than the limit of `n_images` are broken."""
        if len(self) > self.limit * n_images:
            raise TooManyBrokenError(self._reasons, n_images, self.limit)

    def write(self, path: Path) -> None:
        """Write `image_id,reason` lines as UTF-8, all or nothing. Bytes that are no UTF-8 are written as escapes."""
        text = io.StringIO()
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow(["image_id", "reason"])
        rows.writerows(self._reasons.items())
        write_bytes(path, text.getvalue().encode("utf-8", errors="backslashreplace"))


def inspect(
    images: Images,
    quarantine: Quarantine,
    *,
    n_workers: int | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> IntArray:
    """Decode every image once, in parallel, set the broken ones aside and return the positions of the others.

    A name that fits on no line of a split file is broken, too. `on_progress` gets the number of images looked at
    so far. Ask `quarantine.check(len(images))` afterwards whether there are too many.
    """
    starts = range(0, len(images), INSPECTED_AT_ONCE)

    def look_at(start: int) -> list[str | None]:
        return [_fault(images, idx) for idx in range(start, min(start + INSPECTED_AT_ONCE, len(images)))]

    usable: list[int] = []
    n_done = 0
    n_ahead = 2 * (n_workers or n_cores())
    for faults in map_in_order(look_at, starts, n_workers=n_workers, n_ahead=n_ahead):
        for idx, fault in enumerate(faults, start=n_done):
            if fault is None:
                usable.append(idx)
            else:
                quarantine.add(images.ids[idx], fault)
        n_done += len(faults)
        if on_progress is not None:
            on_progress(n_done)
    return np.array(usable, dtype=np.int64)


def _fault(images: Images, idx: int) -> str | None:
    if not is_plain_name(images.ids[idx]):
        return "name with a tab, line break, control character or undecodable bytes"
    try:
        images.pixels_at_least(idx, 1)  # reduced decoding still reads the file to its end
    except BrokenImageError as error:
        return str(error)
    return None
