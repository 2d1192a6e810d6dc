import contextlib
import errno
import json
import multiprocessing
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from pexeso.errors import IndexNotFoundError, InputError, OutputError
from pexeso.store import files
from pexeso.store.arrays import write_arrays
from pexeso.store.files import filling
from pexeso.store.integrity import check_store
from pexeso.store.local import build_lock
from pexeso.store.local import writer as build_writer
from pexeso.store.local.reader import open_store
from pexeso.store.local.writer import IndexWriter, tidy
from pexeso.store.manifest import FileEntry, FolderEntry


class Killed(BaseException):
    """Ends a build as a kill would: nothing after it runs."""


@pytest.fixture
def index(tmp_path: Path, build_index) -> Path:
    build_index(tmp_path / "lake.pexeso", seed=1)
    return tmp_path / "lake.pexeso"


def tree(path: Path) -> list[str]:
    return sorted(item.relative_to(path).as_posix() for item in path.rglob("*") if item.is_file())


def builder(process: int, host: str | None = None) -> str:
    return json.dumps(
        {"host": host or socket.gethostname(), "process": process, "started": "2024-05-01T12:00:00"}
    )


def dead_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_first_build_takes_the_plain_names(index: Path) -> None:
    partition = [
        "codes.npy",
        "kept.npy",
        "meta.json",
        "nothing.npy",
        "seed.npy",
        "values.arrow",
        "vectors.npy",
    ]
    assert tree(index) == sorted(
        [
            "manifest.json",
            "catalog/columns.parquet",
            "catalog/tables.parquet",
            "embedder/words/model.bin",
        ]
        + [f"partitions/0000{number}/{name}" for number in (0, 1) for name in partition]
    )
    manifest = open_store(index).manifest
    assert (manifest.generation, manifest.written_by, manifest.options) == (
        1,
        "pexeso test",
        {"seed": 1},
    )
    assert [entry.facts for entry in manifest.partitions] == [{"seed": 1}, {"seed": 2}]
    assert check_store(index) == []


def test_a_later_build_takes_the_next_names_and_removes_the_old_files(
    index: Path, build_index
) -> None:
    manifest = build_index(index, seed=5, n_partitions=1, overwrite=True)
    assert manifest.generation == 2
    assert [folder.folder for folder in manifest.folders] == [
        "catalog.2",
        "embedder.2",
        "partitions/00002",
    ]
    assert {name.rsplit("/", 1)[0] for name in tree(index)} == {
        "manifest.json",
        "catalog.2",
        "embedder.2/words",
        "partitions/00002",
    }
    assert check_store(index) == []
    assert build_index(index, overwrite=True).catalogs[0].folder == "catalog.3"


def test_the_old_index_is_valid_until_the_commit(index: Path, fill_index) -> None:
    with IndexWriter(index, overwrite=True) as new:
        entries = fill_index(new, seed=9)
        assert open_store(index).manifest.options == {"seed": 1}
        assert [problem.kind for problem in check_store(index)] == ["unfinished"]
        new.commit(**entries)
        assert open_store(index).manifest.options == {"seed": 9}
    assert check_store(index) == []


def test_a_reader_of_the_old_index_keeps_its_arrays(index: Path, build_index, arrays_of) -> None:
    old = open_store(index).partition(0)
    build_index(index, seed=5, overwrite=True)
    np.testing.assert_array_equal(old["vectors"], arrays_of(1)["vectors"])


def test_foreign_files_in_an_index_are_never_touched(index: Path, build_index) -> None:
    kept = {
        "notes.txt": b"mine",
        "catalog/notes.txt": b"mine",
        "partitions/00007/x": b"mine",
        "catalog.2/x": b"mine",
    }
    for name, data in kept.items():
        (index / name).parent.mkdir(exist_ok=True)
        (index / name).write_bytes(data)
    manifest = build_index(index, seed=5, overwrite=True)
    assert {name: (index / name).read_bytes() for name in kept} == kept
    assert [folder.folder for folder in manifest.folders[1:]] == [
        "embedder.2",
        "partitions/00008",
        "partitions/00009",
    ]
    assert manifest.catalogs[0].folder == "catalog.3"
    problems = check_store(index)
    assert sorted(problem.path for problem in problems) == [
        "catalog",
        "catalog.2",
        "notes.txt",
        "partitions/00007",
    ]
    assert not any(problem.is_failure for problem in problems)


