"""Tables that are read together: the records of each are those of the table alone."""

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from long_runs import EVERYTHING, examples, long_but

from pexeso.lake import records
from pexeso.lake.catalog import SCHEMA
from pexeso.lake.cells import CountedCells, is_missing_word
from pexeso.lake.choose import ColumnRules
from pexeso.lake.files import TableFile, find_tables
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.lake.records import lake_records, value_records
from pexeso.sets.part.records import records as token_records

WANTED = (value_records, token_records)
ODD_CELLS = (
    *("", " ", "  \u3000", "-", "--", "\u00a0", "3/5/1953", "13/5/1953", "5/13/1953"),
    *("2020-03-05", "5 mar 1953 14:30", "March 5, 2020", "(march 5, 2020)", "UK", "GER", "FRA"),
    *("USA", "ITA", "IN", "CA", "Austin, TX", "AT&T", "at Colorado", "@ Detroit", "1.", "1.0"),
    *("1.00", "01", "n/a", "\u0142\u00f3d\u017a (Poland)", "\u1e9e", "\u00af", "\u212b"),
    *("e\u0301", "- 5", "A.", " B.", "J. K.", "1,234", ",", "12", "st", "main st", "st. louis"),
    *("O'Neil", "'", "1990-95", "Q1 2020", "a\nb", '"quoted"', "\t", "\U0001f600"),
    *("\u05d0\u05b8", "1e5", "$ 5", "x" * 70),
)


def rows_by_table(batches):
    """The records of each table, by kind, in order."""
    rows = {}
    for row in pa.Table.from_batches(batches, SCHEMA).to_pylist():
        rows.setdefault((row["table"], row["record"]), []).append(row)
    return rows


def sorted_records(batches):
    """All records by kind and table, those of a table in order."""
    rows = pa.Table.from_batches(batches, SCHEMA)
    rows = rows.append_column("at", pa.array(range(len(rows))))
    order = [(name, "ascending") for name in ("record", "table", "at")]
    return rows.sort_by(order).drop_columns("at").combine_chunks()


def one_by_one(files, rules, normaliser):
    return [
        batch for file in files for batch in lake_records([file], rules, normaliser, wanted=WANTED)
    ]


def csv_of(columns):
    names = [f"c{number}" for number in range(len(columns))]
    n_rows = max(map(len, columns), default=0)
    rows = [names] + [
        [column[row] if row < len(column) else "" for column in columns] for row in range(n_rows)
    ]
    return "\n".join(
        ",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows
    ).encode("utf-8", "replace")


_CELLS = st.one_of(st.sampled_from(ODD_CELLS), st.text(max_size=12))
_COLUMNS = st.lists(st.lists(_CELLS, max_size=8), min_size=1, max_size=4)


@settings(
    max_examples=examples(40),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
)
@given(
    tables=st.lists(_COLUMNS, min_size=2, max_size=6),
    batch_bytes=st.sampled_from([1, 3000, 1 << 20]),
    switched=st.sampled_from(
        [{}, {"on": ["qualifiers", "opponents"]}, {"off": ["case", "accents"]}]
    ),
)
def test_tables_read_together_are_read_as_each_alone(
    tmp_path, monkeypatch, tables, batch_bytes, switched
):
    rules, normaliser = ColumnRules(min_rows=1, min_distinct=1), Normaliser().switched(**switched)
    files = []
    for number, columns in enumerate(tables):
        path = tmp_path / f"{number}.csv"
        path.write_bytes(csv_of(columns))
        files.append(TableFile(path.name, path, "delimited", 1))
    monkeypatch.setattr(records, "BATCH_BYTES", batch_bytes)
    together = rows_by_table(lake_records(files, rules, normaliser, wanted=WANTED))
    assert together == rows_by_table(one_by_one(files, rules, normaliser))


