import contextlib
import json
import os
import sqlite3
import zipfile

import pytest

from pexeso.errors import InputError, LakeError, TableReadError
from pexeso.lake.containers.formats import table_format
from pexeso.lake.containers.reader import read_table
from pexeso.lake.files import find_tables, list_folder, path_from_text
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.lake.readers.table import FileSource, bytes_fingerprint
from pexeso.results.query import read_batch_line
from pexeso.store.manifest import FileEntry, FolderEntry, Manifest

ENTRY = FolderEntry("catalog", (FileEntry("x", 1, "0" * 32),))
MODEL = FolderEntry("embedder", (FileEntry("x", 1, "0" * 32),))
MANIFEST = Manifest("pexeso", "2026-01-01T00:00:00+00:00", 1, {}, {}, {}, (ENTRY,), MODEL, {})


def touch(root, *names):
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("a,b\n1,2\n")


def tables_of(root):
    return [file.table for file in find_tables(root)[0]]


def reasons_of(root):
    return {file.path: file.reason for file in find_tables(root)[1]}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.csv", "delimited"),
        ("A.TSV", "delimited"),
        ("a.tab", "delimited"),
        ("a.psv.GZ", "delimited"),
        ("a.parquet", "parquet"),
        ("a.jsonl", "jsonlines"),
        ("a.ndjson.gz", "jsonlines"),
        ("a.parquet.gz", None),
        ("a.txt", "delimited"),
        ("a.json", "json"),
        ("a.csv.zst", "delimited"),
        ("csv", None),
        ("a.gz", None),
    ],
)
def test_the_extension_tells_the_format(name, expected):
    assert table_format(name) == expected


def test_tables_come_in_the_order_of_code_points_of_relative_paths(tmp_path):
    touch(tmp_path, "b.csv", "a/z.csv", "a.csv", "B.csv", "é.csv", "a/b/c.tsv")
    assert tables_of(tmp_path) == ["B.csv", "a.csv", "a/b/c.tsv", "a/z.csv", "b.csv", "é.csv"]
    file = find_tables(tmp_path)[0][0]
    assert file.path == tmp_path / "B.csv"
    assert file.n_bytes == 8


def test_one_file_is_a_lake_of_one_table_whatever_its_extension(tmp_path):
    touch(tmp_path, "notes.txt")
    tables, skipped = find_tables(tmp_path / "notes.txt")
    assert [(file.table, file.format) for file in tables] == [("notes.txt", "delimited")]
    assert skipped == []


def test_what_is_no_table_is_listed_with_its_reason(tmp_path):
    touch(tmp_path, "README.md", "LICENSE", ".hidden.csv", ".git/a.csv")
    touch(tmp_path, "old.pexeso/a.csv", "built/a.csv")
    touch(tmp_path, "older/a.csv")
    (tmp_path / "built" / "manifest.json").write_bytes(MANIFEST.to_bytes())
    older = {"format_version": 3, "fingerprints": {}, "partitions": [], "checksum": ""}
    (tmp_path / "older" / "manifest.json").write_text(json.dumps(older))
    assert tables_of(tmp_path) == []
    reasons = reasons_of(tmp_path)
    assert reasons["README.md"] == "not a table: prose"
    assert reasons["LICENSE"].startswith("not a table by its extension; tables end in .csv,")
    assert reasons[".hidden.csv"] == reasons[".git"] == "hidden: its name starts with a dot"
    assert {reasons[name] for name in ("old.pexeso", "built", "older")} == {"a pexeso index"}
    with pytest.raises(LakeError, match="is a pexeso index"):
        find_tables(tmp_path / "built")


def test_a_manifest_of_something_else_does_not_hide_a_folder(tmp_path):
    touch(tmp_path, "app/a.csv")
    for text in ('{"name": "app"}', "[]", "{", "[" * 100_000):
        (tmp_path / "app" / "manifest.json").write_text(text)
        assert tables_of(tmp_path) == ["app/a.csv", "app/manifest.json"]


