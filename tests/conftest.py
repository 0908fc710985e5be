"""What several tests share."""

import os
from pathlib import Path

import pytest

# Tests run several at a time, one thread each: more would wait for each other. Sums are then the same on every machine.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with real data sets (cifar100.npz, cub200_128px.npz); tests that use it are skipped without it."""
    folder = Path(os.environ.get("IGCD_TEST_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not (folder / "cifar100.npz").is_file():
        pytest.skip(f"real data not found in {folder}; set IGCD_TEST_DATA to the folder that holds cifar100.npz")
    return folder
