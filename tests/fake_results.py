"""Records of runs that nobody ran, for tests of tables."""

from collections.abc import Mapping, Sequence
from typing import Any

LITE0 = {"backbone": "tf_efficientnet_lite0", "weights": "pip", "size": 112}


def fake_results(
    method: str = "snn_density",
    seed: int = 0,
    *,
    scores: Sequence[Mapping[str, float | None]] = (
        {"All": 80.0, "Old": 80.0},
        {"All": 50.0, "Old": 60.0, "New": 30.0},
    ),
    m_f: float | None = 5.0,
    m_d: float | None = 50.0,
    found: int = 3,
    seconds: float = 60.0,
    stream: str = "cifar100-mi",
    config: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What `results.json` of a run would hold, as far as tables read it."""
    stages = [
        {
            "stage": stage,
            "scores": {"Old": None, "New": None} | dict(of_stage),
            "n_images": 100,
            "n_categories": 10 + 3 * stage,
            "n_clusters": 10 + found * stage,
            "NMI": 50.0,
            "ARI": 40.0,
            "identity": 50.0,
            "count": {
                "all": {"found": 13, "true": 13},
                "new": {"found": found, "true": 3},
                "won": {"found": 2, "true": 3},
            },
            "labeled_images": 0,
            "unlabeled_images": 50,
            "seconds": {"learn": seconds / len(scores), "predict": 0.0},
            "kept": {"replay_images": 3, "support_images": 5, "images": 5, "pseudo_labeled": 0, "bytes": 100},
            "opened": found if stage else 0,
        }
        for stage, of_stage in enumerate(scores)
    ]
    return {
        "default": "test/v2/image/paper",
        "M_f": m_f,
        "M_d": m_d,
        "stages": stages,
        "stream": stream,
        "method": method,
        "seed": seed,
        "seconds": {"learn": seconds, "predict": 0.0},
        "peak_memory_bytes": 700_000_000 + seed,
        "set_aside": {},
        "versions": {"igcd": "0.1.0"},
        "config": {"seed": seed, "method": {"name": method}, "encoder": LITE0, "stream": {}} | dict(config or {}),
    }