def test_links_that_leave_the_lake_are_not_followed(tmp_path):
    touch(tmp_path, "outside/secret.csv", "lake/a.csv", "lake/in/b.csv")
    lake = tmp_path / "lake"
    (lake / "out.csv").symlink_to(tmp_path / "outside" / "secret.csv")
    (lake / "up").symlink_to(tmp_path)
    (lake / "broken.csv").symlink_to(tmp_path / "nowhere.csv")
    (lake / "loop.csv").symlink_to(lake / "loop.csv")
    (lake / "again").symlink_to(lake / "in")
    (lake / "copy.csv").symlink_to(lake / "a.csv")
    assert tables_of(lake) == ["a.csv", "copy.csv", "in/b.csv"]
    reasons = reasons_of(lake)
    assert reasons["out.csv"] == reasons["up"] == "a symbolic link that leaves the lake"
    assert (
        reasons["broken.csv"]
        == reasons["loop.csv"]
        == "a symbolic link whose target does not exist"
    )
    assert "read in its own place" in reasons["again"]


def test_names_that_are_not_text_and_files_that_are_not_regular_are_skipped(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    with open(os.fsencode(tmp_path) + b"/caf\xe9.csv", "w"):
        pass
    assert reasons_of(tmp_path) == {
        "pipe.csv": "not a regular file",
        "caf\ufffd.csv": "its name is not valid UTF-8; rename it",
    }


def test_a_missing_folder_and_an_index_are_refused(tmp_path):
    with pytest.raises(
        LakeError, match=r"nowhere is neither a folder nor a file; give the folder that holds"
    ):
        find_tables(tmp_path / "nowhere")
    with pytest.raises(LakeError, match="cannot be listed: File name too long"):
        find_tables(tmp_path / ("x" * 300))  # as a folder that is closed to the user is
    with pytest.raises(LakeError, match="is neither a folder nor a file"):
        find_tables(tmp_path / "a\0")
    (tmp_path / "x.pexeso").mkdir()
    with pytest.raises(LakeError, match=r"x\.pexeso is a pexeso index, not a folder of tables"):
        find_tables(tmp_path / "x.pexeso")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_listed_is_skipped(tmp_path):
    touch(tmp_path, "a.csv", "closed/b.csv")
    (tmp_path / "closed").chmod(0)
    try:
        assert tables_of(tmp_path) == ["a.csv"]
        assert reasons_of(tmp_path) == {"closed": "the folder cannot be listed: Permission denied"}
    finally:
        (tmp_path / "closed").chmod(0o700)


def test_a_very_deep_folder_does_not_exhaust_the_stack(tmp_path):
    folder = "/".join(["d"] * 300)
    touch(tmp_path, f"{folder}/a.csv")
    assert tables_of(tmp_path) == [f"{folder}/a.csv"]


@pytest.mark.lakes
@pytest.mark.parametrize(
    ("name", "n_tables"), [("wikitables", 2108), ("fivethirtyeight", 563), ("pudding", 65)]
)
def test_real_lakes_have_the_tables_they_are_said_to_have(lake_folder, name, n_tables):
    assert len(find_tables(lake_folder(name))[0]) == n_tables


def test_a_table_has_its_time_of_change(tmp_path):
    touch(tmp_path, "a.csv")
    os.utime(tmp_path / "a.csv", ns=(1, 1_700_000_000_123_456_789))
    for lake in (tmp_path, tmp_path / "a.csv"):
        [table] = find_tables(lake)[0]
        assert (table.modified, table.version) == (1_700_000_000_123_456_789, None)


def test_listing_folder_by_folder_gives_what_the_walk_gives(tmp_path):
    touch(tmp_path, "b.csv", "a/z.csv", "a/b/c.tsv", "a/.x.csv", "i.pexeso/a.csv", "README.md")
    (tmp_path / "up").symlink_to(tmp_path.parent)
    assert list_folder(tmp_path).folders == ["a"]
    assert list_folder(tmp_path, "a").folders == ["a/b"]
    listings = [list_folder(tmp_path, folder) for folder in ("", "a", "a/b")]
    tables = sorted(
        (table for one in listings for table in one.tables), key=lambda file: file.table
    )
    skipped = sorted((file for one in listings for file in one.skipped), key=lambda file: file.path)
    assert (tables, skipped) == find_tables(tmp_path)


def test_a_file_url_is_the_local_lake(tmp_path):
    touch(tmp_path, "my lake/a.csv")
    assert find_tables((tmp_path / "my lake").as_uri()) == find_tables(tmp_path / "my lake")


def test_a_path_comes_back_from_its_text(tmp_path):
    touch(tmp_path, "a/b.csv")
    [table] = find_tables(tmp_path)[0]
    assert path_from_text(tmp_path, str(table.path)) == table.path


def test_what_is_written_to_the_log_of_a_database_changes_it(tmp_path):
    path = tmp_path / "data.db"

    def seen():
        [file], _ = find_tables(path)
        return (file.n_bytes, file.modified), FileSource("data.db", path).fingerprint

    with contextlib.closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("CREATE TABLE t (a)")
        writer.commit()
        first = seen()
        writer.execute("INSERT INTO t VALUES ('Oslo')")
        writer.commit()
        second = seen()
        assert all(before != after for before, after in zip(first, second, strict=True))
        assert seen() == second
    assert seen()[1] == bytes_fingerprint(path.read_bytes())


def test_what_cannot_be_looked_into_is_told_from_what_holds_no_table(tmp_path, monkeypatch):
    touch(tmp_path, "a.csv", "denied/b.csv", "book.xlsx", "letter.docx", "gone/c.csv")
    scan = os.scandir

    def scandir(path):
        name = os.path.basename(str(path))
        if name in ("denied", "gone"):
            raise (
                PermissionError(13, "Permission denied")
                if name == "denied"
                else (FileNotFoundError(2, "No such file or directory"))
            )
        return scan(path)

    with zipfile.ZipFile(tmp_path / "old.zip", "w") as archive:
        archive.writestr("inner.xlsx", b"no workbook")
        archive.writestr("letter.pdf", b"prose")
    monkeypatch.setattr(os, "scandir", scandir)
    tables, skipped = find_tables(tmp_path)
    assert [file.table for file in tables] == ["a.csv"]
    assert {file.path: file.is_closed for file in skipped} == {
        "book.xlsx": True,
        "denied": True,
        "gone": False,
        "letter.docx": False,
        "old.zip/inner.xlsx": True,
        "old.zip/letter.pdf": False,
    }


def test_a_workbook_that_cannot_be_opened_leaves_the_others_of_its_folder(tmp_path, monkeypatch):
    touch(tmp_path, "a.csv", "book.xlsx", "z.csv")

    def refused(*given):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("pexeso.lake.files.tables_inside", refused)
    tables, [skipped] = find_tables(tmp_path)
    assert [file.table for file in tables] == ["a.csv", "z.csv"]
    assert skipped.reason == "book.xlsx cannot be read: Too many open files"
    assert skipped.is_closed


@pytest.mark.parametrize("name", ["a\0b.csv", "\ud800.csv"])
def test_a_name_that_no_file_has_is_refused(name: str) -> None:
    with pytest.raises(TableReadError, match="cannot be the name of a file"):
        read_table(name)
    line = read_batch_line(1, json.dumps({"file": name, "column": "x"}))
    assert line.query is None
    assert "cannot be the name of a file" in line.error


@pytest.mark.parametrize("rules", [5, "dates", [["dates"]], None, {"dates": 1}, ["none"]])
def test_rules_that_are_none_are_refused(rules: object) -> None:
    description = {**json.loads(Normaliser().to_json()), "rules": rules}
    with pytest.raises(InputError, match=r"rules must be a list of names|There is no rule"):
        Normaliser.from_json(json.dumps(description))


def test_a_description_nested_too_deep_is_refused() -> None:
    with pytest.raises(InputError, match="is not JSON"):
        Normaliser.from_json("[" * 200_000)
