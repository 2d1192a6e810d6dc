"""Spreadsheets: what sheets hold, what is a table of it, and damaged, encrypted and huge ones."""

import base64
import datetime
import io
import zipfile
import zlib

import openpyxl
import pyarrow as pa
import pytest
from every_format import book, ods, with_member

from pexeso.errors import TableReadError
from pexeso.lake.readers.table import FileSource
from pexeso.lake.typed.sandbox import InnerTable
from pexeso.lake.typed.spreadsheets import SHEETS

XLS = (
    "c-rk)O=uHA6#izjY0}c4q^3eElv1#2e-7eBkv3W}Jz47yC?aUvU2ABvTatLF7ppZ#LG)ztQmF?oRWDUhK|Og"
    "8>d&Dd2&o<gK~U+T&HCnL*Z!D712s_DZ<#l5-psf2GV|sq`*u2*8Gl$eixudA2U)8WB};6AQmIo2fa)zvs!r"
    "~wWVzT-DD~4smU!{B;*C$vp`7noD0ra0Bnf<`bQ(kGHVwU@i0EV=dWH0%U8od$3T{)XL@oPO&9a~6CYJZP?K"
    "779*m8|!JGIS-Q<x5SH}AIN_@vUvb(JIq9x>-5TXv!buVoxxx-N2Uz1W|K_Qp0?MZH>%3DA^w>4u(=<tp4o8"
    "8A#}i^tnEErSqE_XK`g4Zsg)UB75>?ZveVkbQ2s-M5O}Pm{RPep69_5m;x14CXWi^&U01ln+ExQ9YSP6^`*f"
    "?t@{b&PR=bdF<ttE)%uwkEVu69n#IAm`*Ws&b(k~x<)mJlQENOI`zbWZjf?3VaAhlW%3~4jU%vZ<EY@}R8CT"
    "(KBXSyMHL{w=kI-gf2gk~e1<I}d|2d;l&#W#Shy@1M6To-{t0vl0nN;4VR?n$x`p*RmLZCG%A0y>Y$Y<vZLV"
    "@{6ZNx;@gclziN2lm^w%Sg>(gJtJ4m1Gn!OmBoC%Mkk&ZZx`0^P=t7sKtw<Ml~om|+P&nK3(e{Dp5C1Cq*+2"
    ">{z7Ua?+1X<=va&*L>l46gQWQ#m(!E8Am&#8aG?5Ri#>A!+<bCf(K4^Ls9YV&e)a^qc)^lxJh&y$DeVV>9Kd"
    "6;+Sl}dUfE_oeFHKydtX|r9#`b7p-jf_QXw8-EwL%uO{;lhOr7cN}5C>jJ`J#!ardD-&X7dD^$U1xz(*8NQK"
    "-{L4tdQ$Y4@*oV#6BsTiem27^oOg*ea-8pl5+|tl1P0N^ehd~IzjWaiOMlOriGlT7LWTC9EyT}%-2ZRT$`dU"
)
"""Written by xlwt: sheets "Cities" of three rows and "nothing"."""
CITIES = {
    "city": ["Oslo", "Bergen", "Tromsø"],
    "people": [709037, 291940, 77992],
    "founded": [datetime.date(year, 1, 1) for year in (1948, 1972, 1964)],
}
CITY_ROWS = [list(CITIES), *zip(*CITIES.values(), strict=True)]


def xls() -> bytes:
    return zlib.decompress(base64.b85decode("".join(XLS)))


def saved(made: openpyxl.Workbook) -> bytes:
    sink = io.BytesIO()
    made.save(sink)
    return sink.getvalue()


def source(data: bytes, name: str = "book.xlsx", **limits) -> FileSource:
    return FileSource(name, data=data, **limits)


def read(data: bytes, sheet: str = "S", name: str = "book.xlsx"):
    table = SHEETS.read(source(data, name), sheet)
    return table, [column.to_pylist() for column in table.rows.columns]


def named(data: bytes, sheet: str = "S") -> dict[str, list]:
    table, columns = read(data, sheet)
    return dict(zip(table.rows.column_names, columns, strict=True))


