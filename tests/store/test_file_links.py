"""Tests of links to the files of a snapshot: it stays whole when the index is deleted."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from pexeso.store.local.reader import link_files

NAMES = ("catalog/tables.parquet", "partitions/0/keys.npy")


@pytest.fixture
def index(tmp_path, monkeypatch):
    root = tmp_path / "lake.pexeso"
    for name in NAMES:
        (root / name).parent.mkdir(parents=True)
        (root / name).write_text(name)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return root


def opened(folder):
    return [path for path in folder.iterdir() if "pexeso-open-" in path.name]


def test_files_are_read_when_the_index_is_gone_and_go_with_the_links(index, tmp_path):
    links = link_files(index, NAMES)
    assert links.path.parent == tmp_path / "temporary"
    assert all((links.path / name).samefile(index / name) for name in NAMES)
    shutil.rmtree(index)
    assert [(links.path / name).read_text() for name in NAMES] == list(NAMES)
    del links
    assert opened(tmp_path / "temporary") == []


def test_links_stand_beside_the_index_where_temporary_files_are_elsewhere(
    index, tmp_path, monkeypatch
):
    link = os.link

    def linked(source, target, **options):
        if Path(target).is_relative_to(tmp_path / "temporary"):
            raise OSError(18, "Invalid cross-device link")
        link(source, target, **options)

    monkeypatch.setattr(os, "link", linked)
    links = link_files(index, NAMES)
    assert links.path.parent == tmp_path
    assert links.path.name.startswith(".lake.pexeso.pexeso-open-")
    assert opened(tmp_path / "temporary") == []
    links.release()
    assert opened(tmp_path) == []


def test_without_hard_links_there_are_none(index, tmp_path, monkeypatch):
    def refused(*arguments, **options):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", refused)
    assert link_files(index, NAMES) is None
    assert opened(tmp_path) + opened(tmp_path / "temporary") == []


def test_what_a_killed_process_left_goes_and_what_others_hold_stays(index, tmp_path):
    program = (
        "import os, signal, sys, tempfile; from pathlib import Path\n"
        "from pexeso.store.local.reader import link_files\n"
        f"links = link_files(Path({str(index)!r}), {NAMES!r})\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary")}
    subprocess.run([sys.executable, "-c", program], env=environment, check=False)
    assert len(opened(tmp_path / "temporary")) == 1
    first = link_files(index, NAMES)
    second = link_files(index, NAMES)
    kept = {path.resolve() for path in opened(tmp_path / "temporary")}
    assert kept == {first.path.resolve(), second.path.resolve()}
