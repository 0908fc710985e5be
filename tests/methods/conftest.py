"""A small random network, streams of a few digits, and a method on them: what the tests of methods share.

A test module that defines a fixture of the same name has its own.
"""

import pytest
from lightning_fabric import Fabric

from igcd.data.sources import load_source
from igcd.encoders.backbone import build_backbone
from igcd.encoders.encoder import Encoder
from igcd.encoders.trunk_cache import TrunkCache
from igcd.encoders.views import Transform
from igcd.method_registry import METHODS
from igcd.methods.method import Context
from igcd.methods.novel_count import EstimatedCount, GivenCounts
from igcd.streams.build import split_by_category
from igcd.streams.protocols import StreamSpec
from igcd.streams.stream import SplitStream
from igcd.training import Optimization


@pytest.fixture(scope="module", autouse=True)
def _quick(quick_learning):
    """`test_projector.py` has a projector of full width."""


@pytest.fixture(scope="session")
def encoder():
    backbone = build_backbone("resnet10t", weights="random", size=32, tail="adapter", adapter_width=16)
    return Encoder(backbone, Transform(32), TrunkCache(None), n_views=2)


@pytest.fixture(scope="session")
def digit_stream():
    """A function from a protocol to a stream: 4, 2 and 2 categories; static has 5 labeled and 5 novel ones."""
    digits = load_source("digits")

    def make(protocol):
        spec = StreamSpec(
            protocol=protocol,
            categories_per_stage=(5, 5) if protocol == "static" else (4, 2, 2),
            images_labeled=16,
            images_new=16,
            images_old=6,
            test_per_category=4,
        )
        return SplitStream(split_by_category(digits, spec, seed=0), digits.images)

    return make


@pytest.fixture(scope="session")
def stages(digit_stream):
    """A function from a protocol to its stages and their truth."""
    return lambda protocol: list(digit_stream(protocol))


@pytest.fixture(scope="session")
def make_method(encoder):
    """A function from a class and its options to a method.

    It is given the true counts of `digit_stream`, or those asked for; one that finds the number by itself is not.
    """
    finds_number = tuple(entry.load() for entry in METHODS.values() if entry.own_count is None)

    def make(kind, *, seed=0, counts=None, checkpoint=None, n_epochs=1, encoder=encoder, **options):
        brief = Optimization(n_epochs, learning_rate=0.05, batch_size=64)
        context = Context(encoder, Fabric(accelerator="cpu", devices=1), seed, checkpoint)
        count = GivenCounts((0, 2, 2) if counts is None else counts)
        if counts is None and issubclass(kind, finds_number):
            count = EstimatedCount("density")
        return kind(context, first_stage=brief, later_stages=brief, count_novel=count, **options)

    return make


class InMemory:
    """A checkpoint of one stage that remembers every epoch."""

    def __init__(self, n_done=0, state=None):
        self.saved = {n_done: state or {}}

    def load(self):
        return max(self.saved), self.saved[max(self.saved)]

    def save(self, n_epochs_done, state):
        self.saved[n_epochs_done] = state


@pytest.fixture
def in_memory():
    return InMemory