BOOKS = {
    "book.xlsx": lambda: book(Cities=CITY_ROWS),
    "book.ods": lambda: ods(CITY_ROWS),
    "book.xls": xls,
}


@pytest.mark.parametrize("name", BOOKS)
def test_a_table_is_read_with_its_types(name) -> None:
    table, columns = read(BOOKS[name](), "Cities", name)
    assert dict(zip(table.rows.column_names, columns, strict=True)) == CITIES
    assert table.rows.schema.types == [pa.string(), pa.int64(), pa.date32()]
    assert table.notes == []


def test_sheets_are_listed_in_their_order_with_the_reason_of_those_that_are_no_table() -> None:
    made = openpyxl.Workbook()
    made.active.title = "first"
    made.active.append(["a"])
    made.create_sheet("empty")
    hidden = made.create_sheet("hidden")
    hidden.append(["b"])
    hidden.append([1])
    hidden.sheet_state = "veryHidden"
    made.create_chartsheet("chart")
    data = saved(made)
    assert SHEETS.tables_in(source(data)) == [
        InnerTable("first"),
        InnerTable("empty", "the sheet holds no cell"),
        InnerTable("hidden"),
        InnerTable("chart", "it is no sheet of cells but a chart, a dialog or a macro"),
    ]
    assert read(data, "hidden")[0].notes == ["the sheet is hidden"]
    for name, reason in (("empty", "holds no cell"), ("chart", "no sheet of cells"), ("x", "'x'")):
        with pytest.raises(TableReadError, match=rf"^book\.xlsx has no .*{reason}"):
            SHEETS.read(source(data), name)
    with pytest.raises(TableReadError) as error:
        SHEETS.read(source(data), "First")
    assert str(error.value) == (
        "book.xlsx has no such sheet: 'First' (did you mean 'first'?). "
        "It has 'first', 'empty', 'hidden', 'chart'."
    )


def test_every_kind_of_cell() -> None:
    def fill(sheet) -> None:
        moment = datetime.datetime(2020, 1, 2, 3, 4, 5)
        sheet.append(["n", "float", "day", "moment", "flag", "error", "mixed", "old", "long"])
        sheet.append([1, 1.5, moment.date(), moment, True, "#N/A", 12, "1850-03-01", 12345678901])
        sheet.append([2.0, 2, moment.date(), moment.date(), False, "#DIV/0!", "n/a", "1851-01-01"])
        sheet["F2"].data_type = sheet["F3"].data_type = "e"
        sheet["A2"].number_format = "0%"

    table, columns = read(book(S=fill))
    assert [str(kind) for kind in table.rows.schema.types] == [
        "int64", "double", "date32[day]", "timestamp[us]", "bool", "null", "string", "string",
        "int64",
    ]  # fmt: skip
    assert columns[0] == [1, 2]
    assert columns[3][1] == datetime.datetime(2020, 1, 2)
    assert columns[6:] == [["12", "n/a"], ["1850-03-01", "1851-01-01"], [12345678901, None]]


def test_a_formula_has_the_value_that_the_file_keeps() -> None:
    def calculated(sheet: bytes) -> bytes:
        assert b"<v></v>" in sheet or b"<v />" in sheet
        return sheet.replace(b"<v></v>", b"<v>2</v>").replace(b"<v />", b"<v>2</v>")

    data = book(S=[["a", "b"], [1, "=A2+1"]])
    assert named(with_member(data, "xl/worksheets/sheet1.xml", calculated)) == {"a": [1], "b": [2]}


