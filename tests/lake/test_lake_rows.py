"""Rows that are no rows, and rows that look like none: notes, totals and repeated headers."""

import pytest
from every_format import book
from read_tables import read_delimited as read

from pexeso.lake.files import find_tables
from pexeso.lake.readers.table import FileSource
from pexeso.lake.rows import name_within
from pexeso.lake.typed.spreadsheets import SHEETS
from pexeso.store.io.location import locate


def sheet(rows: list[list[object]]) -> tuple[list[list[object]], list[str]]:
    table = SHEETS.read(FileSource("t.xlsx", data=book(S=rows)), "S")
    return [column.to_pylist() for column in table.rows.columns], table.notes


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


@pytest.mark.parametrize("again", ["Id,TOWN", " id ,town", '"id","town"'])
def test_a_header_is_repeated_in_other_letters_and_with_spaces(again: str) -> None:
    assert read(f"id,town\n1,Oslo\n{again}\n2,Rome\n").columns[0].to_pylist() == ["1", "2"]


def test_each_row_of_a_header_is_left_out_where_it_comes_again() -> None:
    head, rivers = "River,Length,Width\n,km,m\n", [f"River {n},{n}00,{n}" for n in range(1, 31)]
    table = read(head + "\n".join([*rivers, head, *rivers]))
    assert table.names == ["River", "Length km", "Width m"]
    assert table.columns[0].to_pylist() == [f"River {n}" for n in range(1, 31)] * 2
    assert "rows that repeat the header were left out: 2" in table.notes


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


@pytest.mark.parametrize("word", ["Total towns", "All", "Sum total", "N. Total", "Toplam", "Σ", ""])
@pytest.mark.parametrize("above", ["", ",,\n", "Subtotal,6,1\n"])
def test_totals_have_many_names_and_come_after_others(word: str, above: str) -> None:
    table = read(f"{TOWNS}{above}{word},6,1\n")
    assert table.columns[0].to_pylist() == ["Oslo", "Rome", "Bern"]


def test_totals_of_groups_are_left_out_with_the_total_of_all() -> None:
    north, south = "N,Oslo,1\nN,Bergen,2\nN total,,3\n", "S,Rome,3\nS,Bari,4\nS total,,7\n"
    table = read(f"region,town,n\n{north}{south}Grand total,,10\n")
    assert table.columns[1].to_pylist() == ["Oslo", "Bergen", "Rome", "Bari"]
    assert table.notes == ["rows of totals of the table were left out: 3"]
    assert read(f"region,town,n\n{north}{south}Grand total,,11\n").n_rows == 7
    assert read(f"region,town,n\n{north}{south.replace('7', '8')}Grand total,,10\n").n_rows == 7


@pytest.mark.parametrize(
    "rows",
    [
        ["St Mark,1", "St Luke,2", "All Saints,3"],
        ["None,1", "Some,2", "All,3"],
        ["Never,0", "Seldom,1", "Often,2", "All the time,3"],
        ["A,0", "B,1", "C,2", ",3"],
        ["Heat,2", "Alien,2", "Total Recall,4"],
    ],
)
def test_numbers_that_count_rows_or_are_few_are_no_sums(rows: list[str]) -> None:
    assert read("\n".join(["name,code", *rows])).n_rows == len(rows)


@pytest.mark.parametrize("word", ["Total:", "Grand total", "Total général", "All"])
def test_two_rows_have_a_total_that_says_nothing_else(word: str) -> None:
    assert read(f"film,n\nHeat,2\nAlien,2\n{word},4\n").n_rows == 2


def test_gaps_add_nothing_to_a_total() -> None:
    table = read("town,n\nOslo,1\nRome,n/a\nBonn,-\nBern,3\nTotal,4\n")
    assert table.columns[0].to_pylist() == ["Oslo", "Rome", "Bonn", "Bern"]


def test_a_row_without_a_name_is_a_total_where_all_others_have_one() -> None:
    assert read("town,n\nOslo,1\n,2\nBern,3\n,6\n").n_rows == 4
    assert read("town,n,m\nOslo,1,1\nRome,2,1\nBern,3,1\n,6,4\n").n_rows == 4


