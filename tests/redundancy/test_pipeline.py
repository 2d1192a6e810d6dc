"""Contained tables of lakes against comparison of all rows: files, logs, and any order."""

import builtins
import datetime as dt
import itertools
import json
import random
import shutil
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from long_runs import EVERYTHING, long_but, long_cases_but

from benchmarks.redundancy.measuring import find_by_samples, find_containments
from benchmarks.redundancy.synthetic import synthetic_lake
from pexeso.errors import InputError, LakeError
from pexeso.index import build_index
from pexeso.lake.containers.folders import (
    CannotRead,
    LoggedTable,
    live_files,
    log_in,
    logged_tables,
)
from pexeso.lake.readers.json_text import ROWS_A_CHUNK
from pexeso.lake.typed.parquet import parquet_rows
from pexeso.redundancy.containments import ContainmentOptions, containments_of
from pexeso.redundancy.lake_reading import files_of_tables, lake_rows, table_of_file
from pexeso.redundancy.pieces import pieces_of, write_pieces
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


NAN = float("nan")
KINDS = {
    "n": (pa.int64(), [0, 1, 2, None]),
    "x": (pa.float64(), [0.0, -0.0, NAN, 1.5, None]),
    "t": (pa.string(), ["", "a", "b", "é" * 40, None]),
    "d": (pa.decimal128(6, 2), [Decimal("1.50"), Decimal(2), None]),
    "at": (pa.timestamp("us", "UTC"), [dt.datetime(2020, 1, day, tzinfo=dt.UTC) for day in (1, 2)]),
    "l": (pa.list_(pa.int64()), [[], [1, 2], [2, 1], None]),
    "s": (pa.struct([("a", pa.int64()), ("b", pa.string())]), [{"a": 1, "b": "x"}, {"a": 2}, None]),
    "m": (pa.map_(pa.string(), pa.int64()), [[("k", 1), ("l", 2)], [("l", 2), ("k", 1)], []]),
}


def drawn_tables(draw):
    """Draw roots, and selections of their rows and columns."""
    tables = []
    for _ in range(3):
        names = draw.sample(list(KINDS), draw.randint(2, 5))
        n = draw.randint(4, 30)
        tables.append(
            {
                name: (KINDS[name][0], [draw.choice(KINDS[name][1]) for _ in range(n)])
                for name in names
            }
        )
    for _ in range(9):
        base = draw.choice(tables)
        n = len(next(iter(base.values()))[1])
        rows = draw.sample(range(n), draw.randint(0, n))
        names = draw.sample(list(base), draw.randint(1, len(base)))
        tables.append({name: (base[name][0], [base[name][1][r] for r in rows]) for name in names})
    return tables


def write_shuffled(draw, tables, folder):
    """Write tables as one to three files each, whose rows, columns and groups have any order."""
    order = list(range(len(tables)))
    draw.shuffle(order)
    for number in order:
        columns = list(tables[number].items())
        draw.shuffle(columns)
        n = len(columns[0][1][1])
        rows = draw.sample(range(n), n)
        n_files = draw.randint(1, 3)
        (folder / f"t{number}").mkdir(parents=True)
        for file in range(n_files):
            own = draw.sample(columns, len(columns))
            part = pa.table(
                {
                    name: pa.array([cells[row] for row in rows[file::n_files]], kind)
                    for name, (kind, cells) in own
                }
            )
            path = folder / f"t{number}" / f"part-{draw.random()}.parquet"
            pq.write_table(
                part, path, row_group_size=draw.randint(1, 9), use_dictionary=draw.random() < 0.5
            )


def answer(draw, lake, folder, **options):
    """Read the files in any order, without Spark, and return edges and what each stage left."""
    folder.mkdir()
    rows = []
    paths = sorted(lake.rglob("*.parquet"))
    draw.shuffle(paths)
    for number, path in enumerate(paths):
        file = path.relative_to(lake).as_posix()
        write_pieces(folder / f"{number}", pieces_of(file, parquet_rows(file, str(path))))
        result = {"file": file, "n_bytes": 1, "fingerprint": None, "reason": None, "notes": []}
        rows.append({**result, "paths": [str(folder / f"{number}")]})
    read = lake_rows(lake, "lake", rows)
    result = containments_of(None, read, ContainmentOptions(**options))
    edges = {(edge.parent, edge.child): edge.containment for edge in result.edges}
    counts = [(stage.name, stage.edges) for stage in result.stages]
    return edges, counts


