"""Tables of far more columns than any table has: left out with a sentence."""

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from every_format import LINES, book, ods, with_member
from long_runs import EVERYTHING
from read_tables import records_of

from pexeso.errors import TableReadError
from pexeso.lake.containers.reader import read_table
from pexeso.lake.files import find_tables
from pexeso.lake.readers.table import MAX_COLUMNS

MANY = 1_000_000
MANY_KEYS = MANY if EVERYTHING else 30_000


def spreadsheet(rows, dimension=""):
    """Return an .xlsx with a sheet of this XML beside one of two columns."""
    spaces = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    sheet = f"<worksheet {spaces}>{dimension}<sheetData>{rows}</sheetData></worksheet>"
    plain = book(Wide=[["a"]], Plain=[[f"a{n}", n] for n in range(1, 9)])
    return with_member(plain, "xl/worksheets/sheet1.xml", lambda _: sheet.encode())


def cell(reference, text):
    return f'<c r="{reference}" t="inlineStr"><is><t>{text}</t></is></c>'


def far_cells():
    """Return rows with cells in the columns A and BDWGN, the millionth."""
    return "".join(
        f'<row r="{n}">{cell(f"A{n}", f"a{n}")}{cell(f"BDWGN{n}", f"z{n}")}</row>'
        for n in range(1, 9)
    )


def declared():
    """Return rows of two cells in a sheet that says that it has a million columns."""
    return "".join(
        f'<row r="{n}">{cell(f"A{n}", f"a{n}")}{cell(f"B{n}", f"b{n}")}</row>' for n in range(1, 9)
    )


def repeated(times, *, empty):
    """Return an .ods whose rows end with one cell that is repeated."""
    content = "" if empty else "<text:p>x</text:p>"
    kind = "" if empty else ' office:value-type="string"'
    more = (
        f'<table:table-cell table:number-columns-repeated="{times}"{kind}>{content}'
        "</table:table-cell></table:table-row>"
    )
    end = b"</table:table-row>"
    return with_member(ods(LINES), "content.xml", lambda xml: xml.replace(end, more.encode()))


def parquet():
    sink = io.BytesIO()
    column = pa.array(["x"] * 5)
    pq.write_table(pa.table([column] * 20_000, [f"c{at}" for at in range(20_000)]), sink)
    return sink.getvalue()


WIDE = {
    "line.csv": lambda: (",".join(f"c{at}" for at in range(MANY)) + "\n").encode(),
    "rows.csv": lambda: (
        ",".join(f"c{at}" for at in range(MANY)) + "\n" + "1," * MANY + "\n"
    ).encode(),
    "object.json": lambda: json.dumps([{f"k{at}": at for at in range(MANY_KEYS)}]).encode(),
    "lines.jsonl": lambda: (json.dumps({f"k{at}": at for at in range(MANY_KEYS)}) + "\n").encode(),
    "file.parquet": parquet,
    "cells.xlsx": lambda: spreadsheet(far_cells()),
}
READ = {
    "declared.xlsx": lambda: spreadsheet(declared(), '<dimension ref="A1:BDWGN1048576"/>'),
    "repeated_empty.ods": lambda: repeated(MANY, empty=True),
}
"""What says that it has many columns, and has few."""
IN_A_LAKE = ("line.csv", "file.parquet", "cells.xlsx", "declared.xlsx")


@pytest.mark.parametrize("name", WIDE)
def test_far_too_many_columns_are_refused_with_a_sentence(tmp_path, name):
    (tmp_path / name).write_bytes(WIDE[name]())
    shown = tmp_path / (f"{name}#Wide" if name.endswith(".xlsx") else name)
    with pytest.raises(TableReadError) as error:
        read_table(shown)
    said = str(error.value)
    assert "\n" not in said
    assert len(said) < 400
    assert f"a table has at most {MAX_COLUMNS:,}" in said


@pytest.mark.parametrize("name", READ)
def test_columns_that_are_only_declared_cost_nothing(tmp_path, name):
    (tmp_path / name).write_bytes(READ[name]())
    table = read_table(tmp_path / (f"{name}#Wide" if name.endswith(".xlsx") else name))
    assert len(table.columns) < 10
    assert table.n_rows >= 7


def test_a_full_cell_repeated_a_million_times_is_cut_at_the_widest_table(tmp_path):
    (tmp_path / "repeated.ods").write_bytes(repeated(MANY, empty=False))
    table = read_table(tmp_path / "repeated.ods")
    assert len(table.columns) == MAX_COLUMNS
    assert any("as wide as one can be" in note for note in table.notes)


def test_the_others_of_a_lake_are_read(tmp_path):
    for name in IN_A_LAKE:
        (tmp_path / name).write_bytes({**WIDE, **READ}[name]())
    (tmp_path / "plain.csv").write_text("city,n\nOslo,1\nRome,2\nBern,3\nRiga,4\nCork,5\n")
    tables, skipped = find_tables(tmp_path)
    reasons = {file.path: file.reason for file in skipped}
    rows = [row for row in records_of(tables) if row["record"] == "table"]
    reasons |= {row["table"]: row["reason"] for row in rows}
    read = {"plain.csv", "cells.xlsx#Plain", "declared.xlsx#Wide", "declared.xlsx#Plain"}
    assert {name for name, reason in reasons.items() if reason is None} == read
    assert set(reasons) == read | {"line.csv", "file.parquet", "cells.xlsx#Wide"}
