import io
import os
import random
import sqlite3
import struct
import zipfile
from contextlib import closing

import every_format
import pytest
from read_tables import records_of

from pexeso.errors import PlaceError, TableReadError
from pexeso.lake.containers import formats
from pexeso.lake.containers.formats import Archive
from pexeso.lake.containers.reader import TablesInTurn, read_table
from pexeso.lake.files import find_tables
from pexeso.lake.readers.table import FileSource
from pexeso.lake.rows import read_rows
from pexeso.results.query import read_query
from pexeso.runtime.formatting import coded_name
from pexeso.store.io.location import locate

CITIES = b"city,country\nOslo,Norway\nRome,Italy\n"


def archive(**members):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in members.items():
            file.writestr(name.replace("__", "/").replace("_", "."), data)
    return packed.getvalue()


def source(data, **options):
    return FileSource("a.zip", data=data, **options)


def book(*sheets):
    rows = [("city", "people"), ("Oslo", 709037), ("Rome", 2748109)]
    return every_format.book(**dict.fromkeys(sheets, rows))


@pytest.fixture
def opened(monkeypatch):
    """The names of the archives whose directories have been parsed."""
    names, parse = [], zipfile.ZipFile

    def parsing(stream, *given, **named):
        name = os.path.basename(getattr(stream, "name", ""))
        if name.endswith(".zip"):  # books are archives too
            names.append(name)
        return parse(stream, *given, **named)

    monkeypatch.setattr(formats.zipfile, "ZipFile", parsing)
    return names


def members_of(source):
    with closing(Archive(source)) as opened:
        return opened.members()


def read_member(source, name):
    with closing(Archive(source)) as opened:
        return opened.read(name).data


def listed(folder):
    tables, skipped = find_tables(folder)
    return [file.table for file in tables], {file.path: file.reason for file in skipped}


def test_each_member_is_a_table_with_a_name(tmp_path):
    packed = archive(a_csv=CITIES, deep__b_tsv=b"x\ty\n1\t2\n", notes_md=b"# Notes")
    (tmp_path / "all.zip").write_bytes(packed)
    tables, reasons = listed(tmp_path)
    assert tables == ["all.zip/a.csv", "all.zip/deep/b.tsv"]
    assert reasons == {"all.zip/notes.md": "not a table: prose"}
    assert read_rows(tmp_path, "all.zip/a.csv").to_pydict() == {
        "city": ["Oslo", "Rome"],
        "country": ["Norway", "Italy"],
    }
    assert read_table(tmp_path / "all.zip" / "deep" / "b.tsv").names == ["x", "y"]


def test_an_archive_of_one_table_is_read_by_its_own_name(tmp_path):
    (tmp_path / "one.zip").write_bytes(archive(a_csv=CITIES, readme_md=b"x"))
    assert read_table(tmp_path / "one.zip").names == ["city", "country"]
    assert listed(tmp_path / "one.zip")[0] == ["one.zip/a.csv"]
    (tmp_path / "two.zip").write_bytes(archive(a_csv=CITIES, b_csv=CITIES))
    with pytest.raises(TableReadError, match=r"holds 2 tables; name one of them: .*a\.csv'"):
        read_table(tmp_path / "two.zip")
    with pytest.raises(TableReadError, match=r"holds no such file: 'c\.csv'"):
        read_table(f"{tmp_path}/two.zip/c.csv")


def test_a_packed_member_is_unpacked_and_an_archive_inside_is_not(tmp_path):
    import bz2

    inside = archive(inner_csv=CITIES)
    packed = archive(a_csv_bz2=bz2.compress(CITIES), inside_zip=inside)
    (tmp_path / "a.zip").write_bytes(packed)
    tables, reasons = listed(tmp_path)
    assert tables == ["a.zip/a.csv.bz2"]
    assert reasons == {"a.zip/inside.zip": "an archive inside an archive; unpack it"}
    assert read_rows(tmp_path, "a.zip/a.csv.bz2").num_rows == 2


def test_names_that_lead_out_of_an_archive_are_listed_and_never_read():
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        for name in ("../up.csv", "/abs.csv", "a/../../b.csv", "..\\w.csv", ".hid.csv", "ok.csv"):
            file.writestr(zipfile.ZipInfo(name), CITIES)
    reasons = {member.name: member.reason for member in members_of(source(packed.getvalue()))}
    assert reasons.pop("ok.csv") is None
    assert reasons.pop(".hid.csv") == "hidden: its name starts with a dot"
    assert len(reasons) == 4
    assert set(reasons.values()) == {"its name leads out of the archive"}
    with pytest.raises(TableReadError, match="leads out of the archive"):
        read_member(source(packed.getvalue()), "../up.csv")


