"""Results name where they come from, and benchmarks of a release are chosen by name."""

import subprocess

import pytest
from click.testing import CliRunner

from benchmarks.cli import main
from benchmarks.origin import current_commit
from benchmarks.release import release_commands
from pexeso.errors import InputError


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


def test_some_benchmarks_are_chosen_by_name():
    assert release_commands(["composite", "transform"]) == [
        "python -m benchmarks composite --write",
        "python -m benchmarks transform --write",
    ]
    with pytest.raises(InputError, match=r"^Benchmarks are speed, .*\. Got other\.$"):
        release_commands(["composite", "other"])
    done = CliRunner().invoke(main, ["release", "composite", "--dry-run"])
    assert done.output == "python -m benchmarks composite --write\n"
