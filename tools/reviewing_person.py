"""A person who reviews a workspace and answers from the truth, with no more than the review page shows and offers.

- The person goes through the new categories, then through what needs a look, group after group as the page orders them.
  The photos of the most numerous kind are selected, two or more of a category. "More like this" shows the 24 most alike
  among all that is not confirmed, those of the same kind are selected as well, and all of them are named, or moved to
  the category that has the name, in one decision. What else is in the category or group is left there.
- Every tenth decision the person discovers again, and looks through the categories that were found by then.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from igcd.workspace import decisions, looking, queries
from igcd.workspace.catalog import Catalog
from igcd.workspace.similar import PhotoIndex

AUTHOR = "simulated person"
N_SIMILAR = 24
"""Photos that "more like this" shows."""
EVERY = 10
"""Decisions after which the person discovers again."""


class Person:
    """Answers from the truth, through the decisions the review page has."""

    def __init__(
        self, catalog: Catalog, truth_of: Callable[[queries.Photo], str], discover_again: Callable[[], None]
    ) -> None:
        self._catalog, self._truth_of, self._discover_again = catalog, truth_of, discover_again
        self._index = PhotoIndex(catalog)
        self.made: Counter[str] = Counter()

    def review(self, n_decisions: int) -> None:
        """Decides so many times, or until nothing is left to look at."""
        self._review_queue(n_decisions)
        next_discovery = self.made.total() + EVERY
        self._discover_again()
        self._review_queue(n_decisions)
        seen: set[int] = set()
        while self.made.total() < n_decisions and (groups := looking.looks(self._catalog)):
            group = next((one for one in groups if one.id not in seen), None)
            if group is None:
                seen.clear()
                continue
            seen.add(group.id)
            kind, photos = self._kinds(queries.photos(self._catalog, group.photo_ids))[0]
            self._settle(kind, photos)
            if self.made.total() >= next_discovery:
                next_discovery = self.made.total() + EVERY
                self._discover_again()
                seen.clear()
                self._review_queue(n_decisions)

    def _review_queue(self, n_decisions: int) -> None:
        """What is one thing is named, or moved to the category that has the name; the rest is left for later."""
        seen: set[int] = set()
        while self.made.total() < n_decisions:
            waiting = [category.id for category in queries.queue(self._catalog) if category.id not in seen]
            if not waiting:
                return
            seen.add(waiting[0])
            kind, own = self._kinds(all_photos(self._catalog, waiting[0]))[0]
            if len(own) > 1:
                self._settle(kind, own)

    def _settle(self, kind: str, photos: Sequence[queries.Photo]) -> None:
        """Says what photos are, and more like them of the same kind: one decision."""
        ids, category = [photo.id for photo in photos], self._category_of(kind)
        shown = [one.photo for one in self._index.nearest(ids, n=N_SIMILAR)]
        ids += [photo.id for photo in queries.photos(self._catalog, shown) if self._truth_of(photo) == kind]
        if category is None:
            self._count(decisions.split(self._catalog, ids, name=kind, author=AUTHOR))
        else:
            self._count(decisions.move(self._catalog, ids, category, author=AUTHOR))

    def _kinds(self, photos: Iterable[queries.Photo]) -> list[tuple[str, list[queries.Photo]]]:
        """Photos by what they show, the most numerous kind first."""
        kinds: dict[str, list[queries.Photo]] = {}
        for photo in photos:
            kinds.setdefault(self._truth_of(photo), []).append(photo)
        return sorted(kinds.items(), key=lambda kind: (-len(kind[1]), kind[0]))

    def _category_of(self, name: str) -> int | None:
        found = (category.id for category in queries.categories(self._catalog) if category.name == name)
        return next(found, None)

    def _count(self, decision: decisions.Decision) -> None:
        self.made[decision.kind] += 1


def all_photos(catalog: Catalog, category_id: int | None) -> Sequence[queries.Photo]:
    """All photos of a category, or the unsure ones."""
    return queries.photos(catalog, queries.photo_ids_of(catalog, category_id))
