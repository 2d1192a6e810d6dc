"""The command ``python -m benchmarks release``: every result of a release, by one command.

``release.yml`` names the commands of each benchmark. Each writes its result below
``benchmarks/results``; the tables of the documentation are then written from these files.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
import yaml

from benchmarks.origin import ROOT
from pexeso.errors import InputError

FILE = Path(__file__).resolve().parent / "release.yml"


def release_commands(names: Sequence[str] = (), file: Path = FILE) -> list[str]:
    """Return the commands of some benchmarks, in order; of all where none is named."""
    known: dict[str, list[str]] = yaml.safe_load(file.read_text(encoding="utf-8"))
    if unknown := [name for name in names if name not in known]:
        raise InputError(f"Benchmarks are {', '.join(known)}. Got {', '.join(unknown)}.")
    return [" ".join(line.split()) for name in names or known for line in known[name]]


def arguments_of(command: str, environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return a command as arguments, with this Python and with variables in place of ``$NAME``.

    Examples
    --------
    >>> arguments_of("tar -xzf $TABLES", {"TABLES": "a file"})
    ['tar', '-xzf', 'a file']
    """
    words = [
        environment.get(word.removeprefix("$"), word) if word.startswith("$") else word
        for word in shlex.split(command)
    ]
    return [sys.executable if word == "python" else word for word in words[:1]] + words[1:]


@click.command("release")
@click.argument("names", nargs=-1)
@click.option("--dry-run", is_flag=True, help="Only print the commands.")
def release_command(names: tuple[str, ...], dry_run: bool) -> None:
    """Run the commands of NAMES (all by default; hours), and write the tables of the documentation.

    After a failure the others go on. Exit status: 0, 1 when a command failed, 2 for a wrong name.
    """
    try:
        commands = release_commands(names)
    except InputError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(2)
    if dry_run:
        click.echo("\n".join(commands))
        return
    failures = []
    for number, command in enumerate(commands, start=1):
        click.echo(f"[{number} of {len(commands)}] {command}", err=True)
        status = subprocess.run(arguments_of(command), cwd=ROOT, check=False).returncode
        failures += [f"{command} ended with exit status {status}"] if status else []
    from benchmarks.pages import write_pages

    for page in write_pages():
        click.echo(f"written: {page.relative_to(ROOT)}", err=True)
    for failure in failures:
        click.echo(failure, err=True)
    sys.exit(1 if failures else 0)
