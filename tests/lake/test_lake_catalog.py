"""Tests of the catalog over several folders: later removals and additions apply."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pexeso.lake.catalog import (
    COLUMNS,
    REMOVED,
    REMOVED_SCHEMA,
    TABLES,
    TABLES_SCHEMA,
    Catalog,
    files_in,
    is_part,
    part_name,
    write_rows,
)


def folder_with(path, tables=(), removed=None, number=0):
    path.mkdir(exist_ok=True)
    rows = [{"table": name, "n_rows": number} for name in tables]
    pq.write_table(
        pa.Table.from_pylist(rows, schema=TABLES_SCHEMA), path / part_name(TABLES, number)
    )
    if removed is not None:
        write_rows(path, REMOVED, pa.table([pa.array(removed, pa.string())], schema=REMOVED_SCHEMA))
    return path


@pytest.fixture
def catalog(tmp_path):
    first = folder_with(tmp_path / "catalog", ["a", "b", "c"])
    folder_with(first, ["d"], number=1)
    second = folder_with(tmp_path / "catalog.2", ["b", "e"], removed=["b", "d"])
    third = folder_with(tmp_path / "catalog.3", [], removed=["e", "never"])
    return Catalog(files_in([first, second, third]))


def test_what_a_later_folder_removed_does_not_hold_and_what_it_added_does(catalog):
    assert catalog.tables(["table"])["table"].to_pylist() == ["a", "c", "b"]
    assert catalog.tables(["n_rows", "table"]).column_names == ["n_rows", "table"]
    assert catalog.tables().schema.names == TABLES_SCHEMA.names
    assert catalog.columns().num_rows == 0


def test_only_some_tables_are_read(catalog):
    assert catalog.tables(["table"], among=pa.array(["b", "d", "a", "x"]))["table"].to_pylist() == [
        "a",
        "b",
    ]
    assert catalog.tables(["n_rows"], among=pa.array(["zzz"])).num_rows == 0
    assert catalog.tables(["n_rows"], among=pa.array([], pa.string())).num_rows == 0


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("tables.parquet", False),
        ("tables-00000.parquet", True),
        ("tables-000000012.parquet", True),
        ("tables-1.parquet", False),
        ("tables-00000.parquet.0af", False),
        ("xtables.parquet", False),
        ("columns-00000.parquet", False),
    ],
)
def test_files_are_told_by_their_names(name, is_one):
    assert is_part(TABLES, name) is is_one
    assert is_part(TABLES, part_name(COLUMNS, 3)) is False


def with_reasons(path, reasons):
    path.mkdir()
    rows = [{"table": table, "reason": reason} for table, reason in reasons.items()]
    write_rows(path, TABLES, pa.Table.from_pylist(rows, schema=TABLES_SCHEMA))
    return Catalog(files_in([path]))


def test_the_name_of_a_file_stands_for_the_one_table_in_it(tmp_path):
    catalog = with_reasons(
        tmp_path / "catalog",
        {
            "a.csv": None,
            "one.xlsx#One": None,
            "one.xlsx#Chart": "it is no sheet of cells",
            "one.xlsx.zip/a.csv": None,
            "two.xlsx#A": None,
            "two.xlsx#B": None,
            "none.db#t": "it has no column",
            "z.zip/b.xlsx#C": None,
            "sheet.xlsx#x.db": None,
            "sheet.xlsx#x.db#y": None,
            "broken.zip": "damaged",
        },
    )
    assert catalog.named("one.xlsx") == "one.xlsx#One"
    assert catalog.named("z.zip") == catalog.named("z.zip/b.xlsx") == "z.zip/b.xlsx#C"
    for name in ("a.csv", "one.xlsx#One", "two.xlsx", "none.db", "sheet.xlsx#x.db", "broken.zip"):
        assert catalog.named(name) == name
    for name in ("one", "ONE.XLSX", "gone.xlsx", "", "one.xlsx#", "z.zip/"):
        assert catalog.named(name) == name
    assert catalog.why_not("two.xlsx", "lake") == (
        "'two.xlsx' holds 2 tables; name one of them: 'two.xlsx#A', 'two.xlsx#B'."
    )
    assert catalog.why_not("broken.zip", "lake").endswith("is not in the index: damaged.")
    assert catalog.why_not("gone.xlsx", "lake").startswith("The lake has no table 'gone.xlsx'.")
