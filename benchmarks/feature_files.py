"""Features as a mapped .npy file or as Parquet: size, and seconds to write, to read in order and to read at random.

    python benchmarks/feature_files.py                     # needs pyarrow: pip install pyarrow

200,000 rows of 256 numbers in half precision by default, made up: numbers drawn at random do not shrink when they are
compressed. Parquet holds a row as one value of 512 bytes, uncompressed, with 4,096 rows in a group, as many as a shard
of `igcd embed` has. Both files are in the system's memory when they are read; in order each part's largest number is
taken, at random rows are copied. Seconds are of the processor, the best of three times.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.float16]
AT_A_TIME = 4096
N_DRAWS, N_DRAWN = 100, 64


def seconds(action: Callable[[], object], n_times: int = 3) -> float:
    took = []
    for _ in range(n_times):
        start = time.process_time()
        action()
        took.append(time.process_time() - start)
    return min(took)


class Npy:
    """One array, mapped."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "rows.npy"

    def write(self, rows: Rows) -> None:
        """All rows."""
        np.save(self.path, rows)

    def in_order(self) -> float:
        """The sum of the largest numbers of all parts."""
        rows = np.load(self.path, mmap_mode="r")
        return sum(float(rows[start : start + AT_A_TIME].max()) for start in range(0, len(rows), AT_A_TIME))

    def some(self, positions: npt.NDArray[np.int64]) -> Rows:
        """The rows at some positions. (m,) -> (m, d)."""
        return np.asarray(np.load(self.path, mmap_mode="r")[positions])


class Parquet:
    """One column of values of as many bytes as a row has."""

    def __init__(self, folder: Path, width: int) -> None:
        self.path, self.width = folder / "rows.parquet", width

    def write(self, rows: Rows) -> None:
        """All rows."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        kind = pa.binary(2 * self.width)
        column = pa.FixedSizeBinaryArray.from_buffers(kind, len(rows), [None, pa.py_buffer(rows)])
        options = {"compression": "none", "use_dictionary": False, "row_group_size": AT_A_TIME}
        pq.write_table(pa.table({"row": column}), self.path, **options)

    def in_order(self) -> float:
        """The sum of the largest numbers of all parts."""
        import pyarrow.parquet as pq

        batches = pq.ParquetFile(self.path, memory_map=True).iter_batches(batch_size=AT_A_TIME)
        return sum(float(self._rows(batch.column(0)).max()) for batch in batches)

    def some(self, positions: npt.NDArray[np.int64]) -> Rows:
        """The rows at some positions. (m,) -> (m, d)."""
        import pyarrow.parquet as pq

        file = pq.ParquetFile(self.path, memory_map=True)
        found = np.empty((len(positions), self.width), dtype=np.float16)
        for group in np.unique(positions // AT_A_TIME):
            own = positions // AT_A_TIME == group
            (chunk,) = file.read_row_group(int(group)).column(0).chunks
            found[own] = self._rows(chunk)[positions[own] % AT_A_TIME]
        return found

    def _rows(self, column: object) -> Rows:
        start = column.offset * self.width  # type: ignore[attr-defined]  # an array of pyarrow
        values = np.frombuffer(column.buffers()[1], dtype=np.float16)  # type: ignore[attr-defined]
        return values[start : start + len(column) * self.width].reshape(-1, self.width)  # type: ignore[arg-type]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--width", type=int, default=256)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((args.rows, args.width), dtype=np.float32).astype(np.float16)
    draws = [rng.integers(args.rows, size=N_DRAWN) for _ in range(N_DRAWS)]
    expected = sum(float(rows[start : start + AT_A_TIME].max()) for start in range(0, args.rows, AT_A_TIME))
    with tempfile.TemporaryDirectory() as folder:
        for file in (Npy(Path(folder)), Parquet(Path(folder), args.width)):
            written = seconds(lambda file=file: file.write(rows))
            if file.in_order() != expected or not all((file.some(draw) == rows[draw]).all() for draw in draws[:3]):
                raise SystemExit(f"{file.path.name} does not hold what was written")
            in_order = seconds(file.in_order)
            at_random = seconds(lambda file=file: [file.some(draw) for draw in draws])
            print(
                f"{file.path.suffix:8} {file.path.stat().st_size / 1e6:6.1f} MB, written in {written:.2f} s, read in "
                f"order in {in_order:.2f} s, {N_DRAWN} rows at random in {1000 * at_random / N_DRAWS:.2f} ms",
                flush=True,
            )


if __name__ == "__main__":
    main()