def test_members_are_named_without_empty_parts_and_dots(tmp_path):
    """Paths are normalised wherever a table is named, so a name as it was packed is not found."""
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as file:
        for name in ("./m.csv", "d//b.csv", "d/./c.xlsx", "./.hid.csv", "//abs.csv"):
            file.writestr(zipfile.ZipInfo(name), book("One") if "xlsx" in name else CITIES)
    tables, reasons = listed(tmp_path)
    assert tables == ["z.zip/d/b.csv", "z.zip/d/c.xlsx#One", "z.zip/m.csv"]
    assert reasons == {
        "z.zip/.hid.csv": "hidden: its name starts with a dot",
        "z.zip///abs.csv": "its name leads out of the archive",
    }
    for table in tables:
        assert read_rows(tmp_path, table).num_rows == 2
    for name in ("./m.csv", "d//b.csv", "d/./c.xlsx#One"):
        assert read_table(f"{tmp_path}/z.zip/{name}").n_rows == 2
        assert read_table(f"{(tmp_path / 'z.zip').as_uri()}/{name}").n_rows == 2


def test_of_members_with_one_path_one_is_read(tmp_path):
    """The one that is called so, which could always be read; else the first."""
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as file:
        for name in ("./m.csv", "m.csv", "d/.//b.csv", "d//b.csv"):
            file.writestr(zipfile.ZipInfo(name), f"name\n{name}\n")
    tables, reasons = listed(tmp_path)
    assert tables == ["z.zip/d/b.csv", "z.zip/m.csv"]
    assert reasons == {
        "z.zip/./m.csv": "another file of the archive has the same path",
        "z.zip/d//b.csv": "another file of the archive has the same path",
    }
    read = [read_rows(tmp_path, table).to_pydict()["name"] for table in tables]
    assert read == [["d/.//b.csv"], ["m.csv"]]


def test_bombs_are_refused():
    packed = archive(big_csv=b"a" * (300 << 20))
    with pytest.raises(
        TableReadError, match=r"is refused: its [0-9,]+ bytes unpack to 314,572,800"
    ):
        members_of(source(packed))
    # Two members that lie in the same bytes.
    data = bytearray(archive(a_csv=random.Random(1).randbytes(5000)))
    end = data.rindex(b"PK\x05\x06")
    start = data.index(b"PK\x01\x02")
    entry = bytes(data[start:end]).replace(b"a.csv", b"b.csv")
    data[end + 8 : end + 12] = struct.pack("<HH", 2, 2)
    data[end + 12 : end + 16] = struct.pack("<I", 2 * len(entry))
    data[end:end] = entry
    with pytest.raises(TableReadError, match="lie in the same bytes"):
        members_of(source(bytes(data)))


def test_limits_hold_for_a_member():
    packed = archive(a_csv=CITIES * 1000, b_csv=CITIES)
    members = members_of(source(packed, max_bytes=1000))
    assert [member.reason is None for member in members] == [False, True]
    assert members[0].reason == "it holds more than 1,000 bytes, the most that is read (max_bytes)"
    with pytest.raises(TableReadError, match="more than 1,000 bytes"):
        read_member(source(packed, max_bytes=1000), "a.csv")


def test_a_protected_archive_says_so():
    data = bytearray(archive(a_csv=CITIES))
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    assert members_of(source(bytes(data)))[0].reason == "it is protected by a password"
    with pytest.raises(TableReadError, match="protected by a password"):
        read_member(source(bytes(data)), "a.csv")


@pytest.mark.parametrize("cut", [0, 1, 30, 60, -1, -10, -30])
def test_a_damaged_archive_is_listed_with_a_sentence(tmp_path, cut):
    (tmp_path / "a.zip").write_bytes(archive(a_csv=CITIES)[:cut])
    (tmp_path / "b.csv").write_bytes(CITIES)
    tables, reasons = listed(tmp_path)
    assert tables == ["b.csv"]
    assert reasons["a.zip"].startswith("a.zip is no zip archive, or a damaged one")
    assert reasons["a.zip"].endswith(".")


def test_flipped_bytes_raise_nothing_else():
    packed = archive(a_csv=CITIES * 20, b_csv=CITIES)
    said = set()
    for place in range(len(packed)):
        for value in (0, 255):
            data = bytearray(packed)
            data[place] = value
            try:
                for member in members_of(source(bytes(data))):
                    if member.reason is None:
                        read_member(source(bytes(data)), member.name)
            except TableReadError as error:
                said.add(str(error))
    assert said
    assert all(message.startswith("a.zip") and message.endswith(".") for message in said)


def test_an_archive_is_opened_once_for_all_its_tables(tmp_path, opened):
    for name in ("one.zip", "two.zip"):
        members = {f"t{number}_csv": CITIES for number in range(40)}
        (tmp_path / name).write_bytes(archive(**members, deep__book_xlsx=book("a", "b")))
    files = find_tables(tmp_path)[0]
    assert (len(files), opened) == (84, ["one.zip", "two.zip"])
    opened.clear()
    assert sum(row["record"] == "table" for row in records_of(files)) == 84
    assert opened == ["one.zip", "two.zip"]


