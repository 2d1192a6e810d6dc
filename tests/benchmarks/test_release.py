"""Results name where they come from, and the commands of a release are those that there are."""

import shlex
import subprocess

import click
import pytest
from click.testing import CliRunner

from benchmarks.cli import main
from benchmarks.origin import current_commit
from benchmarks.release import release_commands
from pexeso.errors import InputError

START = "python -m benchmarks "


def git(folder, *arguments):
    options = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", *options, *arguments], cwd=folder, check=True, capture_output=True)


def test_a_commit_is_that_of_the_checkout_and_changes_show(tmp_path):
    assert current_commit(tmp_path) is None
    git(tmp_path, "init")
    (tmp_path / "code.py").write_text("a = 1")
    git(tmp_path, "add", "code.py")
    git(tmp_path, "commit", "-m", "A")
    commit = current_commit(tmp_path)
    assert len(commit) == 12
    (tmp_path / "data").mkdir()
    assert current_commit(tmp_path) == commit
    (tmp_path / "code.py").write_text("a = 2")
    assert current_commit(tmp_path) == f"{commit}+"


def test_every_command_of_a_release_is_understood():
    commands = release_commands()
    own = [command.removeprefix(START) for command in commands if command.startswith(START)]
    assert len(own) > 40
    for command in own:
        name, *arguments = shlex.split(command)
        context = click.Context(main)
        subcommand = main.get_command(context, name)
        assert subcommand is not None, command
        subcommand.make_context(name, arguments, parent=context)  # refuses options that are none


def test_some_benchmarks_are_chosen_by_name():
    assert release_commands(["composite", "transform"]) == [
        "python -m benchmarks composite --write",
        "python -m benchmarks transform --write",
    ]
    with pytest.raises(InputError, match=r"^Benchmarks are speed, .*\. Got other\.$"):
        release_commands(["composite", "other"])
    done = CliRunner().invoke(main, ["release", "composite", "--dry-run"])
    assert done.output == "python -m benchmarks composite --write\n"
