"""An append opens no archive, book or database that is as the index has it, and all others."""

import os
import shutil
import sqlite3
import zipfile

import openpyxl
import pyarrow.parquet as pq
import pytest

import pexeso
from pexeso.build.updates import append, delete
from pexeso.lake import files

NAMES = ["Oslo", "Bergen", "Tromso", "Hamar", "Bodo", "Narvik"]
CONTAINERS = ["archive.zip", "book.xlsx", "data.sqlite", "deep/inner.zip"]


def write_archive(path, members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, cells in members.items():
            archive.writestr(name, "town\n" + "".join(f"{cell}\n" for cell in cells))


@pytest.fixture
def lake(tmp_path):
    folder = tmp_path / "lake"
    (folder / "deep").mkdir(parents=True)
    (folder / "plain.csv").write_text("town\n" + "\n".join(NAMES) + "\n")
    write_archive(folder / "archive.zip", {"a.csv": NAMES, "b.csv": NAMES[::-1]})
    write_archive(folder / "deep" / "inner.zip", {"c.csv": NAMES})
    book = openpyxl.Workbook()
    for sheet in (book.active, book.create_sheet("Second")):
        for cell in ["town", *NAMES]:
            sheet.append([cell])
    book.save(folder / "book.xlsx")
    database = sqlite3.connect(folder / "data.sqlite")
    database.execute("CREATE TABLE towns (town TEXT)")
    database.executemany("INSERT INTO towns VALUES (?)", [(name,) for name in NAMES])
    database.commit()
    database.close()
    return folder


@pytest.fixture
def index(lake):
    path = lake.parent / "lake.pexeso"
    pexeso.build_index(lake, path)
    return path


@pytest.fixture
def opened(index, monkeypatch):
    """Return the names of the containers that are opened to see what they hold, once built."""
    names = []

    def look(source, n_bytes):
        names.append(source.shown)
        return files_inside(source, n_bytes)

    files_inside = files.tables_inside
    monkeypatch.setattr(files, "tables_inside", look)
    return names


def tables(index):
    rows = pexeso.open_index(index).catalog.tables().to_pylist()
    return sorted(row["table"] for row in rows)


def test_nothing_new_opens_nothing(index, opened):
    before = tables(index)
    assert append(index).unchanged == len(before) == 7
    assert opened == []
    assert tables(index) == before


def test_a_new_file_opens_itself_alone(lake, index, opened):
    write_archive(lake / "new.zip", {"d.csv": NAMES})
    assert append(index).new == 1
    assert opened == ["new.zip"]
    opened.clear()
    assert append(index).unchanged == 8
    assert opened == []


@pytest.mark.parametrize("name", CONTAINERS)
def test_one_of_another_time_is_opened(lake, index, opened, name):
    status = (lake / name).stat()
    os.utime(lake / name, ns=(status.st_atime_ns, status.st_mtime_ns + 1_000_000_000))
    assert append(index).unchanged == 7
    assert opened == [name]


def test_one_of_another_size_and_the_same_time_is_opened(lake, index, opened):
    status = (lake / "archive.zip").stat()
    write_archive(lake / "archive.zip", {"a.csv": NAMES, "b.csv": NAMES[::-1], "new.csv": NAMES})
    os.utime(lake / "archive.zip", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert append(index).new == 1
    assert opened == ["archive.zip"]


def test_a_container_that_took_the_place_of_another_is_opened(lake, index, opened):
    shutil.copy2(lake / "deep" / "inner.zip", lake / "archive.zip")
    update = append(index, delete_missing=True)
    assert (update.new, update.deleted) == (1, 2)
    assert opened == ["archive.zip"]


def test_contents_are_looked_at_when_that_is_asked_for(index, opened):
    assert append(index, compare="content").unchanged == 7
    assert sorted(opened) == CONTAINERS


def test_a_table_that_was_deleted_from_the_index_comes_back_as_before(index, opened):
    delete(index, ["archive.zip/b.csv"])
    assert append(index).new == 1
    assert opened == ["archive.zip"]
    assert len(tables(index)) == 7


def test_a_container_with_something_that_is_no_table_is_opened(lake, index, opened):
    with zipfile.ZipFile(lake / "mixed.zip", "w") as archive:
        archive.writestr("e.csv", "town\n" + "\n".join(NAMES))
        archive.writestr("photo.jpg", b"\xff\xd8")
    append(index)
    opened.clear()
    append(index)
    assert opened == ["mixed.zip"]


def test_an_index_whose_catalog_does_not_know_them_opens_all(index, opened):
    for path in (index / "catalog").glob("tables-*.parquet"):
        rows = pq.read_table(path)
        assert rows["container"].null_count == 1
        pq.write_table(rows.drop_columns(["container"]), path)
    # The manifest holds the sizes of files, so the catalog is read as `Catalog` reads it.
    known = files.KnownContainers(
        pexeso.lake.catalog.Catalog(pexeso.lake.catalog.files_in([index / "catalog"])).tables(
            files.KnownContainers.COLUMNS
        )
    )
    listing = files.list_folder(index.parent / "lake", known=known)
    assert sorted(opened) == ["archive.zip", "book.xlsx", "data.sqlite"]
    assert len(listing.tables) == 6


@pytest.mark.parametrize("compare", ["modified", "content"])
def test_a_database_whose_log_has_changes_is_opened(lake, index, opened, compare):
    duckdb = pytest.importorskip("duckdb")
    path = lake / "pond.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE towns (town TEXT)")
        connection.executemany("INSERT INTO towns VALUES (?)", [[name] for name in NAMES])
    assert append(index).new == 1
    status = path.stat()
    with duckdb.connect(str(path)) as connection:
        connection.execute("PRAGMA disable_checkpoint_on_shutdown")
        connection.execute("INSERT INTO towns VALUES ('Molde')")
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (status.st_size, status.st_mtime_ns)
    opened.clear()
    assert append(index, compare=compare).changed == 1
    assert "pond.duckdb" in opened
    assert pexeso.open_index(index).search(["Molde"], min_joinability=1)[0].table.startswith("pond")
