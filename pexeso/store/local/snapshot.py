"""Snapshots: what a reader has opened stays until the reader closes it.

This holds however often the index is written in the meantime.

A reader keeps the manifest that it has read open, under a shared lock. A commit keeps the manifest
that it replaces under another name, ``retired/manifest.N.json``: the same file, with the same
locks. A writer removes what only retired manifests list once nobody holds them; what is held now
goes with a later commit.

Where the file system cannot lock, nobody can tell who reads: there, what a commit made needless
stays for a day.
"""

import contextlib
import os
import shutil
import time
import weakref
from pathlib import Path

from pexeso.errors import IndexCorruptError, StoredIndexError
from pexeso.store.files import sync_folder
from pexeso.store.io.locks import EXCLUSIVE, SHARED, lock
from pexeso.store.local.removal import remove_files
from pexeso.store.manifest import MAX_MANIFEST_BYTES, Manifest, manifest_from, require_readable_size
from pexeso.store.paths import MANIFEST, RETIRED, plain_file_size

RETENTION_SECONDS = 24 * 3600
"""How long superseded files are kept where locks cannot tell whether they are in use."""

_COPY = ".copy.json"
_ATTEMPTS = 50
_PAUSE_SECONDS = 0.02


class Hold:
    """An open, locked manifest that protects the files it lists from removal.

    The lock lasts as long as this object lives.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._close = weakref.finalize(self, os.close, descriptor)

    def is_in_place(self, root: Path) -> bool:
        """Return whether the manifest of the index at `root` is still the one that is held."""
        return self._close.alive and _is_in_place(self._descriptor, root / MANIFEST)

    def release(self) -> None:
        """Let go; once is enough, and the end of the object does it too."""
        self._close()


def hold_manifest(root: Path) -> tuple[Manifest, Hold]:
    """Read the manifest in place at `root`, and hold it."""
    path = root / MANIFEST
    for _ in range(_ATTEMPTS):
        if plain_file_size(root, MANIFEST) is None:
            raise FileNotFoundError(path)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise IndexCorruptError(
                f"'{path}' cannot be read: {error.strerror or error}."
            ) from error
        hold = Hold(descriptor)
        if lock(descriptor, SHARED) is not False and _is_in_place(descriptor, path):
            return manifest_from(root, _read(descriptor, path)), hold
        # Replaced between two looks, and about to be removed: the one that took its place is what
        # was asked for.
        hold.release()
        time.sleep(_PAUSE_SECONDS)
    raise IndexCorruptError(
        f"'{path}' is replaced again and again, and could not be read: try again."
    )


def retire_manifest(root: Path, generation: int) -> None:
    """Keep the current manifest under its retired name before another replaces it.

    `generation` is the generation of the current manifest.

    Also where its successor lists all of its files: a later one may not, while it is held still.
    """
    folder = root / RETIRED
    folder.mkdir(exist_ok=True)
    linked, copied = (
        folder / f"manifest.{generation}.json",
        folder / f"manifest.{generation}{_COPY}",
    )
    for path in (linked, copied):
        path.unlink(missing_ok=True)  # of a commit that died
    try:
        os.link(root / MANIFEST, linked)
    except (
        OSError
    ):  # a file system without hard links: readers hold the original, which a copy does not show
        shutil.copyfile(root / MANIFEST, copied)
    sync_folder(folder)
    sync_folder(root)


def sweep_retired(root: Path, current: Manifest) -> None:
    """Remove the files that only retired manifests list and that no reader holds.

    The caller must be the only writer.

    A manifest in use keeps its files, and those alone. What cannot be removed stays for a later
    sweep.
    """
    folder = root / RETIRED
    if folder.is_symlink() or not folder.is_dir():
        return
    held, free = [], []
    for name, manifest in _retired(root):
        if manifest is None or manifest.generation == current.generation:
            (folder / name).unlink(missing_ok=True)
        else:
            (held if _in_use(folder / name) else free).append((name, manifest))
    needed = {
        file.path
        for manifest in (current, *(manifest for _, manifest in held))
        for file in manifest.files()
    }
    for name, manifest in free:
        remove_files(root, {file.path for file in manifest.files()} - needed)
        (folder / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # others are still in it
        folder.rmdir()


def retired_files(root: Path) -> set[str]:
    """Return the paths of all files that retired manifests list, and of these manifests."""
    listed = set()
    for name, manifest in _retired(root):
        listed.add(f"{RETIRED}/{name}")
        listed.update(() if manifest is None else (file.path for file in manifest.files()))
    return listed


def _retired(root: Path) -> list[tuple[str, Manifest | None]]:
    """Return the retired manifests by file name.

    A file that is not a manifest gives None, for example one whose writer died during the copy.
    """
    folder = root / RETIRED
    if folder.is_symlink() or not folder.is_dir():
        return []
    return [(name, _retired_manifest(root, name)) for name in sorted(os.listdir(folder))]


def _retired_manifest(root: Path, name: str) -> Manifest | None:
    try:
        size = plain_file_size(root, f"{RETIRED}/{name}")
        if size is None or size > MAX_MANIFEST_BYTES:
            return None
        return Manifest.from_bytes((root / RETIRED / name).read_bytes())
    except (StoredIndexError, OSError):
        return None


def _in_use(path: Path) -> bool:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        locked = lock(descriptor, EXCLUSIVE)
        if locked is None or path.name.endswith(_COPY):
            # ctime: when it got its second name or was copied, which was when it was retired.
            return time.time() - os.fstat(descriptor).st_ctime < RETENTION_SECONDS
        return not locked
    finally:
        os.close(descriptor)


def _is_in_place(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except (FileNotFoundError, NotADirectoryError):
        return False


def _read(descriptor: int, path: Path) -> bytes:
    size = os.fstat(descriptor).st_size
    require_readable_size(path, size)
    with open(descriptor, "rb", closefd=False) as file:
        # Python takes at once as much memory as is asked for.
        return file.read(size + 1)
