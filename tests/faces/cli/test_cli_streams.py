"""What reaches a terminal, a pipe, a full disk and a spreadsheet."""

import csv
import io
import os
import pty
import resource
import sys
import tty

import pytest
from processes import ran, ran_pexeso

from pexeso.faces.cli.main import main
from pexeso.faces.cli.streams import SafeStream, without_control_characters

HOSTILE = "\x1b]0;owned\x07\x9b31mOslo"
ESCAPED = "\\u001b]0;owned\\u0007\\u009b31mOslo"


@pytest.fixture
def hostile(tmp_path):
    """A table whose cells would steer a terminal and a spreadsheet."""
    path = tmp_path / "hostile.csv"
    rows = [HOSTILE, "=1+1", "+x", "-5", "@cmd", '"\ttab"', "Oslo"]
    path.write_text(
        "place,=n\n" + "".join(f"{row},=2\n" for row in rows), encoding="utf-8", newline=""
    )
    return path


@pytest.fixture
def on_terminal(monkeypatch):
    """Return a function that runs the command line with a terminal as stdout.

    The function returns what the terminal received.
    """

    def invoke(*arguments: object) -> str:
        master, slave = pty.openpty()
        tty.setraw(slave)
        with (
            os.fdopen(master, "rb", buffering=0) as screen,
            os.fdopen(slave, "w", encoding="utf-8") as stdout,
        ):
            monkeypatch.setattr(sys, "stdout", stdout)
            with pytest.raises(SystemExit) as ended:
                main([str(argument) for argument in arguments])
            assert ended.value.code == 0
            os.set_blocking(screen.fileno(), False)
            pieces = []
            while piece := screen.read(1 << 16):
                pieces.append(piece)
            return b"".join(pieces).decode("utf-8")

    return invoke


both = pytest.mark.parametrize("command", [("join",), ("explain", "--csv")])


@both
def test_cells_cannot_steer_a_terminal_and_are_byte_exact_elsewhere(
    command, on_terminal, run, small_index, hostile
):
    name, *options = command
    arguments = [name, small_index, f"{hostile}:place", "cities.csv:city", *options]
    shown = on_terminal(*arguments)
    assert ESCAPED in shown
    assert "\x1b" not in shown
    assert "\x9b" not in shown
    assert HOSTILE in run(*arguments).stdout


@both
def test_formulas_are_neutralised_where_that_is_asked_for(command, run, small_index, hostile):
    name, *options = command
    arguments = [name, small_index, f"{hostile}:place", "cities.csv:city", *options]
    plain, escaped = run(*arguments).stdout, run(*arguments, "--escape-formulas").stdout
    cells = ["=1+1", "+x", "@cmd", "\ttab"]
    assert all(f"\n{cell}," in plain for cell in cells)
    assert all(f"\n'{cell}," in escaped for cell in cells)
    assert "\n-5," in escaped, "a number is no formula"
    if name == "join":
        assert plain.startswith("place,=n,")
        assert escaped.startswith("place,'=n,")


def test_formulas_are_neutralised_in_files_too(run, small_index, hostile, tmp_path):
    joined, conflicts = tmp_path / "joined.csv", tmp_path / "conflicts.csv"
    files = ("-o", joined, "--conflicts", conflicts)
    arguments = ("join", small_index, f"{hostile}:place", "cities.csv:city", *files)
    run(*arguments, "--escape-formulas")
    assert "\n'=1+1,'=2," in joined.read_text(encoding="utf-8")
    assert conflicts.is_file()


@both
def test_a_carriage_return_ends_no_row_and_starts_no_formula(command, run, small_index, tmp_path):
    path, cells = tmp_path / "returns.csv", ["x\r=1+1", "\r=2", "\n=3"]
    rows = "".join(f'"{cell}",1\n' for cell in cells)
    path.write_text(f"place,n\n{rows}Oslo,2\n", encoding="utf-8", newline="")
    name, *options = command
    arguments = [name, small_index, f"{path}:place", "cities.csv:city", "--escape-formulas"]
    written = run(*arguments, *options).stdout_bytes.decode()
    records = list(csv.reader(io.StringIO(written, newline="")))
    assert len({len(row) for row in records}) == 1
    assert {row[0] for row in records[1:]} == {"x\r=1+1", "'\r=2", "'\n=3", "Oslo"}


def test_edges_in_files_are_not_taken_for_escaped(fail, small_index, tmp_path):
    said = fail(2, "graph", small_index, "-o", tmp_path / "joins.csv", "--escape-formulas")
    assert "--escape-formulas goes with --csv" in said


def test_messages_have_no_control_characters_wherever_they_go(tmp_path):
    done = ran_pexeso("info", tmp_path / "\x1b[31mred")
    assert done.returncode == 1
    assert "\\u001b[31mred" in done.stderr
    assert "\x1b" not in done.stderr


def test_a_full_disk_behind_stdout_is_one_sentence():
    with open("/dev/full", "w") as full:
        done = ran_pexeso("rules", stdout=full)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "Error: Standard output cannot be written: No space left on device. Make room, or write "
        "elsewhere; what was written so far is cut off."
    ]


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_part_that_the_system_took_is_not_all(tmp_path, unbuffered):
    file = tmp_path / "rules.json"
    # No module may be kept compiled: it would be cut off too.
    variables = {"PYTHONUNBUFFERED": unbuffered, "PYTHONDONTWRITEBYTECODE": "1"}
    with file.open("wb") as stdout:
        limited = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))  # noqa: E731
        done = ran_pexeso("rules", "--json", stdout=stdout, variables=variables, preexec_fn=limited)
    assert done.returncode == 1
    assert "Standard output cannot be written: File too large." in done.stderr
    assert file.stat().st_size == 100


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    ("closed", "code", "said"),
    [
        (">&-", 1, "Error: Standard output is closed. Write to a file or into a pipe, or to"),
        ("2>&-", 0, '"rules"'),
    ],
)
def test_a_closed_stream_is_told_or_passed_over(closed, code, said, unbuffered):
    command = [sys.executable, "-m", "pexeso", "rules", "--json"]
    done = ran(
        ["bash", "-c", f'exec "$@" {closed}', "bash", *command],
        variables={"PYTHONUNBUFFERED": unbuffered},
    )
    assert done.returncode == code
    assert said in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_messages_that_nobody_can_read_do_not_fail_a_command():
    with open("/dev/full", "w") as full:
        done = ran_pexeso("estimate", "--help", stderr=full)
        stream = SafeStream(full, escapes=True, is_data=False)
        stream.write("lost")
        stream.flush()
    assert done.returncode == 0
    assert "Usage" in done.stdout


def test_line_feeds_tabs_and_all_other_letters_stay():
    text = "Ωμέγα\t東京\né👩‍🚀"
    assert without_control_characters(text) == text
    assert without_control_characters("a\rb\u202ec\x7f") == "a\\u000db\\u202ec\\u007f"