def test_an_index_is_not_replaced_unasked(index: Path, snapshot) -> None:
    before = snapshot(index)
    with pytest.raises(OutputError) as caught, IndexWriter(index):
        pass
    assert str(caught.value) == (
        f"'{index}' holds an index already: choose another place, or replace it with "
        "overwrite=True (--overwrite)."
    )
    assert snapshot(index) == before


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_folder_with_other_things_is_refused_and_not_touched(
    tmp_path: Path, snapshot, overwrite: bool
) -> None:
    for name in ("a.csv", "b.csv", "c.csv", "d.csv"):
        (tmp_path / name).write_text("x")
    before = snapshot(tmp_path)
    with pytest.raises(
        OutputError, match=r"holds 'a.csv', 'b.csv', 'c.csv' and 1 more and is no index of pexeso's"
    ):
        IndexWriter(tmp_path, overwrite=overwrite).__enter__()
    assert snapshot(tmp_path) == before


def test_an_index_whose_manifest_is_damaged_is_not_overwritten(index: Path, snapshot) -> None:
    (index / "manifest.json").write_bytes(b"{}")
    before = snapshot(index)
    with pytest.raises(
        OutputError,
        match="does not tell which files are pexeso's own: choose another place, or remove",
    ):
        IndexWriter(index, overwrite=True).__enter__()
    assert snapshot(index) == before


def test_a_file_in_the_place_of_the_index_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("mine")
    with pytest.raises(OutputError, match="is a file, and an index is a folder"):
        IndexWriter(tmp_path / "lake", overwrite=True).__enter__()
    with pytest.raises(OutputError, match=r"lake/below' cannot be written: Not a directory"):
        IndexWriter(tmp_path / "lake" / "below").__enter__()


def test_an_empty_folder_and_missing_parents_are_fine(tmp_path: Path, build_index) -> None:
    (tmp_path / "empty").mkdir()
    build_index(tmp_path / "empty")
    build_index(tmp_path / "a" / "b" / "lake")
    assert check_store(tmp_path / "empty") == check_store(tmp_path / "a" / "b" / "lake") == []


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, None])
def test_a_build_that_ends_without_commit_leaves_what_was_there(
    index: Path, fill_index, snapshot, error
) -> None:
    def broken_build(path: Path, overwrite: bool) -> None:
        with IndexWriter(path, overwrite=overwrite) as new:
            fill_index(new, seed=9)
            (new.scratch / "spill").write_bytes(b"x")
            if error is not None:
                raise error

    before = snapshot(index)
    for path, overwrite in ((index, True), (index.parent / "deep" / "new", False)):
        if error is None:
            broken_build(path, overwrite)
        else:
            with pytest.raises(error):
                broken_build(path, overwrite)
    assert snapshot(index) == before
    assert os.listdir(index.parent) == ["lake.pexeso"]


def test_a_second_writer_is_refused(index: Path, tmp_path: Path) -> None:
    with IndexWriter(index, overwrite=True) as first:
        with pytest.raises(
            OutputError, match=f"Another build is writing '{index}' .process {os.getpid()} on "
        ):
            IndexWriter(index, overwrite=True).__enter__()
        assert first.scratch.is_dir()
    with IndexWriter(tmp_path / "new"), pytest.raises(OutputError, match="wait for its end"):
        IndexWriter(tmp_path / "new").__enter__()
    assert not (tmp_path / "new").exists()


def hold(path: Path, ready) -> None:
    with IndexWriter(path, overwrite=True):
        ready.set()
        # Not a wait for an event of the parent's: setting one hangs when who waited for it was
        # killed.
        time.sleep(30)


def test_a_writer_of_another_process_is_refused_until_it_ends(index: Path, build_index) -> None:
    spawn = multiprocessing.get_context("spawn")
    ready = spawn.Event()
    process = spawn.Process(target=hold, args=(index, ready))
    process.start()
    try:
        assert ready.wait(60)
        with pytest.raises(OutputError, match=f"process {process.pid} on"):
            build_index(index, overwrite=True)
        process.kill()  # no clean-up of its own: the next build does it
        process.join()
        assert (index / ".building").is_dir()
        assert build_index(index, seed=3, overwrite=True).options == {"seed": 3}
    finally:
        process.kill()
        process.join()
    assert check_store(index) == []


