"""Tests of files that are written whole: what cannot be looked at is told as what is there."""

import os
import signal
import subprocess
import sys

import pytest

from pexeso.errors import OutputError
from pexeso.store.io.temporary import require_free, written_whole

LONG = "x" * 300
"""No file system has such a name: it is refused as what lies in a folder of somebody else is."""


def test_a_file_that_cannot_be_looked_at_cannot_be_written(tmp_path):
    require_free(tmp_path / LONG, overwrite=False)  # nothing is there as far as one can see
    refusal = pytest.raises(OutputError, match="cannot be written: File name too long")
    with refusal, written_whole(tmp_path / LONG, overwrite=False):
        pass


def test_a_folder_that_cannot_be_looked_at_is_told(tmp_path):
    with pytest.raises(OutputError, match="there is no folder"):
        require_free(tmp_path / LONG / "a.csv", overwrite=False)


WRITE_AND_DIE = """
import os, signal, sys
from pexeso.store.io.temporary import written_whole
with written_whole(sys.argv[1], overwrite=False) as temporary:
    temporary.write_bytes(bytes(1000))
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_left_goes_with_the_next_writing_of_the_file(tmp_path):
    target = tmp_path / "joins [1].csv"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", WRITE_AND_DIE, str(target)]
    killed = subprocess.run(command, env=environment, timeout=60, check=False)
    assert killed.returncode == -signal.SIGKILL
    [left] = tmp_path.iterdir()
    assert left.stat().st_size == 1000
    others = {
        tmp_path / name
        for name in (
            *(".joins [1].csv.part", ".other.csv.abcdefgh.part", ".joins [1].csv.abcdefgh"),
            *("joins [1].csv.abcdefgh.part", ".joins [1].csv.x.abcdefgh.part"),
        )
    }
    for other in others:
        other.touch()
    with written_whole(target, overwrite=False) as temporary:
        assert {*tmp_path.iterdir()} == {temporary, *others}
        temporary.write_text("whole", encoding="utf-8")
        # Another process that writes the same file leaves this one its part.
        with written_whole(target, overwrite=True):
            assert temporary.exists()
        target.unlink()
    assert {*tmp_path.iterdir()} == {target, *others}
    assert target.read_text(encoding="utf-8") == "whole"


def test_a_file_that_came_meanwhile_is_not_replaced(tmp_path):
    target = tmp_path / "a.csv"
    refusal = pytest.raises(OutputError, match="is there already")
    with refusal, written_whole(target, overwrite=False) as temporary:
        temporary.write_text("late", encoding="utf-8")
        target.write_text("first", encoding="utf-8")
    assert target.read_text(encoding="utf-8") == "first"
    assert list(tmp_path.iterdir()) == [target]
