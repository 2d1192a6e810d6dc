"""`pexeso info`, `check` and `doctor`."""

import json
import shutil

import pytest

import pexeso.build.diagnostics.doctor
from pexeso.build.diagnostics.doctor import Finding
from pexeso.build.diagnostics.info import ReasonRow
from pexeso.faces.cli.index import group_lines, total
from pexeso.faces.cli.inspect import info_lines, listing_lines
from pexeso.index import build_index, open_index
from pexeso.lake.left_out import ReasonGroup
from pexeso.lake.normalise.rules import ALL_RULES, DEFAULT_RULES


@pytest.fixture
def copied(small_index, tmp_path):
    """Copy the small index, to be damaged."""
    return shutil.copytree(small_index, tmp_path / "copy.pexeso")


def test_info_for_people(run, small_index, small_lake):
    lines = run("info", small_index).stdout.splitlines()
    assert lines[0].startswith(f"index       {small_index} (")
    assert lines[2:9] == [
        f"lake        {small_lake}",
        "files       7, of which 5 are tables",
        "columns     12, of which 7 are indexed",
        "values      33 distinct, in 42 (column, value) pairs",
        "model       hashing, 64 dimensions of 16 bits",
        "metric      euclidean, projected on 15 axes, blocks",
        "partitions  1",
    ]
    assert lines[9].startswith(
        "equal text  overlap and containment: 11 columns, 66 (column, value) pairs, in 1 shard ("
    )
    assert lines[11].split() == ["partition", "columns", "values", "postings", "cells", "bytes"]
    assert lines[12].split()[:4] == ["0", "7", "33", "42"]
    assert lines[14].split() == ["shard", "columns", "tokens", "pairs", "deleted", "bytes"]
    assert lines[15].split()[:5] == ["0", "11", "61", "66", "0"]
    assert lines[17:] == [
        "Left out (--left-out lists all): 2 files and 5 columns",
        "  1  file     no readable Parquet file (broken.parquet)",
        "  1  file     text without columns, not delimited text (notes.txt)",
        "  4  columns  numbers (cities.csv:people, nested/capitals.tsv:Seat since, "
        "numbers.csv:amount, ...)",
        "  1  column   2 rows, at least 5 needed (min_rows) (short.csv:city)",
    ]


def test_rows_whose_reasons_differ_tell_them():
    few = "3 rows, at least 5 needed (min_rows)"
    both = "1 to 3 rows, at least 5 needed (min_rows)"
    group = ReasonGroup("columns", both, 2, (), both)
    numbers = ReasonGroup("columns", "numbers", 2, (), "numbers: 62.5 to 1,000 % of all, alas")
    unread = ReasonGroup("tables", "cannot be read", 2, ())
    rows = [
        ReasonRow(group, "a\x1b.csv", "x", few),
        ReasonRow(group, "b.csv", "y", few.replace("3 rows", "1 row")),
        ReasonRow(numbers, "b.csv", "n", "numbers: 1,000 % of all, alas"),
        ReasonRow(unread, "c.csv", None, "cannot be read: Permission denied"),
        ReasonRow(unread, "d.csv", None, "cannot be read"),
    ]

    class Listing(list):
        is_of_notes = False

    assert list(listing_lines(Listing(rows))) == [
        f"2 columns: {both}",
        "  a\\x1b.csv:x  3 rows",
        "  b.csv:y  1 row",
        "",
        "2 columns: numbers: 62.5 to 1,000 % of all, alas",
        "  b.csv:n  1,000 % of all",
        "",
        "2 files: cannot be read",
        "  c.csv  Permission denied",
        "  d.csv  cannot be read",
    ]


def test_notes_about_tables(run, tmp_path):
    lake = tmp_path / "lake"
    lake.mkdir()
    (lake / "states.csv").write_bytes("state\nBayern\nThüringen\na\nb\nc\n".encode("cp1252"))
    (lake / "ragged.csv").write_text("a,b\nx,1,2\ny\nz,3\nv,4\nw,5\n", encoding="utf-8")
    index = build_index(lake, tmp_path / "lake.pexeso", model="hashing", dimensions=64).path
    done = run("info", index, "--notes")
    assert done.stdout == (
        "1 table: not UTF-8: read as cp1252, a guess\n"
        "  states.csv\n"
        "\n"
        "1 table: rows longer than the header lost their surplus cells: 1\n"
        "  ragged.csv\n"
        "\n"
        "1 table: rows shorter than the header were filled with empty cells: 1\n"
        "  ragged.csv\n"
    )
    assert done.stderr == "2 tables repaired while reading, 3 notes.\n"
    document = json.loads(run("info", index, "--notes", "--json").stdout)
    assert document == open_index(index).notes().to_dict()
    assert [row["table"] for row in document["rows"]] == ["states.csv", "ragged.csv", "ragged.csv"]
    lines = run("info", index).stdout.splitlines()
    assert lines[-1] == "Repaired while reading (--notes lists all): 2 tables"
    assert run("info", index, "--left-out").stderr.splitlines() == [
        "1 column left out.",
        f"2 tables repaired while reading; 'pexeso info {index} --notes' lists what.",
    ]
    assert json.loads(run("info", index, "--json").stdout)["repaired"] == 2


def test_one_list_is_asked_for_at_a_time(fail, small_index):
    assert "Give one of --report, --left-out and --notes." in fail(
        2, "info", small_index, "--left-out", "--report"
    )


