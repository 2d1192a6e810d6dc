"""Put an index that was built in a local folder in place on another storage.

A commit is one conditional write of the manifest: of two concurrent builds one wins, and the other
learns that it has lost. Only S3 and what is compatible with it has such writes, and not every such
server does them: that is tried out before anything is uploaded.

What a commit makes obsolete is kept for a time, since nobody knows who still reads it. Before a
commit, the manifest that it replaces is kept as ``retired/manifest.N.json``; before an upload, its
files are noted in ``.building/upload-X.json``. Their age is taken from the storage's own clock. A
later commit removes what only notes older than `RETENTION_SECONDS` list.
"""

import contextlib
import json
import re
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from pexeso.errors import InputError, OutputError, PlaceError, StoredIndexError
from pexeso.runtime.formatting import listed_names
from pexeso.store.files import own_file
from pexeso.store.io.location import Location, PlaceEntry
from pexeso.store.local.reader import RETENTION_SECONDS
from pexeso.store.manifest import (
    BUILDING,
    CATALOG,
    EMBEDDER,
    MANIFEST,
    MAX_MANIFEST_BYTES,
    PARTITIONS,
    RETIRED,
    FileEntry,
    FolderEntry,
    Manifest,
    plain_file_size,
    require_folder,
)
from pexeso.store.remote.store import current_remote_manifest, require_sizes

_REQUESTS_AT_ONCE = 16


