"""Write a file so that it is whole or not there."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pexeso.errors import OutputError


@contextmanager
def written_whole(path: str | os.PathLike[str], *, overwrite: bool) -> Iterator[Path]:
    """Yield a temporary path next to `path` that is renamed to `path` if the block succeeds."""
    target = Path(path)
    require_free(target, overwrite=overwrite)
    try:
        descriptor, name = tempfile.mkstemp(
            prefix=f".{target.name}.", suffix=".part", dir=target.parent
        )
        os.close(descriptor)
        temporary = Path(name)
        try:
            yield temporary
            _finish(temporary, target)
        finally:
            with contextlib.suppress(FileNotFoundError):
                temporary.unlink()
    except OSError as error:
        raise OutputError(f"'{target}' cannot be written: {error.strerror or error}.") from error


def require_free(path: str | os.PathLike[str], *, overwrite: bool) -> None:
    """Refuse, before any work is done, a file that could not be written in the end.

    Raises
    ------
    OutputError
        There is no such folder, or something is there already that is no file or may not be
        replaced.
    """
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


def _finish(temporary: Path, target: Path) -> None:
    """Put the file on the disk, with the rights that new files have, and rename it."""
    with temporary.open("rb") as stream:
        os.fsync(stream.fileno())
    mask = os.umask(0)
    os.umask(mask)
    temporary.chmod(0o666 & ~mask)
    os.replace(temporary, target)
