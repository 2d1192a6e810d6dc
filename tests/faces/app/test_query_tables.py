"""Tests of the tables that people give: their names, their number, and where they are kept."""

import gzip
import io
import os
import stat
import zipfile
from pathlib import Path

import pytest

from pexeso.errors import InputError, OutputError
from pexeso.faces.app import tables as tables_module
from pexeso.faces.app.tables import UPLOADS_KEPT, QueryTables, UnknownTableError, safe_name

CSV = b"city,people\nOslo,700000\nRome,2800000\n"


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """Return tables that are kept in a folder of the test."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with QueryTables(10_000) as tables:
        yield tables


def files_below(folder):
    return {path.name for path in Path(folder).rglob("*") if path.is_file()} - {"in-use"}


@pytest.mark.parametrize(
    "name",
    [
        "../../cities.csv", "/etc/cities.csv", "..\\..\\cities.csv", "C:\\a\\cities.csv",
        "a/../cities.csv",
        "cities\0.csv", "cities.csv\0", "....csv", ".csv", "..", ".", "", "/", "\\", "\n.csv",
        "\u202ecities.csv",
        "a:b.csv", "cities.csv:#1", "-.csv", "--html=x.csv", "~.csv", "$(id).csv", "a;b'\".csv",
        "a" * 300 + ".csv", "\U00020000" * 300 + ".csv", "a." + "b" * 300, "s3:x.csv",
        "<script>.csv", "_hidden.csv", "in-use",
    ],
)  # fmt: skip
def test_a_name_leads_nowhere_and_is_kept_as_far_as_it_can_be(kept, tmp_path, name):
    table = kept.add(name, [CSV])
    path = Path(table.spec)
    assert path.is_file()
    assert path.resolve().parent.parent.parent == tmp_path.resolve()
    assert len(os.fsencode(path.name)) <= 255
    assert not set(path.name) & set('/\\\0\n:#<>"$;*?[\u202e')
    assert kept[table.id] == table


def test_a_long_name_keeps_what_tells_its_kind():
    assert safe_name("x" * 300 + ".csv.gz").endswith("xx.csv.gz")
    assert safe_name("Verkäufe 2024 (neu).xlsx") == "Verkäufe 2024 (neu).xlsx"


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.csv", b"", "empty"),
        ("a.exe", b"MZ\0\0", "no table"),
        ("a.parquet", b"PAR1 and nothing more", "no table"),
        ("a.xlsx", b"PK\x03\x04 and nothing more", "no table"),
        ("a.csv", bytes(range(256)) * 20, "no table"),
        ("a.zip", b"PK\x05\x06" + bytes(18), "no table"),
        ("a.csv", b"x" * 10_001, "is larger"),
    ],
)
def test_what_is_no_table_is_refused_in_a_sentence_and_leaves_nothing(
    kept, tmp_path, name, data, reason
):
    with pytest.raises(InputError) as error:
        kept.add(name, [data])
    assert reason in str(error.value)
    assert str(tmp_path) not in str(error.value)
    assert files_below(tmp_path) == set()


def test_pieces_are_counted_before_they_are_kept(kept):
    def endless():
        for _ in range(20):
            yield b"x" * 1000
        raise RuntimeError("more was read than is taken")

    with pytest.raises(InputError, match="10,000 bytes"):
        kept.add("a.csv", endless())


def test_a_client_that_goes_away_in_the_middle_leaves_nothing(kept, tmp_path):
    def broken():
        yield CSV
        raise ConnectionResetError

    with pytest.raises(OutputError):
        kept.add("a.csv", broken())
    assert files_below(tmp_path) == set()


def test_a_full_disk_is_told(kept, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(QueryTables, "_write", full)
    with pytest.raises(OutputError, match="No space left on device"):
        kept.add("a.csv", [CSV])


def zipped(members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return stream.getvalue()


def test_each_table_of_a_file_can_be_chosen(kept):
    from pexeso.lake.containers.reader import read_table

    first = kept.add("both.zip", [zipped([("a.csv", CSV), ("b/c.csv", b"x,y\n1,2\n")])])
    names = dict(first.siblings)
    assert list(names) == [first.id, first.id.replace("-0", "-1")]
    other = kept[first.id.replace("-0", "-1")]
    assert other.name.endswith("b/c.csv")
    assert read_table(other.spec).names == ["x", "y"]
    assert other.delimiter is None


def test_members_that_lead_out_of_an_archive_are_no_tables(kept, tmp_path):
    from pexeso.lake.containers.reader import read_table

    (tmp_path / "secret.csv").write_text("secret\nmarker\n")
    data = zipped([("../../../secret.csv", CSV), ("/etc/hosts.csv", CSV), ("a.csv", CSV)])
    first = kept.add("odd.zip", [data])
    read = [read_table(kept[table_id].spec).names for table_id, _ in first.siblings]
    assert read
    assert {*map(tuple, read)} == {("city", "people")}
    assert files_below(tmp_path) == {"secret.csv", "odd.zip"}


def test_a_file_of_too_many_tables_is_refused(kept, monkeypatch):
    monkeypatch.setattr(tables_module, "TABLES_OF_FILE", 3)
    data = zipped([(f"{number}.csv", CSV) for number in range(4)])
    with pytest.raises(InputError, match="holds 4 tables"):
        kept.add("many.zip", [data])


def test_an_archive_that_unpacks_to_more_than_is_read_is_refused(kept, monkeypatch):
    """The limits of the lake's readers hold for tables that are given too."""
    from pexeso.lake.containers.reader import read_table

    bomb = zipped([("bomb.csv", b"a,b\n" + b"0,0\n" * (1 << 18))])
    assert len(bomb) < 10_000
    table = kept.add("bomb.zip", [bomb])
    assert read_table(table.spec).n_rows == 1 << 18  # 1 MiB is no bomb
    inner = zipped([(f"{n}.zip", bomb) for n in range(3)])
    with pytest.raises(InputError):
        kept.add("nested.zip", [zipped([("a.zip", inner)])])


