"""The catalog in many files: one order, ids without a gap, whatever the number of tasks."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pexeso.build import catalog_writer
from pexeso.build.catalog_writer import (
    read_record_files,
    record_files,
    write_catalog,
    write_sorted,
)
from pexeso.build.source import write_records
from pexeso.build.workers import LocalWorkers, run_tasks
from pexeso.lake.catalog import (
    COLUMNS,
    COLUMNS_SCHEMA,
    SCHEMA,
    TABLES,
    TABLES_SCHEMA,
    batch_of,
    part_name,
)

# By code point: the last comes after the one before, though UTF-16 orders them the other way round.
NAMES = ["B.csv", "a.csv", "a/b.csv", "é.csv", "\uffee.csv", "\U0001f600.csv"]


def records():
    """Return unordered column records; every third is left out, and one name occurs twice."""
    rows = [
        {"table": table, "position": position, "name": name, "label": f"l{position}", "n_rows": 5}
        | ({"reason": "numbers"} if (len(table) + position) % 3 == 0 else {})
        for table in NAMES
        for position, name in enumerate(["z", "A", "", "z", "\U0001f600", "\uffee"])
    ]
    rows = rows[::2] + rows[1::2][::-1]
    schema = pa.schema([field for field in COLUMNS_SCHEMA if field.name != "column_id"])
    return pa.Table.from_pylist(rows, schema=schema), rows


def sorted_files(kind, tables, folder, **options):
    """Write tables, each of a task of its own; return the rows of the files, and how many are kept.

    The files lie in a folder of their own.
    """
    catalog, scratch = folder / "catalog", folder / "scratch"
    for place in (catalog, scratch):
        place.mkdir(exist_ok=True)
    n_kept = write_sorted(
        LocalWorkers(),
        kind,
        tables,
        lambda table: table,
        catalog,
        scratch,
        n_rows=sum(map(len, tables)),
        n_bytes=0,
        **options,
    )
    paths = sorted(catalog.glob(f"{kind}-*.parquet"))
    assert [path.name for path in paths] == [part_name(kind, n) for n in range(len(paths))]
    return [pq.read_table(path) for path in paths], n_kept


@pytest.mark.parametrize("rows_per_file", [1000, 8, 1])
def test_columns_are_numbered_in_one_order(tmp_path, monkeypatch, rows_per_file):
    monkeypatch.setattr(catalog_writer, "ROWS_PER_FILE", rows_per_file)
    table, rows = records()
    parts = [table.slice(0, 5), table.slice(5, 20), table.slice(25)]
    files, n_kept = sorted_files(COLUMNS, parts, tmp_path, first_id=40)
    assert (len(files) > 1) == (rows_per_file < 1000)
    columns = pa.concat_tables(files)
    assert columns.schema.equals(COLUMNS_SCHEMA)
    expected, next_id = [], 40
    for row in sorted(rows, key=lambda row: (row["table"], row["name"], row["position"])):
        kept = "reason" not in row
        expected.append(
            {**dict.fromkeys(COLUMNS_SCHEMA.names), **row, "column_id": next_id if kept else None}
        )
        next_id += kept
    assert columns.to_pylist() == expected
    assert n_kept == next_id - 40


def test_files_end_at_the_same_rows_however_many_tasks_there_are(tmp_path, monkeypatch):
    monkeypatch.setattr(catalog_writer, "ROWS_PER_FILE", 8)
    table, _ = records()
    files_of_runs = []
    for n_tasks in (1, 2, len(table)):
        step = -(-len(table) // n_tasks)
        parts = [table.slice(first, step) for first in range(0, len(table), step)]
        folder = tmp_path / str(n_tasks)
        folder.mkdir()
        files_of_runs.append(sorted_files(COLUMNS, parts, folder, first_id=0)[0])
    assert len(files_of_runs[0]) > 1
    assert files_of_runs[0] == files_of_runs[1] == files_of_runs[2]


def test_tables_and_what_is_none_are_in_one_order(tmp_path, monkeypatch):
    monkeypatch.setattr(catalog_writer, "ROWS_PER_FILE", 3)
    rows = [
        {"table": name, "format": "delimited", "n_bytes": 7, "notes": ["a note"]} for name in NAMES
    ]
    skipped = pa.table({"table": ["b.txt", "A.doc"], "reason": ["no table"] * 2})
    tables = [pa.Table.from_pylist(rows, schema=TABLES_SCHEMA), skipped]
    files, n_kept = sorted_files(TABLES, tables, tmp_path)
    table = pa.concat_tables(files)
    assert table.schema.equals(TABLES_SCHEMA)
    assert table["table"].to_pylist() == sorted([*NAMES, "b.txt", "A.doc"])
    assert n_kept == 6
    assert table.to_pylist()[0] == {
        **dict.fromkeys(TABLES_SCHEMA.names),
        "table": "A.doc",
        "reason": "no table",
    }


def test_ids_that_columns_have_are_left(tmp_path):
    table = pa.table({"table": ["b", "a"], "position": [0, 0], "name": ["x", "x"],
                      "reason": pa.nulls(2, pa.string()), "column_id": [3, 9]})  # fmt: skip
    [columns], _ = sorted_files(COLUMNS, [table.cast(pa.schema([
        COLUMNS_SCHEMA.field(name).with_nullable(True) for name in table.column_names
    ]))], tmp_path)  # fmt: skip
    assert columns["column_id"].to_pylist() == [9, 3]


@pytest.mark.parametrize("tables", [[], [records()[0].slice(0, 0)]])
def test_no_row_is_an_empty_file(tmp_path, tables):
    [columns], written = sorted_files(COLUMNS, tables, tmp_path, first_id=0)
    assert written == 0
    assert columns.schema.equals(COLUMNS_SCHEMA)
    assert len(columns) == 0


RECORDS = [
    {"record": "column", "table": "a.csv", "position": 0, "name": "x", "label": "x"},
    {"record": "column", "table": "a.csv", "position": 1, "name": "y", "reason": "numbers"},
    {"record": "table", "table": "a.csv", "n_bytes": 7, "notes": ["a note"]},
    {"record": "value", "table": "a.csv", "position": 0, "value": "v", "text": "V", "count": 2},
    {"record": "value", "table": "a.csv", "position": 1, "value": "w", "text": "w", "count": 1},
]


def write_records_of(rows, attempt):
    write_records(iter([batch_of(rows)]), attempt)


def test_records_of_several_kinds_go_to_folders_of_their_own(tmp_path):
    run_tasks(LocalWorkers(), write_records_of, [RECORDS, RECORDS[2:3]], tmp_path)
    read = {
        kind: read_record_files(record_files(tmp_path, kind), SCHEMA.names[1:])
        for kind in ("column", "table", "value", "token")
    }
    counts = {kind: rows.num_rows for kind, rows in read.items()}
    assert counts == {"column": 2, "table": 2, "value": 2, "token": 0}
    assert [{"record": "column", **row} for row in read["column"].to_pylist()] == batch_of(
        RECORDS[:2]
    ).to_pylist()


def test_values_of_columns_that_are_left_out_are_no_postings(tmp_path):
    run_tasks(LocalWorkers(), write_records_of, [RECORDS], tmp_path)
    for name in ("skipped", "catalog", "stage"):
        (tmp_path / name).mkdir()
    pq.write_table(
        pa.table({"table": ["b.txt"], "reason": ["no table"]}), tmp_path / "skipped" / "0.parquet"
    )
    places = (tmp_path / name for name in ("skipped", "catalog", "stage"))
    facts = write_catalog(LocalWorkers(), tmp_path, *places, 5)
    assert facts == {"columns": 1, "postings": 1, "values": 1}
    assert pq.read_table(tmp_path / "stage" / "postings").to_pylist() == [
        {"column_id": 5, "value": "v", "text": "V", "count": 2}
    ]
    assert pq.read_table(tmp_path / "stage" / "values").to_pylist() == [{"value": "v"}]
    tables = pq.read_table(tmp_path / "catalog" / "tables-00000.parquet").to_pylist()
    assert [(row["table"], row["reason"]) for row in tables] == [
        ("a.csv", None), ("b.txt", "no table"),
    ]  # fmt: skip