def test_odd_files_are_read_together_as_each_alone(write, tmp_path):
    cells = "\n".join(f"{number},{cell!r}" for number, cell in enumerate(ODD_CELLS))
    write("lake/a.csv", f"n,x\n{cells}\n")
    write("lake/binary.csv", b"\x00\x01")
    write("lake/empty.csv", "")
    write("lake/header.csv", "a,b\n")
    write("lake/cut.csv.gz", gzip.compress(cells.encode())[:-10])
    write("lake/latin.csv", "name;n\nM\xfcnchen;1\nK\xf6ln;2\nZ\xfcrich;3\n".encode("latin-1"))
    write("lake/none.parquet", "no")
    write("lake/lines.jsonl", '{"a": 1}\n{"a": "b", "c": [1]}\n')
    write("lake/wide.csv", ",".join(f"c{n}" for n in range(300)) + "\n" + ",".join("x" * 300))
    write("lake/open.csv", 'a,b\n1,"x\n2,y\n3,z\n4,z\n5,z\n6,z\n')
    odd = {"t": pa.array([*ODD_CELLS, None]), "n": pa.array(range(len(ODD_CELLS) + 1))}
    pq.write_table(pa.table(odd), tmp_path / "lake" / "odd.parquet")
    files = find_tables(tmp_path / "lake")[0]
    assert len(files) == 11
    rules = ColumnRules(min_rows=1)
    for chosen in (files, files[::-1]):
        together = rows_by_table(lake_records(chosen, rules, Normaliser(), wanted=WANTED))
        assert together == rows_by_table(one_by_one(chosen, rules, Normaliser()))


def test_a_table_that_fails_does_not_take_others_with_it(write, tmp_path, monkeypatch):
    for name in "abc":
        write(f"lake/{name}.csv", "x,y\n" + "".join(f"{name}{n},{n}\n" for n in range(9)))
    files = find_tables(tmp_path / "lake")[0]
    normalise = records.normalised_values

    def fails(cells, normaliser):
        if "b0" in cells.texts.to_pylist():
            raise MemoryError("no")
        return normalise(cells, normaliser)

    monkeypatch.setattr(records, "normalised_values", fails)
    rows = rows_by_table(lake_records(files, ColumnRules(), Normaliser()))
    [x, y] = rows["b.csv", "column"]
    assert x["reason"] == "its table could not be normalised: MemoryError: no"
    assert y["reason"].startswith("numbers: ")
    assert ("b.csv", "value") not in rows
    assert [len(rows[f"{name}.csv", "value"]) for name in "ac"] == [9, 9]


def test_a_large_table_is_taken_alone(write, tmp_path, monkeypatch):
    for name, n_rows in (("a", 5), ("b", 5), ("c", 2000), ("d", 5)):
        write(f"lake/{name}.csv", "x\n" + "".join(f"{name}{n}\n" for n in range(n_rows)))
    batches = []

    def tell(tables):
        batches.append([table.name for table in tables])
        return iter(())

    monkeypatch.setattr(records, "BATCH_BYTES", 8000)
    list(
        lake_records(find_tables(tmp_path / "lake")[0], ColumnRules(), Normaliser(), wanted=[tell])
    )
    assert batches == [["a.csv", "b.csv"], ["c.csv"], ["d.csv"]]


@given(st.lists(st.lists(st.one_of(st.none(), st.sampled_from(ODD_CELLS)), max_size=9), max_size=5))
def test_cells_are_counted_by_column(columns):
    cells = CountedCells.of([pa.array(column, pa.string()) for column in columns]).trimmed()
    expected = []
    for number, column in enumerate(columns):
        trimmed = [pc.utf8_trim_whitespace(cell).as_py() for cell in column if cell is not None]
        kept = [cell for cell in trimmed if cell and not is_missing_word(cell)]
        expected += [(number, cell, kept.count(cell)) for cell in dict.fromkeys(kept)]
    assert expected == list(
        zip(cells.columns.tolist(), cells.texts.to_pylist(), cells.counts.tolist(), strict=True)
    )


@pytest.mark.lakes
@pytest.mark.parametrize(
    "name", long_but(["wikitables", "countries"], ["pudding", "wikitables", "countries"])
)
def test_real_lakes_are_read_together_as_each_alone(lake_folder, name):
    files = find_tables(Path(lake_folder(name)))[0][: 200 if EVERYTHING else 60]
    together = sorted_records(lake_records(files, ColumnRules(), Normaliser(), wanted=WANTED))
    assert together.equals(sorted_records(one_by_one(files, ColumnRules(), Normaliser())))
