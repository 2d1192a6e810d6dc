"""Commands of benchmarks: options, results, messages and exit statuses are alike for all of them.

The options of a command are the fields of its class of settings. What it measures comes as pairs of
a name and a result: a result is printed, as a table or with ``--json``, and with ``--write`` it is
kept as ``benchmarks/results/NAME.json``. Exit status: 0, 1 when answers differ, 2 when the run
cannot be made.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, field, fields
from typing import Any

import click
import torch

from benchmarks import report
from benchmarks.machine import describe_machine
from pexeso.errors import InputError, PexesoError

WRONG_ANSWERS, NO_RUN = 1, 2
CONTEXT = {"help_option_names": ["-h", "--help"]}
COUNT, SHARE = click.IntRange(1), click.FloatRange(0, 1, min_open=True)
Result = dict[str, Any]
Measure = Callable[[Any], Iterable[tuple[str, Result]]]
"""From settings to the names and results of what is measured."""


def refuse_unknown(noun: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Raise InputError for the first of some names that is not a known one."""
    if unknown := [name for name in names if name not in known]:
        raise InputError(f"{noun} are {', '.join(known)}. Got {unknown[0]!r} instead.")


def setting(default: Any = MISSING, help_text: str = "", **given: Any) -> Any:
    """Return a field of a class of settings, with what click is to know of its option."""
    return field(default=default, metadata={"help": help_text, **given})


def benchmark(
    name: str, settings: type, shown: Callable[[Result], str] = json.dumps
) -> Callable[[Measure], click.Command]:
    """Make a command of a function that measures; `shown` makes text of a result."""

    def decorate(measure: Measure) -> click.Command:
        def command(as_json: bool, write: bool, **given: Any) -> None:
            logging.basicConfig(format="%(message)s", level=logging.WARNING, stream=sys.stderr)
            logging.getLogger("benchmarks").setLevel(logging.INFO)
            machine, differences = describe_machine(torch.device("cpu")), []
            try:
                for file, result in measure(settings(**given)):
                    record = {"machine": machine, **result}
                    if write:
                        record = report.write_result(report.RESULTS / f"{file}.json", record)
                    click.echo(json.dumps(record) if as_json else shown(record))
                    differences += result.get("differences", [])
            except PexesoError as error:
                click.echo(f"Error: {error}", err=True)
                sys.exit(NO_RUN)
            if differences:
                click.echo(f"Answers differ: {differences[0]}", err=True)
                sys.exit(WRONG_ANSWERS)

        command = click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)
        command = click.option("--write", is_flag=True, help="Keep the result.")(command)
        command = with_options(settings)(command)
        return click.command(name, help=measure.__doc__, context_settings=CONTEXT)(command)

    return decorate


def with_options(settings: type) -> Callable[[Any], Any]:
    """Add the options and arguments of a class of settings to a command."""

    def decorate(command: Any) -> Any:
        for one in reversed(fields(settings)):
            command = _parameter(one)(command)
        return command

    return decorate


def _parameter(one: Field[Any]) -> Callable[[Any], Any]:
    """Return the option or argument of a field."""
    given, default = dict(one.metadata), one.default
    if "nargs" in given:
        given.pop("help")
        return click.argument(one.name, **given)
    flag = "--" + one.name.replace("_", "-")
    if default is MISSING:
        return click.option(flag, one.name, required=True, **given)
    if isinstance(default, bool):
        name = f"{flag}/--no-{flag[2:]}" if default else flag
        return click.option(name, one.name, is_flag=True, default=default, **given)
    if isinstance(default, tuple):
        kind = type(default[0])
        given["callback"] = lambda _context, _parameter, text: tuple(
            kind(part.strip()) for part in text.split(",")
        )
        default = ",".join(map(str, default))
    return click.option(flag, one.name, default=default, show_default=True, **given)