def note_upload(location: Location, paths: Iterable[str], token: str | None = None) -> Location:
    """Write a note of the files that are about to be uploaded; removed once they are in place."""
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
    """
    manifest = location.joined(MANIFEST).look()
    if manifest is None or manifest.modified is None:
        return
    oldest = manifest.modified - int(retention_seconds * 1e9)
    needed, expired = current.paths(), {}
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
    """Return the files of a kept manifest or of the note of an upload; None where it is neither."""
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
        return Manifest.from_bytes(data).paths()
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


def require_safe_commits(location: Location) -> None:
    """Require that builds can commit safely at a place.

    The check writes an object below ``.building/`` and removes it.
    """
    if not location.has_conditions:
        is_s3 = location.protocol in ("s3", "s3a")
        why = (
            "was given as a filesystem that does not offer them, so give its URL"
            if is_s3
            else "is neither"
        )
        raise _unsafe(f"'{location}' {why}")
    probe = location.joined(f"{BUILDING}/probe-{secrets.token_hex(8)}")
    try:
        try:
            works = _does_conditions(probe)
        finally:
            probe.remove()
    except PlaceError as error:
        raise _unsafe(f"it could not be tried out at '{location}' ({error})") from error
    if not works:
        raise _unsafe(
            f"the server of '{location}' writes where the condition of a write does not hold"
        )


def commit_manifest(location: Location, data: bytes, expected: str | None) -> str:
    """Make a manifest the current one at a place unless another build has committed there.

    Returns the version of the new manifest. `expected` is the version of the one that is replaced,
    None where there was none; every file that the new one lists is there already.
    """
    file = location.joined(MANIFEST)
    try:
        version = file.put_if(data, expected)
        contents = file.read() if version is not None or file.look() is not None else b""
    except PlaceError as error:
        raise PlaceError(
            f"It is not known whether the index was put in place at '{location}', look at it "
            f"there: {error}"
        ) from error
    if contents == data:
        # Also where the condition did not hold: an answer was lost, and what was asked again had
        # been done.
        return version or _version(file)
    if version is not None and _follows(contents, data):
        return version
    raise OutputError(
        f"Another build has committed to '{location}' since this one began, so this one was not "
        "put in place: build again from what is there now."
    )


def _does_conditions(probe: Location) -> bool:
    """Try out all four cases: nothing there or not, the right version or not."""
    version = probe.put_if(b"first", None)
    if version is None or probe.put_if(b"second", None) is not None:
        return False
    if probe.put_if(b"third", f'"{"0" * 32}"') is not None or probe.read() != b"first":
        return False
    return probe.put_if(b"fourth", version) is not None and probe.read() == b"fourth"


def _version(file: Location) -> str:
    entry = file.look()
    return entry.version or "" if entry is not None else ""


def _follows(contents: bytes, data: bytes) -> bool:
    """Return whether a manifest is of a later commit, made on top of the one of `data`."""
    try:
        later = Manifest.from_bytes(contents[: MAX_MANIFEST_BYTES + 1])
    except StoredIndexError:
        return False
    return later.generation > Manifest.from_bytes(data).generation


def _unsafe(why: str) -> OutputError:
    return OutputError(
        "An index can be written to a local folder, and to S3 or what is compatible with it "
        "where conditional writes "
        f"work; {why}. Build the index in a local folder, and copy that folder there while "
        "nobody reads it."
    )


_FILES_AT_ONCE = 8
_FIRST_NUMBER = 10**16
# What builds that died may have left, next to ``.building``, where there is no index yet.
_LEFT = re.compile(
    rf"{re.escape(BUILDING)}|{RETIRED}|{PARTITIONS}|(?:{CATALOG}|{EMBEDDER})\.[0-9]{{17}}", re.ASCII
)


@dataclass(frozen=True)
class Base:
    """The state of a place when a build began, which its commit replaces unless another did.

    previous: the manifest there; None where there was no index; version: its version; None where
    there was none.
    """

    location: Location
    previous: Manifest | None
    version: str | None


def begin(location: Location, overwrite: bool = False) -> Base:
    """Look at a place before building for it, and require that the result can be put there."""
    try:
        require_safe_commits(location)
        previous, version = current_remote_manifest(location)
        others = (
            []
            if previous is not None or location.look() is None
            else [entry.name for entry in location.entries()]
        )
    except PlaceError as error:
        raise OutputError(f"The index cannot be written there: {error}") from error
    except StoredIndexError as error:
        raise OutputError(
            f"'{location}' cannot be overwritten, as its manifest does not tell which files are "
            f"pexeso's own: choose another place, or remove what is there yourself. {error}"
        ) from error
    if foreign := _foreign(others):
        raise OutputError(
            f"'{location}' holds {listed_names(foreign, 3)} and is no index of pexeso's: choose "
            "another place for the index, or an empty one."
        )
    if previous is not None and not overwrite:
        raise OutputError(
            f"'{location}' holds an index already: choose another place, or replace it with "
            "overwrite=True (--overwrite)."
        )
    return Base(location, previous, version)


def publish(
    local: Path,
    manifest: Manifest,
    base: Base,
    *,
    there: Collection[str] = (),
    progress: Callable[[int, int], None] | None = None,
    retention_seconds: float = RETENTION_SECONDS,
) -> Manifest:
    """Upload the new folders of an index and commit its manifest by one conditional write.

    Folders that `base` lists as they are stay where they are. The others are uploaded under names
    that no other build takes, so that nothing is ever overwritten; those of `there` have been. The
    manifest that is in place then has these names, and one generation after that of `base`.

    Where another build has committed since `begin`, or a file cannot be uploaded, the index there
    is as it was (OutputError), and what was uploaded here is gone, or goes with a later commit.
    PlaceError: the storage broke off during the commit, and nobody knows whether it was written.
    """
    previous = () if base.previous is None else base.previous.folders
    kept = {(entry.folder, entry.files) for entry in previous}
    names = {
        entry.folder: unique_folder_name(entry.folder)
        for entry in manifest.folders
        if (entry.folder, entry.files) not in kept and entry.folder not in there
    }
    renamed = _renamed(
        manifest, names, 1 if base.previous is None else base.previous.generation + 1
    )
    uploads = [
        (local / entry.folder, replace(entry, folder=names[entry.folder]))
        for entry in manifest.folders
        if entry.folder in names
    ]
    with _uploading(base.location, [entry for _, entry in uploads]) as upload:
        _upload_all(base.location, uploads, progress)
        require_sizes(base.location, renamed)
        if base.previous is not None:
            # The manifest that is about to be replaced is kept; its age counts from now.
            retired = base.location.joined(f"{RETIRED}/manifest.{base.previous.generation}.json")
            retired.write(base.previous.to_bytes())
        upload.is_undecided = True
        try:
            commit_manifest(base.location, renamed.to_bytes(), base.version)
        except OutputError:
            upload.is_undecided = False
            raise
    with contextlib.suppress(PlaceError):  # harmless, and removed with a later commit
        sweep(base.location, renamed, retention_seconds)
    return renamed


def upload_folder(
    local: Path, location: Location, entry: FolderEntry, count: Callable[[int], None] | None = None
) -> None:
    """Upload the files of one folder of an index; none of them may be there."""

    def upload(file: FileEntry) -> int:
        if plain_file_size(local, file.path) != file.n_bytes:
            raise OutputError(
                f"'{local / file.path}' is not there with the {file.n_bytes} bytes that were "
                "written."
            )
        location.joined(f"{entry.folder}/{file.path}").write_file(local / file.path)
        return file.n_bytes

    with ThreadPoolExecutor(_FILES_AT_ONCE) as pool:
        for n_bytes in pool.map(upload, entry.files):
            if count is not None:
                count(n_bytes)


def unique_folder_name(folder: str) -> str:
    """Return a name for a folder of the same kind that no other build takes."""
    kind = re.split(r"[./]", require_folder(folder))[0]
    number = _FIRST_NUMBER + secrets.randbelow(9 * _FIRST_NUMBER)
    return f"{kind}/{number}" if kind == PARTITIONS else f"{kind}.{number}"


def _foreign(names: list[str]) -> list[str]:
    """Return what is none of pexeso's among the names at a place without an index."""
    is_begun = BUILDING in names
    return sorted({name for name in names if name and not (is_begun and _LEFT.fullmatch(name))})


