"""More like this: the photos nearest to some, among all that nobody has confirmed; parts of a category; its kin."""

import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.cluster.hierarchy import linkage, to_tree
from torch import Tensor
from torch.nn.functional import normalize

from igcd.errors import IgcdError
from igcd.functional.discovery import discover
from igcd.types import UNLABELED, IntArray
from igcd.workspace.catalog import Catalog, id_list
from igcd.workspace.comparing import Comparison, fit_comparison
from igcd.workspace.feature_store import Features, find_damaged, read_features
from igcd.workspace.outlook import VERY_LIKELY

MAX_FITTED = 4096
"""Photos without a label that the space is fitted with; more tell nothing new."""
PHOTOS_AT_A_TIME = 65_536


@dataclass(frozen=True)
class Similar:
    """A photo and how alike it is, from -1 to 1."""

    photo: int
    similarity: float


@dataclass(frozen=True)
class Branch:
    """A category, or two branches that are more alike than anything else."""

    category: int | None
    height: float  # 0: the same; of a leaf 0
    parts: "tuple[Branch, ...]" = ()


@dataclass(frozen=True)
class _Compared:
    """All photos that have a feature of one encoder, as they are compared."""

    encoder: str
    last_feature: int  # the newest feature when they were read
    comparison: Comparison
    photo_ids: np.ndarray  # (n,) rising
    rows: Tensor  # (n, c) of length 1


