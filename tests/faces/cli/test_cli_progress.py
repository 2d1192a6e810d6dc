"""Progress bars: on stderr, only where that is a terminal, and gone at the end."""

import io
import re
from contextlib import redirect_stderr
from time import sleep

import pytest

from pexeso.build.job import stage_names
from pexeso.faces.cli.output import counted_progress, query_progress, stage_progress
from pexeso.semantic.batch_file import BatchRun

DRAWN_EVERY = 0.12  # seconds, or a little less: a bar is not drawn more often


class Terminal(io.StringIO):
    """A stream that keeps what it gets and calls itself a terminal."""

    def isatty(self):
        return True


def rows(stream):
    """Split what a bar wrote into the states that it went through."""
    return [state.strip() for state in re.split(r"[\r\n]", stream.getvalue()) if state.strip()]


def test_stages_of_a_build():
    with redirect_stderr(Terminal()) as terminal, stage_progress() as progress:
        for stage in stage_names():
            progress(stage)
    shown = rows(terminal)
    for number, stage in enumerate(stage_names()):
        assert any(
            state.startswith(stage) and f" {number}/{len(stage_names())} " in state
            for state in shown
        ), stage


def test_bytes_of_a_check():
    with (
        redirect_stderr(Terminal()) as terminal,
        counted_progress("checking", unit="B", unit_scale=True) as progress,
    ):
        progress(500, 1000)
        sleep(DRAWN_EVERY)
        progress(1000, 1000)
    assert any("checking" in state and "1.00k/1.00k" in state for state in rows(terminal))


def test_queries_of_a_batch(write):
    queries = write("queries.jsonl", '{"id": 1}\n\n{"id": 2}\n')
    with redirect_stderr(Terminal()) as terminal, query_progress(str(queries)) as progress:
        sleep(DRAWN_EVERY)
        progress(BatchRun(answered=2))
    assert any("answering" in state and "2/2" in state for state in rows(terminal))


@pytest.mark.parametrize(
    "bar", [stage_progress, lambda: counted_progress("x"), lambda: query_progress("-")]
)
def test_no_bar_where_there_is_no_terminal(bar, capsys):
    with bar() as progress:
        assert progress is None
    assert capsys.readouterr() == ("", "")
