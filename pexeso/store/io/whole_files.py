"""Write a file so that it is whole or not there."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pexeso.errors import OutputError
from pexeso.store.io.locks import EXCLUSIVE, lock

_PART = ".part"
"""What the name of a file ends in as long as it is not whole."""


@contextmanager
def written_whole(path: str | os.PathLike[str], *, overwrite: bool) -> Iterator[Path]:
    """Yield a temporary path next to `path` that is renamed to `path` if the block succeeds.

    What killed processes have left of the same file is removed.
    """
    target = Path(path)
    require_free(target, overwrite=overwrite)
    try:
        _remove_abandoned(target)
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        temporary = Path(f"{name}{_PART}")
        try:
            # Locked before it has the name that others look for.
            lock(descriptor, EXCLUSIVE)
            os.rename(name, temporary)
            yield temporary
            _finish(temporary, target, overwrite=overwrite)
        finally:
            os.close(descriptor)
            for left in (Path(name), temporary):
                left.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"'{target}' cannot be written: {error.strerror or error}.") from error


def _remove_abandoned(target: Path) -> None:
    """Remove parts of a file that nobody has locked any more."""
    named = re.compile(rf"\.{re.escape(target.name)}\.[a-z0-9_]{{8}}{re.escape(_PART)}")
    parts: list[Path] = []
    with suppress(OSError):  # a folder may be one to write into, and not to list
        parts.extend(path for path in target.parent.iterdir() if named.fullmatch(path.name))
    for part in parts:
        with suppress(OSError):
            _remove_if_abandoned(part)


def _remove_if_abandoned(part: Path) -> None:
    descriptor = os.open(part, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if lock(descriptor, EXCLUSIVE):
            part.unlink()
    finally:
        os.close(descriptor)


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
    with temporary.open("rb") as stream:
        os.fsync(stream.fileno())
    mask = os.umask(0)
    os.umask(mask)
    temporary.chmod(0o666 & ~mask)
    require_free(target, overwrite=overwrite)  # another process may have written it meanwhile
    os.replace(temporary, target)
