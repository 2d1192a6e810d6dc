"""Build lock of a folder: one writer at a time; what a dead one left is resumed or removed.

A build owns ``.building/`` in the index folder. It holds ``builder.json`` (who builds, what, and
the names that the new folders get), ``new/`` (the folders of the next index, as they will be
named), ``scratch/`` (anything) and, from the start of a commit on, ``commit.json``: the files that
are about to be put in place. With it, whenever a build ends, the files that came from it are known:
those that the journal lists and the manifest now in place does not.

A build with a `purpose` leaves its work there when it dies; one of the same purpose, over the same
index, takes it up. Any other clears it away.
"""

import contextlib
import os
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypedDict, TypeVar

import msgspec

from pexeso.errors import InputError, OutputError, StoredIndexError
from pexeso.runtime.formatting import listed_names
from pexeso.runtime.system import EXCLUSIVE, is_running, lock, open_folder, sync_folder
from pexeso.store.files import (
    own_file,
    own_folder,
    remove_files,
    remove_tree,
    replace_document,
)
from pexeso.store.manifest import BUILDING, MANIFEST, Manifest, plain_file_size, read_manifest

BUILDER = "builder.json"
COMMIT = "commit.json"

_Kind = TypeVar("_Kind")


def lock_folder(root: Path) -> tuple[int, bool]:
    """Lock a folder against other writers of any process of this machine.

    Returns the descriptor to close when done, and whether this file system can lock at all.
    """
    descriptor = open_folder(root)
    locked = lock(descriptor, EXCLUSIVE)
    if locked is False:
        os.close(descriptor)
        raise _busy(root, read_builder(root))
    return descriptor, bool(locked)


@dataclass(frozen=True)
class Plan:
    """What a build is about to do, so that another can take it up."""

    # What is built, of which options; None for a build that is not to be taken up.
    purpose: str | None
    generation: int  # Of the index to be written
    names: dict[str, str]  # The folder names chosen for the catalog and the embedder
    first_partition: int  # Number of the first new partition


def announce(root: Path, plan: Plan) -> None:
    """Say in ``.building/``, which is there, who builds and what."""
    started = datetime.now(UTC).isoformat(timespec="seconds")
    who = {"host": socket.gethostname(), "process": os.getpid(), "started": started}
    replace_document(root / BUILDING / BUILDER, {**who, **vars(plan)})
    sync_folder(root)


class Builder(TypedDict):
    host: str
    process: int
    started: str


class _Journal(TypedDict):
    placed: list[str]


def read_builder(root: Path) -> Builder | None:
    """Return who builds, from ``builder.json``; None if it cannot be read."""
    return _read(root / BUILDING / BUILDER, Builder)


def _read(path: Path, kind: type[_Kind]) -> _Kind | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, ValueError, RecursionError):
        return None


def is_under_way(root: Path) -> bool:
    """Return whether a process that builds at `root` is alive, as far as this machine knows."""
    builder = read_builder(root)
    if builder is None:
        return False
    return builder["host"] != socket.gethostname() or is_running(builder["process"])


def abandoned_plan(root: Path) -> Plan | None:
    """Return the plan of a build that `require_abandoned` let pass, if it can be resumed."""
    plan = _read(root / BUILDING / BUILDER, Plan)
    return None if plan is None or plan.purpose is None else plan


def require_abandoned(root: Path, locked: bool) -> bool:
    folder = root / BUILDING
    if not os.path.lexists(folder):
        return False
    if folder.is_symlink() or not folder.is_dir():
        raise OutputError(
            f"'{folder}' is not a folder of pexeso's: move it away, or choose another place for "
            "the index."
        )
    builder = read_builder(root)
    if builder is None:
        # One without a readable builder died while it was being announced.
        others = sorted(name for name in os.listdir(folder) if not name.startswith(BUILDER))
        if others:
            raise OutputError(
                f"'{folder}' holds {listed_names(others, 3)} and no readable {BUILDER}, so it "
                "cannot be known as pexeso's own: remove it yourself, or choose another place for "
                "the index."
            )
    elif builder["host"] != socket.gethostname() or (not locked and is_running(builder["process"])):
        raise _busy(root, builder)
    return True


def settle(root: Path) -> None:
    """Remove the files of an ended build that no manifest lists, then ``.building/``.

    Where the manifest in place cannot be read, only ``.building/`` is removed, as nobody can say
    then what is in use.
    """
    folder = root / BUILDING
    doubtful = _journal(folder / COMMIT)
    if doubtful:
        with contextlib.suppress(StoredIndexError):
            remove_files(root, doubtful - _listed(root))
    for name in sorted(os.listdir(folder)):
        if name != BUILDER:
            remove_tree(folder / name)
    # Last: as long as it is there, the rest is known to be ours.
    (folder / BUILDER).unlink(missing_ok=True)
    folder.rmdir()


def write_journal(root: Path, placed: Iterable[str]) -> None:
    """Note, before the first file is moved, which files a commit puts in place."""
    replace_document(root / BUILDING / COMMIT, {"placed": sorted(placed)})
    sync_folder(root / BUILDING)


def take_back(root: Path, new: Path) -> None:
    """Move the folders that an interrupted commit put in place back to `new`."""
    journal = root / BUILDING / COMMIT
    for folder in sorted({own_folder(name) for name in _journal(journal) - _listed(root)}):
        if os.path.lexists(root / folder) and not os.path.lexists(new / folder):
            os.rename(root / folder, new / folder)
            sync_folder((new / folder).parent)
    journal.unlink(missing_ok=True)


def _journal(path: Path) -> set[str]:
    """Return all file names of a journal; none if it is of a commit that had not moved anything."""
    journal = _read(path, _Journal)
    try:
        return set() if journal is None else set(map(own_file, journal["placed"]))
    except InputError:
        return set()


def _listed(root: Path) -> set[str]:
    manifest = current_manifest(root)
    return set() if manifest is None else manifest.paths()


def current_manifest(root: Path) -> Manifest | None:
    size = plain_file_size(root, MANIFEST)
    return None if size is None else read_manifest(root, size)


def _busy(root: Path, builder: Builder | None) -> OutputError:
    who = ""
    if builder is not None:
        who = f" (process {builder['process']} on {builder['host']}, since {builder['started']})"
    return OutputError(
        f"Another build is writing '{root}'{who}: wait for its end. If that process no longer "
        f"runs, remove the folder '{root / BUILDING}' and try again."
    )
