"""Times of the old type INT96 in Parquet files, which are read in microseconds everywhere."""

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pexeso.lake.containers.reader import read_table, read_typed_table
from pexeso.lake.typed.parquet import parquet_rows
from pexeso.redundancy.sampled import facts_of_parquet

TIMES = [
    datetime(9999, 12, 31, 23, 59, 59),
    datetime(2006, 1, 2, 7, 4, 5),
    datetime(1500, 1, 1),
    datetime(2020, 5, 17, 0, 0, 0, 250),
    None,
]
TEXTS = [
    *("9999-12-31 23:59:59", "2006-01-02 07:04:05", "1500-01-01 00:00:00"),
    *("2020-05-17 00:00:00.000250", None),
]


@pytest.fixture(params=[True, False], ids=["with a schema of Arrow", "without"])
def path(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    table = pa.table(
        {
            "seen": pa.array(TIMES, pa.timestamp("us")),
            "inside": pa.array([{"at": time} for time in TIMES]),
            "town": pa.array(["Oslo", "Rome", "Bern", "Bonn", "Lyon"] * 1),
        }
    )
    path = tmp_path / "old.parquet"
    pq.write_table(table, path, use_deprecated_int96_timestamps=True, store_schema=request.param)
    assert pq.ParquetFile(path).metadata.schema.column(0).physical_type == "INT96"
    return path


def test_texts(path: Path) -> None:
    table = read_table(path)
    assert table.columns[0].to_pylist() == TEXTS
    assert "9999-12-31 23:59:59" in table.columns[1][0].as_py()
    assert "1500-01-01 00:00:00" in table.columns[1][2].as_py()


def test_types(path: Path) -> None:
    _, typed = read_typed_table(path)
    assert typed is not None
    assert typed[0].to_pylist() == TIMES


def test_rows_of_what_compares_whole_rows(path: Path) -> None:
    cells = [cell for rows in parquet_rows("old.parquet", str(path)) for cell in rows.columns[0]]
    assert [cell.as_py() for cell in cells] == TIMES


def test_bounds_of_a_scan(path: Path) -> None:
    _, facts = facts_of_parquet("old.parquet", str(path))
    stats = next(fact.stats for fact in facts if fact.token == ("seen",))
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    nanoseconds = [
        ((time.replace(tzinfo=UTC) - epoch) // (epoch.resolution)) * 1000 for time in TIMES if time
    ]
    assert (stats.min, stats.max) == (min(nanoseconds), max(nanoseconds))
