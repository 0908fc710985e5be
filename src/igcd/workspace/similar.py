"""More like this: the photos nearest to some, among all that nobody has confirmed; parts of a category; its kin."""

import sqlite3
import threading
from collections.abc import Mapping, Sequence
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

    def at(self, photo_ids: Sequence[int]) -> Tensor:
        """The rows of some photos, without those that have none."""
        return torch.from_numpy(np.flatnonzero(np.isin(self.photo_ids, list(photo_ids))))

    def means_of(self, category_of: Mapping[int, int]) -> tuple[IntArray, Tensor]:
        """The categories that hold photos, rising, and the direction of their mean. (k,), (k, c) of length 1."""
        owners = np.array([category_of.get(photo, UNLABELED) for photo in self.photo_ids.tolist()], dtype=np.int64)
        ids, numbers = np.unique(owners[owners != UNLABELED], return_inverse=True)
        sums = self.rows.new_zeros(len(ids), self.rows.shape[1])
        sums.index_add_(0, torch.from_numpy(numbers), self.rows[torch.from_numpy(owners != UNLABELED)])
        return ids, normalize(sums, dim=1)


class PhotoIndex:
    """The photos of a workspace, ready to be compared; read again where a discovery has added some."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._held: _Compared | None = None
        self._means: tuple[_Compared, str | None, Tensor] | None = None  # of what, as of which discovery, the means
        self._lock = threading.Lock()

    def nearest(self, photo_ids: Sequence[int], *, n: int) -> list[Similar]:
        """The `n` photos most like these, the most alike first: those nobody has confirmed, and not these."""
        held = self._compared()
        chosen = held.at(photo_ids)
        if not len(chosen):
            raise IgcdError(
                "the photos to compare with have no features yet, or do not exist; run a discovery, then ask again"
            )
        wanted = normalize(held.rows[chosen].mean(dim=0), dim=0)
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
        """Those of some photos that are not what the chosen ones are, as far as can be told; rising.

        They are very likely of a known category that none of the chosen ones is in, or more like a known category than
        like the chosen ones. The one that is most like the chosen ones does not count: they may well be of it.
        """
        query = (
            "SELECT a.photo FROM assignments a JOIN categories c ON c.id = a.category "
            "WHERE c.state IN ('labeled', 'accepted') AND a.probability >= ?1 "
            "AND a.photo IN (SELECT value FROM json_each(?2)) AND a.category NOT IN (SELECT category FROM assignments "
            "WHERE category IS NOT NULL AND photo IN (SELECT value FROM json_each(?3)))"
        )
        with self._catalog.snapshot() as db:
            rows = db.execute(query, (VERY_LIKELY, id_list(photo_ids), id_list(chosen))).fetchall()
        return sorted({row["photo"] for row in rows} | self._more_like_known(photo_ids, chosen))

    def _more_like_known(self, photo_ids: Sequence[int], chosen: Sequence[int]) -> set[int]:
        """Those of some photos that are more like a known category than like the chosen ones."""
        held, means = self._compared(), self._known_means()
        if len(means) < 2 or not photo_ids:
            return set()
        wanted = normalize(held.rows[held.at(chosen)].mean(dim=0), dim=0)
        means = means[torch.arange(len(means)) != (means @ wanted).argmax()]
        at = held.at(photo_ids)
        is_more_like = (held.rows[at] @ means.T).max(dim=1).values > held.rows[at] @ wanted
        return set(held.photo_ids[at[is_more_like].numpy()].tolist())

    def _known_means(self) -> Tensor:
        """The directions of the known categories by their confirmed photos, as of the last discovery. (k, c)."""
        held = self._compared()
        with self._lock, self._catalog.snapshot() as db:
            when = db.execute("SELECT MAX(discovered) FROM stages").fetchone()[0]
            if self._means is None or self._means[0] is not held or self._means[1] != when:
                rows = db.execute(
                    "SELECT a.photo, a.category FROM assignments a JOIN categories c ON c.id = a.category "
                    "WHERE a.is_confirmed AND c.state IN ('labeled', 'accepted')"
                ).fetchall()
                self._means = (held, when, held.means_of({row["photo"]: row["category"] for row in rows})[1])
            return self._means[2]

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
        ids, means = held.means_of(category_of)
        if len(ids) < 2:
            return None
        root = to_tree(linkage(means.double().numpy(), method="average", metric="cosine"))
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
