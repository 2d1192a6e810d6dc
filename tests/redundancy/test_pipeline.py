"""Contained tables of lakes found through Spark, held against comparison of all rows."""

import itertools
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from long_runs import EVERYTHING, long_but, long_cases_but

from benchmarks.redundancy.measuring import find_containments
from benchmarks.redundancy.synthetic import synthetic_lake
from pexeso.errors import InputError, LakeError
from pexeso.lake.readers.json_text import ROWS_A_CHUNK
from pexeso.redundancy.planning import Costs
from pexeso.redundancy.search import find_redundancy
from tests.redundancy.messy_lakes import WORKED_EDGES, messy_lake, rewrite_as_csv, worked_lake
from tests.redundancy.row_contents import read_contents
from tests.redundancy.row_oracle import containment


def edges_of(result):
    return {(edge.parent, edge.child): edge.containment for edge in result.edges}


def counts_of(result):
    return {stage.name: stage.edges for stage in result.stages if stage.name != "read"}


@pytest.mark.parametrize(
    ("semantics", "n_files"),
    long_cases_but([("set", 1), ("bag", 3)], itertools.product(["set", "bag"], [1, 3])),
)
def test_the_worked_lake(spark, tmp_path, n_files, semantics):
    worked_lake(tmp_path, n_files=n_files)
    result = find_containments(spark, tmp_path, semantics=semantics)
    names = {table.name: Path(table.name).stem for table in result.tables}
    assert {(names[edge.parent], names[edge.child]) for edge in result.edges} == set(WORKED_EDGES)
    assert counts_of(result) == {"schema": 50, "types": 50, "rows": 39, "min_max": 28, "exact": 20}


@pytest.mark.parametrize(
    "options",
    long_but(
        [{}, {"min_containment": 0.9, "semantics": "bag", "row_count_gate": False}],
        [
            {},
            {"semantics": "bag"},
            {"row_count_gate": False},
            {"min_containment": 0.5},
            {"min_containment": 0.9, "semantics": "bag", "row_count_gate": False},
        ],
    ),
    ids=str,
)
def test_a_messy_lake_as_all_rows_compared(spark, tmp_path, options):
    messy_lake(tmp_path)
    result = find_containments(spark, tmp_path, **options)
    assert edges_of(result) == containment(read_contents(tmp_path), **options)
    assert {omission.table: omission.reason for omission in result.left_out} == {
        "no-columns.parquet": "it has no columns",
        "repeated.csv": "two of its columns have the same name",
        "repeated.parquet": "two of its columns have the same name",
    }


@pytest.mark.parametrize("file_format", long_but(["csv"], ["parquet", "csv"]))
def test_derived_tables_as_all_rows_compared(spark, tmp_path, file_format):
    n_bytes = 2_000_000 if EVERYTHING else 400_000
    synthetic_lake(tmp_path, n_bytes=n_bytes, n_tables=40, n_roots=6)
    if file_format == "csv":
        rewrite_as_csv(tmp_path)
    for options in ({}, {"min_containment": 0.8}):
        edges = edges_of(find_containments(spark, tmp_path, **options))
        assert edges == containment(read_contents(tmp_path), **options)
        assert len(edges) > 10


@pytest.mark.long
def test_older_versions_of_files_as_all_rows_compared(spark, lake_folder):
    versions = lake_folder("containment")
    edges = edges_of(find_containments(spark, versions))
    contents = read_contents(versions)
    assert edges == containment(contents)
    assert len(edges) == 78
    nearly = edges_of(find_containments(spark, versions, min_containment=0.9))
    assert nearly == containment(contents, min_containment=0.9)
    assert len(nearly) == 230


def test_folders_with_values_of_a_column_in_their_names(spark, tmp_path):
    whole = pa.table({"year": [2020, 2020, 2021], "town": ["a", "b", "c"]})
    pq.write_table(whole, tmp_path / "whole.parquet")
    for year in (2020, 2021):
        folder = tmp_path / "by-year" / f"year={year}"
        folder.mkdir(parents=True)
        rows = whole.filter(pa.compute.equal(whole["year"], year)).drop_columns("year")
        pq.write_table(rows, folder / "part-0.parquet")
    both = {("by-year", "whole.parquet"): 1.0, ("whole.parquet", "by-year"): 1.0}
    assert edges_of(find_containments(spark, tmp_path)) == both