def _renamed(manifest: Manifest, names: dict[str, str], generation: int) -> Manifest:
    def own(entry: FolderEntry) -> FolderEntry:
        return replace(entry, folder=names.get(entry.folder, entry.folder))

    return replace(
        manifest,
        generation=generation,
        catalogs=tuple(map(own, manifest.catalogs)),
        embedder=own(manifest.embedder),
        parts={name: tuple(map(own, entries)) for name, entries in manifest.parts.items()},
    )


def _upload_all(
    location: Location,
    uploads: list[tuple[Path, FolderEntry]],
    progress: Callable[[int, int], None] | None,
) -> None:
    bytes_uploaded, total = 0, sum(entry.n_bytes for _, entry in uploads)

    def count(n_bytes: int) -> None:
        nonlocal bytes_uploaded
        bytes_uploaded += n_bytes
        if progress is not None:
            progress(bytes_uploaded, total)

    for local, entry in uploads:
        upload_folder(local, location, entry, count)


@dataclass
class _Upload:
    """Files being uploaded; while a commit is undecided they may be in use."""

    is_undecided: bool = False


@contextlib.contextmanager
def _uploading(location: Location, entries: list[FolderEntry]) -> Iterator[_Upload]:
    """Note the files that the block uploads and commits; remove unused ones if it fails."""
    paths = [path for entry in entries for path in entry.paths()]
    upload = _Upload()
    try:
        note = note_upload(location, paths)
    except PlaceError as error:
        raise OutputError(f"The index cannot be written there: {error}") from error
    try:
        yield upload
    except BaseException as error:
        if upload.is_undecided:
            raise  # with the note there, a later commit looks whether they are in use
        with contextlib.suppress(PlaceError):
            remove_all(location, paths)
            note.remove()
        if isinstance(error, PlaceError):
            raise OutputError(f"The index cannot be written there: {error}") from error
        raise
    with contextlib.suppress(PlaceError):
        note.remove()
