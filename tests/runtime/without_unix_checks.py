"""What is done instead of what Windows lacks; run with the plugin `without_unix` by test_system."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pexeso.build.workers import LocalWorkers, Needs, run_tasks
from pexeso.errors import InputError, TableReadError
from pexeso.faces.cli import errors
from pexeso.index import build_index, open_index
from pexeso.lake.readers.table import ReadingBudget
from pexeso.lake.typed import sandbox
from pexeso.redundancy.holding_folder import opened
from pexeso.runtime import system
from pexeso.store.files import RootFolder
from pexeso.store.io.temporary import temporary_folder, written_whole
from pexeso.store.local.reader import open_store


def lake(folder: Path, towns: str = "Oslo Rome Bern Lima Baku Doha") -> Path:
    folder.mkdir()
    (folder / "towns.csv").write_text("town\n" + "\n".join(towns.split()) + "\n", encoding="utf-8")
    return folder


def test_all_is_hidden():
    assert not system.HAS_LOCKS
    assert not system.HAS_FOLDER_STEPS
    assert not system.GIVES_ADVICE
    assert system.signals("SIGTERM", "SIGHUP") == (signal.SIGTERM,)
    assert system.available_processors() == os.cpu_count()
    assert system.usage("ru_majflt") == 0
    assert system.is_running(2**31 - 2)


def test_a_file_is_not_opened_through_a_link(tmp_path):
    (tmp_path / "file").write_text("a")
    (tmp_path / "link").symlink_to("file")
    os.close(system.open_unlinked(tmp_path / "file", os.O_RDONLY))
    with pytest.raises(OSError, match="Too many levels"):
        system.open_unlinked(tmp_path / "link", os.O_RDONLY)
    with pytest.raises(FileExistsError):
        system.open_unlinked(tmp_path / "link", os.O_WRONLY | os.O_CREAT | os.O_EXCL)


def test_a_file_that_takes_a_name_while_it_is_opened_is_refused(tmp_path, monkeypatch):
    file, other = tmp_path / "file", tmp_path / "other"
    file.write_text("a")
    other.write_text("b")
    opening = system.open_file

    def swapped(*arguments):
        os.replace(other, file)
        return opening(*arguments)

    monkeypatch.setattr(system, "open_file", swapped)
    with pytest.raises(OSError, match="Too many levels"):
        system.open_unlinked(file, os.O_RDONLY)


def test_an_opened_folder_is_not_left_by_a_link(tmp_path):
    (tmp_path / "root" / "inner").mkdir(parents=True)
    (tmp_path / "root" / "inner" / "file").write_bytes(b"a")
    folder = RootFolder(tmp_path / "root")
    with folder.open_plain("inner/file") as file:
        assert file.read() == b"a"
    (tmp_path / "root" / "inner").rename(tmp_path / "elsewhere")
    (tmp_path / "root" / "inner").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="Too many levels"):
        folder.open_plain("inner/file")


def test_a_folder_that_takes_the_name_of_an_opened_one_is_refused(tmp_path):
    (tmp_path / "root").mkdir()
    folder = RootFolder(tmp_path / "root")
    (tmp_path / "root").rename(tmp_path / "old")
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "file").write_bytes(b"b")
    with pytest.raises(OSError, match="Stale file handle"):
        folder.open_plain("file")


def doubled(number, attempt):
    os.write(1, b"what is printed is no message")
    return 2 * number


def test_processes_run_tasks(tmp_path):
    with LocalWorkers(2) as tasks:
        results, _ = run_tasks(tasks, doubled, range(5), tmp_path, Needs(alone=True))
        assert tasks.facts["cores"] == 2
    assert results == [0, 2, 4, 6, 8]


def test_an_index_is_written_read_and_replaced(tmp_path):
    first = lake(tmp_path / "first")
    build_index(first, tmp_path / "lake.pexeso")
    opened_index = open_index(tmp_path / "lake.pexeso")
    assert opened_index.search(["Oslo", "Rome", "Bern"])[0].column == "town"
    store = open_store(tmp_path / "lake.pexeso")
    assert store.is_newest()
    build_index(
        lake(tmp_path / "second", "Graz Bonn Kiel Linz Ulm Wien"),
        tmp_path / "lake.pexeso",
        overwrite=True,
    )
    assert not store.is_newest()
    # What was opened stays readable, and what replaced it is another index.
    assert opened_index.search(["Oslo", "Rome", "Bern"])[0].column == "town"
    assert open_index(tmp_path / "lake.pexeso").search(["Graz", "Bonn", "Kiel"])[0].column == "town"


def test_files_that_are_written_leave_nothing_else(tmp_path):
    with temporary_folder("pexeso-test-", root=tmp_path) as folder:
        (folder / "file").write_bytes(b"a")
    with written_whole(tmp_path / "out.csv", overwrite=False) as path:
        path.write_bytes(b"a")
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]


def test_no_table_is_set_aside(tmp_path):
    tables = lake(tmp_path / "lake")
    with pytest.raises(InputError, match="on Linux or macOS"), opened(tmp_path / "held", tables):
        pass
    assert not (tmp_path / "held").exists()


def test_what_is_to_end_a_command_ends_it_a_moment_later():
    before = signal.getsignal(signal.SIGINT)
    try:
        system.interrupt_later(errors.Stopped(signal.SIGTERM), 0.01)
        with pytest.raises(errors.Stopped):
            time.sleep(10)
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_program_that_takes_too_long_is_ended():
    program = [sys.executable, "-c", "import time; time.sleep(60)"]
    with subprocess.Popen(program) as process, system.ended_in_time(process, 0.1) as is_over:
        process.wait(10)
        assert is_over.is_set()
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        with system.ended_in_time(process, 60) as is_over:
            process.wait()
        assert not is_over.is_set()


def test_a_file_whose_reading_takes_too_long_is_refused(tmp_path, monkeypatch):
    (tmp_path / "endless_reading.py").write_text(
        "import time\ndef answer(request):\n    time.sleep(60)\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("pexeso.lake.readers.table.MIN_SECONDS", 1)
    with pytest.raises(TableReadError, match=r"'a\.xlsx' .* seconds"):
        sandbox.ask("endless_reading", {}, ReadingBudget("'a.xlsx'", n_bytes=1), 1)
