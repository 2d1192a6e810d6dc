"""The time that was waited for a command: from the start of the process, imports included."""

from __future__ import annotations

import time

import click


def start_clock(context: click.Context) -> None:
    """Let the time of a command begin now, unless the context knows when its process began."""
    if context.obj is None:
        context.obj = time.perf_counter()


def seconds_waited() -> float:
    """Return the seconds since the command that is run began."""
    return time.perf_counter() - click.get_current_context().find_root().obj
