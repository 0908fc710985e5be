"""All body plans."""

from igcd.data.fieldguide.bodies.beetle import BEETLE
from igcd.data.fieldguide.bodies.bird import BIRD
from igcd.data.fieldguide.bodies.butterfly import BUTTERFLY
from igcd.data.fieldguide.bodies.dragonfly import DRAGONFLY
from igcd.data.fieldguide.bodies.fish import FISH
from igcd.data.fieldguide.bodies.flower import FLOWER
from igcd.data.fieldguide.bodies.jellyfish import JELLYFISH
from igcd.data.fieldguide.bodies.lizard import LIZARD
from igcd.data.fieldguide.bodies.mushroom import MUSHROOM
from igcd.data.fieldguide.bodies.plan import BodyPlan
from igcd.data.fieldguide.bodies.snail import SNAIL
from igcd.data.fieldguide.bodies.sprig import SPRIG
from igcd.data.fieldguide.bodies.turtle import TURTLE

BODY_PLANS: tuple[BodyPlan, ...] = (
    BIRD, FLOWER, FISH, BUTTERFLY, MUSHROOM, LIZARD, BEETLE, SPRIG, JELLYFISH, SNAIL, DRAGONFLY, TURTLE,
)  # fmt: skip
