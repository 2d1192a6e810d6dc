"""A join of two files that was killed goes on with the index and the pairs that it had."""

import os
import signal
import subprocess
import sys

import pytest

from pexeso import two_tables
from pexeso.errors import OutputError
from pexeso.semantic import pairs

N_BEFORE = 2
# The third block of pairs is not written.
SCRIPT = """
import os, signal, sys
from pexeso.faces.cli.main import main
from pexeso.semantic import pairs

whole, n_blocks = pairs.written_whole, []

def written_whole(*arguments, **options):
    n_blocks.append(1)
    if len(n_blocks) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return whole(*arguments, **options)

pairs.BLOCK_SIZE, pairs.written_whole = 10, written_whole
main(sys.argv[1:])
"""
NAMES = [f"{first} {second}" for first in "abcdefg" for second in ("Nord", "Süd", "Ost", "West")]
N_BLOCKS = 3


@pytest.fixture
def join(tmp_path):
    """Return the arguments of a join, which writes out.csv."""
    for name, column, word in (("left", "x", "Hotel"), ("right", "y", "Hotell")):
        rows = [column, *(f"{word} {text}" for text in NAMES)]
        (tmp_path / f"{name}.csv").write_text("\n".join(rows), "utf-8")
    files = f"{tmp_path / 'left.csv'}:x", f"{tmp_path / 'right.csv'}:y"
    return "join", *files, "-o", str(tmp_path / "out.csv")


@pytest.fixture
def blocks(monkeypatch):
    """Return a list that grows by each block of pairs that is found."""
    written, written_whole = [], pairs.written_whole

    def write(file, **options):
        written.append(file.name)
        return written_whole(file, **options)

    monkeypatch.setattr(pairs, "BLOCK_SIZE", 10)
    monkeypatch.setattr(pairs, "written_whole", write)
    return written


def test_a_killed_join_goes_on_with_what_it_has(run, join, blocks, tmp_path, monkeypatch):
    out, kept = tmp_path / "out.csv", tmp_path / ".out.csv.join"
    run(*join)
    whole = out.read_bytes()
    assert len(blocks) == N_BLOCKS
    assert not kept.exists()
    out.unlink()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    killed = subprocess.run([sys.executable, "-c", SCRIPT, *join], env=environment, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(list(kept.glob("*/*.npy"))) == N_BEFORE
    assert not out.exists()

    blocks.clear()
    with monkeypatch.context() as patch:
        patch.setattr(two_tables, "build_index", None)
        run(*join)
    assert out.read_bytes() == whole
    assert len(blocks) == N_BLOCKS - N_BEFORE
    assert not kept.exists()


def test_dates_of_either_order_are_joined_in_a_file_as_without_one(run, tmp_path):
    days = [(month, day) for month in (1, 2, 3, 4) for day in (1, 3, 5, 8, 11)]
    for name, form in (("left", "{1:02}/{0:02}/2020"), ("right", "2020-{0:02}-{1:02}")):
        rows = ["day", *(form.format(*day) for day in days)]
        (tmp_path / f"{name}.csv").write_text("\n".join(rows), "utf-8")
    files = f"{tmp_path / 'left.csv'}:day", f"{tmp_path / 'right.csv'}:day"
    printed = run("join", *files)
    written = run("join", *files, "-o", tmp_path / "out.csv")
    assert "(20 of 20)" in printed.stderr
    assert "(20 of 20)" in written.stderr
    assert (tmp_path / "out.csv").read_text("utf-8") == printed.stdout


def test_a_stopped_join_is_gone_on_with_by_the_same_join_alone(
    run, fail, join, blocks, tmp_path, monkeypatch
):
    kept = tmp_path / ".out.csv.join"

    def refuse(*arguments, **options):
        raise OutputError("No space left on device.")

    with monkeypatch.context() as patch:
        patch.setattr("pexeso.faces.cli.join.write_table", refuse)
        fail(1, *join)
    assert len(list(kept.glob("*/*.npy"))) == N_BLOCKS
    blocks.clear()
    run(*join, "--max-distance", "0.3")
    assert len(blocks) == N_BLOCKS
    assert not kept.exists()
    # What is refused leaves nothing.
    fail(2, *join[:-1], str(tmp_path / "other.csv"), "--aggregate", "no=sum")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["left.csv", "out.csv", "right.csv"]


def test_an_interrupted_join_says_where_it_keeps_what_is_finished(
    fail, join, tmp_path, monkeypatch
):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("pexeso.faces.cli.join.write_table", interrupt)
    kept = tmp_path / ".out.csv.join"
    said = fail(130, *join)
    assert f"Interrupted: what is finished is kept in '{kept}' for the same join. Go on: " in said
    assert kept.is_dir()


def test_two_joins_do_not_write_one_file(fail, join, tmp_path):
    output = str(tmp_path / "out.csv")
    with two_tables.resumable_folder(output, [], []):
        assert "Another join is writing" in fail(1, *join)


@pytest.mark.parametrize("is_link", [False, True])
def test_a_folder_that_no_join_made_is_left_alone(fail, join, tmp_path, is_link):
    kept, mine = tmp_path / ".out.csv.join", tmp_path / "mine"
    folder = mine if is_link else kept
    folder.mkdir()
    (folder / "notes.txt").write_text("of mine", "utf-8")
    if is_link:
        kept.symlink_to(mine, target_is_directory=True)
    assert "none that a join made" in fail(1, *join)
    assert (kept / "notes.txt").read_text("utf-8") == "of mine"
