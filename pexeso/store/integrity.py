"""Read every byte of an index, here or on other storage, and say what is not as it was written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pexeso.errors import IndexCorruptError, IndexVersionError, PlaceError
from pexeso.store.arrays import open_array, open_texts, require_sound
from pexeso.store.files import checksum_file, read_document
from pexeso.store.io.location import Location, PlaceEntry
from pexeso.store.local.reader import require_index, retired_files
from pexeso.store.manifest import (
    BUILDING,
    JUDGEMENTS,
    MANIFEST,
    PARTITIONS,
    RETIRED,
    FileEntry,
    Manifest,
    plain_file_size,
    read_manifest,
)

NOTES = ("foreign", "unfinished")
_RESTORE = "restore it from a copy, or build the index again."

# Called with the bytes of each piece read.
Count = Callable[[int], None]


@dataclass(frozen=True)
class Problem:
    """Something about an index that is not as it should be.

    Attributes
    ----------
    path
        The file or folder, below the index folder.
    kind
        ``manifest``, ``version``, ``missing``, ``size``, ``checksum``, ``structure`` (the bytes are
        those written, but are no array, list of texts or JSON), ``content`` (they are, but cannot
        be searched), ``not-plain`` (a link, folder or device), ``unreadable``; or a mere note:
        ``foreign`` (nothing of the index), ``unfinished`` (of a build under way or broken off).
    sentence
        What it is and what to do.
    """

    path: str
    kind: str
    sentence: str

    @property
    def is_failure(self) -> bool:
        """True where the index cannot be trusted, False for a mere note."""
        return self.kind not in NOTES


def check_store(
    path: str | os.PathLike[str] | Location, progress: Callable[[int, int], None] | None = None
) -> list[Problem]:
    """Compare every byte of an index with its manifest; files are read once, piece by piece.

    progress: called with the bytes read so far and the bytes listed altogether.
    """
    root = path if isinstance(path, Location) else Path(path)
    try:
        manifest = _read_manifest(root)
    except IndexVersionError as error:
        return [Problem(MANIFEST, "version", str(error))]
    except IndexCorruptError as error:
        return [Problem(MANIFEST, "manifest", str(error))]
    n_read = 0

    def count(n_bytes: int) -> None:
        nonlocal n_read
        n_read += n_bytes
        if progress is not None:
            progress(n_read, manifest.n_bytes)

    if isinstance(root, Location):
        entries = root.find()
        sizes = {name: entry.n_bytes for name, entry in entries.items()}
        problems = [_check_remote_file(root, sizes, *file, count) for file in manifest.files()]
        known, names = _known_remote_files(root, manifest, entries), iter(sorted(entries))
    else:
        problems = [_check_file(root, *file, count) for file in manifest.files()]
        known = {MANIFEST, JUDGEMENTS, *manifest.paths(), *retired_files(root)}
        names = _top_level_names(root, known)
    notes = [_note(root, name) for name in names if name not in known]
    return [*(problem for problem in problems if problem is not None), *notes]


def _read_manifest(root: Path | Location) -> Manifest:
    if isinstance(root, Path):
        return read_manifest(root, require_index(root))
    from pexeso.store.remote.store import read_remote_manifest

    return read_remote_manifest(root)[0]


def _check_file(root: Path, name: str, file: FileEntry, count: Count) -> Problem | None:
    path = root / name
    try:
        problem = _check_size(path, name, file, plain_file_size(root, name))
        if problem is None and checksum_file(path, count) != (file.n_bytes, file.checksum):
            problem = _wrong_checksum(path, name)
    except IndexCorruptError as error:
        return Problem(name, "not-plain", str(error))
    except OSError as error:
        sentence = f"'{path}' cannot be read: {error.strerror or error}."
        return Problem(name, "unreadable", sentence)
    return problem or _check_structure(path, name, file)


def _check_remote_file(
    root: Location, sizes: dict[str, int], name: str, file: FileEntry, count: Count
) -> Problem | None:
    from pexeso.store.remote.store import fetch_checksum

    path = f"{root}/{name}"
    if problem := _check_size(path, name, file, sizes.get(name)):
        return problem
    try:
        checksum = fetch_checksum(root.joined(name), file, lambda piece: count(len(piece)))
    except IndexCorruptError as error:
        return Problem(name, "missing", str(error))
    except PlaceError as error:
        return Problem(name, "unreadable", str(error))
    return None if checksum == file.checksum else _wrong_checksum(path, name)


def _check_size(path: object, name: str, file: FileEntry, size: int | None) -> Problem | None:
    if size is None:
        return Problem(name, "missing", f"'{path}' is missing: {_RESTORE}")
    if size == file.n_bytes:
        return None
    sentence = f"'{path}' has {size} bytes, but {file.n_bytes} were written: {_RESTORE}"
    return Problem(name, "size", sentence)


def _wrong_checksum(path: object, name: str) -> Problem:
    sentence = f"'{path}' is not as it was written, by its checksum: {_RESTORE}"
    return Problem(name, "checksum", sentence)


def _check_structure(path: Path, name: str, file: FileEntry) -> Problem | None:
    """Open a file of a partition as its reader does, and return a problem if that fails."""
    if not name.startswith(f"{PARTITIONS}/"):
        return None
    try:
        if path.suffix == ".npy":
            open_array(path, file.n_bytes)
        elif path.suffix == ".arrow":
            require_sound(open_texts(path))
        elif path.suffix == ".json":
            read_document(path)
    except IndexCorruptError as error:
        return Problem(name, "structure", str(error))
    return None


def _top_level_names(root: Path, known: set[str]) -> Iterator[str]:
    """Yield the files and folders of an index; of a folder without a known file its name alone."""
    known |= {str(folder) for path in known for folder in PurePosixPath(path).parents}
    for parent, folders, files in os.walk(root):
        names = sorted((*folders, *files))
        relative = {name: Path(parent, name).relative_to(root).as_posix() for name in names}
        folders[:] = [name for name in folders if relative[name] in known]
        yield from relative.values()


def _known_remote_files(
    root: Location, manifest: Manifest, entries: dict[str, PlaceEntry]
) -> set[str]:
    """Return what the manifest, those kept for readers and notes of uploads list."""
    from pexeso.store.remote.publish import noted_files

    known = {MANIFEST, *manifest.paths()}
    for name, entry in entries.items():
        if name.startswith((f"{RETIRED}/", f"{BUILDING}/")):
            files = noted_files(root.joined(name), entry)
            known.update(files or ())
            if files is not None and name.startswith(f"{RETIRED}/"):
                known.add(name)
    return known


def _note(root: Path | Location, name: str) -> Problem:
    path = f"{root}/{name}"
    if name.partition("/")[0] == BUILDING:
        sentence = f"'{path}' is of a build under way, or of one broken off."
        return Problem(name, "unfinished", sentence)
    sentence = f"'{path}' is nothing of the index; pexeso neither reads nor removes it."
    return Problem(name, "foreign", sentence)
