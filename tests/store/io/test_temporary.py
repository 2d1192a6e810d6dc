"""Temporary folders, and what killed processes leave of them."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from pexeso.store.io.temporary import LOCK, remove_abandoned, temporary_folder

HOLD = """
import sys, time
from pathlib import Path
from pexeso.store.io.temporary import temporary_folder
with temporary_folder("mine-", root=Path(sys.argv[1])) as folder:
    (folder / "large").write_bytes(bytes(1000))
    print(folder, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path):
    """Start a process that holds a temporary folder; return it and the folder."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        yield process, Path(process.stdout.readline().strip())
        process.kill()


def test_a_folder_lives_as_long_as_its_block(tmp_path):
    with temporary_folder("mine-", root=tmp_path) as folder:
        assert folder.parent == tmp_path
        assert folder.name.startswith("mine-")
        (folder / "file").write_text("kept while in use")
        remove_abandoned("mine-", tmp_path)
        assert (folder / "file").read_text() == "kept while in use"
    assert list(tmp_path.iterdir()) == []


def test_it_lies_with_the_temporary_files_by_default():
    with temporary_folder("pexeso-mine-") as folder:
        assert folder.parent == Path(tempfile.gettempdir())


def test_the_folder_of_a_killed_process_is_removed_and_that_of_a_live_one_stays(tmp_path, holder):
    process, left = holder
    with temporary_folder("mine-", root=tmp_path):
        assert (left / "large").stat().st_size == 1000
    process.kill()
    process.wait()
    assert left.exists()
    with temporary_folder("mine-", root=tmp_path) as folder:
        assert list(tmp_path.iterdir()) == [folder]


def test_nothing_else_is_removed(tmp_path):
    other, unlocked, elsewhere = (
        tmp_path / name for name in ("other-1", "mine-unlocked", "elsewhere")
    )
    for folder in (other, unlocked, elsewhere):
        folder.mkdir()
    for folder in (other, elsewhere):
        (folder / LOCK).touch()
    (tmp_path / "mine-file").touch()
    (tmp_path / "mine-link").symlink_to(elsewhere)
    before = sorted(tmp_path.rglob("*"))
    remove_abandoned("mine-", tmp_path)
    assert sorted(tmp_path.rglob("*")) == before
