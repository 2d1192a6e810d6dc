"""The driver's memory does not grow with the lake: ten times the columns, hardly more of it.

With more columns than 300 and 3,000:
``DRIVER_TEST_COLUMNS=1200 pytest tests/cluster/test_cluster_driver_memory.py``.
"""

import json
import os
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).with_name("peak_of_driver.py")
OPTIONS = {"model": "hashing", "dimensions": 16, "n_partitions": 4}
COLUMNS_PER_TABLE, ROWS = 60, 5
COLUMNS = int(os.environ.get("DRIVER_TEST_COLUMNS", "300"))
MAX_RATIO = 1.2

# A heap that shrinks to what is in use, so that the size of the process tells what was needed.
TIGHT_HEAP = (
    "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xms64m -XX:MinHeapFreeRatio=10 "
    "-XX:MaxHeapFreeRatio=20"
)


def write_lake(folder, n_columns):
    """Write wide tables with values of their own, in folders of 50."""
    generator = np.random.default_rng(n_columns)
    header = ",".join(f"c{number}" for number in range(COLUMNS_PER_TABLE))
    for number in range(n_columns // COLUMNS_PER_TABLE):
        place = folder / f"f{number // 50}"
        place.mkdir(parents=True, exist_ok=True)
        codes = generator.integers(0, 26, (ROWS, COLUMNS_PER_TABLE, 7)).astype(np.uint8) + ord("a")
        rows = [",".join(cell.tobytes().decode("ascii") for cell in row) for row in codes]
        (place / f"t{number}.csv").write_text("\n".join([header, *rows]) + "\n", encoding="ascii")
    return folder


@pytest.mark.long
def test_ten_times_the_columns_take_hardly_more_of_the_driver(cluster, run_on, tmp_path):
    places = []
    for n_columns in (COLUMNS, 10 * COLUMNS):
        places += [
            write_lake(tmp_path / f"lake{n_columns}", n_columns),
            tmp_path / f"{n_columns}.pexeso",
        ]
    # The larger lake comes second in the same process: what it needs beyond the first is what it
    # adds.
    printed = run_on(
        *(cluster, PROGRAM, json.dumps(OPTIONS), *places),
        **{"spark.driver.extraJavaOptions": TIGHT_HEAP, "spark.driver.memory": "500m"},
    )
    small, large = (sum(json.loads(line).values()) for line in printed.splitlines()[-2:])
    assert large <= MAX_RATIO * small, printed
