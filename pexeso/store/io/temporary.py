"""Files and folders that a killed process leaves none of."""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from pexeso.errors import OutputError, failing_as
from pexeso.runtime.system import EXCLUSIVE, HAS_LOCKS, is_own, lock, open_unlinked, sync_file

# The file in a folder that is locked as long as the process lives that made it.
LOCK = "in-use"


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
        if descriptor is not None:
            os.close(descriptor)


def _locked(folder: Path) -> int | None:
    """Return the open file of a folder, locked before it has the name that others look for."""
    if not HAS_LOCKS:
        return None
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
            # In a folder that all users share, another may have put anything under this name.
            with suppress(OSError):
                status = folder.lstat()
                if stat.S_ISDIR(status.st_mode) and is_own(status):
                    _remove_if_unlocked(folder / LOCK, folder)


def _remove_if_unlocked(file: Path, path: Path) -> None:
    descriptor = open_unlinked(file, os.O_RDWR)
    try:
        if lock(descriptor, EXCLUSIVE):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()
    finally:
        os.close(descriptor)


# What the name of a file ends in as long as it is not whole.
_PART = ".part"


@contextmanager
def written_whole(path: str | os.PathLike[str], *, overwrite: bool) -> Iterator[Path]:
    """Yield a temporary path next to `path` that is renamed to `path` if the block succeeds.

    What killed processes have left of the same file is removed.
    """
    target = Path(path)
    require_free(target, overwrite=overwrite)
    with failing_as(OutputError, f"'{target}' cannot be written"):
        _remove_abandoned(target)
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        temporary = Path(f"{name}{_PART}")
        with ExitStack() as ending:
            for left in (Path(name), temporary):
                ending.callback(left.unlink, missing_ok=True)
            if HAS_LOCKS:
                ending.callback(os.close, descriptor)
                # Locked before it has the name that others look for.
                lock(descriptor, EXCLUSIVE)
            else:
                os.close(descriptor)  # else it could not be renamed
            os.rename(name, temporary)
            yield temporary
            _finish(temporary, target, overwrite=overwrite)


def _remove_abandoned(target: Path) -> None:
    named = re.compile(rf"\.{re.escape(target.name)}\.[a-z0-9_]{{8}}{re.escape(_PART)}")
    parts: list[Path] = []
    with suppress(OSError):  # a folder may be one to write into, and not to list
        parts.extend(path for path in target.parent.iterdir() if named.fullmatch(path.name))
    for part in parts:
        with suppress(OSError):
            _remove_if_unlocked(part, part)


def require_free(path: str | os.PathLike[str], *, overwrite: bool) -> None:
    """Refuse, before any work is done, a file that could not be written in the end."""
    target = Path(path)
    if not os.path.isdir(target.parent):
        raise OutputError(f"'{target}' cannot be written: there is no folder '{target.parent}'.")
    if os.path.isdir(target):
        raise OutputError(f"'{target}' is a folder: give the name of a file.")
    if not overwrite and os.path.lexists(target):
        raise OutputError(
            f"'{target}' is there already. Replace it by --overwrite (in Python overwrite=True), "
            "or choose another name."
        )


def _finish(temporary: Path, target: Path, *, overwrite: bool) -> None:
    """Put the file on the disk, with the rights that new files have, and rename it."""
    sync_file(temporary)
    mask = os.umask(0)
    os.umask(mask)
    temporary.chmod(0o666 & ~mask)
    require_free(target, overwrite=overwrite)  # another process may have written it meanwhile
    os.replace(temporary, target)
