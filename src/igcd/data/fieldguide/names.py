"""Invented names: Latin-like binomials, each used once, and what people call the species."""

from igcd.data.fieldguide.bodies.plan import BodyPlan
from igcd.data.fieldguide.dice import Dice

_STARTS = tuple("b br c cl d dr f fl g gr h l m n p pl qu r s st t tr v z".split())  # noqa: SIM905
_VOWELS = tuple("a e i o u ae".split())  # noqa: SIM905
_LINKS = tuple("l r n m v lv nd rm st ss ll rn b d t c".split())  # noqa: SIM905
# Genitives and participles: right after a genus of any gender.
_EPITHETS = tuple(
    """aurorae nivis silvae montis maris lunae solis nebulae fontis rupis vallis pluviae umbrae caeli ignis hiemis
    aestatis veris autumni vesperi noctis diei fluminis lacus paludis deserti arenae prati horti collis tundrae
    elegans splendens fulgens nitens micans errans vagans natans volans repens canens ridens virens rubens candens
    pallens florens crescens dormiens saltans latens ardens scintillans tremens bicolor concolor discolor versicolor
    unicolor felix simplex velox audax vivax fallax tenax minor maior melior clarior florae faunae amicorum viatoris
    pastoris piscatoris poetae nautae cometae stellae gemmae coronae silentii memoriae""".split()  # noqa: SIM905
)
_QUALITIES = tuple(
    """Common Lesser Greater Dawn Dusk Meadow River Hill Shy Bold Painted Gilded Misty Northern Southern Wandering
    Singing Velvet Silken Frosted Royal Hidden Dancing Gentle Sunlit Moonlit Silver Stony Marsh Island Heath Harbor
    Lantern Festive Modest Noble Quiet Restless Starry Thicket Twilight Valley Winter Summer Autumn Orchard""".split()  # noqa: SIM905
)


class Registry:
    """Gives names and remembers them."""

    def __init__(self, dice: Dice) -> None:
        self._dice = dice
        self._taken: set[str] = set()

    def genus(self, plan: BodyPlan) -> str:
        """A genus name with an ending that fits the body plan."""
        while True:
            stem = self._dice.pick(_STARTS) + self._dice.pick(_VOWELS) + self._dice.pick(_LINKS)
            if self._dice.chance(0.35):
                stem += self._dice.pick(_VOWELS[:5]) + self._dice.pick(_LINKS[:6])
            ending = self._dice.pick(plan.genus_endings)
            link = "" if ending[0] in "aeiou" else "o" if plan.kingdom != "Plantae" else "i"
            name = (stem + link + ending).capitalize()
            if name not in self._taken:
                self._taken.add(name)
                return name

    def epithets(self, n: int) -> list[str]:
        """Different second names for the species of one genus."""
        return self._dice.shuffled(_EPITHETS)[:n]

    def common_name(self, nouns: str, pigment: str) -> str:
        """A name in English that mentions a color of the species."""
        for attempt in range(1_000):
            name = f"{self._dice.pick(_QUALITIES)} {pigment.capitalize()} {nouns.capitalize()}"
            if attempt >= 20:  # the short names of this kind are nearly used up
                name = f"{self._dice.pick(_QUALITIES)} {name}"
            if name not in self._taken:
                break
        self._taken.add(name)
        return name


def family_name(type_genus: str, kingdom: str) -> str:
    """The family of a genus, as botanists and zoologists form it.

    >>> family_name("Velornis", "Animalia"), family_name("Brelianthus", "Plantae")
    ('Velornidae', 'Brelianthaceae')
    """
    stem = type_genus
    for ending in ("us", "is", "um", "on", "ia", "a", "e", "o", "x", "s"):
        if stem.endswith(ending):
            stem = stem[: -len(ending)]
            break
    return stem + ("idae" if kingdom == "Animalia" else "aceae")