@pytest.mark.parametrize("last", ["Total,7,.3", "Totally,6,1", "Total,,", "Ulm,6,1", "Total,0,x"])
def test_a_row_that_adds_up_to_nothing_else_is_kept(last: str) -> None:
    assert read(f"{TOWNS}{last}\n").n_rows == 4


def test_totals_of_a_sheet_are_left_out() -> None:
    rows = [["town", "n"], ["Oslo", 1], ["Rome", 2], ["Bern", 3], ["Total", 6]]
    cells, notes = sheet(rows)
    assert cells == [["Oslo", "Rome", "Bern"], [1, 2, 3]]
    assert notes == ["the row of totals below the table was left out (Total)"]


@pytest.fixture
def lake(tmp_path):
    folder = tmp_path / "lake"
    (folder / "in").mkdir(parents=True)
    for name in ("a.csv", "in/b.csv", "book.xlsx"):
        (folder / name).write_bytes(b"city\nOslo\n")
    return folder


def test_a_file_has_the_name_of_its_path_in_the_lake(lake, tmp_path, monkeypatch):
    (tmp_path / "way").symlink_to(lake)
    monkeypatch.chdir(lake / "in")
    assert name_within(lake, lake / "a.csv") == name_within(lake, "../a.csv") == "a.csv"
    assert name_within(lake, "b.csv") == name_within(lake, tmp_path / "way" / "in" / "b.csv")
    assert name_within(tmp_path / "way", lake / "in" / "b.csv") == "in/b.csv"
    assert name_within(lake, f"{lake}/book.xlsx#S1") == "book.xlsx#S1"
    assert name_within(lake, f"{lake}/file.zip/./x/../c.csv") == "file.zip/c.csv"
    assert name_within(lake, tmp_path / "a.csv") is None
    assert name_within(lake, f"{lake}.csv") is None


def test_a_link_is_a_table_of_its_own(lake, tmp_path):
    (lake / "copy.csv").symlink_to(lake / "a.csv")
    (lake / "in" / "other.xlsx").symlink_to(lake / "book.xlsx")
    assert "copy.csv" in [table.table for table in find_tables(lake)[0]]
    assert name_within(lake, lake / "copy.csv") == "copy.csv"
    assert name_within(lake, f"{lake}/in/other.xlsx#S1") == "in/other.xlsx#S1"
    (tmp_path / "mine.csv").symlink_to(lake / "in" / "b.csv")
    assert name_within(lake, tmp_path / "mine.csv") == "in/b.csv"


def test_a_lake_that_is_one_file_names_what_is_in_it(lake, tmp_path):
    book = lake / "book.xlsx"
    assert name_within(book, book) == "book.xlsx"
    assert name_within(book, f"{book}#S1") == "book.xlsx#S1"
    assert name_within(book, f"{book}/in/c.csv") == "book.xlsx/in/c.csv"
    assert name_within(book, lake / "a.csv") is None
    (tmp_path / "newest.csv").symlink_to(lake / "a.csv")
    [table] = find_tables(tmp_path / "newest.csv")[0]
    assert name_within(tmp_path / "newest.csv", tmp_path / "newest.csv") == table.table
    assert name_within(tmp_path / "newest.csv", lake / "a.csv") == table.table


def test_names_in_a_place_elsewhere():
    import fsspec

    storage = fsspec.filesystem("memory")
    storage.pipe("/lake/in/b.csv", b"city\nOslo\n")
    storage.pipe("/lake/file.zip", b"")
    folder, file = locate("memory://lake"), locate("memory://lake/file.zip")
    assert name_within(folder, f"{folder}/in/b.csv") == "in/b.csv"
    assert name_within(folder, f"{folder}/file.zip/c.csv") == "file.zip/c.csv"
    assert name_within(folder, "memory://other/b.csv") is None
    assert name_within(file, f"{file}") == "file.zip"
    assert name_within(file, f"{file}/in/c.csv") == "file.zip/in/c.csv"