def test_formulas_without_a_value_are_told() -> None:
    """Programs that calculate nothing write none."""
    data = book(S=[["a", "b"], [1, "=A2+1"], [2, "=A3+1"], [3, "x"]])
    table, columns = read(data)
    assert columns == [[1, 2, 3], [None, None, "x"]]
    assert table.notes == [
        "formulas of which the file keeps no value were read as empty cells: 2; open and save it "
        "in a program that calculates"
    ]


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("00000", ["00501", "12345"]),
        ("000-00-0000", ["000-00-0501", "000-01-2345"]),
        (r"000\-00", ["005-01", "123-45"]),
        ('"EMP-"0000;@', ["EMP-0501", "EMP-12345"]),
        ("[$-409]0000000_)", ["0000501", "0012345"]),
        ("0.00", [501, 12345]),
        ("#,##0", [501, 12345]),
        ('0" kg"', [501, 12345]),
        ("000 00", ["005 01", "123 45"]),
        ("[<=999]000;00-0000", ["501", "01-2345"]),
        ("[<999]000;#,##0", ["501", "12345"]),
        (r"[<=9999]##\-##;\(#\)\ ##\-##", ["5-01", "(1) 23-45"]),
        (r"#\ ##0", [501, 12345]),
        ("[>999]000;0000", [501, 12345]),
        ("General", [501, 12345]),
    ],
)
def test_codes_are_what_a_person_sees(code, shown) -> None:
    made = openpyxl.Workbook()
    sheet = made.active
    sheet.title = "S"
    for number, row in enumerate([("code", "n"), (501, 7), (12345, 8)], 3):
        for column, value in zip("CD", row, strict=True):
            sheet[f"{column}{number}"] = value
        sheet[f"C{number}"].number_format = code
    assert named(saved(made)) == {"code": shown, "n": [7, 8]}


def test_what_a_format_of_zeros_does_not_go_for_stays_a_number() -> None:
    made = openpyxl.load_workbook(io.BytesIO(book(S=[["a"], [-5], [2.5], [7], [None], ["x"]])))
    for cell in made["S"]["A"]:
        cell.number_format = "000"
    assert named(saved(made)) == {"a": ["-5", "2.5", "007", "x"]}


def test_merged_cells_are_filled_downwards_and_told() -> None:
    def fill(sheet) -> None:
        for row in (
            ["region", "city", "n"],
            ["North", "Oslo", 1],
            [None, "Bodø", 2],
            ["S", "T", 3],
        ):
            sheet.append(row)
        sheet.merge_cells("A2:A3")

    data = book(S=fill)
    assert named(data)["region"] == ["North", "North", "S"]
    assert read(data)[0].notes == ["cells merged with the one above were given its value: 1"]


def test_titles_blank_rows_and_columns_and_footnotes_are_no_part_of_the_table() -> None:
    def fill(sheet) -> None:
        sheet["B2"] = "People in cities"
        for row, values in enumerate([["city", None, "n"], ["Oslo", None, 7], ["Bodø", None, 5]]):
            for column, value in enumerate(values):
                sheet.cell(5 + row, 3 + column).value = value
        sheet["B10"] = "Source: the office of statistics"

    data = book(S=fill)
    assert named(data) == {"city": ["Oslo", "Bodø"], "n": [7, 5]}
    assert read(data)[0].notes == [
        "rows above the header were left out: 1",
        "rows below the table were left out: 1",
    ]


def test_both_rows_of_a_header_may_be_repeated() -> None:
    head = [["town", "length", "area"], [None, "[km]", "[km2]"]]
    data = book(S=[*head, ["Oslo", 4, 5], ["Bonn", 3, 5], *head, ["Graz", 2, 2], ["Ulm", 1, 1]])
    assert named(data)["length [km]"] == [4, 3, 2, 1]
    assert "rows that repeat the header were left out: 2" in read(data)[0].notes


def test_another_table_below_is_left_out_and_named() -> None:
    offices = [["city", "staff"], ["Oslo", 3], ["Bonn", 4], ["Graz", 5], ["Total", 12]]
    shops = [["town", "turnover", "since"], ["Ulm", 1.5, 1990], ["Cork", 2.5, 1991]]
    data = book(S=[["Offices"], *offices, [], ["Shops"], [], *shops, [], *offices])
    assert named(data) == {"city": ["Oslo", "Bonn", "Graz"], "staff": [3, 4, 5]}
    assert "another table below this one was left out (Shops)" in read(data)[0].notes
    data = book(S=[*offices[:-1], [], *shops])
    assert named(data) == {"city": ["Oslo", "Bonn", "Graz"], "staff": [3, 4, 5]}


def test_a_sheet_of_a_header_alone_is_a_table_of_no_rows() -> None:
    assert named(book(S=[["a", "b"]])) == {"a": [], "b": []}