def test_columns_that_only_some_files_of_a_table_have_are_missing_in_the_others(spark, tmp_path):
    (tmp_path / "t").mkdir()
    pq.write_table(pa.table({"a": [1]}), tmp_path / "t" / "part-0.parquet")
    pq.write_table(pa.table({"A": [2], "b": ["x"]}), tmp_path / "t" / "part-1.parquet")
    pq.write_table(pa.table({"a": [2, 1], "b": ["x", None]}), tmp_path / "whole.parquet")
    pq.write_table(pa.table({"a": [1], "b": ["x"]}), tmp_path / "other.parquet")
    both = {("t", "whole.parquet"): 1.0, ("whole.parquet", "t"): 1.0}
    assert edges_of(find_containments(spark, tmp_path)) == both


def test_structs_in_maps_are_compared_by_the_names_of_their_fields(spark, tmp_path):
    one, other = (
        pa.map_(pa.string(), pa.struct([(name, pa.int64()) for name in names]))
        for names in ("ab", "ba")
    )
    cells = [[("k", {"a": 1, "b": 2})], [("k", {"a": 3, "b": 4})]]
    swapped = [[("k", {"a": 2, "b": 1})]]
    pq.write_table(pa.table({"m": pa.array(cells, one)}), tmp_path / "wide.parquet")
    pq.write_table(pa.table({"m": pa.array(cells[:1], other)}), tmp_path / "part.parquet")
    pq.write_table(pa.table({"m": pa.array(swapped, other)}), tmp_path / "swapped.parquet")
    edges = edges_of(find_containments(spark, tmp_path))
    assert edges == {("wide.parquet", "part.parquet"): 1.0}
    assert edges == containment(read_contents(tmp_path))


def test_files_without_columns_are_files_of_a_table_all_the_same(spark, tmp_path):
    (tmp_path / "t").mkdir()
    pq.write_table(pa.table({}), tmp_path / "t" / "part-0.parquet")
    pq.write_table(pa.table({"a": [1, 2]}), tmp_path / "t" / "part-1.parquet")
    pq.write_table(pa.table({"a": [2, 1]}), tmp_path / "whole.parquet")
    (tmp_path / "u").mkdir()
    (tmp_path / "u" / "part-0.jsonl").write_text("{}\n{}\n")
    (tmp_path / "u" / "part-1.jsonl").write_text('{"a": 1}\n')
    late = "{}\n" * (ROWS_A_CHUNK + 1) + '{"a": 1}\n{"a": 2}\n'
    (tmp_path / "late.jsonl").write_text(late)
    (tmp_path / "one.jsonl").write_text('{"a": 1}\n')
    result = find_containments(spark, tmp_path)
    assert {table.name: table.n_rows for table in result.tables} == {
        "late.jsonl": ROWS_A_CHUNK + 3,
        "one.jsonl": 1,
        "t": 2,
        "u": 3,
        "whole.parquet": 2,
    }
    assert edges_of(result) == {
        ("t", "whole.parquet"): 1.0,
        ("whole.parquet", "t"): 1.0,
        ("late.jsonl", "one.jsonl"): 1.0,
        ("late.jsonl", "u"): 1.0,
        ("u", "one.jsonl"): 1.0,
    }
    plan = find_redundancy(tmp_path, costs=Costs(accesses=0)).plan
    [one] = [deletion for deletion in plan.delete if deletion.table == "one.jsonl"]
    assert one.sql.count(" WHERE ") == 1


def test_files_of_a_table_with_other_types_leave_it_without_edges(spark, tmp_path):
    (tmp_path / "t").mkdir()
    pq.write_table(pa.table({"a": [1]}), tmp_path / "t" / "part-0.parquet")
    pq.write_table(pa.table({"a": ["1"]}), tmp_path / "t" / "part-1.parquet")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "whole.parquet")
    assert edges_of(find_containments(spark, tmp_path)) == {}


def test_unreadable_files_are_told_and_the_others_compared(spark, tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"a": [1, 2]}), tmp_path / "b.parquet")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1" + bytes(40) + b"PAR1")
    (tmp_path / "binary.csv").write_bytes(bytes(range(256)))
    result = find_containments(spark, tmp_path)
    assert edges_of(result) == {("b.parquet", "a.parquet"): 1.0}
    assert [omission.table for omission in result.left_out] == ["binary.csv", "broken.parquet"]


def test_no_tables_and_wrong_options_are_refused(spark, tmp_path):
    with pytest.raises(LakeError, match="no table"):
        find_containments(spark, tmp_path)
    with pytest.raises(InputError, match="min_containment"):
        find_containments(spark, tmp_path, min_containment=0)
    with pytest.raises(InputError, match="semantics"):
        find_containments(spark, tmp_path, semantics="list")
