"""Check of every byte of an index on other storage.

Everything that is not as it was written is reported. Nothing is kept on this machine.
"""

from collections.abc import Callable, Iterator

from pexeso.errors import IndexCorruptError, IndexVersionError, PlaceError
from pexeso.store.integrity import Problem
from pexeso.store.io.location import Location, PlaceEntry
from pexeso.store.manifest import FileEntry, Manifest
from pexeso.store.paths import BUILDING, MANIFEST, RETIRED
from pexeso.store.remote.fetch import fetch_checksum
from pexeso.store.remote.garbage_collection import noted_files
from pexeso.store.remote.store import read_remote_manifest


def check_remote_store(
    location: Location, progress: Callable[[int, int], None] | None = None
) -> list[Problem]:
    """Compare every byte of an index elsewhere with its manifest.

    `pexeso.store.integrity.check_store` does the same here.
    """
    try:
        manifest, _ = read_remote_manifest(location)
    except IndexVersionError as error:
        return [Problem(MANIFEST, "version", str(error))]
    except IndexCorruptError as error:
        return [Problem(MANIFEST, "manifest", str(error))]
    entries = location.find()
    bytes_checked, total = 0, manifest.n_bytes

    def count(piece: bytes) -> None:
        nonlocal bytes_checked
        bytes_checked += len(piece)
        if progress is not None:
            progress(bytes_checked, total)

    problems = [
        _check_file(location, file, entries.get(file.path), count) for file in manifest.files()
    ]
    return [
        *(problem for problem in problems if problem is not None),
        *_notes(location, manifest, entries),
    ]


def _check_file(
    location: Location, file: FileEntry, entry: PlaceEntry | None, count: Callable[[bytes], None]
) -> Problem | None:
    where, restore = f"{location}/{file.path}", "restore it from a copy, or build the index again."
    if entry is None:
        return Problem(file.path, "missing", f"'{where}' is missing: {restore}")
    if entry.n_bytes != file.n_bytes:
        return Problem(
            file.path,
            "size",
            f"'{where}' has {entry.n_bytes} bytes, but {file.n_bytes} were written: {restore}",
        )
    try:
        checksum = fetch_checksum(location.joined(file.path), file, count)
    except IndexCorruptError as error:
        return Problem(file.path, "missing", str(error))
    except PlaceError as error:
        return Problem(file.path, "unreadable", str(error))
    if checksum != file.checksum:
        return Problem(
            file.path, "checksum", f"'{where}' is not as it was written, by its checksum: {restore}"
        )
    return None


def _notes(
    location: Location, manifest: Manifest, entries: dict[str, PlaceEntry]
) -> Iterator[Problem]:
    """Yield the entries at the place that do not belong to the index.

    The manifest and the manifests kept for readers list what belongs to the index.
    """
    known = {MANIFEST, *(file.path for file in manifest.files())}
    notes = {
        name: entry
        for name, entry in entries.items()
        if name.startswith((f"{RETIRED}/", f"{BUILDING}/"))
    }
    for name, entry in notes.items():
        files = noted_files(location.joined(name), entry)
        known.update(() if files is None else files)
        if files is not None and name.startswith(f"{RETIRED}/"):
            known.add(name)
    for name in sorted(set(entries) - known):
        if name.startswith(f"{BUILDING}/"):
            yield Problem(
                name,
                "unfinished",
                f"'{location}/{name}' is of a build under way, or of one broken off.",
            )
        else:
            yield Problem(
                name,
                "foreign",
                f"'{location}/{name}' is nothing of the index; pexeso neither reads nor removes "
                "it.",
            )