class PhotoIndex:
    """The photos of a workspace, ready to be compared; read again where a discovery has added some."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._held: _Compared | None = None
        self._lock = threading.Lock()

    def nearest(self, photo_ids: Sequence[int], *, n: int) -> list[Similar]:
        """The `n` photos most like these, the most alike first: those nobody has confirmed, and not these."""
        held = self._compared()
        chosen = np.flatnonzero(np.isin(held.photo_ids, list(photo_ids)))
        if not len(chosen):
            raise IgcdError(
                "the photos to compare with have no features yet, or do not exist; run a discovery, then ask again"
            )
        wanted = normalize(held.rows[torch.from_numpy(chosen)].mean(dim=0), dim=0)
        similarity = held.rows @ wanted
        found: list[Similar] = []
        n_asked = 0
        while len(found) < n and n_asked < len(similarity):  # of a million photos few are asked for
            n_asked = min(max(4 * n, 8 * n_asked), len(similarity))
            best = similarity.topk(n_asked)
            ids = held.photo_ids[best.indices.numpy()].tolist()
            is_open = self._unconfirmed(ids) - set(photo_ids)
            pairs = zip(ids, best.values.tolist(), strict=True)
            found = [Similar(photo, value) for photo, value in pairs if photo in is_open][:n]
        return found

    def elsewhere(self, photo_ids: Sequence[int], chosen: Sequence[int]) -> list[int]:
        """Those of some photos that are very likely of a known category which none of the chosen ones is in."""
        query = (
            "SELECT a.photo FROM assignments a JOIN categories c ON c.id = a.category "
            "WHERE c.state IN ('labeled', 'accepted') AND a.probability >= ?1 "
            "AND a.photo IN (SELECT value FROM json_each(?2)) AND a.category NOT IN (SELECT category FROM assignments "
            "WHERE category IS NOT NULL AND photo IN (SELECT value FROM json_each(?3)))"
        )
        with self._catalog.snapshot() as db:
            rows = db.execute(query, (VERY_LIKELY, id_list(photo_ids), id_list(chosen))).fetchall()
        return [row["photo"] for row in rows]

    def _unconfirmed(self, photo_ids: Sequence[int]) -> set[int]:
        """Those of some photos that nobody has confirmed."""
        query = "SELECT photo FROM assignments WHERE NOT is_confirmed AND photo IN (SELECT value FROM json_each(?))"
        with self._catalog.snapshot() as db:
            return {row["photo"] for row in db.execute(query, (id_list(photo_ids),))}

    def parts(self, category_id: int, *, n: int) -> list[list[int]]:
        """The photos of a category in `n` groups that are alike, the largest first: a preview for a split."""
        held = self._compared()
        with self._catalog.snapshot() as db:
            own = [
                row["photo"] for row in db.execute("SELECT photo FROM assignments WHERE category = ?", (category_id,))
            ]
            found = read_features(db, held.encoder, own)
        for photo in find_damaged(found):
            del found[photo]
        if len(found) < max(n, 2):
            raise IgcdError(
                f"a category is split into at most as many parts as it has photos with features, got {n} parts for "
                f"{len(found)}; choose fewer"
            )
        ids = sorted(found)
        h = held.comparison.projection.of_array(np.stack([found[photo] for photo in ids]))
        nothing = torch.empty(0, dtype=torch.int64)
        groups = discover(h, h[:0], nothing, n_novel=n, smallest=1, whitening=held.comparison.whitening).category
        parts = [
            [ids[row] for row in (groups == part).nonzero()[:, 0].tolist()] for part in range(int(groups.max()) + 1)
        ]
        return sorted((part for part in parts if part), key=lambda part: (-len(part), part))

    def tree(self) -> Branch | None:
        """The categories that hold photos, those most alike joined first; None with fewer than two."""
        held = self._compared()
        with self._catalog.snapshot() as db:
            category_of = {
                row["photo"]: row["category"]
                for row in db.execute(
                    "SELECT a.photo, a.category FROM assignments a JOIN categories c ON c.id = a.category "
                    "WHERE c.state IN ('labeled', 'accepted', 'discovered')"
                )
            }
        owners = np.array([category_of.get(photo, UNLABELED) for photo in held.photo_ids.tolist()], dtype=np.int64)
        ids, numbers = np.unique(owners[owners != UNLABELED], return_inverse=True)
        if len(ids) < 2:
            return None
        sums = held.rows.new_zeros(len(ids), held.rows.shape[1])
        sums.index_add_(0, torch.from_numpy(numbers), held.rows[torch.from_numpy(owners != UNLABELED)])
        root = to_tree(linkage(normalize(sums, dim=1).double().numpy(), method="average", metric="cosine"))
        return _branch(root, ids.tolist())

    def _compared(self) -> _Compared:
        with self._lock, self._catalog.snapshot() as db:
            encoder = _last_encoder(db)
            last_feature = db.execute("SELECT COALESCE(MAX(rowid), 0) FROM features").fetchone()[0]
            if self._held is None or (self._held.encoder, self._held.last_feature) != (encoder, last_feature):
                self._held = _read(db, encoder, last_feature)
            return self._held


def _last_encoder(db: sqlite3.Connection) -> str:
    row = db.execute("SELECT encoder FROM stages WHERE encoder IS NOT NULL ORDER BY stage DESC LIMIT 1").fetchone()
    if row is None:
        raise IgcdError("photos are compared by their features, and there are none yet; discover first")
    return str(row["encoder"])


def _read(db: sqlite3.Connection, encoder: str, last_feature: int) -> _Compared:
    """All photos with a feature, part by part: features of a million photos are larger than what is compared."""
    labels = {
        row["id"]: row["category"] or UNLABELED
        for row in db.execute(
            "SELECT p.id, CASE WHEN a.is_confirmed THEN a.category END AS category FROM photos p "
            "CROSS JOIN features f ON f.encoder = ? AND f.content_hash = p.content_hash "
            "LEFT JOIN assignments a ON a.photo = p.id ORDER BY p.id",
            (encoder,),
        )
    }
    ids, categories = (np.fromiter(values, dtype=np.int64) for values in (labels.keys(), labels.values()))
    comparison = _fit(db, encoder, ids, categories)
    photo_ids, rows = [ids[:0]], []
    for start in range(0, len(ids), PHOTOS_AT_A_TIME):
        own, features = _sound_features(db, encoder, ids[start : start + PHOTOS_AT_A_TIME])
        is_of_size = features.shape[1:] == (comparison.projection.mean.shape[0],)
        if is_of_size:
            photo_ids.append(own)
            rows.append(comparison(features))
    return _Compared(encoder, last_feature, comparison, np.concatenate(photo_ids), torch.cat(rows))


def _fit(db: sqlite3.Connection, encoder: str, ids: IntArray, categories: IntArray) -> Comparison:
    """The space for photos of these categories, from those with a label and some others. (n,), (n,)."""
    others = np.random.default_rng(0).permutation(np.flatnonzero(categories == UNLABELED))[:MAX_FITTED]
    fitted = np.sort(np.concatenate([np.flatnonzero(categories != UNLABELED), others]))
    own, features = _sound_features(db, encoder, ids[fitted])
    if not len(own):
        raise IgcdError("photos are compared by their features, and there are none yet; discover first")
    return fit_comparison(features, categories[np.searchsorted(ids, own)])


def _sound_features(db: sqlite3.Connection, encoder: str, ids: IntArray) -> tuple[IntArray, Features]:
    """Those of some photos whose feature is there and not damaged, rising, and the features. (n,) -> (m,), (m, d)."""
    found = read_features(db, encoder, ids.tolist())
    for photo in find_damaged(found):
        del found[photo]
    own = np.array(sorted(found), dtype=np.int64)
    return own, np.stack([found[photo] for photo in own.tolist()]) if len(own) else np.empty((0, 0), dtype=np.float32)


def _branch(node: object, ids: list[int]) -> Branch:
    if node.is_leaf():  # type: ignore[attr-defined]
        return Branch(ids[node.id], 0.0)  # type: ignore[attr-defined]
    parts = (_branch(node.left, ids), _branch(node.right, ids))  # type: ignore[attr-defined]
    return Branch(None, float(node.dist), parts)  # type: ignore[attr-defined]