def test_what_a_dead_build_left_is_cleared(tmp_path: Path, build_index) -> None:
    path = tmp_path / "lake"
    (path / ".building" / "new" / "catalog").mkdir(parents=True)
    (path / ".building" / "new" / "catalog" / "x").write_text("x")
    (path / ".building" / "builder.json").write_text(builder(dead_process()))
    with pytest.raises(
        IndexNotFoundError,
        match=r"a build of one that was broken off, begun 2024-05-01T12:00:00 by process",
    ):
        open_store(path)
    build_index(path)
    assert check_store(path) == []


@pytest.mark.parametrize("left", ["", "{", "[]", "absent"])
def test_a_build_that_died_at_its_first_step_is_cleared(
    tmp_path: Path, build_index, left: str
) -> None:
    (tmp_path / ".building").mkdir()
    if left != "absent":
        (tmp_path / ".building" / "builder.json").write_text(left)
    build_index(tmp_path)
    assert check_store(tmp_path) == []


def test_a_build_of_another_machine_is_left_alone(index: Path, snapshot) -> None:
    (index / ".building").mkdir()
    (index / ".building" / "builder.json").write_text(builder(1, "elsewhere"))
    before = snapshot(index)
    with pytest.raises(
        OutputError,
        match=r"process 1 on elsewhere, .* If that process no longer runs, remove the folder",
    ):
        IndexWriter(index, overwrite=True).__enter__()
    assert snapshot(index) == before


def test_without_locks_the_process_number_decides(index: Path, monkeypatch, build_index) -> None:
    def unsupported(*_: object) -> None:
        raise OSError(errno.ENOTSUP, "no locks here")

    monkeypatch.setattr("fcntl.flock", unsupported)
    (index / ".building").mkdir()
    (index / ".building" / "builder.json").write_text(builder(os.getpid()))
    with pytest.raises(OutputError, match="Another build is writing"):
        build_index(index, overwrite=True)
    (index / ".building" / "builder.json").write_text(builder(dead_process()))
    build_index(index, overwrite=True)
    assert check_store(index) == []
    assert sorted(os.listdir(index / "retired")) == ["manifest.1.json"]


def test_a_folder_named_building_of_somebody_else_is_refused(tmp_path: Path, snapshot) -> None:
    (tmp_path / ".building").mkdir()
    (tmp_path / ".building" / "house.txt").write_text("mine")
    before = snapshot(tmp_path)
    with pytest.raises(OutputError, match=r"holds 'house.txt' and no readable builder.json"):
        IndexWriter(tmp_path).__enter__()
    assert snapshot(tmp_path) == before


def test_a_link_named_building_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "builder.json").write_text(builder(dead_process()))
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / ".building").symlink_to(tmp_path / "mine")
    with pytest.raises(OutputError, match=r"\.building' is not a folder of pexeso's"):
        IndexWriter(tmp_path / "lake").__enter__()
    assert (tmp_path / "mine" / "builder.json").exists()


def steps(monkeypatch: pytest.MonkeyPatch, act) -> list[str]:
    """Call `act(number of the step)` before every change that a commit makes to the disk."""
    done: list[str] = []

    def watched(name: str, real):
        def step(*args, **keywords):
            done.append(name)
            act(len(done))
            return real(*args, **keywords)

        return step

    for name in ("rename", "replace", "fsync", "unlink", "rmdir", "mkdir"):
        monkeypatch.setattr(os, name, watched(name, getattr(os, name)))
    return done


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("gentle", [True, False])
def test_a_crash_at_any_step_leaves_the_old_index_or_the_new_one(
    tmp_path: Path, build_index, fill_index, snapshot, first: bool, gentle: bool
) -> None:
    """Check that a crash at any step leaves the old index or the new one.

    If `gentle`, the writer may still clean up; otherwise nothing more of it runs, as after a power
    cut.
    """
    crashes, n_new = 0, 0
    for crash_at in range(1, 500):
        path = tmp_path / f"{crash_at}"
        if not first:
            build_index(path, seed=1, n_partitions=1)
        before = snapshot(path)
        finished = _crashing_build(path, fill_index, crash_at, gentle)
        if finished:
            break
        crashes += 1
        n_new += _is_whole(path, first)
        if gentle and not (path / "manifest.json").exists():
            assert snapshot(path) == {}
        elif gentle and json.loads((path / "manifest.json").read_bytes())["options"] == {"seed": 1}:
            assert snapshot(path) == before
        build_index(path, seed=3, n_partitions=1, overwrite=True)
        assert check_store(path) == [], f"after a crash at step {crash_at}"
    assert finished
    assert crashes > 20
    assert 0 < n_new < crashes