def test_of_many_groups_the_largest_are_told_and_the_others_counted():
    groups = [
        ReasonGroup(kind, f"reason {n}", 9 - n, (f"{n}",))
        for kind in ("tables", "columns")
        for n in range(5)
    ]
    assert group_lines(groups, 4)[4::5] == [
        "  5  files    reason 4 (4, ...)",
        "  5  columns  reason 4 (4, ...)",
    ]
    assert group_lines(groups, 3) == [
        "   9  files    reason 0 (0, ...)", "   8  files    reason 1 (1, ...)",
        "   7  files    reason 2 (2, ...)", "  11  files    for 2 other reasons",
        "   9  columns  reason 0 (0, ...)", "   8  columns  reason 1 (1, ...)",
        "   7  columns  reason 2 (2, ...)", "  11  columns  for 2 other reasons",
    ]  # fmt: skip
    assert total(groups) == "35 files and 35 columns"
    assert total(groups[:1]) == "9 files"
    assert total([]) == "nothing"


def test_many_partitions_are_not_all_shown_and_it_says_so(small_index):
    from dataclasses import replace

    info = open_index(small_index).info()
    many = replace(info, of_parts={**info.of_parts, "partitions": info.partitions * 25})
    lines = info_lines(many)
    assert "and 5 more partitions (--json lists all)" in lines


def test_a_whole_index(run, small_index):
    result = run("check", small_index)
    n_bytes = open_index(small_index).info().bytes
    n_files = sum(1 for _ in open_index(small_index).store.manifest.files())
    assert result.stdout == f"ok: {n_files} files, {n_bytes:,} bytes\n"


def test_a_note_is_no_failure(run, copied):
    (copied / "README.txt").write_text("mine", encoding="utf-8")
    result = run("check", copied)
    first, second = result.stdout.splitlines()
    assert first.startswith("note: ")
    assert "README.txt" in first
    assert second.startswith("ok: ")


def test_a_flipped_byte_is_found(run, copied):
    path = copied / "partitions" / "00000" / "vectors.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    result = run("check", copied, code=1)
    assert result.stdout.startswith(f"problem: '{path}' is not as it was written, by its checksum")
    assert result.stderr == f"Error: 1 problem in the index '{copied}': do not search it.\n"
    document = json.loads(run("check", copied, "--json", code=1).stdout)
    assert document["ok"] is False
    assert [problem["kind"] for problem in document["problems"]] == ["checksum"]


FINE = [
    Finding("Python", True, "3.11.7"),
    Finding("CUDA", None, "no CUDA device", "Searches run on the CPU."),
]


def test_a_machine_that_will_do(run, monkeypatch):
    monkeypatch.setattr(pexeso.build.diagnostics.doctor, "diagnose", lambda folder: FINE)
    result = run("doctor")
    assert (
        result.stdout
        == "ok    Python  3.11.7\nnote  CUDA    no CUDA device\n         Searches run on the CPU.\n"
    )
    assert result.stderr == "This machine has everything that pexeso needs.\n"


def test_a_machine_that_will_not_do(run, monkeypatch):
    monkeypatch.setattr(
        pexeso.build.diagnostics.doctor,
        "diagnose",
        lambda folder: [*FINE, Finding("Java", False, "none", "Install one.")],
    )
    result = run("doctor", code=1)
    assert "missing  Java    none\n         Install one.\n" in result.stdout
    assert result.stderr == "Error: pexeso needs Java and cannot work without.\n"


def test_findings_as_json(run, monkeypatch):
    monkeypatch.setattr(pexeso.build.diagnostics.doctor, "diagnose", lambda folder: FINE)
    document = json.loads(run("doctor", "--json").stdout)
    assert document["findings"][0] == {
        "name": "Python",
        "ok": True,
        "detail": "3.11.7",
        "way_out": "",
    }


def test_the_folder_looked_at_is_the_one_given(run, tmp_path):
    assert str(tmp_path) in run("doctor", tmp_path).stdout


def test_every_rule_is_listed_with_an_example(run):
    lines = run("rules").stdout.splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [
        ["on" if name in DEFAULT_RULES else "off", name] for name in ALL_RULES
    ]
    assert lines[1].split()[2] == "Caf&eacute;"


GDP = "country,year,gdp\nfr,2001,1.5\nfr,2002,2.5\nit,2001,3.5\nit,2002,4.5\nit,2003,1.5\n"


@pytest.fixture
def gdp(write):
    return write("gdp.csv", GDP)


def test_rows_that_are_left_out_are_counted(run, gdp):
    gdp.write_text(f"{GDP}it,2003,1.5\n,,\nfr,2002,2.6\n", encoding="utf-8")
    done = run("keys", gdp, "-k", 1, "--nearly", 0.8)
    assert done.stdout.splitlines()[1:] == [
        "country,year  nearly  83.3 %        0  1 row repeated, such as fr, 2002 in 2 rows; "
        "without country 50.0 %, such as 2002 in 3 rows"
    ]
    assert done.stderr == ("8 rows; left out: 1 empty, 1 equal to an earlier one in all columns\n")


def test_no_key_is_said_with_the_reason(run, gdp):
    done = run("keys", gdp, "--max-columns", 1)
    assert done.stdout == ("No key: no combination of 1 column tells 98.0 % of the rows apart.\n")
    gdp.write_text("country,year\n", encoding="utf-8")
    assert run("keys", gdp).stdout == "No key: the table has no rows.\n"


def test_what_was_not_looked_at_is_noted(run, gdp, monkeypatch):
    monkeypatch.setattr("pexeso.composite.unique_columns.MAX_WIDTH", 2)
    assert run("keys", gdp).stderr.splitlines()[1] == (
        "Note: Of combinations of 2 columns those with the last 1 of 3 columns, in the order of "
        "preference, were not looked at."
    )
