"""Where photos stand in the plane, for the page's map. Reading only; joined as arrays, there may be 100,000 photos."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from igcd.types import FloatArray, IntArray
from igcd.workspace.catalog import Catalog, table_of

UNSURE = 0
"""In arrays of category ids: the photo is in none. Catalog ids start at 1."""
LABELED, CONFIRMED, GUESSED, OF_NONE = range(4)
"""Kinds of photos on the map: came with a label, confirmed by a person, guessed, of no category."""


@dataclass(frozen=True)
class PhotoMap:
    """Photos in the plane, one entry each, by ascending id; those of earlier stages are landmarks."""

    photo_ids: IntArray  # (n,)
    xy: FloatArray  # (n, 2), from 0 to 1
    category_ids: IntArray  # (n,), UNSURE for none
    is_landmark: npt.NDArray[np.bool_]  # (n,) of an earlier stage
    kinds: IntArray  # (n,) LABELED, CONFIRMED, GUESSED or OF_NONE
    is_confirmed: npt.NDArray[np.bool_]  # (n,) a person has decided


def photo_map(catalog: Catalog) -> PhotoMap:
    """Where the photos stand in the plane: each photo where the last discovery that placed it has put it."""
    with catalog.snapshot() as db:
        placed = table_of(db, "SELECT photo, x, y FROM places ORDER BY stage DESC", "i8,f8,f8")
        assigned = table_of(db, "SELECT photo, COALESCE(category, 0), is_confirmed FROM assignments", "i8,i8,?")
        labeled = table_of(db, "SELECT photo, 0 FROM labels WHERE source = 'given'", "i8,i8")
        earlier = table_of(db, "SELECT id, 0 FROM photos WHERE stage < (SELECT MAX(stage) FROM places)", "i8,i8")
    photo_ids, last = np.unique(placed["f0"], return_index=True)  # the first row of a photo is that of its last stage
    category_ids, is_confirmed = np.zeros(len(photo_ids), np.int64), np.zeros(len(photo_ids), np.bool_)
    of_row = np.searchsorted(photo_ids, assigned["f0"])
    is_placed = np.isin(assigned["f0"], photo_ids)
    category_ids[of_row[is_placed]] = assigned["f1"][is_placed]
    is_confirmed[of_row[is_placed]] = assigned["f2"][is_placed]
    kinds = np.where(category_ids == UNSURE, OF_NONE, np.where(is_confirmed, CONFIRMED, GUESSED))
    kinds[np.isin(photo_ids, labeled["f0"])] = LABELED
    return PhotoMap(
        photo_ids=photo_ids,
        xy=np.stack([placed["f1"][last], placed["f2"][last]], axis=1),
        category_ids=category_ids,
        is_landmark=np.isin(photo_ids, earlier["f0"]),
        kinds=kinds,
        is_confirmed=is_confirmed,
    )
