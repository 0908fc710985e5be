"""Real encoders (a small random network), features by content, and the adaptation of the tail."""

import json

import numpy as np
import pytest
import torch
from workspace.painted_photos import PatternEncoder, paint_categories

from igcd.data.quarantine import Quarantine
from igcd.encoders.backbone import build_backbone
from igcd.encoders.encoder import Encoder
from igcd.encoders.trunk_cache import TrunkCache
from igcd.encoders.views import Transform
from igcd.errors import IgcdError
from igcd.methods.snn_density import SnnDensity
from igcd.tensor_files import read_tensors, write_tensors
from igcd.training import Optimization
from igcd.workspace import decisions, queries
from igcd.workspace.accept import accept_stage
from igcd.workspace.adapt import adapt_tail, current_encoder
from igcd.workspace.catalog import open_catalog
from igcd.workspace.discover import discover
from igcd.workspace.evidence import gather_evidence, with_features
from igcd.workspace.feature_store import read_features
from igcd.workspace.features import (
    PART_ON_CPU,
    AdaptedEncoder,
    FrozenEncoder,
    embed_missing,
    encoder_of,
    in_parts,
    open_tail,
)
from igcd.workspace.init import init_workspace
from igcd.workspace.photos import add_photos, find_photos, read_photos, write_photos
from igcd.workspace.predict import outside_photos, predict_images

BRIEF = Optimization(2, learning_rate=0.05, batch_size=32)


@pytest.fixture(scope="module")
def encoder():
    backbone = build_backbone("resnet10t", weights="random", size=32, tail="adapter", adapter_width=16)
    return Encoder(backbone, Transform(32), TrunkCache(None), n_views=2, quarantine=Quarantine(limit=1.0))


@pytest.fixture
def catalog(tmp_path):
    kinds = {"ash": (0, range(8)), "beech": (1, range(8)), "unlabeled": (7, range(10))}
    paint_categories(tmp_path / "photos", kinds)
    init_workspace(tmp_path / "ws", tmp_path / "photos", from_folders=True)
    with open_catalog(tmp_path / "ws") as catalog:
        yield catalog


def test_features_are_kept_by_content_and_encoder(catalog, encoder):
    frozen, pattern = FrozenEncoder(encoder), PatternEncoder()
    ids = list(range(1, 27))
    calls = []
    embed_missing(catalog, frozen, ids, progress=lambda done, todo: calls.append((done, todo)))
    assert calls[-1] == (26, 26)
    embed_missing(catalog, pattern, ids[:5])
    with catalog.snapshot() as db:
        stored = read_features(db, frozen.key, ids)
        assert len(stored) == 26 and len(read_features(db, pattern.key, ids)) == 5
    assert all(np.linalg.norm(feature) == pytest.approx(1, abs=1e-3) for feature in stored.values())
    calls.clear()
    embed_missing(catalog, frozen, ids, progress=lambda done, todo: calls.append((done, todo)))
    assert not calls


@pytest.mark.parametrize(
    "damage",
    [
        lambda feature: b"\x00\x7c" + feature[2:],
        lambda feature: feature[:-2],
        lambda feature: feature[:-1],
        lambda feature: bytes(len(feature)),
    ],
)
def test_a_damaged_feature_is_left_out_and_computed_again(catalog, damage):
    pattern, ids = PatternEncoder(), list(range(1, 27))
    embed_missing(catalog, pattern, ids)
    with catalog.transaction() as db:
        before = read_features(db, pattern.key, [3])[3]
        content_hash = db.execute("SELECT content_hash FROM photos WHERE id = 3").fetchone()[0]
        feature = db.execute("SELECT feature FROM features WHERE content_hash = ?", (content_hash,)).fetchone()[0]
        db.execute("UPDATE features SET feature = ? WHERE content_hash = ?", (damage(feature), content_hash))
    with catalog.snapshot() as db:
        evidence, features = with_features(db, gather_evidence(db, 0), pattern.key)
    assert 3 not in evidence.photo_ids and len(features) == 25
    n_seen = pattern.n_seen
    embed_missing(catalog, pattern, ids)
    assert pattern.n_seen == n_seen + 1
    with catalog.snapshot() as db:
        assert np.array_equal(read_features(db, pattern.key, [3])[3], before)


def test_another_network_has_another_key(encoder):
    other = build_backbone("resnet10t", weights="random", size=32, tail="adapter", adapter_width=16, seed=1)
    other_encoder = Encoder(other, Transform(32), TrunkCache(None), n_views=2)
    assert FrozenEncoder(encoder).key == FrozenEncoder(encoder).key != FrozenEncoder(other_encoder).key


