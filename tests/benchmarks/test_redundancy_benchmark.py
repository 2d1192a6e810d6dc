"""The benchmark of contained tables: its truths agree, and its measures are what they say."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from benchmarks.cli import main
from benchmarks.redundancy import measuring
from benchmarks.redundancy.coded import coded_containment
from benchmarks.redundancy.synthetic import synthetic_lake
from tests.redundancy.messy_lakes import worked_lake
from tests.redundancy.row_contents import read_contents
from tests.redundancy.row_oracle import containment


def test_rows_as_numbers_and_rows_as_tuples_are_contained_alike(tmp_path):
    synthetic_lake(tmp_path / "drawn", n_bytes=300_000, n_tables=30, n_roots=5)
    worked_lake(tmp_path / "worked")
    values = pa.table({"x": [None, float("nan"), -0.0], "y": ["a", None, "b"]})
    pq.write_table(values, tmp_path / "values.parquet")
    pq.write_table(values.take([2, 1, 0, 0]), tmp_path / "more.parquet")
    pairs = coded_containment(tmp_path)
    assert pairs == set(containment(read_contents(tmp_path)))
    assert len(pairs) > 30


@pytest.mark.long
@pytest.mark.spark
def test_a_small_lake_is_measured(spark, monkeypatch):
    monkeypatch.setitem(measuring.DERIVED, "derived-24MB", (100_000, 12, 3))
    result = measuring.measured_lake(spark, "derived-24MB", repeats=1)
    assert result["tables"] == 12
    for way in ("exact", "published"):
        assert result[way]["recall"] == 1.0
        assert [stage["edges"] for stage in result[way]["stages"][1:5]] == [
            stage["edges"] for stage in result["exact"]["stages"][1:5]
        ]
    assert result["exact"]["precision"] == 1.0
    assert result["exact"]["stages"][-1]["wrong"] == 0
    assert result["plan"]["optimal"]


def test_plans_are_proved(monkeypatch):
    monkeypatch.setattr("benchmarks.redundancy.command.SIZES", (50,))
    arguments = ["redundancy", "plans", "--repeats", "1", "--json"]
    done = CliRunner().invoke(main, arguments, catch_exceptions=False)
    result = json.loads(done.output)
    assert all(solution["optimal"] for solution in result["solver"])
    assert {solution["graph"] for solution in result["solver"]} == {
        "2 edges a table",
        "5 edges a table",
        "10 edges a table",
        "versions",
    }
