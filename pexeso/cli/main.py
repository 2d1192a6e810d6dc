"""The command ``pexeso``: the group that all commands belong to."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence

import click

from pexeso import __version__
from pexeso.cli.batch import batch
from pexeso.cli.build import index
from pexeso.cli.demo import demo
from pexeso.cli.equal_text import contain, overlap
from pexeso.cli.errors import plain_errors, remember_arguments
from pexeso.cli.estimate import estimate
from pexeso.cli.explain import explain
from pexeso.cli.inspect import check, doctor, info
from pexeso.cli.join import join
from pexeso.cli.rules import rules
from pexeso.cli.search import search
from pexeso.cli.tune import tune
from pexeso.cli.update import append, compact, delete


class _Group(click.Group):
    """A group whose commands end with one sentence and an exit code, whatever happens."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        remember_arguments(ctx, args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        with plain_errors():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Give the commands in the order in which a newcomer meets them."""
        return list(self.commands)


@click.group(
    cls=_Group,
    commands=[
        *(demo, index, append, delete, compact, search, overlap, contain, batch, join, explain, tune),
        *(estimate, info, rules, check, doctor),
    ],
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="pexeso", message="%(prog)s %(version)s")
def cli() -> None:
    """Find every column of a data lake that a column of yours can be joined with, by similar values.

    \b
    Example:
      pexeso index my_folder lake.pexeso
      pexeso search lake.pexeso people.csv:company --explain

    Data goes to stdout, everything else to stderr. The exit code is 0 when done, 1 when it could not be done, 2 when
    the command was not understood, 130 after Ctrl-C.
    """  # noqa: D301  click reads \b


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code.

    Parameters
    ----------
    arguments : sequence of str, optional
        Those of the process by default.
    """
    for stream in (sys.stdout, sys.stderr):
        # Values of a lake may hold what the terminal cannot show.
        stream.reconfigure(errors="backslashreplace")
    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # of the libraries underneath: nothing that a user could act upon
    cli.main(args=None if arguments is None else list(arguments), prog_name="pexeso")
