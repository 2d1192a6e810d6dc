"""The command ``python -m benchmarks renew``: make stale results again, one after the other.

What is fresh is passed over, so a second call goes on where a first one was stopped.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import click

from benchmarks.figures import write_pages
from benchmarks.freshness import State, as_text, by_command, chosen, states
from benchmarks.origin import ROOT

INTERRUPTED = 130

States = Callable[[], list[State]]


def arguments_of(command: str) -> list[str]:
    """Return a declared command as arguments, with this Python and variables of the environment.

    Raises
    ------
    KeyError
        A variable that the command has is not set.

    Examples
    --------
    >>> arguments_of("tar -xzf 'a file'")
    ['tar', '-xzf', 'a file']
    >>> arguments_of("python -m benchmarks.start")[1:]
    ['-m', 'benchmarks.start']
    """
    words = [
        os.environ[word.removeprefix("$")] if word.startswith("$") else word
        for word in shlex.split(command)
    ]
    return [sys.executable if word == "python" else word for word in words[:1]] + words[1:]


def renew(
    names: Sequence[str],
    read_states: States = states,
    root: Path = ROOT,
    say: Callable[[str], None] = click.echo,
) -> list[str]:
    """Run the commands of the stale results, and return what was not renewed, and why.

    Parameters
    ----------
    names : sequence of str
        See `benchmarks.freshness.chosen`.
    read_states : callable
        Gives how the results stand; asked again after each command.
    root : Path
        Where the commands run.
    say : callable
        Is told what happens, a line at a time.

    Raises
    ------
    KeyboardInterrupt
        The command that ran is stopped, and what it had not written is lost.
    """
    groups = by_command(state for state in chosen(read_states(), names) if state.stale)
    problems = []
    for number, (commands, group) in enumerate(groups.items(), start=1):
        paths = [state.path for state in group]
        if not any(state.stale for state in read_states() if state.path in paths):
            continue  # another command has made them
        title = commands[-1] if commands else ", ".join(paths)
        say(f"[{number} of {len(groups)}] {title}")
        started = time.monotonic()
        why = _run(commands, root) or _still_stale(read_states(), paths)
        seconds = time.monotonic() - started
        say(f"  {'renewed' if why is None else why}, {seconds:.0f} s")
        problems += [] if why is None else [f"{title}: {why}"]
    return problems


def _run(commands: Sequence[str], root: Path) -> str | None:
    """Run commands in order, until one fails; return why it did."""
    if not commands:
        return "no command is known"
    try:
        calls = [arguments_of(command) for command in commands]
    except KeyError as error:
        return f"passed over, since the variable {error.args[0]} is not set"
    for words in calls:
        try:
            status = subprocess.run(words, cwd=root, check=False).returncode
        except OSError as error:
            return f"{words[0]} could not be run: {error.strerror}"
        if status:
            return f"{shlex.join(['python', *words[1:]])} ended with exit status {status}"
    return None


def _still_stale(states: Iterable[State], paths: Sequence[str]) -> str | None:
    """Return why what was to be renewed is not; None where it is."""
    for state in states:
        if state.path in paths and state.stale:
            return f"{state.path} is stale still: {state.why}"
    return None


@click.command("renew")
@click.argument("names", nargs=-1)
@click.option("--dry-run", is_flag=True, help="Only list what would be run.")
def renew_command(names: tuple[str, ...], dry_run: bool) -> None:
    """Make the stale results again, one after the other; this may take hours.

    With NAMES, those of these benchmarks, or whose files have such a text in their path. After a
    failure the others go on. Ctrl-C stops; a second call goes on with what is stale still. Exit
    status: 0, 1 when something was not renewed, 130 when it was stopped.
    """
    if dry_run:
        click.echo(as_text(chosen(states(), names)))
        return
    try:
        problems = renew(names)
    except KeyboardInterrupt:
        click.echo("\nStopped. The same command goes on with what is stale still.", err=True)
        sys.exit(INTERRUPTED)
    finally:
        for page in write_pages():
            click.echo(f"written: {page.relative_to(ROOT)}")
    for problem in problems:
        click.echo(f"Not renewed: {problem}", err=True)
    sys.exit(1 if problems else 0)
