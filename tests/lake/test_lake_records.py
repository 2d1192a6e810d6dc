import gzip

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from long_runs import EVERYTHING

from pexeso.errors import ColumnNotFoundError, InputError, TableReadError
from pexeso.lake import catalog, choose, records
from pexeso.lake.catalog import SCHEMA
from pexeso.lake.choose import ColumnRules
from pexeso.lake.files import TableFile, find_tables
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.lake.rows import read_rows, table_path

CITIES = (
    "city,country,n,fixed\nRome,Italy,1,x\nROME "
    ",Italy,2,x\nOslo,Norway,3,x\n,Peru,4,x\nLima,Peru,5,x\n"
)


def records_of(lake, **options):
    batches = [
        b
        for f in find_tables(lake)[0]
        for b in records.lake_records([f], ColumnRules(), Normaliser(), **options)
    ]
    return pa.Table.from_batches(batches, SCHEMA)


def rows_of(table, *names):
    return [tuple(row.values()) for row in table.select(names).to_pylist()]


def of_kind(rows, kind):
    return rows.filter(pc.equal(rows["record"], kind))


def test_a_table_becomes_records_of_itself_its_columns_and_its_values(write, tmp_path):
    write("lake/cities.csv", CITIES)
    rows = records_of(tmp_path / "lake")
    assert rows_of(
        of_kind(rows, "table"), "table", "format", "n_bytes", "encoding", "delimiter"
    ) == [("cities.csv", "delimited", len(CITIES), "utf-8", ",")]
    assert rows_of(of_kind(rows, "table"), "n_rows", "n_columns", "reason", "notes") == [
        (5, 4, None, [])
    ]
    assert rows_of(
        of_kind(rows, "column"), "position", "label", "kind", "n_rows", "n_missing", "n_distinct"
    ) == [
        (0, "city", "text", 5, 1, 3),
        (1, "country", "text", 5, 0, 3),
        (2, "n", "number", 5, 0, 5),
        (3, "fixed", "text", 5, 0, 1),
    ]
    reasons = of_kind(rows, "column")["reason"].to_pylist()
    assert reasons[:2] == [None, None]
    assert reasons[2].startswith("numbers: 100 % of the values")
    assert reasons[3] == "1 distinct value, at least 2 needed (min_distinct)"
    assert rows_of(of_kind(rows, "value"), "table", "position", "value", "text", "count") == [
        ("cities.csv", 0, "rome", "Rome", 2),
        ("cities.csv", 0, "oslo", "Oslo", 1),
        ("cities.csv", 0, "lima", "Lima", 1),
        ("cities.csv", 1, "italy", "Italy", 2),
        ("cities.csv", 1, "norway", "Norway", 1),
        ("cities.csv", 1, "peru", "Peru", 2),
    ]


def test_columns_in_several_passes_have_the_same_records(write, tmp_path, monkeypatch):
    write("lake/cities.csv", CITIES)
    at_once = records_of(tmp_path / "lake").to_pylist()
    for n_bytes in (1, 64):
        monkeypatch.setattr(choose, "PASS_BYTES", n_bytes)
        assert records_of(tmp_path / "lake").to_pylist() == at_once


def test_columns_whose_values_fall_together_are_left_out(write, tmp_path):
    write("lake/a.csv", "x,y\nUSA,-\nusa,--\nU.S.A.,-\nusa,-\nusa,-\n")
    rows = records_of(tmp_path / "lake")
    assert rows_of(of_kind(rows, "column"), "label", "n_distinct", "reason") == [
        ("x", 1, "1 distinct value, at least 2 needed (min_distinct): counted once normalised"),
        ("y", 0, "no values: every cell is missing"),
    ]
    assert len(of_kind(rows, "value")) == 0


def test_bad_tables_are_listed_with_their_reason_and_do_not_stop_a_lake(write, tmp_path):
    write("lake/a.csv", CITIES)
    write("lake/b.csv", b"\x00\x01")
    write("lake/c.csv", "")
    write("lake/d.csv.gz", gzip.compress(CITIES.encode())[:-10])
    write("lake/e.parquet", "no")
    write("lake/f.jsonl", "no")
    write("lake/g.csv", "a,b\n")
    tables = of_kind(records_of(tmp_path / "lake"), "table")
    assert rows_of(tables, "table", "reason") == [
        ("a.csv", None),
        ("b.csv", "b.csv is binary, not delimited text."),
        ("c.csv", "c.csv is empty: it has no header row."),
        ("d.csv.gz", "d.csv.gz is a gzip file that was cut short; write or download it again."),
        ("e.parquet", tables["reason"][4].as_py()),
        ("f.jsonl", "f.jsonl is not JSON lines: 1 of 1 lines hold no object."),
        ("g.csv", None),
    ]
    assert tables["reason"][4].as_py().startswith("e.parquet is no readable Parquet file: ")
    assert tables["fingerprint"].null_count == 0, "all could be read, if not understood"


