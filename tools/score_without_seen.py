"""Scores runs on those of their test images that another run, on which options were chosen, did not have.

    python tools/score_without_seen.py CHOSEN_ON RUN [RUN …]

Splits of different seeds draw from the same pool of test images, so a few are shared: this leaves them out.
"""

import argparse
from pathlib import Path

from igcd.metrics.predictions import read_predictions
from igcd.metrics.scorecard import scorecard
from igcd.streams.split import read_split
from igcd.types import Predictions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chosen_on", type=Path, help="folder of the run whose test images are left out")
    parser.add_argument("runs", type=Path, nargs="+", help="folders of the runs to score")
    arguments = parser.parse_args()
    stages = read_split(arguments.chosen_on / "split.tsv").stages
    seen = {image_id for stage in stages for image_id in stage.test.image_ids}
    for run in arguments.runs:
        card = scorecard(without(read_predictions(run / "predictions.csv"), seen)).to_json()
        last = card["stages"][-1]["scores"]
        print(f"{run.name}: M_d {card['M_d']:.1f}  M_f {card['M_f']:.1f}  Old {last['Old']:.1f}  New {last['New']:.1f}")


def without(predictions: Predictions, seen: set[str]) -> Predictions:
    """The predictions without those for these test images."""
    rows = zip(predictions.split, predictions.image_id, strict=True)
    kept = [row for row, (split, image_id) in enumerate(rows) if split != "test" or image_id not in seen]
    columns = (predictions.split, predictions.image_id, predictions.category, predictions.cluster, predictions.group)
    return Predictions(predictions.stage[kept], *(tuple(column[row] for row in kept) for column in columns))


if __name__ == "__main__":
    main()
