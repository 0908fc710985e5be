"""What is known of the new photos of a stage, in honest words, from calibrated probabilities."""

from dataclasses import dataclass

from igcd.workspace.catalog import Catalog

VERY_LIKELY = 0.8
"""From this probability on a photo is called very likely of its category; below it somebody should look."""


@dataclass(frozen=True)
class Outlook:
    """The photos of a stage that came without a label, by what is known of them."""

    stage: int
    state: str  # open, discovered or accepted
    n_photos: int
    n_waiting: int  # no discovery has looked at them
    n_confirmed: int  # a person has said what they are, or that it cannot be said
    n_likely: int  # of a known category with a probability of VERY_LIKELY or more
    n_categories: int  # known ones in all
    n_in_novel: int
    n_novel: int
    n_to_look: int  # unsure, or of a known category with less
    n_expected_right: float  # the sum of probabilities; a confirmed photo counts as 1

    def sentence(self) -> str:
        """One line for people.

        >>> Outlook(0, "discovered", 9, 0, 2, 3, 5, 2, 1, 2, 7.5).sentence()
        '9 new photos: 2 confirmed, about 3 are very likely of your 5 categories, 1 new category with 2 photos, 2 need \
a look.'
        >>> Outlook(1, "open", 4, 4, 0, 0, 5, 0, 0, 0, 0.0).sentence()
        '4 new photos, not looked at yet.'
        """
        photos = counted(self.n_photos, "new photo")
        if not self.n_photos:
            return "no new photos."
        if self.n_waiting == self.n_photos:
            return f"{photos}, not looked at yet."
        text = f"{photos}: {f'{self.n_confirmed:,} confirmed, ' if self.n_confirmed else ''}"
        if self.n_confirmed + self.n_waiting < self.n_photos:
            text += in_words(
                n_likely=self.n_likely,
                n_categories=self.n_categories,
                n_novel=self.n_novel,
                n_in_novel=self.n_in_novel,
                n_to_look=self.n_to_look,
            )
        else:
            text = text.removesuffix(", ")
        return f"{text}{f', {self.n_waiting:,} not looked at yet' if self.n_waiting else ''}."


def in_words(*, n_likely: int, n_categories: int, n_novel: int, n_in_novel: int, n_to_look: int) -> str:
    """What photos are, from calibrated probabilities.

    >>> in_words(n_likely=140, n_categories=30, n_novel=6, n_in_novel=74, n_to_look=146)
    'about 140 are very likely of your 30 categories, 6 new categories with 74 photos, 146 need a look'
    >>> in_words(n_likely=0, n_categories=0, n_novel=0, n_in_novel=0, n_to_look=1)
    'no new category, 1 needs a look'
    """
    likely = f"about {n_likely:,} {'is' if n_likely == 1 else 'are'} very likely of your "
    known = [likely + counted(n_categories, "category", "categories")] if n_categories else []
    new = f"{counted(n_novel, 'new category', 'new categories')} with {counted(n_in_novel, 'photo')}"
    look = f"{n_to_look:,} {'needs' if n_to_look == 1 else 'need'} a look"
    return ", ".join([*known, new if n_novel else "no new category", look])


def counted(count: int, one: str, many: str | None = None) -> str:
    """A number and its noun.

    >>> counted(1, "photo"), counted(2000, "category", "categories")
    ('1 photo', '2,000 categories')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def outlook(catalog: Catalog, *, stage: int | None = None) -> Outlook:
    """What is known of the photos of a stage, the last one by default, with all that was decided."""
    with catalog.snapshot() as db:
        at = db.execute(
            "SELECT stage, state FROM stages WHERE stage = COALESCE(?, (SELECT MAX(stage) FROM stages))", (stage,)
        ).fetchone()
        known = db.execute("SELECT COUNT(*) FROM categories WHERE state IN ('labeled', 'accepted')").fetchone()[0]
        row = db.execute(
            """
            SELECT COUNT(*) AS n_photos, COUNT(*) FILTER (WHERE a.photo IS NULL) AS n_waiting,
                COUNT(*) FILTER (WHERE a.is_confirmed) AS n_confirmed,
                COUNT(*) FILTER (WHERE NOT a.is_confirmed AND c.state = 'discovered') AS n_in_novel,
                COUNT(DISTINCT CASE WHEN c.state = 'discovered' THEN c.id END) AS n_novel,
                COUNT(*) FILTER (WHERE NOT a.is_confirmed AND c.state IN ('labeled', 'accepted')
                    AND a.probability >= ?2) AS n_likely,
                COALESCE(SUM(CASE WHEN a.is_confirmed THEN 1.0 WHEN a.category IS NULL THEN 0.0 ELSE a.probability END),
                    0.0) AS n_expected_right
            FROM photos p LEFT JOIN assignments a ON a.photo = p.id LEFT JOIN categories c ON c.id = a.category
            WHERE p.stage = ?1 AND p.broken IS NULL
            AND NOT EXISTS (SELECT 1 FROM labels l WHERE l.photo = p.id AND l.source = 'given')
            """,
            (at["stage"], VERY_LIKELY),
        ).fetchone()
    figures = dict(row)
    settled = ("n_waiting", "n_confirmed", "n_likely", "n_in_novel")
    n_to_look = figures["n_photos"] - sum(figures[name] for name in settled)
    return Outlook(at["stage"], at["state"], n_categories=known, n_to_look=n_to_look, **figures)
