"""The oracle that says which tables hold the rows of which, and the cells that it compares."""

import csv
import gzip
import math
import tarfile
from decimal import Decimal

import pyarrow as pa
import pytest

from benchmarks.datasets.tables import SHARED
from pexeso.errors import InputError
from tests.redundancy.messy_lakes import WORKED_EDGES, messy_lake, worked_lake, worked_tables
from tests.redundancy.row_contents import NAN, Contents, content_of, read_contents
from tests.redundancy.row_oracle import containment, schema_pairs


def lake_of(**tables):
    """Return a lake of tables, each given as columns by name."""
    return Contents({name: content_of(pa.table(columns)) for name, columns in tables.items()})


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


def test_the_false_edges_of_the_worked_lake_match_in_as_many_rows():
    lake = Contents({name: content_of(table) for name, table in worked_tables().items()})
    containments = containment(lake, min_containment=0)
    pairs = [(parent, "N1") for parent in ("A1", "C1", "D1", "R")]
    pairs += [("N1", child) for child in ("D1", "R", "F1", "F2")]
    matching = [round(containments[pair] * lake.tables[pair[1]].n_rows) for pair in pairs]
    assert matching == [2, 2, 2, 2, 2, 2, 0, 1]


def test_the_worked_lake_as_csv_has_the_same_edges(tmp_path):
    worked_lake(tmp_path, file_format="csv")
    edges = containment(read_contents(tmp_path))
    assert {tuple(name.removesuffix(".csv") for name in pair) for pair in edges} == WORKED_EDGES


def test_sets_bags_and_the_gate_differ_in_repeated_rows():
    lake = lake_of(twice={"v": [1, 1]}, thrice={"v": [1, 1, 1]}, parent={"v": [1, 2]})
    sets = containment(lake, min_containment=0)
    assert sets["parent", "twice"] == 1
    assert ("parent", "thrice") not in sets
    assert containment(lake, row_count_gate=False)["parent", "thrice"] == 1
    bags = containment(lake, semantics="bag", min_containment=0)
    assert bags["parent", "twice"] == 0.5
    assert bags["thrice", "twice"] == 1
    assert sets["twice", "parent"] == 0.5
    assert ("parent", "twice") not in containment(lake, semantics="bag")
    ungated = containment(lake, semantics="bag", row_count_gate=False, min_containment=0)
    assert ungated["parent", "thrice"] == pytest.approx(1 / 3)


@pytest.mark.parametrize("semantics", ["set", "bag"])
def test_a_table_without_rows_is_held_by_every_one_with_its_columns(semantics):
    lake = lake_of(
        none={"v": pa.array([], pa.int64())},
        some={"v": [1], "w": [2]},
        text={"v": ["1"]},
        other={"w": [2]},
    )
    for min_containment in (0.5, 1):
        edges = containment(lake, semantics=semantics, min_containment=min_containment)
        assert edges == {("some", "none"): 1, ("some", "other"): 1}


def test_cells_are_equal_across_types_of_a_family():
    content = content_of(
        pa.table(
            {
                "whole": [1, None],
                "decimal": pa.array([Decimal("1.50"), None], pa.decimal128(5, 2)),
                "float": pa.array([math.nan, -0.0], pa.float32()),
                "at": pa.array([1, None], pa.timestamp("s", "Europe/Vienna")),
                "day": pa.array([1, None], pa.date32()),
            }
        )
    )
    assert content.columns["whole",] == [1, None]
    assert content.columns["decimal",] == [Decimal("1.5"), None]
    assert content.columns["float",] == [NAN, 0.0]
    assert content.columns["at",] == [10**9, None]
    assert content.columns["day",] == [86_400_000, None]
    assert list(content.families.values()) == ["int", "decimal", "float", "timestamp", "date"]


def test_names_are_folded_unless_they_collide():
    assert list(content_of(pa.table({"A": [1], "b": [1]})).columns) == [("a",), ("b",)]
    assert list(content_of(pa.table({"A": [1], "a": [1], "B": [1]})).columns) == [
        ("A",),
        ("a",),
        ("B",),
    ]
    assert list(content_of(pa.table({"A": [1]}), case_sensitive=True).columns) == [("A",)]


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


def test_cells_of_text_are_as_written(tmp_path):
    (tmp_path / "a.csv").write_bytes(b'\xef\xbb\xbf Id ,t\n1,\n\n"2"," x"\n3\n4,y,z\n')
    (tmp_path / "b.csv").write_bytes(b"x\n1,2\n3,4\n")
    (tmp_path / "c.csv").write_bytes(b"")
    lake = read_contents(tmp_path)
    assert lake.tables["a.csv"].columns == {
        ("id",): ["1", "2", "3", "4"],
        ("t",): [None, " x", None, "y"],
    }
    assert list(lake.tables["b.csv"].columns) == [("x",), ("",)]
    assert lake.left_out == {"c.csv": "no columns"}
    dropped = read_contents(tmp_path, uneven_rows="drop").tables
    assert dropped["a.csv"].columns["id",] == ["1", "2"]
    with pytest.raises(InputError, match="pad, drop"):
        read_contents(tmp_path, uneven_rows="cut")


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
