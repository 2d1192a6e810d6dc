"""The oracle that says which tables hold the rows of which, and the cells that it compares."""

import csv
import gzip
import tarfile

import pytest

from benchmarks.datasets.tables import SHARED
from tests.redundancy.messy_lakes import WORKED_EDGES, messy_lake, worked_lake, worked_tables
from tests.redundancy.row_contents import read_contents
from tests.redundancy.row_oracle import containment, schema_pairs


@pytest.mark.parametrize("n_files", [1, 3])
def test_the_worked_lake_has_the_edges_of_the_specification(tmp_path, n_files):
    worked_lake(tmp_path, n_files=n_files)
    lake = read_contents(tmp_path)
    names = {table: table.partition(".")[0] for table in lake.tables}
    rows = {names[table]: content.n_rows for table, content in lake.tables.items()}
    assert rows == {name: table.num_rows for name, table in worked_tables().items()}
    assert len(schema_pairs(lake)) == 50
    assert len(containment(lake, min_containment=0)) == 39
    assert len(WORKED_EDGES) == 20
    for semantics in ("set", "bag"):
        edges = containment(lake, semantics=semantics)
        assert {(names[parent], names[child]) for parent, child in edges} == WORKED_EDGES


def test_the_messy_lake_has_the_edges_that_it_declares(tmp_path):
    declared = messy_lake(tmp_path)
    lake = read_contents(tmp_path)
    assert set(containment(lake, row_count_gate=False)) == declared
    assert lake.left_out == {
        "no-columns.parquet": "no columns",
        "repeated.csv": "repeated names",
        "repeated.parquet": "repeated names",
    }
    gated = set(containment(lake))
    assert declared - gated == {
        (f"{parent}.parquet", "copy-repeated.parquet")
        for parent in ("copy-1", "copy-2", "copy-rows", "copy-columns")
    }
    # As bags, no table of four rows has the repeated ones as often.
    assert set(containment(lake, semantics="bag", row_count_gate=False)) == gated


@pytest.mark.lakes
def test_versions_of_tables_hold_what_is_known(tmp_path):
    folder = SHARED / "containment"
    if not folder.is_dir():
        pytest.skip("the shared tables are not there")
    with tarfile.open(folder / "versions.tar.gz") as tables:
        tables.extractall(tmp_path, filter="data")
    with gzip.open(folder / "containment.tsv.gz", "rt", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    known = {
        (f"versions/{row['superset_table']}", f"versions/{row['subset_table']}"): (
            int(row["subset_rows"]),
            int(row["contained_rows"]),
        )
        for row in rows
    }
    # The truth leaves rows of another length out, and two tables of which most rows are such.
    lake = read_contents(tmp_path, uneven_rows="drop")
    uneven = "versions/index__v00_2017-10-25.csv"
    most_uneven = "versions/historical-538-ncaa-tournament-model-results__v00_2014-03-26.csv"
    assert set(lake.left_out.values()) == {"repeated names"}
    assert len(lake.tables) == 171 + 2
    pairs = [pair for pair in schema_pairs(lake) if not {uneven, most_uneven} & set(pair)]
    assert len(pairs) == 608
    whole = {pair for pair, (n_rows, n_held) in known.items() if n_rows == n_held}
    containments = containment(lake, row_count_gate=False, min_containment=0)
    assert {pair for pair in pairs if containments[pair] == 1} == whole
    assert len(whole) == 90
    assert {pair for pair in pairs if containments[pair] > 0} == set(known)
    # It counts distinct rows, and compares cells without the white space around them.
    for pair, counts in known.items():
        ours, theirs = (distinct_rows(lake, name, lake.tables[pair[1]].columns) for name in pair)
        assert counts == (len(theirs), len(ours & theirs))


def distinct_rows(lake, name, columns):
    cells = [lake.tables[name].columns[token] for token in columns]
    return {tuple((cell or "").strip() for cell in row) for row in zip(*cells, strict=True)}
