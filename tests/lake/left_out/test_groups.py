"""Groups of what was left out, over the files of a catalog, against counting by hand."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from read_tables import records_of

from pexeso.build.diagnostics.info import ReasonListing
from pexeso.lake.catalog import (
    COLUMNS,
    COLUMNS_SCHEMA,
    REMOVED,
    REMOVED_SCHEMA,
    TABLES,
    TABLES_SCHEMA,
    Catalog,
    files_in,
    part_name,
    write_rows,
)
from pexeso.lake.files import find_tables
from pexeso.lake.left_out import NOTES, count_repaired, groups_in, groups_of, in_words, left_out


def written(folder, number, kind, rows):
    folder.mkdir(exist_ok=True)
    schema = {TABLES: TABLES_SCHEMA, COLUMNS: COLUMNS_SCHEMA}[kind]
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), folder / part_name(kind, number))


def column(table, label, reason):
    return {"table": table, "position": 0, "name": label, "label": label, "reason": reason}


def rows_too_few(table, label, n):
    noun = "row" if n == 1 else "rows"
    return column(table, label, f"{n} {noun}, at least 5 needed (min_rows)")


@pytest.fixture
def catalog(tmp_path):
    """Two folders of two files each; the second folder takes tables of the first away."""
    first, second = tmp_path / "catalog", tmp_path / "catalog.2"
    whole = {"reason": None, "notes": []}
    rows = [
        {"table": "a.csv", **whole},
        {"table": "b.csv", "reason": "b.csv is empty: it has no header row."},
        {"table": "gone.csv", "reason": "gone.csv is empty: it has no header row."},
    ]
    written(first, 0, TABLES, rows)
    notes = ["not UTF-8: read as cp1252, a guess", "rows longer than the header lost cells: 3"]
    rows = [
        {"table": "c.csv", "reason": None, "notes": notes},
        {"table": "d.png", "reason": "not a table: a picture"},
        {"table": "e.csv", "reason": "e.csv is empty: it holds no JSON object."},
    ]
    written(first, 1, TABLES, rows)
    rows = [
        rows_too_few("a.csv", "x", 1),
        rows_too_few("a.csv", "y", 1),
        column("a.csv", "z", None),
        rows_too_few("gone.csv", "x", 0),
    ]
    written(first, 0, COLUMNS, rows)
    written(first, 1, COLUMNS, [column("c.csv", "n", "numbers: 62.5 % of the values, and so on")])
    written(
        second,
        0,
        TABLES,
        [{"table": "f.csv", "reason": None, "notes": ["not UTF-8: read as latin-1, a guess"]}],
    )
    written(second, 0, COLUMNS, [rows_too_few("f.csv", "x", 4), rows_too_few("f.csv", "y", 4)])
    write_rows(
        second, REMOVED, pa.table([pa.array(["gone.csv"], pa.string())], schema=REMOVED_SCHEMA)
    )
    return Catalog(files_in([first, second]))


def test_reasons_are_counted_over_all_files_of_a_catalog_and_removed_tables_are_not(catalog):
    assert [group.to_dict() for group in left_out(catalog)] == [
        {"reason": "empty", "tables": 2, "examples": ["b.csv", "e.csv"]},
        {"reason": "not a table: a picture", "tables": 1, "examples": ["d.png"]},
        {
            "reason": "1 to 4 rows, at least 5 needed (min_rows)",
            "columns": 4,
            "examples": ["a.csv:x", "f.csv:x", "a.csv:y"],
        },
        {"reason": "numbers", "columns": 1, "examples": ["c.csv:n"]},
    ]


def test_a_reason_that_all_have_is_kept_whole(catalog):
    details = {group.reason: group.detail for group in left_out(catalog)}
    assert details["empty"] is None
    assert details["numbers"] == "numbers: 62.5 % of the values, and so on"


def test_notes_are_counted_and_so_are_the_tables_that_have_some(catalog):
    assert [group.to_dict() for group in groups_of(catalog, NOTES)] == [
        {"reason": "not UTF-8", "tables": 2, "examples": ["c.csv", "f.csv"]},
        {"reason": "rows longer than the header lost cells", "tables": 1, "examples": ["c.csv"]},
    ]
    assert count_repaired(catalog) == 2


def test_a_listing_has_every_row_once_by_group(catalog):
    listing = ReasonListing(catalog)
    assert [(row.group.reason.split(",")[0], row.name, row.reason) for row in listing] == [
        ("empty", "b.csv", "empty: it has no header row"),
        ("empty", "e.csv", "empty: it holds no JSON object"),
        ("not a table: a picture", "d.png", "not a table: a picture"),
        ("1 to 4 rows", "a.csv:x", "1 row, at least 5 needed (min_rows)"),
        ("1 to 4 rows", "a.csv:y", "1 row, at least 5 needed (min_rows)"),
        ("1 to 4 rows", "f.csv:x", "4 rows, at least 5 needed (min_rows)"),
        ("1 to 4 rows", "f.csv:y", "4 rows, at least 5 needed (min_rows)"),
        ("numbers", "c.csv:n", "numbers: 62.5 % of the values, and so on"),
    ]
    assert len(listing) == 8
    assert listing.to_pandas()["table"].tolist() == [row.table for row in listing]
    document = listing.to_dict()
    assert document["groups"] == [group.to_dict() for group in left_out(catalog)]
    assert document["rows"][0] == {
        "table": "b.csv",
        "column": None,
        "group": "empty",
        "reason": "empty: it has no header row",
    }


def test_the_notes_of_a_table_stand_in_each_of_their_groups(catalog):
    assert [(row.group.reason, row.name) for row in ReasonListing(catalog, notes=True)] == [
        ("not UTF-8", "c.csv"),
        ("not UTF-8", "f.csv"),
        ("rows longer than the header lost cells", "c.csv"),
    ]


def test_of_a_catalog_of_nothing_there_are_no_groups(tmp_path):
    (tmp_path / "catalog").mkdir()
    empty = Catalog(files_in([tmp_path / "catalog"]))
    assert left_out(empty) == ()
    assert list(ReasonListing(empty)) == []
    written(tmp_path / "catalog", 0, TABLES, [{"table": "a.csv"}])
    assert left_out(empty) == ()
    assert count_repaired(empty) == 0


def test_what_a_listing_skips_is_counted_in_order_of_names(tmp_path):
    rows = [{"table": f"{n}.png", "reason": "not a table: a picture"} for n in "cab"]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "part-1.parquet")
    rows = [{"table": ".git", "reason": "hidden: its name starts with a dot"}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "part-0.parquet")
    groups = groups_in(tmp_path)
    said = "not a table: a picture (3 files: a.png, b.png, c.png)"
    assert in_words(groups) == f"{said}; hidden (1 file: .git)"
    assert in_words(groups, 1) == f"{said}; and 1 more reason"
    assert in_words(()) == "nothing"


def test_each_file_of_a_messy_lake_is_in_the_group_that_a_person_expects(tmp_path, monkeypatch):
    lake = tmp_path / "lake"
    (lake / "sub").mkdir(parents=True)
    for n in range(5):
        (lake / f"rows{n}.csv").write_text("city\n" + "x\n" * n, encoding="utf-8")
    (lake / "empty.csv").touch()
    (lake / "sub" / "empty.jsonl").touch()
    (lake / "README").write_text("prose", encoding="utf-8")
    (lake / ".DS_Store").touch()
    (lake / "photo.csv").write_bytes(bytes(range(256)))
    (lake / "cut.parquet").write_bytes(b"PAR1 and more")
    (lake / "sub" / "cut.parquet").write_bytes(b"P")
    (lake / "not").write_text("a file with a name like a reason", encoding="utf-8")
    numbers = "".join(f"{n},{n if n % 3 else 'x'}\n" for n in range(9))
    (lake / "numbers.csv").write_text(f"all,most\n{numbers}", encoding="utf-8")
    locked = lake / "locked.csv"
    locked.write_text("city\nOslo\n", encoding="utf-8")

    def denied(path, *arguments, **options):
        if str(path) == str(locked):
            raise PermissionError(13, "Permission denied", str(path))
        return open(path, *arguments, **options)

    # The tests may run as a user who may read everything.
    monkeypatch.setattr("pexeso.lake.readers.table.open", denied, raising=False)
    tables, skipped = find_tables(lake)
    records = records_of(tables)
    catalog = tmp_path / "catalog"
    rows = [row for row in records if row["record"] == "table"]
    rows += [{"table": file.path, "reason": file.reason} for file in skipped]
    written(catalog, 0, TABLES, rows)
    written(catalog, 0, COLUMNS, [row for row in records if row["record"] == "column"])
    groups = left_out(Catalog(files_in([catalog])))
    summary = {group.reason: (group.kind, group.count) for group in groups}
    assert summary == {
        "empty": (TABLES, 2),
        "no readable Parquet file": (TABLES, 2),
        "not a table by its extension": (TABLES, 2),
        "binary, not delimited text": (TABLES, 1),
        "cannot be read": (TABLES, 1),
        "hidden": (TABLES, 1),
        "0 to 4 rows, at least 5 needed (min_rows)": (COLUMNS, 5),
        "numbers": (COLUMNS, 2),
    }
