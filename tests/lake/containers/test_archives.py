import io
import random
import struct
import zipfile

import pytest

from pexeso.errors import TableReadError
from pexeso.lake.containers.archives import members_of, read_member
from pexeso.lake.containers.reader import read_table
from pexeso.lake.files import find_tables
from pexeso.lake.readers.file_source import FileSource
from pexeso.lake.rows import read_rows

CITIES = b"city,country\nOslo,Norway\nRome,Italy\n"


def archive(**members):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in members.items():
            file.writestr(name.replace("__", "/").replace("_", "."), data)
    return packed.getvalue()


def source(data, **options):
    return FileSource("a.zip", data=data, **options)


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
    found = {each.name: each.reason for each in members_of(source(packed.getvalue()))}
    assert found.pop("ok.csv") is None
    assert found.pop(".hid.csv") == "hidden: its name starts with a dot"
    assert len(found) == 4
    assert set(found.values()) == {"its name leads out of the archive"}
    with pytest.raises(TableReadError, match="leads out of the archive"):
        read_member(source(packed.getvalue()), "../up.csv")


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
    found = members_of(source(packed, max_bytes=1000))
    assert [each.reason is None for each in found] == [False, True]
    assert found[0].reason == "it holds more than 1,000 bytes, the most that is read (max_bytes)"
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
                for each in members_of(source(bytes(data))):
                    if each.reason is None:
                        read_member(source(bytes(data)), each.name)
            except TableReadError as error:
                said.add(str(error))
    assert said
    assert all(each.startswith("a.zip") and each.endswith(".") for each in said)
