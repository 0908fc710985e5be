"""Torture of what reads recipes, arguments, and the records that runs and comparisons leave behind."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tools.torture.formats import (
    json_text,
    mutate_csv,
    mutate_json,
    mutate_json_lines,
    mutate_lines,
    mutate_npy,
    mutate_split,
    mutate_tree,
    mutate_yaml,
    table_mutation,
)
from tools.torture.judging import require
from tools.torture.reader import Reader, argument, files_below
from tools.torture.readers_of_data import picture_bytes, sample_split

from igcd.cli.build import parse_options, parse_spec
from igcd.cli.count import read_features, read_labels
from igcd.comparison.folder import Note, claim, read_note, write_note
from igcd.comparison.ledger import read_ledger
from igcd.comparison.plan import method_variants, option_variants, parse_seeds, plan, read_variants
from igcd.config import parse_recipe, read_recipe
from igcd.data.dataset import is_plain_name
from igcd.metrics.predictions import read_predictions, write_predictions
from igcd.metrics.scorecard import scorecard
from igcd.records import read_json, write_json
from igcd.report.comparison_table import parse_results
from igcd.report.page import write_report
from igcd.report.run_records import read_run
from igcd.streams.protocols import StreamSpec
from igcd.streams.split import format_split
from igcd.streams.stage_rules import PlaceAndYearSpec, parse_stages
from igcd.types import Predictions
from igcd.workspace.names import parse_name

RECIPE = """
# A recipe of two stages.
stream:
  source: digits
  options: {}
  by_category: {protocol: igcd-l, categories_per_stage: [5, 3], images_labeled: 24, images_new: 24, images_old: 8}
encoder: {backbone: resnet10t, weights: random, size: 48, n_views: 2, cache: null, cache_gigabytes: 1.5}
training:
  first_stage: {epochs: 2, batch_size: 32}
  later_stages: {epochs: 2, batch_size: 32, learning_rate: 0.03}
method: {name: snn_density, features: dual, K: 6, K_d: 12}
others: {gm: {}, simgcd: {}}
n_novel: given
seed: 1
max_broken: 0.1
devices: 1
"""
VARIANTS = """
paper: {cifar100-mi: density_K.cifar100}
variants:
  one: [method.K=5]
  two: {set: [method.K=6, seed=1], paper: backbone.vit_b/gm}
