"""Indexes on another storage, written: built or updated in a folder of this machine, then put in place by one commit.

The local folder lies in ``builds/`` of the user's cache, under a name made of the place, so that a build that was broken
off is taken up by the next one for the same place; it does not count for the size of the cache, and is removed once the
index is in place. One process at a time builds for a place on one machine; between machines the commit decides.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from pexeso.errors import OutputError
from pexeso.places import Place
from pexeso.store.files import writing
from pexeso.store.manifest import Manifest, read_manifest
from pexeso.store.paths import MANIFEST
from pexeso.store.reader import require_index
from pexeso.store.remote import read_remote_manifest
from pexeso.store.remote_cache import Cache, default_cache
from pexeso.store.remote_publish import Base, begin, publish

Result = TypeVar("Result")
Progress = Callable[[int, int], None]


def build_elsewhere(
    place: Place,
    build: Callable[[Path], object],
    *,
    overwrite: bool = False,
    cache: Cache | None = None,
    progress: Progress | None = None,
) -> Manifest:
    """Build an index in a local folder, and put it in place.

    Needs as much local disk as a build does. Where the tasks of the build run on other machines, the cache must be a
    folder that all of them see.

    Parameters
    ----------
    place : Place
        Where the index is to be; see `pexeso.store.remote_publish.begin`.
    build : callable
        Builds an index at the local path that it is given, replacing one that is there.
    overwrite : bool
        Replace an index that is at the place; it stays in use until the new one is complete.
    cache : Cache, optional
        Whose folder holds the local one; the user's by default.
    progress : callable, optional
        Called with the bytes uploaded so far and altogether.

    Returns
    -------
    Manifest
        The manifest now in place.

    Raises
    ------
    OutputError
        The index cannot be put there, as is found out before the build where it can be; or another build has committed
        there since this one began. What was built stays in the local folder then, and the message names it.
    """
    base = begin(place, overwrite)
    with _workplace(place, cache or default_cache()) as folder:
        build(folder)
        return _publish(folder, base, progress)


def publish_index(
    local: str | os.PathLike[str], place: Place, *, overwrite: bool = False, progress: Progress | None = None
) -> Manifest:
    """Put an index that was built in a local folder in place on another storage; the local one stays.

    Parameters
    ----------
    local : path
        The index.
    place : Place
        Where it is to be.
    overwrite : bool
        Replace an index that is there.
    progress : callable, optional
        Called with the bytes uploaded so far and altogether.

    Returns
    -------
    Manifest
        The manifest now in place.

    Raises
    ------
    StoredIndexError
        `local` is no index.
    OutputError
        It cannot be put there.
    """
    root = Path(local)
    manifest = read_manifest(root, require_index(root))
    return publish(root, manifest, begin(place, overwrite), progress=progress)


def update_elsewhere(
    place: Place, update: Callable[[Path], Result], *, cache: Cache | None = None, progress: Progress | None = None
) -> Result:
    """Fetch an index, update it in a local folder, and put in place what is new.

    Fetches every file of the index that the cache does not hold: as much local disk as the index takes.

    Parameters
    ----------
    place : Place
        The index.
    update : callable
        Updates the index at the local path that it is given; what it returns is returned.
    cache, progress
        See `build_elsewhere`.

    Raises
    ------
    StoredIndexError
        There is no index at the place, or not as it was written.
    OutputError
        Another build has committed there since this one began; nothing was changed.
    """
    read_remote_manifest(place)
    base = begin(place, overwrite=True)
    cache = cache or default_cache()
    with _workplace(place, cache) as folder:
        _copy_into(folder, base, cache)
        result = update(folder)
        if read_manifest(folder, require_index(folder)) == base.previous:
            shutil.rmtree(folder)
        else:
            _publish(folder, base, progress)
        _copied(folder).unlink(missing_ok=True)
        return result


def local_folder(place: Place, cache: Cache | None = None) -> Path:
    """Return the folder of this machine in which indexes for a place are built."""
    name = hashlib.blake2b(place.url.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return (cache or default_cache()).root / "builds" / f"{name}.pexeso"


@contextlib.contextmanager
def _workplace(place: Place, cache: Cache) -> Iterator[Path]:
    folder = local_folder(place, cache)
    with writing(folder):
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(folder.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            _lock(descriptor, place)
        yield folder
    finally:
        os.close(descriptor)


def _lock(descriptor: int, place: Place) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise OutputError(f"Another build for '{place}' is under way on this machine: wait for its end.") from error


def _publish(folder: Path, base: Base, progress: Progress | None) -> Manifest:
    try:
        published = publish(folder, read_manifest(folder, require_index(folder)), base, progress=progress)
    except OutputError as error:
        raise OutputError(f"{error} What was built is in '{folder}'.") from error
    shutil.rmtree(folder)
    return published


def _copied(folder: Path) -> Path:
    """Return the file that tells a copy of an index from one that was built: it holds the manifest of the copy."""
    return folder.with_suffix(".copied.json")


def _copy_into(folder: Path, base: Base, cache: Cache) -> None:
    """Make a local copy of an index: hard links into the cache where the file system has them."""
    if base.previous is None:
        raise OutputError(f"The index at '{base.place}' was removed meanwhile.")
    data = base.previous.to_bytes()
    if _is_old_copy(folder, data):
        shutil.rmtree(folder)
    for entry in base.previous.folders:
        kept, lease = cache.fetch(base.place, entry, [file.path for file in entry.files])
        for file in entry.files:
            target = folder / entry.folder / file.path
            with writing(target):
                target.parent.mkdir(parents=True, exist_ok=True)
                target.unlink(missing_ok=True)
                _link_or_copy(kept / file.path, target)
        lease.release()
    with writing(folder):
        _copied(folder).write_bytes(data)
        (folder / MANIFEST).write_bytes(data)


def _is_old_copy(folder: Path, data: bytes) -> bool:
    """Tell whether the folder holds a copy of what the place held before; one of what it holds now may be taken up.

    Raises
    ------
    OutputError
        It holds an index that was built, and which nobody has put in place.
    """
    if not (folder / MANIFEST).exists():
        return False
    there = (folder / MANIFEST).read_bytes()
    if not _copied(folder).exists() or _copied(folder).read_bytes() != there:
        raise OutputError(
            f"'{folder}' holds an index that was built for this place and not put there: put it there "
            "(pexeso.elsewhere.publish_index), or remove that folder."
        )
    return there != data


def _link_or_copy(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