@pytest.mark.parametrize("name", BOOKS)
def test_damaged_books_say_so_in_one_sentence(name) -> None:
    data = BOOKS[name]()
    middle = len(data) // 2
    garbage = data[: middle - 200] + bytes(range(200)) * 2 + data[middle + 200 :]
    for broken in (data[: len(data) // 3], data[:40], garbage, b"a,b\n1,2\n", b"", b"PK\x03\x04"):
        try:
            for table in SHEETS.tables_in(source(broken, name)):
                if table.reason is None:
                    SHEETS.read(source(broken, name), table.name)
        except TableReadError as error:
            text = str(error)
            assert text.startswith(name)
            assert text.endswith(".")
            assert "\n" not in text
        else:  # garbage in an .xls file may be where nothing is read
            assert broken is garbage


def test_what_is_no_spreadsheet_by_its_start_says_what_it_is() -> None:
    for start, what in (
        (b"<html><table>", "HTML"),
        (b"\n <TABLE border=1>", "HTML"),
        (b"\xef\xbb\xbf<!DOCTYPE html>", "HTML"),
        ("<table><tr>".encode("utf-16"), "HTML"),
        (b'<?xml version="1.0"?>', "XML"),
    ):
        with pytest.raises(TableReadError, match=f"it holds {what}; save it as .xlsx"):
            SHEETS.tables_in(source(start, "old.xls"))
    for start in (b"city\tpeople\n", "città\tn\n".encode("utf-16"), b"\xef\xbb\xbfcity;n\n"):
        with pytest.raises(TableReadError, match=r"it holds text; call it \.csv to have it read"):
            SHEETS.tables_in(source(start, "old.xls"))
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr("a.csv", "a\n1\n")
    with pytest.raises(TableReadError, match="it is an archive without a workbook"):
        SHEETS.tables_in(source(sink.getvalue()))


def test_encrypted_books_say_that_a_password_protects_them() -> None:
    # Office packs an encrypted .xlsx into a compound file with these two streams.
    compound = xls()[:512] + "EncryptedPackage".encode("utf-16-le") + bytes(1000)
    entry = (
        '<manifest:file-entry manifest:full-path="content.xml"><manifest:encryption-data>'
        "</manifest:encryption-data></manifest:file-entry>"
    )
    for data, name in ((compound, "book.xlsx"), (ods([], entry), "book.ods")):
        with pytest.raises(TableReadError, match=rf"^{name} is protected by a password; "):
            SHEETS.tables_in(source(data, name))


def test_a_book_that_unpacks_to_more_than_the_limit_is_refused_before_it_is_unpacked() -> None:
    data = book(S=[["a"], *[["same"]] * 20_000])
    with pytest.raises(TableReadError, match="holds more than 100,000 bytes, the most that is"):
        SHEETS.tables_in(source(data, max_bytes=100_000))


def test_a_few_cells_that_span_the_whole_sheet_end_the_process_that_reads_alone() -> None:
    def fill(sheet) -> None:
        sheet["A1"] = "a"
        sheet["XFD1048576"] = "z"

    with pytest.raises(TableReadError, match=r"more than [0-9,]+ bytes of memory\.$"):
        SHEETS.tables_in(source(book(S=fill)))
    wide = '<table:table-row><table:table-cell table:number-columns-repeated="16384" {}</table:row>'
    cell = 'office:value-type="string"><text:p>x</text:p></table:table-cell></table:table-row>'
    row = wide.format(cell).removesuffix("</table:row>")
    many = row.replace("<table:table-row>", '<table:table-row table:number-rows-repeated="999999">')
    with pytest.raises(TableReadError, match="Cell limit exceeded"):
        SHEETS.tables_in(source(ods(many), "book.ods"))


def test_a_file_in_the_lake_is_not_written_to(tmp_path) -> None:
    path = tmp_path / "book.xlsx"
    path.write_bytes(book(S=[["a"], [1]]))
    assert SHEETS.tables_in(FileSource("book.xlsx", path)) == [InnerTable("S")]
    assert [entry.name for entry in tmp_path.iterdir()] == ["book.xlsx"]