def _crashing_build(
    path: Path, fill_index, crash_at: int, gentle: bool, purpose: str | None = None
) -> bool:
    stopped = False

    def act(step: int) -> None:
        nonlocal stopped
        if step == crash_at or (stopped and not gentle):
            stopped = True
            raise Killed

    with pytest.MonkeyPatch.context() as patch:
        new = IndexWriter(path, overwrite=True, purpose=purpose)
        new.__enter__()
        entries = fill_index(new, seed=2, n_partitions=1)
        new.keep = purpose is not None
        steps(patch, act)
        try:
            new.commit(**entries)
            new.__exit__(None, None, None)
        except Killed as error:
            with contextlib.suppress(Killed):
                new.__exit__(Killed, error, None)
    if new._lock is not None:
        os.close(new._lock)  # the lock of a process ends with it
    return not stopped


def _is_whole(path: Path, first: bool) -> bool:
    """Check that the path holds the old or the new index whole; return whether the new one."""
    if first and not (path / "manifest.json").exists():
        with pytest.raises(IndexNotFoundError):
            open_store(path)
        return False
    seed = open_store(path).manifest.options["seed"]
    assert seed in ((2,) if first else (1, 2))
    assert not any(problem.is_failure for problem in check_store(path))
    return seed == 2


def test_every_byte_and_name_is_on_the_disk_before_the_manifest_is_replaced(
    tmp_path: Path, fill_index
) -> None:
    synced: set[int] = set()
    at_replace: list[set[int]] = []
    real = os.replace

    def replace(source: Path, target: Path) -> None:
        if target.name == "manifest.json":
            at_replace.append(set(synced))
        real(source, target)

    path = tmp_path / "lake"
    with IndexWriter(path) as new:
        entries = fill_index(new)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "fsync", lambda descriptor: synced.add(os.fstat(descriptor).st_ino))
            patch.setattr(os, "replace", replace)
            new.commit(**entries)
    [before] = at_replace
    for item in (path, *path.rglob("*")):
        assert item.stat().st_ino in before, f"{item} was not flushed"


@pytest.mark.parametrize("first", [True, False])
def test_a_build_that_died_at_any_step_is_taken_up(
    tmp_path: Path, build_index, fill_index, first: bool
) -> None:
    """Check that a build that died at any step of the commit is resumed and then committed."""
    for crash_at in range(1, 500):
        path = tmp_path / f"{crash_at}"
        if not first:
            build_index(path, seed=1, n_partitions=1)
        finished = _crashing_build(path, fill_index, crash_at, gentle=False, purpose="a lake")
        if finished:
            break
        if _is_whole(path, first):
            continue
        with IndexWriter(path, overwrite=True, purpose="a lake") as writer:
            assert writer.resumed
            assert (writer.partition_folder(0) / "meta.json").is_file()
            folders = (writer.catalog_folder, writer.embedder_folder, writer.partition_folder(0))
            catalog, embedder, partition = (writer.seal_folder(folder) for folder in folders)
            writer.commit(
                written_by="test",
                options={"seed": 2},
                catalogs=[catalog],
                embedder=embedder,
                parts={"semantic": [partition]},
            )
        assert check_store(path) == [], f"after a crash at step {crash_at}"
        assert _is_whole(path, first)
    assert finished
    assert crash_at > 20


