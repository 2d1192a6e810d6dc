"""``pexeso --log-json COMMAND``: JSON lines on stderr, for programs that watch long work."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from pexeso.runtime.json_log import MessageLines, logging_to

Command = TypeVar("Command", bound=Callable[..., Any])

_LOGS_JSON = "pexeso.log_json"


def log_json_option(command: Command) -> Command:
    """Add ``--log-json``: while the command runs, stderr has JSON lines only.

    A line is ``{"time", "event", ...}``, and errors are reported in the same form.

    A command line that is not understood is told in plain words, since it is not known then what
    was meant.
    """
    return click.option(
        "--log-json",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_start,
        help="Write log events to stderr as JSON lines; suppress other output there.",
    )(command)


def logs_json() -> bool:
    """Return whether the command that is running was given ``--log-json``."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.find_root().meta.get(_LOGS_JSON))


def _start(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if not value or context.resilient_parsing:
        return
    stream = sys.stderr
    logs = logging_to(stream)
    logs.__enter__()
    context.find_root().call_on_close(lambda: logs.__exit__(None, None, None))
    # Stays to the end of the process: an error is told after the command has ended.
    sys.stderr = MessageLines(stream)
    context.find_root().meta[_LOGS_JSON] = True
