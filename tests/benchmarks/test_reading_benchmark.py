"""The benchmark of reading: its files hold their truth, and pexeso reads nearly all of them."""

import csv
import io
import json

import pytest
from click.testing import CliRunner

from benchmarks.cli import main
from benchmarks.reading.pollock import pollock_files
from benchmarks.reading.rules import HELD_OUT, TUNED, hard_files
from benchmarks.reading.scoring import is_right, same_cells, same_names
from benchmarks.reading.tables import plain_tables


def test_files_are_the_same_each_time_and_differ_by_rule():
    files = hard_files()
    assert files == hard_files()
    assert len(files) > 300
    assert len({file.name for file in files}) == len(files)
    assert not set(TUNED) & set(HELD_OUT)
    plain = {file.written.data for file in files if file.name.startswith("comma-")}
    assert len(plain) == len(plain_tables())
    assert [
        file.name
        for file in files
        if file.written.data in plain and not file.name.startswith(("comma-", "ragged-"))
    ] == []


def test_the_plainest_files_hold_their_truth():
    for file in hard_files():
        if file.name.startswith("comma-"):
            names, *rows = csv.reader(io.StringIO(file.written.data.decode(), newline=""))
            assert same_names(names, file.written.names)
            assert same_cells(rows, file.written.rows)


def test_what_counts_as_right():
    assert same_cells([["a ", ""]], [["a"]])
    assert not same_cells([["a"]], [["a"], ["b"]])
    assert not same_cells([["a"]], [["b"]])
    assert same_names(["", "column1", "Unnamed: 2", "c3"], None)
    assert not same_names(["city"], None)
    assert not same_names(["city"], ["town"])


def test_conventions_are_left_aside_and_nothing_else_is():
    assert same_cells([["a"], [" ", ""], ["b"]], [["a"], ["b"]])
    assert same_names(["city", "a b"], ["city city", "a b a b"])
    assert not same_names(["city a"], ["city city"])
    refused, empty = None, ([], [])
    assert is_right(refused, None, [], 0)
    assert is_right((["x"], []), None, [], 0)
    assert not is_right(refused, ["a"], [["1"]], 1)
    assert not is_right(empty, ["a"], [["1"]], 1)
    header, row, both = (["b"], [["1"]]), (["a"], [["2"]]), (["b"], [["2"]])
    assert [is_right(reading, ["a"], [["1"]], 1) for reading in (header, row, both)] == [
        True,
        True,
        False,
    ]
    assert not is_right(header, ["a"], [["1"]], 0)


def counts(*options):
    ran = CliRunner().invoke(main, ["reading", "--readers", "pexeso", "--json", *options])
    assert ran.exit_code == 0, ran.output
    return json.loads(ran.output)["groups"]


def test_the_command_counts_what_is_read(tmp_path):
    for part, content in (("csv", "sep=;\na;b\n1;2\n"), ("clean", "a,b\n1,2\n")):
        (tmp_path / "polluted_files" / part).mkdir(parents=True)
        (tmp_path / "polluted_files" / part / "file_sep.csv").write_text(content, encoding="utf-8")
    assert [file.rows for file in pollock_files(tmp_path)] == [[["1", "2"]]]
    assert counts("--pollock", str(tmp_path)) == {"damaged file": {"files": 1, "pexeso": 1}}
    groups = counts()
    for group in ("tuned", "held out"):
        assert groups[group]["pexeso"] >= 0.95 * groups[group]["files"]


@pytest.mark.parametrize(
    ("options", "said"),
    [(["--readers", "excel"], "Got 'excel'"), (["--pollock", "gone"], "'gone' has no folder")],
)
def test_wrong_input_is_said(options, said):
    ran = CliRunner().invoke(main, ["reading", "--readers", "pexeso", *options])
    assert ran.exit_code == 2
    assert said in ran.output
