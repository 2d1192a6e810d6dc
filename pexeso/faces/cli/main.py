"""The command ``pexeso``: the group that all commands belong to."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from importlib import import_module

import click

from pexeso.faces.cli import PROCESS_START
from pexeso.faces.cli.errors import plain_errors, remember_arguments, start_clock, stop_by_signals
from pexeso.faces.cli.output import log_json_option, verb_command
from pexeso.faces.cli.streams import safe_streams, whole_streams
from pexeso.faces.service.bases import REQUESTS
from pexeso.faces.service.verbs import VERBS
from pexeso.runtime.arrow_alone import use_arrow_alone

# The environment variable by which a shell asks what completes a command; click answers.
COMPLETE_VARIABLE = "_PEXESO_COMPLETE"

# Commands that never hand a DataFrame to Arrow: those that may start Spark do.
_WITHOUT_FRAMES = frozenset(
    {
        *("search", "explain", "join", "verify", "transform", "acquire", "keys"),
        *("tune", "judge", "rules", "info", "check", "delete", "serve", "mcp"),
    }
)


# The modules of the commands, in the order in which a newcomer meets them.
_MODULES = {
    "demo": "demo",
    "index": "index",
    "append": "index",
    "delete": "index",
    "compact": "index",
    "add-model": "index",
    "add-part": "index",
    "search": "search",
    "batch": "search",
    "join": "join",
    "verify": "join",
    "explain": "search",
    "tune": "inspect",
    "judge": "judge",
    "transform": "join",
    "acquire": "acquire",
    "graph": "graph",
    "export": "graph",
    "redundancy": "redundancy",
    "serve": "serve",
    "mcp": "serve",
    "keys": "inspect",
    "estimate": "index",
    "info": "inspect",
    "rules": "inspect",
    "check": "inspect",
    "doctor": "inspect",
}


class _Commands(Mapping[str, click.Command]):
    """The commands by name; the module of one is imported when the command is used."""

    def __getitem__(self, name: str) -> click.Command:
        module = import_module(f"pexeso.faces.cli.{_MODULES[name]}")
        return getattr(module, name.replace("-", "_"))

    def __iter__(self) -> Iterator[str]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)


class _Group(click.Group):
    """A group of commands and registered verbs that end with one sentence and an exit code."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        remember_arguments(ctx, args)
        start_clock(ctx)
        with plain_errors():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        with plain_errors():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order in which a newcomer meets them."""
        verbs = (verb.replace("_", "-") for verb in VERBS if VERBS[verb].lines is not None)
        return [*self.commands, *verbs]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        verb = cmd_name.replace("-", "_")
        if cmd_name not in self.commands and verb in VERBS and VERBS[verb].lines is not None:
            return verb_command(cmd_name, REQUESTS[verb], VERBS[verb].lines)
        return super().get_command(ctx, cmd_name)


def _show_version(context: click.Context, parameter: click.Parameter, is_given: bool) -> None:
    if is_given and not context.resilient_parsing:
        from pexeso.runtime.version import version_text

        click.echo(version_text())
        context.exit()


@click.group(
    cls=_Group,
    commands=_Commands(),
    # With `color` click leaves escape sequences to `SafeStream`, which shows them; it would take
    # them out silently.
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "color": True,
    },
)
@log_json_option
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version, the commit, and the installed extras, then exit.",
)
def cli() -> None:
    """Find every column of a data lake that your column can be joined with, by similar values.

    \b
    Example:
      pexeso index my_folder lake.pexeso
      pexeso search lake.pexeso people.csv:company --explain

    Data goes to stdout, everything else to stderr. The exit code is 0 on success, 1 on failure, 2
    if the command was not understood, 130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP, and
    141 if the program that reads the output ended first.
    """  # noqa: D301  click reads \b


def main(arguments: Sequence[str] | None = None) -> None:
    stop_by_signals()
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if arguments[:1] and arguments[0] in _WITHOUT_FRAMES:
        use_arrow_alone()
    with whole_streams():
        for stream in (sys.stdout, sys.stderr):
            # Values of a lake may hold what the terminal cannot show.
            stream.reconfigure(errors="backslashreplace")
        if not sys.warnoptions:
            # Of the libraries underneath: nothing that a user could act upon.
            warnings.simplefilter("ignore")
        # Completion writes bytes, of names of ours alone, for a shell to read.
        with nullcontext() if COMPLETE_VARIABLE in os.environ else safe_streams():
            cli.main(args=arguments, prog_name="pexeso", obj=PROCESS_START)
