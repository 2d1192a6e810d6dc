"""The manifest: the one file that says what an index is made of, and that makes it valid.

It is canonical JSON: for given contents there is exactly one sequence of bytes, which carries a
checksum over itself. A manifest of any other bytes is refused, so every changed byte is found.

A manifest may come from anywhere, so names in it are checked before one is joined to a path.
"""

import hashlib
import itertools
import json
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from pexeso.errors import IndexCorruptError, IndexVersionError, InputError, failing_as
from pexeso.runtime.formatting import format_bytes

MANIFEST = "manifest.json"
BUILDING = ".building"
CATALOG = "catalog"
EMBEDDER = "embedder"
PARTITIONS = "partitions"
RETIRED = "retired"
# What people said about pairs: no part of a generation, and theirs (`pexeso.lake.judgements`).
JUDGEMENTS = "judgements.csv"

# The document of a partition, which is written last: its facts, and how its map was chosen.
META, CHOICE, METRIC = "meta.json", "choice", "metric"

SEMANTIC = "semantic"
FORMAT_VERSION = 4
MAX_MANIFEST_BYTES = 1 << 30

_FOLDER = re.compile(
    r"(?:catalog|embedder)(?:\.[1-9][0-9]{0,17})?|partitions/[0-9]{5,18}", re.ASCII
)
# Letters of a path: every step of it is looked at, and file systems allow four times as many
# bytes.
_MAX_PATH = 1024
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f\\]")

_Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
_Text = Annotated[str, Meta(min_length=1)]
_PartName = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{0,63}\Z")]
_Checksum = Annotated[str, Meta(pattern=r"^[0-9a-f]{32}\Z")]


