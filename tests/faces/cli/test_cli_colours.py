"""Colours: where a terminal shows them, and nowhere else."""

import io
import json
import os
import pty
import re
import subprocess
import sys
import tty
from contextlib import redirect_stderr, redirect_stdout

import pytest

from pexeso.faces.cli.main import cli
from pexeso.faces.cli.streams import safe_streams, wants_colours

COLOUR = re.compile("\x1b\\[[0-9;]*m")
BOLD, RED, YELLOW, CYAN, END = "\x1b[1m", "\x1b[31m\x1b[1m", "\x1b[33m", "\x1b[36m", "\x1b[0m"
PROGRAM = "from pexeso.faces.cli.main import main; main()"


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    path = tmp_path_factory.mktemp("places") / "places.csv"
    path.write_text("place,n\nOslo,1\nROME,2\nMadrid,3\nXyzzyx,4\n,5\n", encoding="utf-8")
    return path


def shown(*arguments: object, terminal: bool = True, **variables: str) -> tuple[str, str]:
    """Run the command line; return what stdout and stderr got, both terminals or both pipes."""
    ends = [pty.openpty() if terminal else os.pipe() for _ in range(2)]
    # Of a terminal both ends are read and written, of a pipe the first is read.
    reading = [first for first, _ in ends]
    writing = [second for _, second in ends]
    if terminal:
        for end in writing:
            tty.setraw(end)
    cleared = {"NO_COLOR", "FORCE_COLOR"}
    environment = {name: text for name, text in os.environ.items() if name not in cleared}
    done = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *map(str, arguments)],
        env=environment | {"TERM": "xterm", "COLUMNS": "100"} | variables,
        stdin=subprocess.DEVNULL,
        stdout=writing[0],
        stderr=writing[1],
    )
    for end in writing:
        os.close(end)
    texts = ["".join(pieces(end)) for end in reading]
    done.wait()
    return texts[0], texts[1]


def pieces(end: int):
    """Yield what arrives; a terminal whose other end is closed is an error of reading."""
    with os.fdopen(end, "rb", buffering=0) as stream:
        try:
            while piece := stream.read(1 << 16):
                yield piece.decode("utf-8")
        except OSError:
            return


@pytest.fixture
def shown_here(monkeypatch, tmp_path):
    """Return a function like `shown`, for files in place of pipes and without another process."""

    def run(*arguments: object, **variables: str) -> tuple[str, str]:
        for name in ("NO_COLOR", "FORCE_COLOR"):
            monkeypatch.delenv(name, raising=False)
        for name, text in variables.items():
            monkeypatch.setenv(name, text)
        paths = [tmp_path / name for name in ("stdout", "stderr")]
        with (
            paths[0].open("w", encoding="utf-8") as out,
            paths[1].open("w", encoding="utf-8") as err,
            redirect_stdout(out),
            redirect_stderr(err),
            safe_streams(),
        ):
            cli.main([*map(str, arguments)], prog_name="pexeso", standalone_mode=False)
        return tuple(path.read_text(encoding="utf-8") for path in paths)

    return run


@pytest.fixture(scope="module")
def on_a_terminal(small_index, places):
    """Return what a search shows on a terminal."""
    return shown("search", small_index, f"{places}:place")


def test_headers_scores_and_warnings_on_a_terminal(on_a_terminal):
    out, err = on_a_terminal
    header, first, *_ = out.splitlines()
    assert header.startswith(f"{BOLD}similarity  joinability")
    assert header.endswith(END)
    assert re.match(re.escape(CYAN) + " *[0-9.]+" + re.escape(END), first)
    assert f"{YELLOW}Of the 5 rows of 'place' these match nothing: 1 empty" in err


def test_the_text_is_the_same_without_colours(small_index, places, on_a_terminal, shown_here):
    coloured = on_a_terminal
    arguments = ("search", small_index, f"{places}:place")
    plain = shown_here(*arguments, NO_COLOR="1", FORCE_COLOR="1", COLUMNS="100")
    assert COLOUR.search(coloured[0])
    assert COLOUR.sub("", coloured[0]) == plain[0]
    assert "\x1b" not in plain[0] + plain[1]


@pytest.mark.parametrize(
    ("terminal", "variables", "expected"),
    [
        (True, {}, True),
        (False, {}, False),
        (False, {"FORCE_COLOR": "1"}, True),
        (False, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (False, {"FORCE_COLOR": ""}, False),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"NO_COLOR": ""}, True),
        (True, {"TERM": "dumb"}, False),
    ],
)
def test_what_says_whether(monkeypatch, terminal, variables, expected):
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    stream = io.StringIO()
    stream.isatty = lambda: terminal
    assert wants_colours(stream) is expected


def test_colours_can_be_forced_into_a_file_but_not_into_data(small_index, places, shown_here):
    arguments = ("search", small_index, f"{places}:place")
    out, err = shown_here(*arguments, FORCE_COLOR="1")
    assert out.startswith(BOLD)
    assert YELLOW in err
    assert "\ue000" not in out + err
    out, _ = shown_here(*arguments, "--json", FORCE_COLOR="1")
    assert json.loads(out)["results"]
    assert "\x1b" not in out


def test_errors_are_red(tmp_path):
    for arguments in (("keys", tmp_path / "no"), ("keys", "--no-such-option")):
        _, err = shown(*arguments)
        assert f"{RED}Error:{END} " in err, arguments
    assert "\x1b" not in "".join(shown(*arguments, terminal=False))


def test_a_name_cannot_colour_what_is_shown(tmp_path):
    hostile = tmp_path / "\x1b[31mred\ue000"
    _, err = shown("keys", hostile)
    assert "\\u001b[31mred" in err
    assert COLOUR.findall(err) == ["\x1b[31m", "\x1b[1m", END]


def test_log_lines_are_json_on_a_terminal_too(tmp_path):
    _, err = shown("--log-json", "index", tmp_path / "no", tmp_path / "i", FORCE_COLOR="1")
    assert [json.loads(line)["event"] for line in err.splitlines()]
    assert "\x1b" not in err