@pytest.mark.parametrize("kind", ["frozen", "adapted"])
def test_a_few_images_at_a_time_are_in_the_network(encoder, kind):
    photo_encoder = (
        FrozenEncoder(encoder) if kind == "frozen" else AdaptedEncoder(encoder, encoder.backbone.new_tail(seed=3))
    )
    n = 2 * PART_ON_CPU + 5
    pixels = np.random.default_rng(0).integers(0, 256, (n, 32, 32, 3), dtype=np.uint8)
    sizes = []
    watch = encoder.backbone.trunk.register_forward_pre_hook(lambda _trunk, inputs: sizes.append(len(inputs[0])))
    found = photo_encoder(pixels)
    watch.remove()
    assert sizes == [PART_ON_CPU, PART_ON_CPU, 5]
    one_by_one = np.concatenate([photo_encoder(pixels[i : i + 1]) for i in range(n)])
    np.testing.assert_allclose(found, one_by_one, rtol=0, atol=1e-5)


def test_parts_keep_order_and_none_is_none():
    pixels = np.arange(7, dtype=np.uint8).reshape(7, 1, 1, 1)
    for n_at_once in (1, 3, 7, 100):
        assert in_parts(lambda part: part.reshape(-1, 1) * 2.0, pixels, n_at_once)[:, 0].tolist() == [
            0,
            2,
            4,
            6,
            8,
            10,
            12,
        ]
    assert in_parts(lambda part: part.reshape(-1, 1) * 2.0, pixels[:0], 16).shape == (0, 1)


def test_the_workspace_says_which_encoder(tmp_path):
    paint_categories(tmp_path / "photos", {"x": (0, range(2))})
    chosen = {"backbone": "resnet10t", "weights": "random", "size": 32, "cache": None}
    init_workspace(tmp_path / "ws", tmp_path / "photos", encoder=chosen)
    with open_catalog(tmp_path / "ws") as catalog:
        assert encoder_of(catalog).backbone.name == "resnet10t" and encoder_of(catalog).transform.size == 32


def test_a_workspace_that_noted_no_size_keeps_the_former_one(tmp_path):
    paint_categories(tmp_path / "photos", {"x": (0, range(2))})
    init_workspace(tmp_path / "ws", tmp_path / "photos")
    with open_catalog(tmp_path / "ws") as catalog:
        with catalog.transaction() as db:
            db.execute("""UPDATE settings SET value = '{"backbone": "resnet10t", "weights": "random"}'""")
        assert encoder_of(catalog).transform.size == 112


def test_adapting_changes_the_encoder_and_goes_on_from_stage_to_stage(catalog, encoder, tmp_path):
    epochs = []
    path = adapt_tail(catalog, encoder, first_stage=BRIEF, later_stages=BRIEF, after_epoch=epochs.append)
    assert [report.epoch for report in epochs] == [0, 1]
    assert isinstance(current_encoder(catalog, encoder), FrozenEncoder)  # as long as nothing was discovered with it
    adapted_encoder = AdaptedEncoder(encoder, open_tail(encoder, path))
    report = discover(catalog, adapted_encoder, adapted=path)
    assert report.n_new == 10
    assert current_encoder(catalog, encoder).key == adapted_encoder.key != FrozenEncoder(encoder).key
    assert [file.name for file in (catalog.folder / "model").iterdir()] == [path.name]  # the epochs are gone

    with pytest.raises(IgcdError, match="no new photos to adapt to"):
        adapt_tail(catalog, encoder)
    for category in queries.queue(catalog):
        decisions.name(catalog, category.id, f"kind {category.id}", author="ann")
    accept_stage(catalog, author="ann")
    paint_categories(tmp_path / "june", {"x": (9, range(8))})
    add_photos(catalog, [tmp_path / "june"])
    second = adapt_tail(catalog, encoder, first_stage=BRIEF, later_stages=BRIEF)
    assert second != path
    assert discover(catalog, AdaptedEncoder(encoder, open_tail(encoder, second)), adapted=second).n_new == 8
    assert current_encoder(catalog, encoder).key != adapted_encoder.key


