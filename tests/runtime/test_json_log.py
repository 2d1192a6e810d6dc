"""JSON lines: every line on stderr is an object with a time and an event."""

import io
import json
import logging

import click
import pytest
from click.testing import CliRunner

from pexeso.faces.cli.output import log_json_option, logs_json
from pexeso.runtime.progress import LOGGER, MessageLines, log_event, logging_to


def lines_of(text):
    return [
        {name: value for name, value in json.loads(line).items() if name != "time"}
        for line in text.splitlines()
    ]


def test_events_and_other_records_are_lines():
    stream = io.StringIO()
    with logging_to(stream):
        log_event("stage", stage="read", rows=7)
        logging.getLogger("pexeso.index").info("No %s device.", "CUDA")
        logging.getLogger("pexeso.index").debug("too much")
        logging.getLogger("elsewhere").warning("not ours")
    log_event("late")
    assert lines_of(stream.getvalue()) == [
        {"event": "stage", "stage": "read", "rows": 7},
        {"event": "log", "logger": "pexeso.index", "level": "info", "message": "No CUDA device."},
    ]
    assert LOGGER.handlers == []
    assert json.loads(stream.getvalue().splitlines()[0])["time"].endswith("Z")


def test_names_that_are_no_text_are_written_all_the_same():
    stream = io.StringIO()
    with logging_to(stream):
        log_event("table", table="half \ud83d", path=io.StringIO)
    stream.getvalue().encode("utf-8")
    assert lines_of(stream.getvalue())[0]["event"] == "table"


def test_an_error_that_was_logged_carries_its_traceback():
    stream = io.StringIO()
    with logging_to(stream):
        try:
            1 / 0  # noqa: B018
        except ZeroDivisionError:
            LOGGER.exception("It went wrong.")
    [line] = lines_of(stream.getvalue())
    assert line["level"] == "error"
    assert "ZeroDivisionError" in line["error"]


def test_text_becomes_messages_line_by_line():
    stream = io.StringIO()
    lines = MessageLines(stream)
    lines.write("one li")
    lines.write("ne\n\n  Error: the other\nrest")
    assert not lines.isatty()
    lines.close()
    lines.close()
    assert lines_of(stream.getvalue()) == [
        {"event": "message", "message": "one line"},
        {"event": "error", "message": "the other"},
        {"event": "message", "message": "rest"},
    ]


@click.command()
@click.argument("what")
@log_json_option
def command(what):
    """Do something."""
    log_event("begin", json=logs_json())
    click.echo("talk", err=True)
    click.echo("data")
    if what == "fail":
        raise click.ClickException("it failed")


@pytest.mark.parametrize("what", ["work", "fail"])
def test_a_command_says_nothing_but_json_on_stderr(what):
    result = CliRunner().invoke(command, [what, "--log-json"])
    expected = [{"event": "begin", "json": True}, {"event": "message", "message": "talk"}]
    if what == "fail":
        expected.append({"event": "error", "message": "it failed"})
    assert lines_of(result.stderr) == expected
    assert result.stdout == "data\n"
    assert result.exit_code == (what == "fail")
    assert LOGGER.handlers == []


def test_without_the_option_stderr_is_for_people():
    result = CliRunner().invoke(command, ["fail"])
    assert result.stderr == "talk\nError: it failed\n"


def test_a_command_that_is_not_understood_is_told_to_people():
    result = CliRunner().invoke(command, ["work", "--log-json", "--nonsense"])
    assert result.exit_code == 2
    assert "No such option" in result.stderr
