"""Build lock of a folder: one writer at a time.

What a writer that died has left is resumed or removed.

A build owns ``.building/`` in the index folder. It holds ``builder.json`` (who builds, what, and
the names that the new folders get), ``new/`` (the folders of the next index, as they will be
named), ``scratch/`` (anything) and, from the start of a commit on, ``commit.json``: the files that
are about to be put in place. With it, whatever instant a build ends at, it can be told which files
beside ``.building/`` came from that build: those that the journal lists and the manifest now in
place does not.

A build that is told what it builds (a `purpose`) leaves its work there when it dies; one of the
same purpose, over the same index, takes it up. Any other clears it away.
"""

import contextlib
import json
import os
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pexeso.errors import OutputError, StoredIndexError
from pexeso.store.files import replace_document, sync_folder
from pexeso.store.io.locks import EXCLUSIVE, lock
from pexeso.store.local.removal import own_file, own_folder, remove_files, remove_tree
from pexeso.store.manifest import Manifest, read_manifest
from pexeso.store.paths import BUILDING, MANIFEST, plain_file_size

BUILDER = "builder.json"
COMMIT = "commit.json"


def lock_folder(root: Path) -> tuple[int, bool]:
    """Lock a folder against other writers of any process of this machine.

    The lock ends with the process.

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
    locked = lock(descriptor, EXCLUSIVE)
    if locked is False:
        os.close(descriptor)
        raise _busy(root, read_builder(root))
    return descriptor, bool(locked)


@dataclass(frozen=True)
class Plan:
    """What a build is about to do, so that another can take it up.

    Attributes
    ----------
    purpose : str or None
        What is built, of which options; None for a build that is not to be taken up.
    generation : int
        Of the index to be written.
    names : dict of str to str
        The folder names chosen for the catalog and the embedder.
    first_partition : int
        Number of the first new partition.
    """

    purpose: str | None
    generation: int
    names: dict[str, str]
    first_partition: int


def announce(root: Path, plan: Plan) -> None:
    """Say in ``.building/``, which is there, who builds and what."""
    started = datetime.now(UTC).isoformat(timespec="seconds")
    who = {"host": socket.gethostname(), "process": os.getpid(), "started": started}
    replace_document(root / BUILDING / BUILDER, {**who, **vars(plan)})
    sync_folder(root)


def read_builder(root: Path) -> dict[str, Any] | None:
    """Return the content of ``builder.json``, or None if it is missing or unreadable.

    The content is host, process, started and so on.
    """
    try:
        builder = json.loads((root / BUILDING / BUILDER).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    kinds = {"host": str, "process": int, "started": str}
    if not isinstance(builder, dict) or any(
        type(builder.get(name)) is not kind for name, kind in kinds.items()
    ):
        return None
    return builder


def is_under_way(root: Path) -> bool:
    """Return whether a process that builds at `root` is alive, as far as this machine can tell."""
    builder = read_builder(root)
    if builder is None:
        return False
    return builder["host"] != socket.gethostname() or _is_running(builder["process"])


def abandoned_plan(root: Path) -> Plan | None:
    """Return the plan of a build that died and can be resumed.

    `require_abandoned` must have let the build pass.
    """
    builder = read_builder(root) or {}
    kinds = {"purpose": str, "generation": int, "names": dict, "first_partition": int}
    if any(type(builder.get(name)) is not kind for name, kind in kinds.items()):
        return None
    return Plan(**{name: builder[name] for name in kinds})


def require_abandoned(root: Path, locked: bool) -> bool:
    """Return whether a build that died has left something here."""
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
        _require_stillborn(folder)
    elif builder["host"] != socket.gethostname() or (
        not locked and _is_running(builder["process"])
    ):
        raise _busy(root, builder)
    return True


def settle(root: Path) -> None:
    """Remove the files of an ended build that no manifest lists, then ``.building/``.

    Only files that pexeso wrote are removed.

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
    """Move the folders that an interrupted commit put in place back to `new`.

    This is where they came from.
    """
    journal = root / BUILDING / COMMIT
    for folder in sorted({own_folder(name) for name in _journal(journal) - _listed(root)}):
        if os.path.lexists(root / folder) and not os.path.lexists(new / folder):
            os.rename(root / folder, new / folder)
            sync_folder((new / folder).parent)
    journal.unlink(missing_ok=True)


def _journal(path: Path) -> set[str]:
    """Return all file names of a journal, or an empty set if it is unreadable.

    An unreadable journal is of a commit that had not moved anything yet.
    """
    try:
        document = json.loads(path.read_bytes())
        return {own_file(name) for name in document["placed"]}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return set()


def _listed(root: Path) -> set[str]:
    manifest = current_manifest(root)
    return set() if manifest is None else {file.path for file in manifest.files()}


def current_manifest(root: Path) -> Manifest | None:
    """Return the manifest in place, or None where there is none."""
    size = plain_file_size(root, MANIFEST)
    return None if size is None else read_manifest(root, size)


def _require_stillborn(folder: Path) -> None:
    """Raise OutputError unless a ``.building`` without a readable builder died at its start.

    Such a build died while it was being announced.
    """
    others = sorted(name for name in os.listdir(folder) if not name.startswith(BUILDER))
    if others:
        raise OutputError(
            f"'{folder}' holds {some_names(others)} and no readable {BUILDER}, so it cannot be "
            "known as pexeso's own: "
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
        ""
        if builder is None
        else (f" (process {builder['process']} on {builder['host']}, since {builder['started']})")
    )
    return OutputError(
        f"Another build is writing '{root}'{who}: wait for its end. If that process no longer "
        "runs, "
        f"remove the folder '{root / BUILDING}' and try again."
    )


def some_names(names: list[str], limit: int = 3) -> str:
    """Write the first names of a list, and how many more there are."""
    shown = ", ".join(repr(name) for name in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