@pytest.mark.parametrize(
    "options",
    long_but([{"min_containment": 0.6}], [{}, {"semantics": "bag"}, {"min_containment": 0.6}]),
    ids=str,
)
def test_no_order_changes_the_answer(tmp_path, options):
    draw, n_edges = random.Random(9), 0
    for number in range(4):
        tables = drawn_tables(draw)
        answers = []
        for turn in range(3):
            lake = tmp_path / f"{number}-{turn}"
            write_shuffled(draw, tables, lake)
            answers.append(answer(draw, lake, tmp_path / f"{number}-{turn}-pieces", **options))
            assert answers[-1] == answers[0]
            assert answers[-1][0] == containment(read_contents(lake), **options)
        n_edges += len(answers[0][0])
    assert n_edges > 20


def test_files_in_a_folder_that_an_engine_wrote_are_one_table():
    tables = files_of_tables(
        [
            "a.csv",
            "sales/part-00001.parquet",
            "sales/part-00000.parquet",
            "more/x=1/y=a%2Fb/data.parquet",
            "more/x=2/y=c/part-0.csv",
            "part-0.parquet",
        ]
    )
    assert {table: [part.file for part in files] for table, files in tables.items()} == {
        ".": ["part-0.parquet"],
        "a.csv": ["a.csv"],
        "more": ["more/x=1/y=a%2Fb/data.parquet", "more/x=2/y=c/part-0.csv"],
        "sales": ["sales/part-00000.parquet", "sales/part-00001.parquet"],
    }
    assert list(tables["more"][0].constants.items()) == [(("x",), "1"), (("y",), "a/b")]


def test_folders_that_begin_with_the_sign_are_no_values():
    assert table_of_file("=x/a.csv").table == "=x/a.csv"


def rows(*numbers, year=1):
    return pa.table({"a": list(numbers), "year": [year] * len(numbers)})


def whole_edges_of(containments):
    return {(edge.parent, edge.child) for edge in containments.edges}


def delta(folder, *versions, **options):
    from deltalake import write_deltalake

    for version in versions:
        write_deltalake(folder, version, mode="overwrite", **options)


def iceberg(folder, *versions):
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("test", uri="sqlite:///:memory:", warehouse=f"file://{folder.parent}")
    catalog.create_namespace("n")
    table = catalog.create_table("n.t", schema=versions[0].schema, location=f"file://{folder}")
    table.append(versions[0])
    for version in versions[1:]:
        table.overwrite(version)
    return table


@pytest.mark.parametrize("write", [delta, iceberg])
def test_rows_of_older_versions_are_not_rows_of_the_table(spark, tmp_path, write):
    write(tmp_path / "t", rows(1, 2, 3), rows(4, 5))
    pq.write_table(rows(1, 2), tmp_path / "old.parquet")
    pq.write_table(rows(5), tmp_path / "now.parquet")
    containments = find_containments(spark, tmp_path)
    assert whole_edges_of(containments) == {("t", "now.parquet")}
    assert containments.left_out == ()
    assert [(table.name, table.n_rows) for table in containments.tables] == [
        ("now.parquet", 1),
        ("old.parquet", 2),
        ("t", 2),
    ]
    assert whole_edges_of(find_by_samples(None, tmp_path)) == {("t", "now.parquet")}


def test_an_index_leaves_the_files_of_a_log_to_the_folder(tmp_path):
    lake = tmp_path / "lake"
    delta(lake / "t", rows(1, 2, 3), rows(4, 5))
    pq.write_table(rows(1, 2), lake / "old.parquet")
    pq.write_table(rows(5), lake / "now.parquet")
    (lake / "towns.csv").write_text("town\nOslo\nRome\nBern\nKyiv\nLima\n")
    build_index(lake, tmp_path / "i.pexeso", parts=["redundancy"])
    result = find_redundancy(tmp_path / "i.pexeso").containments
    assert whole_edges_of(result) == set()
    assert {table.name for table in result.tables} == {"old.parquet", "now.parquet", "towns.csv"}
    reasons = {omission.table: omission.reason for omission in result.left_out}
    assert "it belongs to a table of Delta, " in reasons["t"], reasons


