"""The command ``pexeso``: the group that all commands belong to."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import nullcontext

import click

from pexeso import __version__
from pexeso.faces.cli import PROCESS_START
from pexeso.faces.cli.clock import start_clock
from pexeso.faces.cli.commands.acquire import acquire
from pexeso.faces.cli.commands.batch import batch
from pexeso.faces.cli.commands.demo import demo
from pexeso.faces.cli.commands.estimate import estimate
from pexeso.faces.cli.commands.explain import explain
from pexeso.faces.cli.commands.graph import export, graph
from pexeso.faces.cli.commands.inspect import check, doctor, info, rules
from pexeso.faces.cli.commands.join import join
from pexeso.faces.cli.commands.keys import keys
from pexeso.faces.cli.commands.maintain.build import index
from pexeso.faces.cli.commands.maintain.update import add_model, add_part, append, compact, delete
from pexeso.faces.cli.commands.redundancy import redundancy
from pexeso.faces.cli.commands.search import search
from pexeso.faces.cli.commands.serving.mcp import mcp
from pexeso.faces.cli.commands.serving.serve import serve
from pexeso.faces.cli.commands.transform import transform
from pexeso.faces.cli.commands.tune import tune
from pexeso.faces.cli.errors import plain_errors, remember_arguments
from pexeso.faces.cli.logs import log_json_option
from pexeso.faces.cli.output.streams import safe_streams, whole_streams
from pexeso.faces.cli.signals import stop_by_signals
from pexeso.runtime.arrow_alone import use_arrow_alone

COMPLETE_VARIABLE = "_PEXESO_COMPLETE"
"""The environment variable by which a shell asks what completes a command; click answers."""

_WITHOUT_FRAMES = frozenset(
    {
        *("search", "explain", "join", "transform", "acquire", "keys"),
        *("tune", "rules", "info", "check", "delete", "serve", "mcp"),
    }
)
"""Commands that never hand a DataFrame to Arrow: those that may start Spark do."""


class _Group(click.Group):
    """A group whose commands end with one sentence and an exit code, whatever happens."""

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
        return list(self.commands)


@click.group(
    cls=_Group,
    commands=[
        *(
            demo,
            index,
            append,
            delete,
            compact,
            add_model,
            add_part,
            search,
            batch,
            join,
            explain,
            tune,
            transform,
            acquire,
            graph,
            export,
            redundancy,
            serve,
            mcp,
        ),
        *(keys, estimate, info, rules, check, doctor),
    ],
    # With `color` click leaves escape sequences to `SafeStream`, which shows them; it would take
    # them out silently.
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "color": True,
    },
)
@log_json_option
@click.version_option(__version__, prog_name="pexeso", message="%(prog)s %(version)s")
def cli() -> None:
    """Find every data lake column that a column of yours can be joined with, by similar values.

    \b
    Example:
      pexeso index my_folder lake.pexeso
      pexeso search lake.pexeso people.csv:company --explain

    Data goes to stdout, everything else to stderr. The exit code is 0 when done, 1 when it could
    not be done, 2 when the command was not understood, 130 after Ctrl-C, 143 after SIGTERM, 129
    after SIGHUP, 141 when what reads the output ended before.
    """  # noqa: D301  click reads \b


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
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
