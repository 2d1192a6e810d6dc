"""`pexeso info`, `check` and `doctor`."""

import json
import shutil

import pytest

import pexeso.diagnostics.doctor
from pexeso.cli.commands.inspect import info_lines
from pexeso.diagnostics.doctor import Finding
from pexeso.index import open_index
from pexeso.store.manifest import Manifest


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
    assert "Files left out:" in lines
    assert any(line.startswith("  1  broken.parquet") for line in lines)
    assert "Columns left out:" in lines


def test_info_as_json(run, small_index):
    document = json.loads(run("info", small_index, "--json").stdout)
    assert document == open_index(small_index).info().to_dict()


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
    assert (result.exit_code, result.stdout) == (0, f"ok: {n_files} files, {n_bytes:,} bytes\n")


def test_a_note_is_no_failure(run, copied):
    (copied / "README.txt").write_text("mine", encoding="utf-8")
    result = run("check", copied)
    assert result.exit_code == 0
    first, second = result.stdout.splitlines()
    assert first.startswith("note: ")
    assert "README.txt" in first
    assert second.startswith("ok: ")


def test_a_flipped_byte_is_found(run, copied):
    path = copied / "partitions" / "00000" / "vectors.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    result = run("check", copied)
    assert result.exit_code == 1
    assert result.stdout.startswith(f"problem: '{path}' is not as it was written, by its checksum")
    assert result.stderr == f"Error: 1 problem in the index '{copied}': do not search it.\n"
    document = json.loads(run("check", copied, "--json").stdout)
    assert document["ok"] is False
    assert [problem["kind"] for problem in document["problems"]] == ["checksum"]


def test_a_file_cut_short_is_told_by_search_and_by_check(fail, run, copied, places):
    path = copied / "partitions" / "00000" / "vectors.npy"
    path.write_bytes(path.read_bytes()[:-100])
    said = fail(1, "search", copied, f"{places}:place")
    assert "it was cut short or changed. 'pexeso check' lists all such files." in said
    assert run("check", copied).exit_code == 1


def test_another_format_version(fail, copied, places):
    manifest = copied / "manifest.json"
    document = vars(Manifest.from_bytes(manifest.read_bytes())) | {"format_version": 999}
    manifest.write_bytes(Manifest(**document).to_bytes())
    for command in (["search", copied, f"{places}:place"], ["info", copied]):
        assert "format version 999" in fail(1, *command)
    assert fail(1, "check", copied).startswith("Error: 1 problem")


@pytest.mark.parametrize("command", ["info", "check"])
def test_no_index(fail, tmp_path, command):
    said = fail(1, command, tmp_path / "none")
    assert (
        said
        == f"Error: There is no index at '{tmp_path / 'none'}': no such folder. Build one with "
        "'pexeso index'.\n"
    )


FINE = [
    Finding("Python", True, "3.11.7"),
    Finding("CUDA", None, "no CUDA device", "Searches run on the CPU."),
]


def test_a_machine_that_will_do(run, monkeypatch):
    monkeypatch.setattr(pexeso.diagnostics.doctor, "diagnose", lambda folder: FINE)
    result = run("doctor")
    assert result.exit_code == 0
    assert (
        result.stdout
        == "ok    Python  3.11.7\nnote  CUDA    no CUDA device\n         Searches run on the CPU.\n"
    )
    assert result.stderr == "Everything that pexeso needs is there.\n"


def test_a_machine_that_will_not_do(run, monkeypatch):
    monkeypatch.setattr(
        pexeso.diagnostics.doctor,
        "diagnose",
        lambda folder: [*FINE, Finding("Java", False, "none", "Install one.")],
    )
    result = run("doctor")
    assert result.exit_code == 1
    assert "missing  Java    none\n         Install one.\n" in result.stdout
    assert result.stderr == "Error: pexeso needs Java and cannot work without.\n"


def test_findings_as_json(run, monkeypatch):
    monkeypatch.setattr(pexeso.diagnostics.doctor, "diagnose", lambda folder: FINE)
    document = json.loads(run("doctor", "--json").stdout)
    assert document["findings"][0] == {
        "name": "Python",
        "ok": True,
        "detail": "3.11.7",
        "way_out": "",
    }


def test_the_folder_looked_at_is_the_one_given(run, tmp_path):
    assert str(tmp_path) in run("doctor", tmp_path).stdout
