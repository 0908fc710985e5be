"""Scoring somebody else's predictions.

    python examples/scoring.py [predictions.csv]

A row per image and stage: its split, its true category, the cluster that some system gave it, and whether the category
is known (Old) or new (New) at that stage. Clusters may have any names; the best matching with categories counts.
`igcd score --predictions FILE` prints the same as tables.
"""

import sys
import tempfile
from pathlib import Path

from igcd.metrics.predictions import parse_predictions
from igcd.metrics.scorecard import Scorecard, scorecard

ROWS = """stage,split,image_id,category,cluster,group
0,test,fox-1,fox,a,Old
0,test,fox-2,fox,a,Old
0,test,owl-1,owl,b,Old
0,test,owl-2,owl,b,Old
1,test,fox-1,fox,a,Old
1,test,fox-2,fox,c,Old
1,test,owl-1,owl,b,Old
1,test,owl-2,owl,b,Old
1,test,newt-1,newt,c,New
1,test,newt-2,newt,c,New
"""


def main(path: Path) -> Scorecard:
    """The scores of a file of predictions: of each stage, over the stages, and in another convention."""
    card = scorecard(parse_predictions(path), source=str(path))
    default = card.variants[card.default]
    for stage, detail in zip(default.stages, card.details, strict=True):
        scores = ", ".join(f"{group} {score:.1f}" for group, score in stage.scores.items() if score is not None)
        print(f"stage {stage.stage}: {scores}; identity {detail.identity:.1f}, {detail.n_clusters} clusters")
    print(f"forgetting M_f {default.forgetting['paper']:.1f}, discovery M_d {default.discovery['paper']:.1f}")
    other = card.variants["test/v1/category/soft"]  # matched in each group, mean over categories, Happy's groups
    print("the last stage as others count it:", other.stages[-1].scores)
    return card


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "predictions.csv")
            file.write_text(ROWS)
            main(file)