@pytest.mark.parametrize("change", ["purpose", "generation", "none"])
def test_only_a_build_of_the_same_purpose_is_taken_up(
    index: Path, fill_index, build_index, change: str
) -> None:
    with IndexWriter(index, overwrite=True, purpose="a lake") as writer:
        fill_index(writer, seed=4)
        writer.keep = True
    assert (index / ".building").is_dir()
    if change == "generation":
        (index / ".building").rename(index / "away")
        build_index(index, seed=6, overwrite=True)
        (index / "away").rename(index / ".building")
    with IndexWriter(
        index, overwrite=True, purpose="another" if change == "purpose" else "a lake"
    ) as writer:
        assert writer.resumed == (change == "none")
        assert (writer.partition_folder(0) / "meta.json").exists() == (change == "none")
        writer.restart()
        assert not (writer.partition_folder(0) / "meta.json").exists()
    assert not (index / ".building").exists()
    assert check_store(index) == []


def test_an_update_needs_an_index(tmp_path: Path) -> None:
    with pytest.raises(IndexNotFoundError, match="no such folder"):
        IndexWriter(tmp_path / "lake", update=True).__enter__()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("function", ["replace", "rename", "fsync"])
def test_a_full_disk_leaves_the_old_index(
    index: Path, fill_index, snapshot, monkeypatch, function: str, code
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(code, "full")

    before = snapshot(index)
    with IndexWriter(index, overwrite=True) as new:
        entries = fill_index(new, seed=9)
        with monkeypatch.context() as patch:
            patch.setattr(os, function, full)
            with pytest.raises(
                OutputError, match=r"^No space is left where '.*' is being written: free some"
            ):
                new.commit(**entries)
    assert snapshot(index) == before
    assert check_store(index) == []


def test_a_full_disk_at_the_start_is_one_sentence_and_leaves_nothing(
    tmp_path: Path, monkeypatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OutputError, match=r"^No space is left"):
            IndexWriter(tmp_path / "a" / "lake").__enter__()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (errno.EACCES, "There is no permission to write '.*': change it, or choose another place"),
        (errno.EROFS, "is on a read-only file system: choose another place"),
        (errno.EIO, "cannot be written: Input/output error"),
    ],
)
def test_a_parent_that_cannot_be_written_is_one_sentence(
    tmp_path: Path, monkeypatch, code: int, said: str
) -> None:
    def refuse(self: Path, *_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code), str(self))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "mkdir", refuse)
        with pytest.raises(OutputError, match=said):
            IndexWriter(tmp_path / "lake").__enter__()
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_read_only_folder_is_one_sentence(index: Path, tmp_path: Path, snapshot) -> None:
    before = snapshot(index)
    index.chmod(0o500)
    tmp_path.chmod(0o500)
    try:
        for path in (index, tmp_path / "new"):
            with pytest.raises(OutputError, match="no permission to write"):
                IndexWriter(path, overwrite=True).__enter__()
        assert open_store(index).partition(0)["codes"].size == 7
    finally:
        tmp_path.chmod(0o700)
        index.chmod(0o700)
    assert snapshot(index) == before


def test_folders_are_kept_by_listing_them_again(index: Path, fill_index, arrays_of) -> None:
    """What appending a partition and deleting columns are made of."""
    with IndexWriter(index, overwrite=True) as new:
        old = new.previous
        entries = fill_index(new, seed=7, n_partitions=1)
        entries["parts"] = {"semantic": [*old.partitions, *entries["parts"]["semantic"]]}
        entries["embedder"] = old.embedder
        new.commit(**entries, deleted_columns=[(3, 4), (8, 10)])
    store = open_store(index)
    assert [entry.folder for entry in store.manifest.partitions] == [
        f"partitions/0000{number}" for number in range(3)
    ]
    assert store.manifest.deleted_columns == ((3, 4), (8, 10))
    np.testing.assert_array_equal(store.array(0, "vectors"), arrays_of(1)["vectors"])
    np.testing.assert_array_equal(store.array(2, "vectors"), arrays_of(7)["vectors"])
    assert check_store(index) == []
    assert sorted(os.listdir(index)) == ["catalog.2", "embedder", "manifest.json", "partitions"]


