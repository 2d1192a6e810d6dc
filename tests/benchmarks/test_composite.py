"""The measurement of filters of composite keys, on a small lake."""

import json

import pyarrow as pa
import pytest
from click.testing import CliRunner

from benchmarks import composite
from benchmarks.composite import FILTERS, main, token_tables


@pytest.fixture
def lake(tmp_path):
    for number in range(3):
        rows = [f"a{row},b{row % 3}, {row}.0" for row in range(number, number + 9)]
        (tmp_path / f"{number}.csv").write_text("\n".join(["x,y,z", *rows]) + "\n")
    return tmp_path


def test_cells_are_tokens(lake):
    tables = token_tables(lake)
    assert [table.num_rows for table in tables] == [9, 9, 9]
    assert tables[0].column(2).to_pylist() == [str(row) for row in range(9)]
    assert all(column.type == pa.large_string() for column in tables[0].columns)


def test_every_filter_is_measured(lake, monkeypatch):
    monkeypatch.setattr(composite, "N_QUERIES", 4)
    done = CliRunner().invoke(main, [str(lake)], catch_exceptions=False)
    told = [json.loads(line) for line in done.output.splitlines()]
    assert [each["columns"] for each in told] == [2, 3]
    for each in told:
        assert sum(each[name]["chosen"] for name in FILTERS) == 4
        assert len({each[name]["probes"] for name in ("none", "xash", "bloom")}) == 1
        assert each["xash"]["passed"] <= each["none"]["passed"] == each["none"]["probes"]