"""
ROWS = [
    *[(0, "test", "owl", "0", "Old")] * 3,
    (0, "test", "fox", "1", "Old"),
    *[(1, "test", "owl", "0", "Old")] * 2,
    (1, "test", "fox", "1", "S-0"),
    *[(1, "test", "newt", "7", "New")] * 3,
    *[(1, "unlabeled", "newt", "7", "New")] * 4,
    (1, "unlabeled", "owl", "-1", "Old"),
]


def predictions() -> Predictions:
    """What a run of two stages predicted."""
    stage, split, category, cluster, group = zip(*ROWS, strict=True)
    ids = tuple(f"{name}/{at}.png" for at, name in enumerate(category))
    return Predictions(np.array(stage), split, ids, category, cluster, group)


def run_folder(scratch: Path) -> dict[str, bytes]:
    """The files of a small finished run, as `igcd report` reads them."""
    write_predictions(predictions(), scratch / "predictions.csv")
    results = scorecard(predictions()).to_json()
    config = read_config(scratch)
    for scores in results["stages"]:
        scores |= {
            "labeled_images": 5,
            "unlabeled_images": 5,
            "seconds": {"learn": 83.0, "predict": 1.5},
            "kept": {"replay_images": 6, "support_images": 10, "images": 12, "pseudo_labeled": 3, "bytes": 4321},
            "opened": scores["stage"],
        }
    results |= {
        "stream": "wood-igcd-l",
        "method": "snn_density",
        "seed": 0,
        "seconds": {"learn": 166.0, "predict": 3.0},
        "peak_memory_bytes": 1_200_000_000,
        "set_aside": {"truncated": 2},
        "versions": {"igcd": "0.1.0"},
        "config": config,
    }
    found = {
        "cluster": 7,
        "nearest_known": 0,
        "size": 4,
        "category": "newt",
        "purity": 0.8,
        "images": ["gallery/f.jpg"],
    }
    files: dict[str, bytes] = {
        "predictions.csv": (scratch / "predictions.csv").read_bytes(),
        "config.json": json.dumps(config).encode(),
        "results.json": json.dumps(results).encode(),
        "events.jsonl": b'{"time": "2026-01-02T03:04:05+00:00", "event": "scores"}\n',
        "split.tsv": format_split(sample_split()),
        "places.csv": b"stage,latitude,longitude,images\n0,48.5,2.5,3\n1,-33.5,151.5,4\n",
        "taxonomy.csv": b"category,kingdom,phylum,class,order,family,genus,common_name\n"
        + b"".join(f"{name},A,B,C,D,E,F,{name}\n".encode() for name in ("owl", "fox", "newt")),
        "gallery/f.jpg": picture_bytes("JPEG"),
    }
    for stage in (0, 1):
        record = {
            "stage": stage,
            "known_clusters": {"0": "owl", "1": "fox"},
            "discoveries": [found] if stage else [],
            "examples": {"owl": ["gallery/f.jpg"]},
        }
        files[f"stages/stage-{stage}.json"] = json.dumps(record).encode()
    return files


def read_config(scratch: Path) -> dict[str, Any]:
    """The config that a run of the sample recipe writes."""
    (scratch / "r.yaml").write_text(RECIPE)
    config: dict[str, Any] = read_recipe(str(scratch / "r.yaml")).model_dump(mode="json")
    return config


def check_recipe(folder: Path) -> None:
    """A recipe that is read is written and read again as the same."""
    recipe = read_recipe(str(folder / "r.yaml"))
    config = json.loads(json.dumps(recipe.model_dump(mode="json"), allow_nan=False))
    require(
        parse_recipe(config, "config.json").model_dump(mode="json") == config, "a recipe is the same when read again"
    )


def check_predictions(folder: Path) -> None:
    """Predictions that are read can be scored, and are written as they were."""
    rows = read_predictions(folder / "p.csv")
    json.dumps(scorecard(rows).to_json(), allow_nan=False)
    write_predictions(rows, folder / "again.csv")
    require(
        read_predictions(folder / "again.csv").image_id == rows.image_id, "predictions are the same when read again"
    )


def check_report(folder: Path) -> None:
    """A report is one whole page."""
    page = write_report(folder).read_text(encoding="utf-8")
    require(page.rstrip().endswith("</html>"), "the page is whole")
    require("<script>alert(1)" not in page, "no script of the input in the page")


def _comparison_folder(scratch: Path) -> tuple[dict[str, bytes], Callable[[Path], None]]:
    """The files that say whose a comparison's folder is, and how they are read."""
    recipe = scratch / "r.yaml"

    def read(out: Path) -> None:
        comparison = plan(str(recipe), [], method_variants(["kmeans"], None), [0], out)
        claim(out, comparison)
        for cell in comparison.cells:
            read_note(cell)

    out = scratch / "comparison"
    comparison = plan(str(recipe), [], method_variants(["kmeans"], None), [0], out)
    claim(out, comparison)
    for cell in comparison.cells:
        write_note(cell, Note(12.5, "abc1234"))
        write_json(cell.folder / "config.json", cell.config)
    return files_below(out), read


