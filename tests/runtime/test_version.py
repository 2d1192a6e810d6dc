"""The version names the commit of a wheel or a checkout, and the extras that are installed."""

import subprocess

import pytest

from pexeso import __version__
from pexeso.runtime import version

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "sources" / "pexeso"
    folder.mkdir(parents=True)
    monkeypatch.setattr(version, "_PACKAGE", folder)
    monkeypatch.setattr(version, "_COMMIT_FILE", folder / "commit.txt")
    return folder


def git(folder, *arguments):
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    command = ["git", "-C", str(folder), *who, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_the_commit_of_a_wheel(package):
    assert version.commit() is None
    (package / "commit.txt").write_text(f"{COMMIT}\n")
    assert version.commit() == COMMIT[:12]
    assert version.version_text().splitlines()[0] == f"pexeso {__version__} (commit {COMMIT[:12]})"


def test_the_commit_of_a_checkout(package, tmp_path):
    root = package.parent
    git(root, "init", "--quiet", "--initial-branch", "side/main")
    assert version.commit() is None
    git(root, "commit", "--quiet", "--allow-empty", "--message", "one")
    now = git(root, "rev-parse", "HEAD")[:12]
    assert version.commit() == now
    git(root, "pack-refs", "--all")
    assert version.commit() == now
    git(root, "checkout", "--quiet", "--detach")
    assert version.commit() == now


def test_the_commit_of_a_further_working_tree(package, tmp_path, monkeypatch):
    root = package.parent
    git(root, "init", "--quiet")
    git(root, "commit", "--quiet", "--allow-empty", "--message", "one")
    git(root, "worktree", "add", "--quiet", tmp_path / "other")
    monkeypatch.setattr(version, "_PACKAGE", tmp_path / "other" / "pexeso")
    assert version.commit() == git(root, "rev-parse", "HEAD")[:12]


@pytest.mark.parametrize("text", ["", "ref: refs/heads/none", "ref: ../../secret", "\xff", "abc"])
def test_what_is_no_commit_is_not_shown(package, text):
    (package.parent / ".git").mkdir()
    (package.parent / ".git" / "HEAD").write_text(text, encoding="latin-1")
    (package.parent.parent / "secret").write_text("no commit")
    assert version.commit() is None
    assert version.version_text().splitlines()[0] == f"pexeso {__version__}"


def test_extras_have_their_versions(package):
    lines = version.version_text().splitlines()
    assert lines[1].startswith("Python 3.")
    extras = dict(line.split(": ") for line in lines[2:])
    assert extras["mcp"].startswith("mcp ")
    assert extras == dict(sorted(extras.items()))
    assert all(extras.values())
