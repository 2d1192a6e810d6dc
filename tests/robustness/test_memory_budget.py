"""Tests of search memory in a process of its own: budgets are kept, also for large queries."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from memory_worker import OPTIONS
from processes import ran
from searching_stores import SmallLake

from pexeso.engine.vector_space import WORKING_BYTES

MIB = 1 << 20
QUERY_VALUES = int(os.environ.get("PEXESO_QUERY_VALUES", "5000"))
"""Distinct values of the large query column; a longer run: ``PEXESO_QUERY_VALUES=1000000``."""

BYTES_A_VALUE = 512
"""What a search may hold of each query value.

Its vector of 16 dimensions and its coordinates are included.
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """40,000 vectors near to each other, in 200 columns and two partitions."""
    folder = tmp_path_factory.mktemp("store")
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=16) + 0.2 * rng.normal(size=(40_000, 16))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    columns = [rows.tolist() for rows in np.array_split(np.arange(len(vectors)), 200)]
    names = [(f"t{number:04}", "c") for number in range(200)]
    SmallLake(vectors, columns, names, [number // 100 for number in range(200)]).store(
        OPTIONS, folder=folder
    )
    return folder


def searched(folder: Path, budget: int, n_values: int, max_distance: float) -> dict:
    worker = Path(__file__).with_name("memory_worker.py")
    done = ran(
        [sys.executable, str(worker), *map(str, (folder, budget, n_values, max_distance))],
        variables={"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_a_search_keeps_its_budget_however_much_matches(folder):
    budget = WORKING_BYTES + 24 * MIB
    report = searched(folder, budget, 400, 0.3)
    assert report["columns"] == 200
    # All pairs together, 48 bytes each, would take over four times the budget.
    assert report["candidates"] * 48 > 4 * budget
    assert 0 < report["peak"] <= budget


def test_a_query_column_of_very_many_values_takes_memory_for_its_values_and_its_budget(folder):
    budget = WORKING_BYTES + 24 * MIB
    report = searched(folder, budget, QUERY_VALUES, 0.05)
    sys.stdout.write(
        f"{QUERY_VALUES:,} query values: {report['seconds']} s, {report['peak'] / MIB:.0f} MiB\n"
    )
    # 400 of the query values are stored in the hundred columns of one partition: some column has
    # four.
    assert report["matched"] >= 4
    assert report["peak"] <= budget + BYTES_A_VALUE * QUERY_VALUES