def record_readers(scratch: Path) -> list[Reader]:
    """The readers, each with its sample; `scratch` is a folder for making them."""
    scratch.mkdir(parents=True, exist_ok=True)
    run = run_folder(scratch)
    mutated = {
        "results.json": mutate_json,
        "config.json": mutate_json,
        "stages/stage-1.json": mutate_json,
        "predictions.csv": mutate_csv,
        "events.jsonl": mutate_json_lines,
        "split.tsv": mutate_split,
        "places.csv": mutate_csv,
        "taxonomy.csv": mutate_csv,
    }
    rows = np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)
    np.save(scratch / "f.npy", rows)
    np.save(scratch / "l.npy", np.array([0, 0, 1, 1, *[-1] * 8]))
    np.save(scratch / "n.npy", np.array(["a", "a", "b", *[""] * 9]))
    names = b"label,other\n" + b"a,1\na,2\nb,3\n" + b",4\n" * 9

    def numbers(folder: Path) -> None:
        found = read_features(folder / "f.npy")
        require(found.ndim == 2 and np.isfinite(found.astype(np.float32)).all(), "features are finite")

    def mutate_spec(content: bytes, rng: Any) -> bytes:  # noqa: ANN401 - random.Random
        return (
            json_text(mutate_tree(json.loads(content), rng))
            .encode("utf-8", "surrogatepass")
            .replace(b"[" * 3000, b"[" * 20)
            .replace(b"]" * 3000, b"]" * 20)
        )

    def overridden(text: str) -> None:
        recipe = read_recipe("demo", [text.split("|")[0]])
        json.dumps(recipe.model_dump(mode="json"), allow_nan=False)

    keys = "|".join(
        ("seed=3", "method.K=5", "encoder.size=64", "training.first_stage.epochs=2", "method.name=gm", "devices=1")
    )

    def mutate_override(content: bytes, rng: Any) -> bytes:  # noqa: ANN401 - random.Random
        one = rng.choice(content.split(b"|"))
        return table_mutation("=", quoted=False)(one, rng).strip(b"\n")

    comparison, read_comparison = _comparison_folder(scratch)
    return [
        Reader("comparison folder", comparison, dict.fromkeys(comparison, mutate_json), read_comparison),
        Reader("recipe", {"r.yaml": RECIPE.encode()}, {"r.yaml": mutate_yaml}, check_recipe, 2.0),
        Reader(
            "variants",
            {"v.yaml": VARIANTS.encode()},
            {"v.yaml": mutate_yaml},
            lambda f: read_variants(str(f / "v.yaml"), "cifar100-mi"),
        ),
        argument("override", keys, mutate_override, overridden),
        argument("seeds", "0,1,2-4", table_mutation(",", quoted=False), parse_seeds),
        argument("stages", "2008-2016:Europe,Asia;2017:Oceania", table_mutation(":", quoted=False), parse_stages),
        argument("--over", "method.K=5,10,auto", table_mutation("=", quoted=False), option_variants),
        argument("--option", "wnids=list.txt", table_mutation("=", quoted=False), lambda text: parse_options([text])),
        argument("category name", "Parus/Parus major", table_mutation("/", quoted=False), check_name),
        argument(
            "stream spec",
            json.dumps({"protocol": "igcd-l", "categories_per_stage": [4, 2], "images_old": 5, "held_out": 0.2}),
            mutate_spec,
            lambda text: of_json_or_nothing(text, StreamSpec),
        ),
        argument(
            "place and year spec",
            json.dumps({"protocol": "igcd-l", "min_images": 1, "images_per_stage": 50, "held_out": 0.2}),
            mutate_spec,
            lambda text: of_json_or_nothing(text, PlaceAndYearSpec),
        ),
        Reader("predictions", {"p.csv": run["predictions.csv"]}, {"p.csv": mutate_csv}, check_predictions),
        Reader("records of a run", run, mutated, read_run, 2.0),
        Reader("report of a run", run, mutated, check_report, 0.05),
        Reader(
            "config of a run",
            {"config.json": run["config.json"]},
            {"config.json": mutate_json},
            lambda f: parse_recipe(read_json(f / "config.json"), "config.json"),
        ),
        Reader(
            "results in a comparison",
            {"results.json": run["results.json"]},
            {"results.json": mutate_json},
            lambda f: parse_results(read_json(f / "results.json"), "results.json"),
        ),
        Reader(
            "ledger",
            {"l.jsonl": b"".join(b'{"variant": "K=%d", "seed": 1, "recipe": "r", "M_d": 5.0}\n' % i for i in range(3))},
            {"l.jsonl": mutate_json_lines},
            lambda f: read_ledger(f / "l.jsonl"),
        ),
        Reader("count: features", {"f.npy": (scratch / "f.npy").read_bytes()}, {"f.npy": mutate_npy}, numbers),
        Reader(
            "count: labels npy",
            {"l.npy": (scratch / "l.npy").read_bytes()},
            {"l.npy": mutate_npy},
            lambda f: read_labels(f / "l.npy", n=12),
        ),
        Reader(
            "count: names npy",
            {"l.npy": (scratch / "n.npy").read_bytes()},
            {"l.npy": mutate_npy},
            lambda f: read_labels(f / "l.npy", n=12),
        ),
        Reader("count: labels csv", {"l.csv": names}, {"l.csv": mutate_csv}, lambda f: read_labels(f / "l.csv", n=12)),
        Reader(
            "count: labels text",
            {"l.txt": b"a\nb\n\n-1\n"},
            {"l.txt": mutate_lines},
            lambda f: read_labels(f / "l.txt", n=4),
        ),
    ]


def of_json_or_nothing(text: str, kind: Any) -> None:  # noqa: ANN401 - any section
    """A spec from the options of a command; what is no JSON never gets that far."""
    try:
        values = json.loads(text)
    except ValueError:
        return
    if isinstance(values, dict) and all(isinstance(key, str) and key in kind.model_fields for key in values):
        parse_spec(kind, values)


def check_name(text: str) -> None:
    """A name that is taken is text that can be shown and written down."""
    name = parse_name(text)
    require(is_plain_name(name.full) and parse_name(name.full) == name, "a name stays the same when read again")
    require(any(letter.isprintable() and not letter.isspace() for letter in name.full), "something of a name is seen")
