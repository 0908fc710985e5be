"""Rows that `CategoryDiscoverer` answers about per second of the processor, from a mapped file in half precision.

    python benchmarks/predicting.py                 # 1,280 numbers per row, 2,000 categories, 40,960 rows

Made-up rows, two labeled ones of each category: what an answer costs depends on the width and the number of categories
alone. One thread.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from igcd import CategoryDiscoverer

SPREAD = 0.5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=40_960)
    parser.add_argument("--width", type=int, default=1280)
    parser.add_argument("--categories", type=int, default=2000)
    args = parser.parse_args()
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    centers = rng.standard_normal((args.categories, args.width), dtype=np.float32)

    def drawn(categories: np.ndarray) -> np.ndarray:
        noise = rng.standard_normal((len(categories), args.width), dtype=np.float32)
        return (centers[categories] + SPREAD * noise).astype(np.float16)

    labels = np.arange(2 * args.categories) % args.categories
    model = CategoryDiscoverer(n_novel=0).fit(drawn(labels), labels)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        np.save(path, drawn(rng.integers(args.categories, size=args.rows)))
        rows = np.load(path, mmap_mode="r")
        for ask in ("predict", "assign", "predict_none"):
            took = []
            for _ in range(3):
                start = time.process_time()
                getattr(model, ask)(rows)
                took.append(time.process_time() - start)
            print(f"{ask}: {args.rows / min(took):,.0f} rows per second", flush=True)


if __name__ == "__main__":
    main()
