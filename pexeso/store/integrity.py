"""Read every byte of an index and say what is not as it was written."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pexeso.errors import IndexCorruptError, IndexVersionError
from pexeso.store.arrays import open_array
from pexeso.store.files import checksum_file, read_document
from pexeso.store.local.reader import require_index
from pexeso.store.local.snapshot import retired_files
from pexeso.store.manifest import FileEntry, Manifest, read_manifest
from pexeso.store.paths import BUILDING, MANIFEST, PARTITIONS, plain_file_size
from pexeso.store.texts import open_texts, require_sound

NOTES = ("foreign", "unfinished")


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
        be searched; told by `pexeso.build.diagnostics.check`), ``not-plain`` (a link, folder or
        device),
        ``unreadable``; or a mere note: ``foreign`` (nothing of the index), ``unfinished`` (of a
        build under way or broken off).
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
    path: str | os.PathLike[str], progress: Callable[[int, int], None] | None = None
) -> list[Problem]:
    """Compare every byte of an index with its manifest.

    Files are read once, 1 MiB at a time.

    Parameters
    ----------
    path
        The index folder.
    progress
        Called with the bytes read so far and the bytes listed altogether.

    Returns
    -------
    list[Problem]
        Failures in the order of the manifest, then notes. Where none is a failure, every byte is as
        it was written.

    Raises
    ------
    IndexNotFoundError
        There is no index at the path.
    """
    root = Path(path)
    try:
        manifest = read_manifest(root, require_index(root))
    except IndexVersionError as error:
        return [Problem(MANIFEST, "version", str(error))]
    except IndexCorruptError as error:
        return [Problem(MANIFEST, "manifest", str(error))]
    counted = _Counter(progress, manifest.n_bytes)
    problems = [
        problem
        for file in manifest.files()
        if (problem := _check_file(root, file, counted)) is not None
    ]
    return [*problems, *_notes(root, manifest)]


class _Counter:
    def __init__(self, progress: Callable[[int, int], None] | None, total: int) -> None:
        self._progress = progress
        self._total = total
        self._done = 0

    def __call__(self, n_bytes: int) -> None:
        self._done += n_bytes
        if self._progress is not None:
            self._progress(self._done, self._total)


def _check_file(root: Path, file: FileEntry, counted: _Counter) -> Problem | None:
    path = root / file.path
    restore = "restore it from a copy, or build the index again."
    try:
        size = plain_file_size(root, file.path)
        if size is None:
            return Problem(file.path, "missing", f"'{path}' is missing: {restore}")
        if size != file.n_bytes:
            return Problem(
                file.path,
                "size",
                f"'{path}' has {size} bytes, but {file.n_bytes} were written: {restore}",
            )
        if checksum_file(path, counted) != (file.n_bytes, file.checksum):
            return Problem(
                file.path,
                "checksum",
                f"'{path}' is not as it was written, by its checksum: {restore}",
            )
    except IndexCorruptError as error:
        return Problem(file.path, "not-plain", str(error))
    except OSError as error:
        return Problem(
            file.path, "unreadable", f"'{path}' cannot be read: {error.strerror or error}."
        )
    return _check_structure(path, file)


def _check_structure(path: Path, file: FileEntry) -> Problem | None:
    """Open a file of a partition as its reader does, and return a problem if that fails.

    The formats of all other files are not checked here.
    """
    if not file.path.startswith(f"{PARTITIONS}/"):
        return None
    try:
        if path.suffix == ".npy":
            open_array(path, file.n_bytes)
        elif path.suffix == ".arrow":
            require_sound(open_texts(path))
        elif path.suffix == ".json":
            read_document(path)
    except IndexCorruptError as error:
        return Problem(file.path, "structure", str(error))
    return None


def _notes(root: Path, manifest: Manifest) -> Iterator[Problem]:
    """Yield what is in the folder but not in the manifest.

    A folder without a file of the index is one note.
    """
    known = {MANIFEST}
    for path in (*(file.path for file in manifest.files()), *retired_files(root)):
        parts = path.split("/")
        known.update("/".join(parts[:length]) for length in range(1, len(parts) + 1))
    for parent, folders, files in os.walk(root):
        names = sorted((*folders, *files))
        relative = {name: Path(parent, name).relative_to(root).as_posix() for name in names}
        folders[:] = [name for name in folders if relative[name] in known]
        yield from (_note(root, relative[name]) for name in names if relative[name] not in known)


def _note(root: Path, relative: str) -> Problem:
    if relative == BUILDING:
        return Problem(
            relative,
            "unfinished",
            f"'{root / relative}' is of a build under way, or of one broken off.",
        )
    return Problem(
        relative,
        "foreign",
        f"'{root / relative}' is nothing of the index; pexeso neither reads nor removes it.",
    )
