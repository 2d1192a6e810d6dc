"""Rows that are no rows, and rows that look like none: notes, totals and repeated headers."""

import io

import openpyxl
import pytest

from pexeso.lake.readers.delimited import parse_delimited
from pexeso.lake.readers.file_source import FileSource
from pexeso.lake.readers.table import Table
from pexeso.lake.typed import spreadsheets


def read(text: str) -> Table:
    return parse_delimited("t.csv", text.encode(), ".csv", max_cell_bytes=1 << 20)


def sheet(rows: list[list[object]]) -> tuple[list[list[object]], list[str]]:
    book, data = openpyxl.Workbook(), io.BytesIO()
    for row in rows:
        book.active.append(row)
    book.save(data)
    table = spreadsheets.read(FileSource("t.xlsx", data=data.getvalue()), book.active.title)
    (batch,) = table.batches
    return [column.to_pylist() for column in batch], table.notes


SPARSE = ["Old town hall in Oslo", "New town hall in Rome", "A hall in Bern", "Hall of Bonn town"]


@pytest.mark.parametrize("blank", ["", ",,"])
def test_rows_after_a_blank_one_are_rows_where_others_fill_no_more_cells(blank: str) -> None:
    lines = ["name,a,b", *(f"{name},," for name in SPARSE), blank, "Town hall of Lyon,,", "Ulm,,"]
    table = read("\n".join(lines))
    names = [name for name in table.columns[0].to_pylist() if name]
    assert names == [*SPARSE, "Town hall of Lyon", "Ulm"]
    assert not any("below the table" in note for note in table.notes)


def test_rows_after_a_blank_one_are_notes_where_others_fill_more_cells() -> None:
    lines = ["name,a,b", *(f"{name},1,2" for name in SPARSE), "", "Figures of last year,,"]
    table = read("\n".join(lines))
    assert table.columns[0].to_pylist() == SPARSE
    assert table.notes == ["lines below the table were left out: 1 (Figures of last year)"]


def test_a_note_that_says_so_is_one_whatever_is_above() -> None:
    lines = ["name,a,b", *(f"{name},," for name in SPARSE), "", "Source: the office,,"]
    assert read("\n".join(lines)).columns[0].to_pylist() == SPARSE


def test_rows_after_a_blank_one_in_a_sheet() -> None:
    head = [["name", "a", "b"], ["Lima", 1, 2], ["Cali", 1, 2]]
    sparse = [[name, None, None] for name in SPARSE]
    cells, notes = sheet([*head, *sparse, [None] * 3, ["Town hall of Lyon", None, None]])
    assert cells[0] == ["Lima", "Cali", *SPARSE, "Town hall of Lyon"]
    assert notes == []
    full = [[name, 1, 2] for name in SPARSE]
    cells, notes = sheet([*head, *full, [None] * 3, ["Figures of last year", None, None]])
    assert cells[0] == ["Lima", "Cali", *SPARSE]
    assert notes == ["rows below the table were left out: 1"]


def test_a_repeated_header_is_no_row() -> None:
    table = read("id,town\n1,Oslo\n2,Rome\n\ufeffid,town\n4,Bern\nid,town\n6,Lyon\n")
    assert table.columns[0].to_pylist() == ["1", "2", "4", "6"]
    assert table.notes == ["rows that repeat the header were left out: 2"]
    cells, notes = sheet([["id", "town"], [1, "Oslo"], ["id", "town"], [2, "Rome"]])
    assert cells == [[1, 2], ["Oslo", "Rome"]]
    assert notes == ["rows that repeat the header were left out: 1"]


@pytest.mark.parametrize("text", ["town\nOslo\ntown\nRome\n", "id,town\n1,town\nid,Rome\n3,c\n"])
def test_rows_that_share_some_names_with_the_header_are_rows(text: str) -> None:
    assert read(text).n_rows == text.count("\n") - 1


TOWNS = "town,n,rate\nOslo,1,.5\nRome,2,.25\nBern,3,.25\n"


@pytest.mark.parametrize("word", ["Total", "TOTAL:", "Grand total", "Summe", "合計"])
@pytest.mark.parametrize("number", ["6", "6.0"])
def test_a_row_of_totals_that_adds_up_is_left_out(word: str, number: str) -> None:
    table = read(f"{TOWNS}{word},{number},.33\n")
    assert table.columns[0].to_pylist() == ["Oslo", "Rome", "Bern"]
    assert table.notes == [f"the row of totals below the table was left out ({word})"]


@pytest.mark.parametrize("last", ["Total,7,.3", "Totally,6,1", "Total,,", "Ulm,6,1", "Total,0,x"])
def test_a_row_that_adds_up_to_nothing_else_is_kept(last: str) -> None:
    assert read(f"{TOWNS}{last}\n").n_rows == 4


def test_totals_of_a_sheet_are_left_out() -> None:
    rows = [["town", "n"], ["Oslo", 1], ["Rome", 2], ["Bern", 3], ["Total", 6]]
    cells, notes = sheet(rows)
    assert cells == [["Oslo", "Rome", "Bern"], [1, 2, 3]]
    assert notes == ["the row of totals below the table was left out (Total)"]