def is_unicode(text: str) -> bool:
    """Return whether a text comes back from JSON: half of a surrogate pair does not."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def require_relative(path: str) -> str:
    """Return `path` if it is a relative POSIX path that stays below the folder it is joined to."""
    plain = (
        isinstance(path, str)
        and len(path) <= _MAX_PATH
        and is_unicode(path)
        and not _FORBIDDEN.search(path)
    )
    if not plain or any(part in ("", ".", "..") for part in path.split("/")):
        shown = repr(path) if len(repr(path)) <= _MAX_PATH else f"{repr(path)[:40]}..."
        raise InputError(
            f"{shown} is not a relative path inside the index: every part must be a plain name."
        )
    return path


def require_folder(folder: str) -> str:
    """Return `folder` if it is a name that the store gives to a folder of its own."""
    if not isinstance(folder, str) or not _FOLDER.fullmatch(folder):
        raise InputError(
            f"{folder!r} is not a folder of an index: allowed are catalog, embedder (both also "
            "with a number, as catalog.2) and partitions/ with five digits or more."
        )
    return folder


def plain_file_size(root: Path, relative: str) -> int | None:
    """Return the size in bytes of a file below `root`, or None where there is no such file.

    Every step below `root` is looked at without following links, so that no listed name can lead
    out of the folder.
    """
    path = os.fspath(root)  # plain texts: this runs for every file each time an index is opened
    parts = relative.split("/")
    for position, part in enumerate(parts):
        path = f"{path}/{part}"
        try:
            status = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise IndexCorruptError(
                f"'{path}' cannot be looked at: {error.strerror or error}."
            ) from error
        if stat.S_ISLNK(status.st_mode):
            raise IndexCorruptError(
                f"'{path}' is a symbolic link; an index holds plain files and folders only."
            )
        if position == len(parts) - 1 and not stat.S_ISREG(status.st_mode):
            raise IndexCorruptError(
                f"'{path}' is not a plain file, but the manifest of the index lists it as one."
            )
    return status.st_size


@dataclass(frozen=True)
class FileEntry:
    """One file of an index.

    path: relative POSIX path below the folder that lists the file; n_bytes: size in bytes, 0 or
    more; checksum: BLAKE2b with 128 bits over the file's bytes, 32 lower-case hexadecimal digits.
    """

    path: str
    n_bytes: _Count
    checksum: _Checksum

    def __post_init__(self) -> None:
        require_relative(self.path)


@dataclass(frozen=True)
class FolderEntry:
    """One folder of an index: the catalog, the embedder or a partition.

    folder: its path below the index, such as ``catalog``, ``embedder.2`` or ``partitions/00000``;
    files: its files, sorted by path; facts: plain JSON data about the folder that the writer wants
    at hand without opening a file of it.
    """

    folder: str
    files: tuple[FileEntry, ...]
    facts: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_folder(self.folder)
        object.__setattr__(self, "files", tuple(sorted(self.files, key=lambda file: file.path)))
        _require_distinct_files(self)
        _require_plain(self.facts, f"facts of {self.folder!r}")

    @property
    def n_bytes(self) -> int:
        return sum(file.n_bytes for file in self.files)

    def file(self, path: str) -> FileEntry | None:
        return next((file for file in self.files if file.path == path), None)

    def paths(self) -> Iterator[str]:
        return (f"{self.folder}/{file.path}" for file in self.files)

    def to_json(self) -> str:
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_json(cls, text: str) -> "FolderEntry":
        return msgspec.json.decode(text, type=cls)


@dataclass(frozen=True)
class Manifest:
    """What an index is made of."""

    written_by: _Text  # Program and version
    created: _Text  # ISO 8601, in UTC
    generation: Annotated[int, Meta(ge=1, le=2**63 - 1)]  # One more with each commit
    # Plain JSON objects of the index's author; the store keeps them and reads nothing in them
    options: dict[str, Any]
    fingerprints: dict[str, Any]
    facts: dict[str, Any]
    # The folders of the catalog: that of the first build, then one for each update, in order
    catalogs: Annotated[tuple[FolderEntry, ...], Meta(min_length=1)]
    embedder: FolderEntry
    # Folders of each part, all below ``partitions/``, in search order. Their positions here, not
    # their folder names, number them
    parts: dict[_PartName, tuple[FolderEntry, ...]]
    # Ids of columns that are still in the files but must not be returned, as ranges (first, end),
    # `end` exclusive, ascending and apart
    deleted_columns: tuple[tuple[_Count, _Count], ...] = ()
    format_version: int = FORMAT_VERSION  # Of the layout of all files, this one included

    @property
    def snapshot(self) -> tuple[int, str]:
        """What identifies a snapshot in its place, also of an index built again."""
        return self.generation, self.created

    def __post_init__(self) -> None:
        object.__setattr__(self, "catalogs", tuple(self.catalogs))
        object.__setattr__(self, "parts", {name: tuple(part) for name, part in self.parts.items()})
        object.__setattr__(
            self, "deleted_columns", tuple(tuple(span) for span in self.deleted_columns)
        )
        for name in ("options", "fingerprints", "facts"):
            _require_plain(getattr(self, name), name)
        _require_own_folders(self)
        bounds = list(itertools.chain(*self.deleted_columns))
        if bounds != sorted(bounds) or any(end == first for first, end in self.deleted_columns):
            raise InputError(
                "deleted_columns must be ranges that are not empty, ascending and apart."
            )

    @property
    def partitions(self) -> tuple[FolderEntry, ...]:
        """The folders that a semantic search goes through."""
        return self.parts.get(SEMANTIC, ())

    @property
    def folders(self) -> tuple[FolderEntry, ...]:
        """Those of the catalog, the embedder and all parts."""
        return (*self.catalogs, self.embedder, *itertools.chain(*self.parts.values()))

    @property
    def n_bytes(self) -> int:
        return sum(folder.n_bytes for folder in self.folders)

    def files(self) -> Iterator[tuple[str, FileEntry]]:
        return (
            (f"{folder.folder}/{file.path}", file)
            for folder in self.folders
            for file in folder.files
        )

    def paths(self) -> set[str]:
        return {path for folder in self.folders for path in folder.paths()}

    def to_bytes(self) -> bytes:
        """Return the canonical form as ASCII bytes.

        Keys are sorted, there is no white space between tokens, and a newline is at the end. Its
        field ``checksum`` is BLAKE2b with 128 bits over the canonical form of all other fields.
        """
        document = msgspec.json.decode(msgspec.json.encode(self))
        return _canonical({**document, "checksum": _checksum(document)})

    @classmethod
    def from_bytes(cls, data: bytes) -> "Manifest":
        """Read what `to_bytes` wrote; else raise IndexCorruptError or IndexVersionError."""
        document = _verified_document(data)
        _require_version(document.get("format_version"))
        try:
            manifest = msgspec.convert(document, cls)
            # What a field has besides, or has in another order, would be lost.
            if msgspec.json.decode(msgspec.json.encode(manifest)) != document:
                raise InputError("it has other fields, or files that are not sorted by path.")
        except (InputError, msgspec.ValidationError, *_NOT_PLAIN) as error:
            raise IndexCorruptError(
                f"The manifest of the index holds what no index can hold: {error}"
            ) from error
        return manifest


def read_manifest(root: Path, n_bytes: int) -> Manifest:
    path = root / MANIFEST
    require_readable_size(path, n_bytes)
    with failing_as(IndexCorruptError, f"'{path}' cannot be read"):
        data = path.read_bytes()
    return manifest_from(root, data)


def require_readable_size(path: object, n_bytes: int) -> None:
    """Refuse to read a manifest of more than `MAX_MANIFEST_BYTES`."""
    if n_bytes > MAX_MANIFEST_BYTES:
        raise IndexCorruptError(
            f"'{path}' has {format_bytes(n_bytes)}; a manifest has at most "
            f"{format_bytes(MAX_MANIFEST_BYTES)}."
        )


def manifest_from(root: Path | str, data: bytes) -> Manifest:
    try:
        return Manifest.from_bytes(data)
    except IndexCorruptError as error:
        raise IndexCorruptError(f"'{root}/{MANIFEST}' cannot be trusted. {error}") from error
    except IndexVersionError as error:
        raise IndexVersionError(f"'{root}' cannot be read. {error}") from error


def _canonical(document: dict[str, Any]) -> bytes:
    # Without indentation: only then is the encoder compiled code, ten times faster for a manifest
    # of many files.
    text = json.dumps(
        document, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    )
    return text.encode("ascii") + b"\n"


def _checksum(document: dict[str, Any]) -> str:
    return hashlib.blake2b(_canonical(document), digest_size=16).hexdigest()


def _verified_document(data: bytes) -> dict[str, Any]:
    """Parse the bytes of any format version if their form is canonical and their checksum right."""
    damaged = (
        "It was changed or cut short after it was written: restore it from a copy, or "
        "build the index again."
    )
    try:
        document = json.loads(data)
        whole = isinstance(document, dict) and _canonical(document) == data
    except (ValueError, RecursionError) as error:
        raise IndexCorruptError(damaged) from error
    if not whole or document.pop("checksum", None) != _checksum(document):
        raise IndexCorruptError(damaged)
    return document


def _require_version(version: Any) -> None:
    if type(version) is not int or version < 1:
        raise IndexCorruptError(
            f"The manifest of the index has the format version {version!r}; it must be 1 or more."
        )
    if version > FORMAT_VERSION:
        raise IndexVersionError(
            f"The index has format version {version}, and this pexeso reads up to version "
            f"{FORMAT_VERSION}: upgrade pexeso, or build the index again with this one."
        )
    if version < FORMAT_VERSION:
        raise IndexVersionError(
            f"The index has format version {version}, and this pexeso reads version "
            f"{FORMAT_VERSION}: build the index again."
        )


def _require_distinct_files(folder: FolderEntry) -> None:
    paths = {file.path for file in folder.files}
    if not paths:
        raise InputError(f"The folder {folder.folder!r} of an index must have at least one file.")
    if len(paths) < len(folder.files):
        raise InputError(f"A file is listed twice in {folder.folder!r}.")
    for above in itertools.chain(*(_folders_above(path) for path in paths)):
        if above in paths:
            raise InputError(f"{above!r} in {folder.folder!r} cannot be both a file and a folder.")


def _folders_above(path: str) -> Iterator[str]:
    steps = path.split("/")
    return ("/".join(steps[:length]) for length in range(1, len(steps)))


def _require_own_folders(manifest: Manifest) -> None:
    kinds = [(CATALOG, manifest.catalogs), (EMBEDDER, [manifest.embedder])]
    for kind, folders in (*kinds, (f"{PARTITIONS}/", itertools.chain(*manifest.parts.values()))):
        for entry in folders:
            if not entry.folder.startswith(kind):
                raise InputError(f"{entry.folder!r} is listed where a folder {kind} must be.")
    names = [folder.folder for folder in manifest.folders]
    if len(set(names)) < len(names):
        raise InputError("Two entries of the manifest name the same folder.")


# What is raised of values that JSON does not hold, such as half of a pair of surrogates.
_NOT_PLAIN = (TypeError, ValueError, OverflowError, RecursionError)


def _require_plain(value: dict[str, Any], name: str) -> None:
    """Refuse a dictionary that would not come back from JSON exactly as it goes in."""
    try:
        comes_back = msgspec.json.decode(msgspec.json.encode(value)) == value
    except _NOT_PLAIN:
        comes_back = False
    if not comes_back:
        raise InputError(
            f"{name} must hold plain JSON values: dictionaries, lists, Unicode texts, finite "
            "numbers, true, false, None."
        )