def test_adapting_again_knows_of_merges_and_carries_weights_only(catalog, encoder, tmp_path, monkeypatch):
    methods, stages, loaded = [], [], []

    class Watched(SnnDensity):
        def load_state_dict(self, tensors, metadata):
            loaded.append(tensors)
            super().load_state_dict(tensors, metadata)

        def learn(self, stage):
            methods.append(self)
            stages.append(stage)
            super().learn(stage)

    monkeypatch.setattr("igcd.workspace.adapt.SnnDensity", Watched)
    paint_categories(tmp_path / "more", {"oak": (2, range(8))})
    oak = labeled(catalog, tmp_path / "more", "oak")
    first = adapt_tail(catalog, encoder, first_stage=BRIEF, later_stages=BRIEF)
    assert set(stages[0].category_names) == {"1", "2", str(oak)}
    discover(catalog, AdaptedEncoder(encoder, open_tail(encoder, first)), adapted=first)
    accept_stage(catalog, author="ann")
    decisions.merge(catalog, oak, 2, author="ann")
    paint_categories(tmp_path / "june", {"x": (9, range(8))})
    add_photos(catalog, [tmp_path / "june"])
    second = adapt_tail(catalog, encoder, first_stage=BRIEF, later_stages=BRIEF)

    assert stages[1].category_names == ("1", "2") and set(methods[1].clusters_of_categories()) == {0, 1}
    tensors, text = methods[1].state_dict()
    category_of = {photo.id: photo.category for photo in queries.photos(catalog, range(1, 51))}
    cluster_of = methods[1].clusters_of_categories()
    for part in ("support_images", "replay"):
        held = zip(json.loads(text[f"{part}.image_ids"]), tensors[f"{part}.categories"].tolist(), strict=True)
        of_known = {(category_of[int(photo)], cluster) for photo, cluster in held if cluster in cluster_of.values()}
        assert of_known == {(1, cluster_of[0]), (2, cluster_of[1])}
    for path in (first, second):
        tensors, text = read_tensors(path)
        assert {name.split(".")[0] for name in tensors} == {"model"} and set(text) == {"workspace.n_stages"}
    assert read_tensors(second)[1] == {"workspace.n_stages": "2"}
    assert all(torch.equal(loaded[-1][name], tensor) for name, tensor in read_tensors(first)[0].items())


def labeled(catalog, folder, name):
    """Adds photos with a label, as `init` does; the id of their category."""
    found = find_photos([folder], workspace=catalog.folder)
    write_photos(catalog, read_photos(found), labels=dict.fromkeys(found, name))
    return next(category.id for category in queries.categories(catalog) if category.name == name)


def test_adapting_needs_labels(tmp_path, encoder):
    paint_categories(tmp_path / "photos", {"x": (0, range(3))})
    init_workspace(tmp_path / "ws", tmp_path / "photos")
    with open_catalog(tmp_path / "ws") as catalog, pytest.raises(IgcdError, match="labeled photos of two categories"):
        adapt_tail(catalog, encoder)


def test_predicting_images_that_are_in_no_catalog(catalog, tmp_path):
    pattern = PatternEncoder()
    with pytest.raises(IgcdError, match="knows nothing yet"):
        predict_images(catalog, pattern, *outside_photos([tmp_path / "photos"]))
    discover(catalog, pattern)
    paint_categories(tmp_path / "other", {"x": (0, range(50, 53)), "y": (7, range(50, 53)), "z": (99, range(1))})
    (tmp_path / "other" / "broken.jpg").write_text("no image")
    with catalog.snapshot() as db:
        before = db.total_changes
        answers = predict_images(catalog, pattern, *outside_photos([tmp_path / "other"]))
        assert db.total_changes == before
    by_name = {answer.image.rsplit("/", 1)[-1]: answer for answer in answers}
    assert len(by_name) == 8 and by_name["broken.jpg"].error == "not an image"
    known = [by_name[f"00-{i:03d}.jpg"].category for i in range(50, 53)]
    assert set(known) <= {"ash", None} and known.count("ash") >= 2  # one may be farther out than any labeled photo
    novel = {(by_name[f"07-{i:03d}.jpg"].category, by_name[f"07-{i:03d}.jpg"].is_novel) for i in range(50, 53)}
    assert novel <= {("new 3", True), (None, False)} and ("new 3", True) in novel
    assert by_name["99-000.jpg"].category is None and not by_name["99-000.jpg"].is_novel


def test_predicting_nothing(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(IgcdError, match="no images in"):
        outside_photos([tmp_path / "empty"])
    with pytest.raises(IgcdError, match="does not exist"):
        outside_photos([tmp_path / "nowhere"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda tensors: tensors.clear(), "does not hold what this version of igcd writes"),
        (lambda tensors: next(iter(tensors.values())).fill_(torch.nan), "not finite"),
    ],
)
def test_a_damaged_tail_is_one_sentence(encoder, tmp_path, change, words):
    path = tmp_path / "adapted.safetensors"
    tensors = {f"model.tail.{name}": part.clone() for name, part in encoder.backbone.new_tail().state_dict().items()}
    write_tensors(path, tensors, {})
    open_tail(encoder, path)
    change(tensors)
    write_tensors(path, tensors, {})
    with pytest.raises(IgcdError, match=f"adapted.*{words}"):
        open_tail(encoder, path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(IgcdError, match=r"adapted.*; restore it from a backup"):
        open_tail(encoder, path)