def test_of_more_files_the_one_not_used_for_longest_is_removed(kept):
    first, second = kept.add("first.csv", [CSV]), kept.add("second.csv", [CSV])
    for number in range(UPLOADS_KEPT - 2):
        kept.add(f"{number}.csv", [CSV])
    assert kept[first.id] == first  # and is used last now
    kept.add("one more.csv", [CSV])
    assert kept[first.id] == first
    with pytest.raises(UnknownTableError, match="Give it again"):
        kept[second.id]
    assert not Path(second.spec).exists()
    assert Path(first.spec).exists()


@pytest.mark.parametrize(
    "end", ["", "-", "-1", "-0-0", "-00000000", "--1", "-x", "-\u0663", "/../x", "-0\0", "-0 "]
)
def test_a_wrong_id_is_told_and_reads_nothing(kept, end):
    table = kept.add("a.csv", [CSV])
    with pytest.raises(UnknownTableError):
        kept[table.id.removesuffix("-0") + end]
    with pytest.raises(UnknownTableError):
        kept["in-use-0"]


def test_ids_cannot_be_guessed_and_the_folder_is_for_its_owner(kept):
    ids = {kept.add("a.csv", [CSV]).id for _ in range(5)}
    assert len(ids) == 5
    assert min(map(len, ids)) >= 12
    assert stat.S_IMODE(kept._folder.stat().st_mode) == 0o700


def test_the_folder_is_removed_at_the_end_also_after_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def serve():
        with QueryTables(1000) as tables:
            tables.add("a.csv", [CSV])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        serve()
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_server_left_is_removed_by_the_next(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    left = tmp_path / "pexeso-serve-killed"
    left.mkdir()
    (left / "in-use").touch()
    with QueryTables(1000) as one, QueryTables(1000) as other:
        assert not left.exists()
        assert one._folder.exists()
        assert other._folder.exists()


def test_a_table_of_the_lake_is_kept_once(kept, tmp_path):
    (tmp_path / "lake").mkdir()
    for name in ("a.csv", "b.csv"):
        (tmp_path / "lake" / name).write_text("city\nOslo\n")
    lake = str(tmp_path / "lake")
    first, other = kept.add_lake_table(lake, "a.csv"), kept.add_lake_table(lake, "b.csv")
    assert kept.add_lake_table(lake, "a.csv") == first != other


def test_an_upload_that_unpacks_to_far_more_is_refused_in_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    bomb = gzip.compress(b"a\n" * (20 << 20))
    with QueryTables(len(bomb)) as tables:
        with pytest.raises(InputError) as raised:
            tables.add("bomb.csv.gz", [bomb])
        assert "bomb.csv.gz is refused: its" in str(raised.value)
        assert "\n" not in str(raised.value)
        assert files_below(tmp_path) == set()