def test_a_file_that_vanished_has_a_reason(tmp_path):
    file = TableFile("gone.csv", tmp_path / "gone.csv", "delimited", 1)
    batches = list(records.lake_records([file], ColumnRules(), Normaliser()))
    assert batches[0]["reason"].to_pylist() == [
        "gone.csv cannot be read: No such file or directory."
    ]
    assert batches[0]["fingerprint"].to_pylist() == [None]


@pytest.mark.parametrize("place", ["TablesInTurn.open", "profile_cells", "normalised_values"])
@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("odd\nthing"), RecursionError("deep")]
)
def test_whatever_a_table_makes_raise_becomes_a_reason(write, tmp_path, monkeypatch, place, error):
    def fail(*_args, **_options):
        raise error

    write("lake/a.csv", CITIES)
    monkeypatch.setattr(f"{records.__name__}.{place}", fail)
    rows = records_of(tmp_path / "lake")
    reasons = [reason for reason in rows["reason"].to_pylist() if reason]
    assert any(type(error).__name__ in reason and "\n" not in reason for reason in reasons)
    assert len(of_kind(rows, "table")) == 1
    assert len(of_kind(rows, "column")) == (0 if place == "TablesInTurn.open" else 4)
    assert len(of_kind(rows, "value")) == 0


@pytest.mark.parametrize("limit", [1, 2, 4, 5])
def test_batches_are_bounded_and_say_the_same(write, tmp_path, monkeypatch, limit):
    write("lake/a.csv", CITIES)
    whole = records_of(tmp_path / "lake").to_pylist()
    monkeypatch.setattr(catalog, "MAX_RECORDS", limit)
    file = find_tables(tmp_path / "lake")[0][0]
    batches = list(records.lake_records([file], ColumnRules(), Normaliser()))
    assert max(batch.num_rows for batch in batches) <= limit
    assert [row for batch in batches for row in batch.to_pylist()] == whole


def test_the_fingerprint_tells_whether_a_file_changed(write, tmp_path):
    write("lake/a.csv", CITIES)
    write("lake/b.csv", CITIES)
    write("lake/c.csv", CITIES + "\n")
    a, b, c = of_kind(records_of(tmp_path / "lake"), "table")["fingerprint"].to_pylist()
    assert a == b != c


def test_rows_are_read_whole_or_by_column(write, tmp_path):
    write("lake/in/a.csv", "x,x,y\n Rome,,1\n")
    lake = tmp_path / "lake"
    assert read_rows(lake, "in/a.csv").to_pydict() == {"#0": [" Rome"], "#1": [None], "y": ["1"]}
    assert read_rows(lake, "in/a.csv", ["y", "#0"]).to_pydict() == {"y": ["1"], "#0": [" Rome"]}
    assert read_rows(lake / "in" / "a.csv", "a.csv").num_rows == 1


def test_rows_of_what_is_not_there_are_refused(write, tmp_path):
    path = write("lake/a.csv", "x\n1\n")
    lake = tmp_path / "lake"
    (lake / "out.csv").symlink_to(write("secret.csv", "x\n1\n"))
    for name in ("../secret.csv", str(tmp_path / "secret.csv"), "a/../../secret.csv", "", "a\0"):
        with pytest.raises(
            InputError, match=r"named by its path relative to the lake, without '\.\.'"
        ):
            table_path(lake, name)
    with pytest.raises(InputError, match="a symbolic link leads out of it"):
        read_rows(lake, "out.csv")
    with pytest.raises(InputError, match=r"its table is 'a\.csv'\. Got 'b\.csv'\."):
        read_rows(path, "b.csv")
    with pytest.raises(TableReadError, match="No such file"):
        read_rows(lake, "b.csv")
    with pytest.raises(ColumnNotFoundError):
        read_rows(lake, "a.csv", ["y"])
    with pytest.raises(InputError, match="Each column can be asked for once"):
        read_rows(lake, "a.csv", ["x", "#0"])


@pytest.mark.lakes
@pytest.mark.parametrize("name", ["pudding", "wikitables"])
def test_real_lakes_are_read_whole(lake_folder, name):
    files = find_tables(lake_folder(name))[0][: 100 if EVERYTHING else 30]
    batches = [
        b for file in files for b in records.lake_records([file], ColumnRules(), Normaliser())
    ]
    rows = pa.Table.from_batches(batches, SCHEMA)
    tables, columns = of_kind(rows, "table"), of_kind(rows, "column")
    assert len(tables) == len(files)
    assert tables["reason"].null_count == len(files)
    values = of_kind(rows, "value")
    kept = columns.filter(pc.is_null(columns["reason"]))
    assert len(values) == pc.sum(kept["n_distinct"]).as_py()
    assert pc.min(pc.utf8_length(values["value"])).as_py() > 0
