"""Who builds in a folder: one writer at a time, and what a writer that died has left is cleared away.

A build owns ``.building/`` in the index folder. It holds ``builder.json`` (who builds), ``new/`` (the folders of the
next index, as they will be named), ``scratch/`` (anything) and, from the start of a commit on, ``commit.json``: the
files that are about to be put in place and those that the new manifest no longer lists. With it, whatever instant a
build ends at, `settle` can tell which files beside ``.building/`` came from that build or were superseded by it: those
of the two lists that the manifest now in place does not list.
"""

import contextlib
import fcntl
import json
import os
import shutil
import socket
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pexeso.errors import InputError, OutputError, StoredIndexError
from pexeso.store.files import sync_folder, write_document
from pexeso.store.manifest import Manifest, read_manifest
from pexeso.store.paths import BUILDING, MANIFEST, PARTITIONS, plain_file_size, require_folder, require_relative

BUILDER = "builder.json"
COMMIT = "commit.json"


def lock_folder(root: Path) -> tuple[int, bool]:
    """Lock a folder against other writers of any process of this machine; the lock ends with the process.

    Returns
    -------
    tuple[int, bool]
        The descriptor to close when done; whether this file system can lock at all.

    Raises
    ------
    OutputError
        Another writer has it.
    """
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise _busy(root, read_builder(root)) from error
    except OSError:
        return descriptor, False
    return descriptor, True


def announce(root: Path) -> None:
    """Say in ``.building/``, which is there and empty, who builds."""
    folder = root / BUILDING
    started = datetime.now(UTC).isoformat(timespec="seconds")
    write_document(folder / BUILDER, {"host": socket.gethostname(), "process": os.getpid(), "started": started})
    sync_folder(root)


def read_builder(root: Path) -> dict[str, Any] | None:
    """Return what ``builder.json`` says (host, process, started), or None where there is none that can be read."""
    try:
        builder = json.loads((root / BUILDING / BUILDER).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    kinds = {"host": str, "process": int, "started": str}
    if not isinstance(builder, dict) or any(type(builder.get(name)) is not kind for name, kind in kinds.items()):
        return None
    return builder


def clear_abandoned(root: Path, locked: bool) -> None:
    """Clear away what a build that died has left, if there is anything.

    Parameters
    ----------
    root
        The index folder, which the caller has locked.
    locked
        Whether its file system could lock it: then no other writer of this machine is alive.

    Raises
    ------
    OutputError
        The other build may be alive, or ``.building`` is nothing of ours. Nothing has been touched then.
    """
    folder = root / BUILDING
    if not os.path.lexists(folder):
        return
    if folder.is_symlink() or not folder.is_dir():
        raise OutputError(
            f"'{folder}' is not a folder of pexeso's: move it away, or choose another place for the index."
        )
    builder = read_builder(root)
    if builder is None:
        _require_stillborn(folder)
    elif builder["host"] != socket.gethostname() or (not locked and _is_running(builder["process"])):
        raise _busy(root, builder)
    settle(root)


def settle(root: Path) -> None:
    """Remove the files of an ended build that no manifest lists, then ``.building/``; nothing that we did not write.

    Where the manifest in place cannot be read, only ``.building/`` is removed, as nobody can say then what is in use.
    """
    folder = root / BUILDING
    doubtful = _journal(folder / COMMIT)
    if doubtful:
        with contextlib.suppress(StoredIndexError):
            _remove_files(root, doubtful - _listed(root))
    for name in sorted(os.listdir(folder)):
        if name != BUILDER:
            _remove(folder / name)
    # Last: as long as it is there, the rest is known to be ours.
    (folder / BUILDER).unlink(missing_ok=True)
    folder.rmdir()


def write_journal(root: Path, placed: Iterable[str], superseded: Iterable[str]) -> None:
    """Note, before the first file is moved, which files a commit puts in place and which ones it makes needless."""
    document = {"placed": sorted(placed), "superseded": sorted(superseded)}
    write_document(root / BUILDING / COMMIT, document)
    sync_folder(root / BUILDING)


def _remove_files(root: Path, relative_paths: Iterable[str]) -> None:
    """Remove plain files of index folders, and then what is empty without them in those folders and above."""
    folders = set()
    for relative in relative_paths:
        if plain_file_size(root, relative) is not None:
            (root / relative).unlink()
        folders.add(_own_folder(relative))
    for folder in folders:
        for parent, _, _ in os.walk(root / folder, topdown=False):
            _remove_if_empty(Path(parent))
    _remove_if_empty(root / PARTITIONS)


def _remove_if_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):  # not there, or something else is in it
        folder.rmdir()


def _journal(path: Path) -> set[str]:
    """Return all file names of a journal; an unreadable one is of a commit that had not moved anything yet."""
    try:
        document = json.loads(path.read_bytes())
        names = {*document["placed"], *document["superseded"]}
        return {_own_file(name) for name in names}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return set()


def _own_file(name: str) -> str:
    if require_relative(name) == _own_folder(name):
        raise InputError(f"{name!r} is not a file in a folder of an index.")
    return name


def _own_folder(name: str) -> str:
    parts = name.split("/")
    return require_folder("/".join(parts[: 2 if parts[0] == PARTITIONS else 1]))


def _listed(root: Path) -> set[str]:
    manifest = current_manifest(root)
    return set() if manifest is None else {file.path for file in manifest.files()}


def current_manifest(root: Path) -> Manifest | None:
    """Return the manifest in place, or None where there is none.

    Raises
    ------
    StoredIndexError
        It is there and cannot be read.
    """
    size = plain_file_size(root, MANIFEST)
    return None if size is None else read_manifest(root, size)


def _require_stillborn(folder: Path) -> None:
    """Require that a ``.building`` without a readable builder is one that died while it was being announced."""
    others = sorted(set(os.listdir(folder)) - {BUILDER})
    if others:
        raise OutputError(
            f"'{folder}' holds {some_names(others)} and no readable {BUILDER}, so it cannot be known as pexeso's own: "
            "remove it yourself, or choose another place for the index."
        )


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _busy(root: Path, builder: dict[str, Any] | None) -> OutputError:
    who = (
        "" if builder is None else (f" (process {builder['process']} on {builder['host']}, since {builder['started']})")
    )
    return OutputError(
        f"Another build is writing '{root}'{who}: wait for its end. If that process no longer runs, "
        f"remove the folder '{root / BUILDING}' and try again."
    )


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def some_names(names: list[str], most: int = 3) -> str:
    """Write the first names of a list, and how many more there are."""
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