def test_one_archive_is_open_at_a_time_and_none_afterwards(tmp_path):
    for name in ("one.zip", "two.zip"):
        (tmp_path / name).write_bytes(archive(a_csv=CITIES, b_csv=CITIES))
    with TablesInTurn() as tables:
        held = []
        for name in ("one.zip", "two.zip", "one.zip"):
            assert tables.open(tmp_path / name, "/b.csv").text().n_rows == 2
            held.append(tables._file._archive._file)
        assert [file.fp is None for file in held] == [True, True, False]
    assert held[-1].fp is None


def test_a_damaged_member_says_so_and_the_others_are_read(tmp_path):
    data = bytearray(archive(a_csv=CITIES, b_csv=CITIES * 9, c_csv=CITIES))
    data[data.index(b"b.csv") + 8] ^= 255
    (tmp_path / "a.zip").write_bytes(data)
    said = {}
    with TablesInTurn() as tables:
        for name in "abca":
            try:
                said[name] = tables.open(tmp_path / "a.zip", f"/{name}.csv").text().n_rows
            except TableReadError as error:
                said[name] = str(error)
    assert said.pop("b").startswith(f"{tmp_path}/a.zip is no zip archive, or a damaged one")
    assert said == {"a": 2, "c": 2}


def test_a_storage_that_breaks_off_while_an_archive_is_open_is_not_the_archives_fault(monkeypatch):
    from fsspec.implementations.memory import MemoryFile

    place = locate("memory://broken-off")
    random_bytes = random.Random(3).randbytes(3 << 20).hex()
    text = f"city\n{random_bytes}\n".encode()
    place.joined("a.zip").write(archive(a_csv=CITIES, b_csv=text, c_csv=CITIES))
    try:
        with TablesInTurn() as tables:
            assert tables.open(place.joined("a.zip"), "/a.csv").text().n_rows == 2
            with monkeypatch.context() as patched:

                def refuse(*_):
                    raise TimeoutError("too slow")

                patched.setattr(MemoryFile, "read", refuse)
                with pytest.raises(PlaceError, match="cannot be read: too slow"):
                    tables.open(place.joined("a.zip"), "/b.csv")
            assert tables.open(place.joined("a.zip"), "/c.csv").text().n_rows == 2
    finally:
        place.joined("a.zip").remove()


def test_the_tables_of_a_book_in_an_archive_are_read_from_one_copy(tmp_path, monkeypatch):
    (tmp_path / "a.zip").write_bytes(archive(a_xlsx=book("a", "b", "c"), b_csv=CITIES))
    read = []
    with TablesInTurn() as tables:
        for member in ("/a.xlsx#a", "/a.xlsx#b", "/b.csv", "/a.xlsx#c"):
            read.append(tables.open(tmp_path / "a.zip", member))
    assert [table.text().n_rows for table in read] == [2] * 4
    data = [table.source.data for table in read]
    assert data[0] is data[1]
    assert data[0] == data[3]
    assert read[0].fingerprint == read[3].fingerprint != read[2].fingerprint


NAMES = ["plain", "a:b", "x/y", "50 %", "..", "é#1", "new\nline", "q\"uo'te", "%2F"]


@pytest.fixture
def lake(tmp_path):
    base = sqlite3.connect(tmp_path / "odd.sqlite")
    for number, name in enumerate(NAMES):
        quoted = name.replace('"', '""')
        base.execute(f'CREATE TABLE "{quoted}" (city TEXT)')
        base.execute(f'INSERT INTO "{quoted}" VALUES (?)', [f"city {number}"])
    base.commit()
    base.close()
    return tmp_path


def test_a_file_that_is_called_a_database_and_is_none_says_why(tmp_path):
    (tmp_path / "a.db").write_bytes(b"")
    (tmp_path / "b.db").write_text("city,country\nOslo,Norway\n")
    (tmp_path / "c.duckdb").write_bytes(b"DUCK" * 2)
    tables, skipped = find_tables(tmp_path)
    reasons = {file.path: file.reason for file in skipped}
    assert (tables, list(reasons)) == ([], ["a.db", "b.db", "c.duckdb"])
    assert reasons["a.db"] == "a.db is empty: it has no bytes."
    for name in ("b.db", "c.duckdb"):
        assert reasons[name].startswith(f"{name} is no database of SQLite or DuckDB: it does not ")


def test_a_table_of_any_name_is_found_and_read_by_the_name_that_is_listed(lake):
    tables = find_tables(lake)[0]
    assert {file.table for file in tables} == {f"odd.sqlite#{coded_name(name)}" for name in NAMES}
    for number, name in enumerate(NAMES):
        table = f"odd.sqlite#{coded_name(name)}"
        assert read_rows(lake, table)["city"].to_pylist() == [f"city {number}"]
        assert read_query(f"{lake / table}:city").values.to_pylist() == [f"city {number}"]
        assert read_query(f"{lake / table}").values.to_pylist() == [f"city {number}"]
