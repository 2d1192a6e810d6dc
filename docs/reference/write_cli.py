"""Writer of docs/reference/cli.md from the help texts of the commands.

Run it as ``python docs/reference/write_cli.py``.

A test compares the page with what this program gives, so that the page cannot fall behind.
"""

from __future__ import annotations

from pathlib import Path

import click

from pexeso.faces.cli.main import cli
from pexeso.faces.cli.options import GroupedCommand, WithVerbs

PAGE = Path(__file__).with_name("cli.md")
WIDTH = 100

_HEAD = """\
# The command line

`pexeso COMMAND`, or `python -m pexeso COMMAND`. This page is written from the help texts by \
`docs/reference/write_cli.py`. Where a command has options for experts, `--help` is a summary \
and `--help-all` what this page shows.

Data goes to stdout, everything else to stderr: progress bars (on a terminal only), notes, \
timings, errors. With `PEXESO_DEBUG=1`
an error comes with its traceback.

| Exit code | Meaning |
|---|---|
| 0 | done |
| 1 | it could not be done: a file, an index, the machine; some lines of a batch; a failed check |
| 2 | the command was not understood: an option, a value out of its range, \
a column that is not there |
| 130 | stopped by Ctrl-C |
| 129, 143 | stopped by SIGHUP (its terminal was closed), by SIGTERM |
| 141 | the program that reads the output ended before, as `head` does; nothing is said |
"""


def page() -> str:
    """Return the text of the page."""
    with click.Context(
        cli, info_name="pexeso", terminal_width=WIDTH, **cli.context_settings
    ) as group:
        sections = [_HEAD, _section(group)]
        for name, command in cli.commands.items():
            context = click.Context(
                command, info_name=name, parent=group, **command.context_settings
            )
            sections += (
                _with_verbs(command, context)
                if isinstance(command, WithVerbs)
                else [_section(context)]
            )
    return "\n".join(sections)


def _with_verbs(command: WithVerbs, context: click.Context) -> list[str]:
    """Return the sections of a command that goes by the name of its group, and of the others."""
    both = (command.default, *command.commands.values())
    return [
        _section(verb.context_class(verb, info_name=verb.name, parent=context)) for verb in both
    ]


def _section(context: click.Context) -> str:
    command = context.command
    text = command.full_help(context) if isinstance(command, GroupedCommand) else context.get_help()
    return f"## {context.command_path}\n\n```\n{text}\n```\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