def test_partitions_of_a_log_are_columns(spark, tmp_path):
    whole = pa.concat_tables([rows(1, 2, year=2020), rows(3, year=2021)])
    delta(tmp_path / "t", rows(9, year=2020), whole, partition_by=["year"])
    pq.write_table(whole, tmp_path / "same.parquet")
    containments = find_containments(spark, tmp_path)
    assert whole_edges_of(containments) == {("t", "same.parquet"), ("same.parquet", "t")}


@pytest.mark.parametrize("write", [delta, iceberg])
def test_a_table_with_a_log_stays_and_rebuilds_others(tmp_path, write):
    lake = tmp_path / "lake"
    lake.mkdir()
    write(lake / "t", rows(1, 7), rows(*range(20)))
    pq.write_table(rows(*range(20)), lake / "copy.parquet")
    costs = tmp_path / "costs.toml"
    costs.write_text("accesses = 0\n", encoding="utf-8")
    answer = find_redundancy(lake, costs=costs, verified=True)
    assert answer.refuted == {}
    assert [(entry.table, entry.parent) for entry in answer.plan.delete] == [("copy.parquet", "t")]
    assert answer.plan.delete[0].verified


def test_deleted_rows_and_renamed_columns_leave_a_table_out(spark, tmp_path):
    table = iceberg(tmp_path / "renamed", rows(1, 2))
    with table.update_schema() as change:
        change.rename_column("a", "b")
    pq.write_table(rows(1), tmp_path / "other.parquet")
    delta(tmp_path / "mapped", rows(1))
    log = tmp_path / "mapped" / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "metaData" in line:
            line["metaData"]["configuration"]["delta.columnMapping.mode"] = "name"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    containments = find_containments(spark, tmp_path)
    assert whole_edges_of(containments) == set()
    assert {omission.table: omission.reason for omission in containments.left_out} == {
        name: "its log gives its columns other names than its files have"
        for name in ("mapped", "renamed")
    }


def test_without_the_library_a_table_is_left_out_with_what_to_install(spark, tmp_path, monkeypatch):
    delta(tmp_path / "d", rows(1))
    (tmp_path / "i" / "metadata").mkdir(parents=True)
    (tmp_path / "i" / "metadata" / "v1.metadata.json").write_text("{}")
    pq.write_table(rows(1), tmp_path / "other.parquet")
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.split(".")[0] in ("deltalake", "pyiceberg"):
            raise ModuleNotFoundError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    containments = find_containments(spark, tmp_path)
    assert {omission.table: omission.reason for omission in containments.left_out} == {
        "d": "it is a Delta table: install what reads its log with pip install 'pexeso[delta]'",
        "i": "it is an Iceberg table: install what reads its log with pip install "
        "'pexeso[iceberg]'",
    }


def test_broken_logs_and_missing_files_leave_a_table_out(tmp_path):
    delta(tmp_path / "d", rows(1))
    next((tmp_path / "d").glob("*.parquet")).unlink()
    pq.write_table(rows(1), tmp_path / "other.parquet")
    (tmp_path / "i" / "metadata").mkdir(parents=True)
    (tmp_path / "i" / "metadata" / "v1.metadata.json").write_text("{")
    containments = find_by_samples(None, tmp_path)
    reasons = {omission.table: omission.reason for omission in containments.left_out}
    assert reasons["d"].startswith("its log names the file d/part-")
    assert reasons["d"].endswith("which is not there")
    assert reasons["i"].startswith("its log cannot be read: ")


def test_files_of_a_log_that_lie_elsewhere_are_not_read(tmp_path):
    iceberg(tmp_path / "t", rows(1))
    shutil.copytree(tmp_path / "t", tmp_path / "copy")
    assert len(live_files(tmp_path / "t", "iceberg")) == 1
    with pytest.raises(CannotRead, match=r"t/data/.*\.parquet, which lies elsewhere"):
        live_files(tmp_path / "copy", "iceberg")


def test_logs_are_told_by_their_names(tmp_path):
    names = [
        "_delta_log/0.json",
        "x/y/metadata/00001-ab.metadata.json",
        "x/metadata/a.json",
        "z.csv",
    ]
    assert logged_tables(names) == [LoggedTable(".", "delta"), LoggedTable("x/y", "iceberg")]
    assert log_in(tmp_path) is None
    (tmp_path / "_delta_log").mkdir()
    assert log_in(tmp_path) == LoggedTable(".", "delta")
