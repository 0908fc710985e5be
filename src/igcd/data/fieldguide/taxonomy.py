"""Families, genera and species. Two species of one genus differ in one or two traits, and one can see them."""

from collections.abc import Mapping
from dataclasses import dataclass

from igcd.data.fieldguide.bodies.every import BODY_PLANS
from igcd.data.fieldguide.bodies.plan import BodyPlan
from igcd.data.fieldguide.brush import PIGMENTS
from igcd.data.fieldguide.dice import Dice
from igcd.data.fieldguide.names import Registry, family_name

SPECIES_PER_GENUS = (3, 4, 4, 5)
GENERA_PER_FAMILY = (1, 1, 2)


@dataclass(frozen=True)
class Species:
    """One species: its name, its place in the system, its traits."""

    plan: BodyPlan
    family: str
    genus: str
    epithet: str
    common_name: str
    traits: Mapping[str, str]

    @property
    def name(self) -> str:
        """The binomial."""
        return f"{self.genus} {self.epithet}"

    @property
    def lineage(self) -> tuple[str, ...]:
        """Kingdom, phylum, class, order, family, genus, epithet."""
        plan = self.plan
        return (plan.kingdom, plan.phylum, plan.class_name, plan.order, self.family, self.genus, self.epithet)


def make_species(n_species: int, seed: int) -> tuple[Species, ...]:
    """That many species, in the order of their lineages."""
    dice = Dice(f"taxonomy {seed}")
    registry = Registry(dice)
    genus_sizes = _genus_sizes(n_species, dice)
    plans = dice.shuffled(BODY_PLANS)
    seen_genera: set[tuple[str, ...]] = set()
    species: list[Species] = []
    n_families = 0
    while genus_sizes:
        plan = plans[n_families % len(plans)]
        n_families += 1
        family_traits = _pick_traits(plan.family_traits, dice)
        family = ""
        for _ in range(min(dice.pick(GENERA_PER_FAMILY), len(genus_sizes))):
            genus = registry.genus(plan)
            family = family or family_name(genus, plan.kingdom)
            looks = _looks_of_genus(plan, family_traits, genus_sizes.pop(), seen_genera, dice)
            noun = dice.pick(plan.nouns)
            for epithet, look in zip(registry.epithets(len(looks)), looks, strict=True):
                pigment = dice.pick([option for option in look.values() if option in PIGMENTS])
                species.append(Species(plan, family, genus, epithet, registry.common_name(noun, pigment), look))
    return tuple(sorted(species, key=lambda one: one.lineage))


def _genus_sizes(n_species: int, dice: Dice) -> list[int]:
    sizes: list[int] = []
    while sum(sizes) < n_species:
        sizes.append(min(dice.pick(SPECIES_PER_GENUS), n_species - sum(sizes)))
    if sizes[-1] == 1 and len(sizes) > 1:  # no genus with a single species
        sizes.pop()
        sizes[-1] += 1
    return sizes


def _pick_traits(options: Mapping[str, tuple[str, ...]], dice: Dice) -> dict[str, str]:
    return {trait: dice.pick(choices) for trait, choices in options.items()}


def _looks_of_genus(
    plan: BodyPlan, family_traits: Mapping[str, str], n: int, seen_genera: set[tuple[str, ...]], dice: Dice
) -> list[dict[str, str]]:
    """Looks that agree in all but two traits and are all distinguishable, different from every other genus."""
    while True:
        common = {**family_traits, **_pick_traits(plan.species_traits, dice)}
        telling = _telling_traits(plan, dice)
        signature = (plan.name, *(f"{trait}={common[trait]}" for trait in common if trait not in telling))
        if signature in seen_genera:
            continue
        looks: dict[tuple[str, ...], dict[str, str]] = {}
        for _ in range(40):
            look = {**common, **{trait: dice.pick(plan.species_traits[trait]) for trait in telling}}
            if colors_differ(look):
                looks.setdefault(visible(plan, look), look)
            if len(looks) == n:
                seen_genera.add(signature)
                return list(looks.values())


def _telling_traits(plan: BodyPlan, dice: Dice) -> tuple[str, str]:
    """Two traits that tell the species of a genus apart, one of them a shape or a marking."""
    traits = dice.shuffled(list(plan.species_traits))
    form = next(trait for trait in traits if plan.species_traits[trait][0] not in PIGMENTS)
    return form, next(trait for trait in traits if trait != form)


def colors_differ(look: Mapping[str, str]) -> bool:
    """Whether no pigment occurs twice: a marking in the color of what it marks would not be seen."""
    pigments = [option for option in look.values() if option in PIGMENTS]
    return len(set(pigments)) == len(pigments)


def visible(plan: BodyPlan, look: Mapping[str, str]) -> tuple[str, ...]:
    """What one can see of a look: a trait that others hide counts as none."""
    return tuple(
        "" if trait in plan.hidden_when and all(look[t] == o for t, o in plan.hidden_when[trait]) else option
        for trait, option in look.items()
    )