def test_a_folder_changed_after_sealing_is_refused(tmp_path: Path, fill_index) -> None:
    with IndexWriter(tmp_path / "lake") as new:
        entries = fill_index(new)
        (new.catalog_folder / "late").write_text("x")
        with pytest.raises(InputError, match="'catalog' is not as it was when it was sealed"):
            new.commit(**entries)
        (new.catalog_folder / "late").unlink()
        unknown = FolderEntry("partitions/00055", (FileEntry("x", 1, "0" * 32),))
        with pytest.raises(
            InputError, match="'partitions/00055' was neither written by this build nor is it"
        ):
            new.commit(**{**entries, "parts": {"semantic": [unknown]}})
        new.commit(**entries)


def test_sealing_takes_only_plain_files_of_this_build(tmp_path: Path) -> None:
    with IndexWriter(tmp_path / "lake") as new:
        with pytest.raises(InputError, match="must have at least one file"):
            new.seal_folder(new.catalog_folder)
        (new.catalog_folder / "link").symlink_to("/etc/hostname")
        with pytest.raises(OutputError, match="link' is no plain file"):
            new.seal_folder(new.catalog_folder)
        with pytest.raises(InputError, match="is not there with the 5 bytes that were written"):
            new.seal_folder(new.embedder_folder, known=[FileEntry("x", 5, "0" * 32)])


def test_sealing_reads_again_only_what_is_not_known(tmp_path: Path, monkeypatch) -> None:
    read = []

    def watched(path: Path) -> tuple[int, str]:
        read.append(path.name)
        return files.checksum_file(path)

    monkeypatch.setattr(build_writer, "checksum_file", watched)
    with IndexWriter(tmp_path / "lake") as new:
        folder = new.partition_folder(0)
        known = write_arrays(folder, {"a": np.arange(3)})
        (folder / "b").write_bytes(b"bb")
        sealed = new.seal_folder(folder, known=known)
    assert read == ["b"]
    assert [(file.path, file.n_bytes) for file in sealed.files] == [("a.npy", 152), ("b", 2)]
    assert sealed.files[0] == known[0]


def fill_half(target: Path, absent: Path) -> None:
    with filling(target) as folder:
        (folder / "a").write_text("half")
        absent.read_text()


def test_a_filled_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "00000"
    with pytest.raises(FileNotFoundError):
        fill_half(target, tmp_path / "absent")
    assert os.listdir(tmp_path) == []
    for text in ("first", "again"):
        with filling(target) as folder:
            assert not (target / "b").exists()
            (folder / ("a" if text == "first" else "b")).write_text(text)
        assert os.listdir(tmp_path) == ["00000"]
    assert os.listdir(target) == ["b"]


def test_cleaning_follows_no_name_out_of_the_index(tmp_path: Path, build_index) -> None:
    """A forged journal can neither name a file outside nor one that is no file of an index."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x").write_text("mine")
    path = tmp_path / "lake"
    building = path / ".building"
    for names in (
        ["../outside/x"],
        [str(outside / "x")],
        ["notes.txt"],
        ["manifest.json"],
        ["catalog"],
        [3],
        "xy",
    ):
        build_index(path, overwrite=True)
        (path / "notes.txt").write_text("mine")
        building.mkdir()
        (building / "builder.json").write_text(builder(dead_process()))
        (building / "commit.json").write_text(json.dumps({"placed": names}))
        assert build_lock.require_abandoned(path, True)
        build_lock.settle(path)
        assert (outside / "x").read_text() == (path / "notes.txt").read_text() == "mine"
        assert not building.exists()
        assert not any(problem.is_failure for problem in check_store(path))


@pytest.mark.parametrize(
    ("purpose", "committed", "stays"),
    [("build", False, True), (None, False, False), ("build", True, False)],
)
def test_tidying_clears_away_what_nobody_can_take_up(
    index: Path, monkeypatch, purpose: str | None, committed: bool, stays: bool
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(
            IndexWriter, "_settle", lambda writer: None
        )  # as where the process was killed
        with IndexWriter(index, update=True, purpose=purpose) as writer:
            kept = {
                name: getattr(writer.previous, name) for name in ("catalogs", "embedder", "parts")
            }
            if committed:
                writer.commit(written_by="pexeso test", **kept)
    before = open_store(index).manifest
    tidy(index)
    assert (index / ".building").exists() == stays
    assert open_store(index).manifest == before
    assert before.generation == (2 if committed else 1)
