"""The lakes of tables that others hold."""

import hashlib
import json

import pyarrow.parquet as pq
import pytest

from benchmarks.redundancy.synthetic import (
    CHANGES,
    LINEAGE,
    synthetic_lake,
)
from tests.redundancy.row_contents import read_contents
from tests.redundancy.row_oracle import containment


def read_everything(folder):
    return {path.name: pq.read_table(path).to_pydict() for path in sorted(folder.glob("*.parquet"))}


def test_the_same_seed_draws_the_same_lake(tmp_path):
    options = {"n_bytes": 20_000, "n_tables": 30, "n_roots": 4}
    lineage = synthetic_lake(tmp_path / "one", seed=5, **options)
    assert synthetic_lake(tmp_path / "two", seed=5, **options) == lineage
    one = read_everything(tmp_path / "one")
    # As text, since NaN and NaN are not equal.
    assert repr(one) == repr(read_everything(tmp_path / "two"))
    synthetic_lake(tmp_path / "other", seed=6, **options)
    assert repr(one) != repr(read_everything(tmp_path / "other"))
    assert len(one) == len(lineage) == 30
    assert sum(entry.op == "root" for entry in lineage) == 4
    rows = json.loads((tmp_path / "one" / LINEAGE).read_text())
    assert [row["table"] for row in rows] == [entry.table for entry in lineage]
    for entry in lineage:
        table = pq.read_metadata(tmp_path / "one" / entry.table)
        assert (table.num_rows, table.num_columns) == (entry.rows, entry.columns)


def test_every_machine_draws_the_same_lake(tmp_path):
    synthetic_lake(tmp_path, n_bytes=50_000, n_tables=40, n_roots=5, seed=1)
    tables = read_contents(tmp_path).tables
    content = repr([(name, content.columns) for name, content in tables.items()]).encode()
    assert hashlib.sha256(content).hexdigest() == (
        "91b25989578c2e9795ac738804f6bec840cd11cc4d40847f47d62d8b0d420bb5"
    )


@pytest.mark.parametrize("seed", [0, 1])
def test_lineage_is_found_by_the_oracle(tmp_path, seed):
    lineage = synthetic_lake(tmp_path, n_bytes=300_000, n_tables=60, n_roots=5, seed=seed)
    assert {entry.op for entry in lineage} == {"root", *CHANGES}
    edges = containment(read_contents(tmp_path))
    down = {(entry.source, entry.table) for entry in lineage if entry.expected in ("down", "both")}
    up = {(entry.table, entry.source) for entry in lineage if entry.expected in ("up", "both")}
    assert len(down | up) > 20
    assert (down | up) - set(edges) == set()
