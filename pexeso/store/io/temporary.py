"""Temporary folders that a later run removes where the process that made them was killed."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pexeso.store.io.locks import EXCLUSIVE, lock

LOCK = "in-use"
"""The file in a folder that is locked as long as the process lives that made it."""


@contextmanager
def temporary_folder(prefix: str, *, root: Path | None = None) -> Iterator[Path]:
    """Make a folder for a `with` block, and remove those that killed processes left."""
    root = Path(tempfile.gettempdir()) if root is None else root
    remove_abandoned(prefix, root)
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=root))
    descriptor = _locked(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def _locked(folder: Path) -> int:
    """Return the open file of a folder, locked before it has the name that others look for."""
    draft = folder / f"{LOCK}.new"
    descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    # On a file system without locks the file is not put there, and nobody takes the folder for
    # abandoned.
    if lock(descriptor, EXCLUSIVE):
        draft.rename(folder / LOCK)
    return descriptor


def remove_abandoned(prefix: str, root: Path) -> None:
    """Remove the folders of a prefix whose processes are dead: their locks are free."""
    with suppress(OSError):
        for folder in sorted(root.glob(f"{prefix}*")):
            _remove_if_abandoned(folder)


def _remove_if_abandoned(folder: Path) -> None:
    try:
        status = folder.lstat()
        # In a folder that all users share, another may have put anything under this name.
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
            return
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        if lock(descriptor, EXCLUSIVE):
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(descriptor)
