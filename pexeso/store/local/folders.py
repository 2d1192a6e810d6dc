"""Whole folders: fill one so that it appears at once, list one, put one on the disk."""

import contextlib
import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from pexeso.errors import OutputError
from pexeso.store.files import sync_file, sync_folder, writing
from pexeso.store.paths import plain_file_size


@contextlib.contextmanager
def filling(folder: Path, *, replace: bool = True) -> Iterator[Path]:
    """Fill a folder that appears complete or not at all.

    It serves tasks that may be run again after a failure.

    The block writes to a folder beside it, which takes the name when the block ends well; what an
    earlier attempt left under that name is replaced. Without `replace` the first attempt that ends
    well stays, whichever is the last.
    """
    attempt = folder.with_name(f"{folder.name}.{secrets.token_hex(8)}")
    try:
        with writing(folder):
            attempt.mkdir()
        yield attempt
        with writing(folder):
            if replace and folder.is_dir():
                shutil.rmtree(folder)
            _rename(attempt, folder, may_lose=not replace)
            sync_folder(folder.parent)
    except BaseException:
        shutil.rmtree(attempt, ignore_errors=True)
        raise


def _rename(attempt: Path, folder: Path, *, may_lose: bool) -> None:
    try:
        os.rename(attempt, folder)
    except OSError as error:
        if not may_lose or error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        shutil.rmtree(attempt)


def plain_files(folder: Path) -> Iterator[tuple[str, int]]:
    """Yield relative path and size in bytes of all files below a folder."""
    for parent, folders, files in os.walk(folder, onerror=_reraise):
        for name in (*folders, *files):
            path = Path(parent, name)
            if path.is_symlink() or not (path.is_file() or path.is_dir()):
                raise OutputError(
                    f"'{path}' is no plain file; an index holds plain files and folders only."
                )
        for name in files:
            relative = Path(parent, name).relative_to(folder).as_posix()
            yield relative, plain_file_size(folder, relative) or 0


def sync_tree(folder: Path) -> None:
    """Wait until a folder, all files below it and all their names are on the disk."""
    for parent, _, files in os.walk(folder, topdown=False, onerror=_reraise):
        for name in files:
            sync_file(Path(parent, name))
        sync_folder(Path(parent))


def _reraise(error: OSError) -> None:
    raise error
