"""Small runs on disk, as `igcd run` leaves them behind."""

import csv
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from small_run import ROWS, Row, discovery, jpeg, predictions_of, write_pictures

from igcd.data.taxonomy import Taxon, format_taxonomy
from igcd.metrics.predictions import write_predictions
from igcd.metrics.scorecard import scorecard


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., Path]:
    """Writes the small run, or one that differs from it as asked."""

    def make(
        rows: Sequence[Row] = ROWS,
        *,
        stream: str = "wood-igcd-l",
        discoveries: dict[int, list[dict[str, Any]]] | None = None,
        names: tuple[str, str] = ("owl", "fox"),
        spec: dict[str, Any] | None = None,
        places: Sequence[tuple[int, float, float, int]] | None = None,
        taxa: Sequence[Taxon] | None = None,
        changes: dict[str, Any] | None = None,
        pictures: bool = False,
    ) -> Path:
        folder = tmp_path / "run"
        (folder / "gallery").mkdir(parents=True)
        (folder / "stages").mkdir()
        config = {
            "stream": {"source": "wood"},
            "encoder": {"backbone": "tf_efficientnet_lite0", "weights": "pip", "size": 96},
            "method": {"name": "snn_density", "features": "dual"},
            "seed": 0,
        }
        predictions = predictions_of(rows)
        write_predictions(predictions, folder / "predictions.csv")
        results = scorecard(predictions).to_json()
        discoveries = {1: [discovery(7)]} if discoveries is None else discoveries
        examples = {name: [f"gallery/known-{code}-0.jpg"] for code, name in enumerate(names)}
        for name in [*(f"known-{code}-0" for code in range(2)), "found-7-0", "found-7-1"]:
            (folder / "gallery" / f"{name}.jpg").write_bytes(jpeg())
        for scores in results["stages"]:
            stage = scores["stage"]
            scores |= {
                "labeled_images": 5,
                "unlabeled_images": sum(row[0] == stage and row[1] == "unlabeled" for row in rows),
                "seconds": {"learn": 83.0, "predict": 1.5},
                "kept": {"replay_images": 6, "support_images": 10, "images": 12, "pseudo_labeled": 3, "bytes": 4321},
                "opened": len(discoveries.get(stage, [])),
            }
            record = {
                "stage": stage,
                "known_clusters": {str(code): name for code, name in enumerate(names)},
                "discoveries": discoveries.get(stage, []),
                "examples": examples,
            }
            (folder / "stages" / f"stage-{stage}.json").write_text(json.dumps(record))
        results |= {
            "stream": stream,
            "method": "snn_density",
            "seed": 0,
            "seconds": {"learn": 166.0, "predict": 3.0},
            "peak_memory_bytes": 1_200_000_000,
            "set_aside": {"truncated": 2, "file is empty": 1},
            "versions": {"igcd": "0.1.0", "python": "3.11.7"},
            "config": config,
        } | (changes or {})
        (folder / "config.json").write_text(json.dumps(config))
        (folder / "results.json").write_text(json.dumps(results))
        (folder / "events.jsonl").write_text('{"time": "2026-01-02T03:04:05+00:00", "event": "scores"}\n')
        if spec is not None:
            (folder / "split.tsv").write_text(f"#igcd-split 1\n#name {stream}\n#spec {json.dumps(spec)}\n0\tlabeled\n")
        if places is not None:
            with (folder / "places.csv").open("w", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(["stage", "latitude", "longitude", "images"])
                writer.writerows(places)
        if pictures:
            write_pictures(folder, rows)
        if taxa is not None:
            (folder / "taxonomy.csv").write_text(format_taxonomy(taxa))
        return folder

    return make
