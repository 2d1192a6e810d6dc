"""Tables of far more columns than any table has: left out with a sentence."""

import io
import json
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from every_format import ods
from long_runs import EVERYTHING

from pexeso.errors import TableReadError
from pexeso.lake.choose import ColumnRules
from pexeso.lake.containers.reader import read_table
from pexeso.lake.files import find_tables
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.lake.readers.table import MAX_COLUMNS
from pexeso.lake.records import lake_records

MANY = 1_000_000
MANY_KEYS = MANY if EVERYTHING else 30_000


def spreadsheet(rows, dimension=""):
    """Return an .xlsx with a sheet of this XML beside one of two columns."""
    plain = "".join(
        f'<row r="{n}">{cell(f"A{n}", f"a{n}")}<c r="B{n}"><v>{n}</v></c></row>'
        for n in range(1, 9)
    )
    spaces = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"><Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/>'
        f'<Override PartName="/xl/s1.xml" ContentType="{kind}.worksheet+xml"/>'
        f'<Override PartName="/xl/s2.xml" ContentType="{kind}.worksheet+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r" '
        f'Type="{relations}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook {spaces} xmlns:r="{relations}"><sheets>'
        '<sheet name="Wide" sheetId="1" r:id="r1"/><sheet name="Plain" sheetId="2" r:id="r2"/>'
        "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships">'
        f'<Relationship Id="r1" Type="{relations}/worksheet" Target="s1.xml"/>'
        f'<Relationship Id="r2" Type="{relations}/worksheet" Target="s2.xml"/></Relationships>',
        "xl/s1.xml": f"<worksheet {spaces}>{dimension}<sheetData>{rows}</sheetData></worksheet>",
        "xl/s2.xml": f"<worksheet {spaces}><sheetData>{plain}</sheetData></worksheet>",
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, f'<?xml version="1.0" encoding="UTF-8"?>{text}')
    return packed.getvalue()


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
    packed = io.BytesIO()
    content = "" if empty else "<text:p>x</text:p>"
    kind = "" if empty else ' office:value-type="string"'
    more = (
        f'<table:table-cell table:number-columns-repeated="{times}"{kind}>{content}'
        "</table:table-cell></table:table-row>"
    )
    with zipfile.ZipFile(io.BytesIO(ods())) as given, zipfile.ZipFile(packed, "w") as archive:
        for name in given.namelist():
            data = given.read(name)
            if name == "content.xml":
                data = data.replace(b"</table:table-row>", more.encode())
            archive.writestr(name, data)
    return packed.getvalue()


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
    reasons = {row["table"]: row["reason"] for row in records_of(tmp_path)}
    read = {"plain.csv", "cells.xlsx#Plain", "declared.xlsx#Wide", "declared.xlsx#Plain"}
    assert {name for name, reason in reasons.items() if reason is None} == read
    assert set(reasons) == read | {"line.csv", "file.parquet", "cells.xlsx#Wide"}


def records_of(folder):
    """Return what is known of each table of a lake, those that are left out by their files too."""
    tables, skipped = find_tables(folder)
    rows = [{"table": file.path, "reason": file.reason} for file in skipped]
    for batch in lake_records(tables, ColumnRules(), Normaliser()):
        rows += [row for row in batch.to_pylist() if row["record"] == "table"]
    return rows
