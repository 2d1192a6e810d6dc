"""Delayed removal of files on other storage that a commit has made obsolete.

The files are kept for a time, since it cannot be known who still reads them.

Before a commit, the manifest that it replaces is kept as ``retired/manifest.N.json``; before an
upload, its files are noted in ``.building/upload-X.json``. Their age is taken from the storage's
own clock. A later commit removes what only notes older than `RETENTION_SECONDS` list.
"""

import json
import secrets
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from pexeso.errors import InputError, PlaceError, StoredIndexError
from pexeso.store.io.location import Location, PlaceEntry
from pexeso.store.local.removal import own_file
from pexeso.store.local.snapshot import RETENTION_SECONDS
from pexeso.store.manifest import MAX_MANIFEST_BYTES, Manifest
from pexeso.store.paths import BUILDING, MANIFEST, RETIRED

_REQUESTS_AT_ONCE = 16


def retire(location: Location, previous: Manifest) -> None:
    """Keep the manifest that is about to be replaced; its age counts from now."""
    location.joined(f"{RETIRED}/manifest.{previous.generation}.json").write(previous.to_bytes())


def note_upload(location: Location, paths: Iterable[str], token: str | None = None) -> Location:
    """Write a note of the files that are about to be uploaded, and return the note.

    The note is to be removed when the files are in place or gone.
    """
    note = location.joined(f"{BUILDING}/upload-{token or secrets.token_hex(16)}.json")
    note.write(json.dumps({"files": sorted(paths)}).encode("ascii"))
    return note


def remove_all(location: Location, paths: Iterable[str]) -> None:
    """Remove files below a place; those that are not there do not matter."""
    with ThreadPoolExecutor(_REQUESTS_AT_ONCE) as pool:
        for _ in pool.map(lambda path: location.joined(path).remove(), paths):
            pass


def sweep(
    location: Location, current: Manifest, retention_seconds: float = RETENTION_SECONDS
) -> None:
    """Remove files that have been obsolete for longer than the retention time.

    The caller has just committed `current`.

    Parameters
    ----------
    retention_seconds
        How long a reader that has opened the index may go on with what it has opened.
    """
    manifest = location.joined(MANIFEST).look()
    if manifest is None or manifest.modified is None:
        return
    oldest = manifest.modified - int(retention_seconds * 1e9)
    needed, expired = {file.path for file in current.files()}, {}
    for folder in (RETIRED, BUILDING):
        for name, entry in location.joined(folder).find().items():
            note = location.joined(f"{folder}/{name}")
            files = noted_files(note, entry)
            if files is None:
                continue
            if entry.modified is None or entry.modified > oldest:
                needed |= files if folder == RETIRED else set()
            else:
                expired[note] = files
    for note, files in expired.items():
        remove_all(location, files - needed)
        note.remove()


def noted_files(note: Location, entry: PlaceEntry) -> set[str] | None:
    """Return the files that a note lists: a manifest kept for readers, or one of an upload.

    Returns
    -------
    set of str or None
        Paths below the index; None where it is no note.
    """
    is_manifest = note.path.endswith(f"{RETIRED}/{note.name}") and note.name.startswith("manifest.")
    is_upload = note.path.endswith(f"{BUILDING}/{note.name}") and note.name.startswith("upload-")
    if (
        not (is_manifest or is_upload)
        or not note.name.endswith(".json")
        or entry.n_bytes > MAX_MANIFEST_BYTES
    ):
        return None
    try:
        data = note.read()
        if is_upload:
            files = json.loads(data)["files"]
            return {own_file(name) for name in files} if isinstance(files, list) else None
        return {file.path for file in Manifest.from_bytes(data).files()}
    except (
        PlaceError,
        StoredIndexError,
        InputError,
        ValueError,
        KeyError,
        TypeError,
        RecursionError,
    ):
        return None
