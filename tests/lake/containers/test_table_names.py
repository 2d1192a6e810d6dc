"""Names of tables from paths: what a query leaves out as its own table."""

import pytest

from pexeso.lake.containers.table_names import name_within
from pexeso.lake.files import find_tables
from pexeso.store.io.location import locate


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
