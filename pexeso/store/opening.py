"""Indexes here or on another storage: opened, written, and put from here to there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from pexeso.errors import IndexNotFoundError, InputError
from pexeso.store.io.location import Location, locate, require_utf8
from pexeso.store.local.reader import Store, open_store, require_index
from pexeso.store.local.writer import BuildWriter, IndexWriter
from pexeso.store.manifest import Manifest, read_manifest

# The variable of the environment that names the file of what may be seen of an index.
VISIBLE = "PEXESO_VISIBLE"


def require_everything_seen(work: str) -> None:
    """Refuse what needs the whole of an index where a part of it may be seen."""
    if VISIBLE in os.environ:
        raise InputError(
            f"{work} needs all of it, and a part may be seen here ({VISIBLE}): do it where that "
            "variable is not set."
        )


def open_store_anywhere(
    path: str | os.PathLike[str] | Location, *, keep_files: bool = False
) -> Store:
    location = locate(path)
    if isinstance(location, Location):
        from pexeso.store.remote.store import open_remote_store

        return open_remote_store(location)
    require_openable(location)
    return open_store(location, keep_files=keep_files)


def require_openable(index: Path) -> None:
    """Raise if what is at a path cannot be looked at, or has a name that is not UTF-8."""
    try:
        os.stat(index)
    except (FileNotFoundError, NotADirectoryError, ValueError):  # of a name that none can have
        return  # which opening refuses
    except OSError as error:
        raise IndexNotFoundError(
            f"The index at '{index}' cannot be looked at: {error.strerror or error}."
        ) from error
    require_utf8(index)


def open_writer(
    path: str | os.PathLike[str] | Location,
    *,
    overwrite: bool = False,
    update: bool = False,
    purpose: str | None = None,
) -> BuildWriter:
    require_everything_seen("Writing an index")
    location = locate(path)
    if isinstance(location, Location):
        from pexeso.store.remote.writer import RemoteWriter

        return RemoteWriter(location, overwrite, update=update, purpose=purpose)
    require_utf8(location.absolute())  # what tasks of Spark write below
    return IndexWriter(location, overwrite, update=update, purpose=purpose)


def publish_index(
    local: str | os.PathLike[str],
    location: Location,
    *,
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Manifest:
    """Put an index that was built in a local folder in place on other storage.

    The local index stays.
    """
    from pexeso.store.remote.publish import begin, publish

    root = Path(local)
    manifest = read_manifest(root, require_index(root))
    return publish(root, manifest, begin(location, overwrite), progress=progress)
