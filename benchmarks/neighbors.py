"""Nearest neighbors of many rows: exact, faiss IVF and pynndescent on real features enlarged (`enlarged.py`).

    python benchmarks/neighbors.py --sizes 50000 100000 200000
    python benchmarks/neighbors.py --sizes 100000 --engines igcd exact

Rows are as the discovery core sees them: whitened, of length 1. `igcd` is `neighbor_graph` as it answers at that size.
Printed are seconds of processor time and the share of the 8 true neighbors found, on 2,000 rows. Each runs in this
process on --threads threads; pynndescent is run once before on few rows, because it compiles itself.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from enlarged import real_spread, write_enlarged
from torch import Tensor

from igcd.functional.gaussian import scatter_statistics
from igcd.functional.grouping import distinct
from igcd.functional.neighbors import nearest_neighbors, neighbor_graph
from igcd.functional.whitening import fit_whitening

K, N_CHECKED = 8, 2_000


def whitened_rows(n: int, n_categories: int, folder: Path) -> Tensor:
    path = folder / f"{n}.npy"
    y = torch.from_numpy(write_enlarged(path, n, n_categories, spread=real_spread()))
    x = torch.from_numpy(np.load(path).astype(np.float32))
    x = torch.nn.functional.normalize(x - x.mean(dim=0), dim=1)
    some = torch.arange(len(x))[:: max(1, len(x) // 10_000)]
    ids, owners = distinct(y[some])
    known = scatter_statistics(x[some], owners, n_categories=len(ids))
    return fit_whitening(x[:50_000], known, generator=torch.Generator().manual_seed(0))(x)


def faiss_ivf(n_probe: int) -> Callable[[Tensor], Tensor]:
    def search(rows: Tensor) -> Tensor:
        import faiss

        faiss.omp_set_num_threads(torch.get_num_threads())
        width = rows.shape[1]
        n_lists = int(4 * len(rows) ** 0.5)
        index = faiss.IndexIVFFlat(faiss.IndexFlatIP(width), width, n_lists, faiss.METRIC_INNER_PRODUCT)
        index.train(rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))[: 40 * n_lists]].numpy())
        index.add(rows.numpy())
        index.nprobe = n_probe
        return torch.from_numpy(index.search(rows.numpy(), K + 1)[1])

    return search


def pynndescent_graph(rows: Tensor) -> Tensor:
    import pynndescent

    index = pynndescent.NNDescent(
        rows.numpy(), metric="dot", n_neighbors=K + 1, random_state=0, n_jobs=torch.get_num_threads()
    )
    return torch.from_numpy(index.neighbor_graph[0].astype(np.int64))


ENGINES: dict[str, Callable[[Tensor], Tensor]] = {
    "exact": lambda rows: neighbor_graph(rows, K, approximate_above=len(rows)).idx,
    "igcd": lambda rows: neighbor_graph(rows, K).idx,
    "faiss8": faiss_ivf(8),
    "faiss16": faiss_ivf(16),
    "faiss32": faiss_ivf(32),
    "faiss64": faiss_ivf(64),
    "pynndescent": pynndescent_graph,
}


def recall(found: Tensor, rows: Tensor) -> float:
    sample = torch.randperm(len(rows), generator=torch.Generator().manual_seed(1))[:N_CHECKED].sort().values
    true = nearest_neighbors(rows[sample], rows, K + 1).idx
    true = torch.stack([row[row != i][:K] for row, i in zip(true, sample, strict=True)])
    return float((found[sample][:, None, :] == true[:, :, None]).any(dim=2).float().mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[50_000, 100_000, 200_000])
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--categories", type=int, default=2_000)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"{'rows':>9} {'engine':>12} {'seconds':>8} {'recall':>7}")
    with tempfile.TemporaryDirectory() as folder:
        for n in options.sizes:
            rows = whitened_rows(n, options.categories, Path(folder))
            if "pynndescent" in options.engines:
                pynndescent_graph(rows[:5_000])
            for name in options.engines:
                start = time.process_time()
                found = ENGINES[name](rows)
                seconds = time.process_time() - start
                print(f"{n:>9,} {name:>12} {seconds:>8.1f} {recall(found, rows):>7.3f}", flush=True)


if __name__ == "__main__":
    main()
