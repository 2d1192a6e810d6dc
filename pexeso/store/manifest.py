"""The manifest: the one file that says what an index is made of, and that makes it valid.

It is canonical JSON: for given contents there is exactly one sequence of bytes, which carries a
checksum over itself. A manifest of any other bytes is refused, so every changed byte is found.
Names in it are checked before they are used.
"""

import hashlib
import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from pexeso.errors import IndexCorruptError, IndexVersionError, InputError
from pexeso.runtime.formatting import format_bytes
from pexeso.store.paths import MANIFEST, is_unicode, require_folder, require_relative

FORMAT_VERSION = 4
OLDEST_VERSION = 3
MAX_MANIFEST_BYTES = 1 << 30
_CHECKSUM = re.compile(r"[0-9a-f]{32}", re.ASCII)
_PART_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)

SEMANTIC = "semantic"
_FORMER_FIELDS = {"partitions": SEMANTIC, "token_sets": "token_sets"}
"""The fields of a manifest that listed folders before version 4, and the part that each is now."""


@dataclass(frozen=True)
class FileEntry:
    """One file of an index.

    Attributes
    ----------
    path
        Relative POSIX path below the folder that lists the file.
    n_bytes
        Size in bytes, 0 or more.
    checksum
        BLAKE2b with 128 bits over the file's bytes, 32 lower-case hexadecimal digits.
    """

    path: str
    n_bytes: int
    checksum: str

    def __post_init__(self) -> None:
        require_relative(self.path)
        _require_count(self.n_bytes, f"n_bytes of {self.path!r}")
        if not isinstance(self.checksum, str) or not _CHECKSUM.fullmatch(self.checksum):
            raise InputError(
                f"The checksum of {self.path!r} must be 32 hexadecimal digits. Got "
                f"{self.checksum!r}."
            )


@dataclass(frozen=True)
class FolderEntry:
    """One folder of an index: the catalog, the embedder or a partition.

    Attributes
    ----------
    folder
        Its path below the index, such as ``catalog``, ``embedder.2`` or ``partitions/00000``.
    files
        Its files, sorted by path.
    facts
        Plain JSON data about the folder that the writer wants at hand without opening a file of it.
    """

    folder: str
    files: tuple[FileEntry, ...]
    facts: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_folder(self.folder)
        object.__setattr__(self, "files", tuple(sorted(self.files, key=lambda file: file.path)))
        _require_distinct_files(self)
        require_json_object(self.facts, f"facts of {self.folder!r}")

    @property
    def n_bytes(self) -> int:
        """Bytes of all files of the folder."""
        return sum(file.n_bytes for file in self.files)

    def file(self, path: str) -> FileEntry | None:
        """Return the file of that path below the folder, or None."""
        return next((file for file in self.files if file.path == path), None)


@dataclass(frozen=True)
class Manifest:
    """What an index is made of.

    Attributes
    ----------
    written_by
        Program and version that wrote it.
    created
        When, as ISO 8601 text in UTC.
    generation
        1 for a first build, one more with each commit over it.
    options, fingerprints, facts
        Plain JSON objects of the index's author; the store keeps them and reads nothing in them.
    catalogs
        The folders of the catalog, at least one: that of the first build, then one for each update
        since, in order.
    embedder
        The folder of the model, which every index has once.
    parts
        By the name of each part of the index its folders, all below ``partitions/``, in search
        order. Their positions here, not their folder names, number them.
    deleted_columns
        Ids of columns that are still in the files but must not be returned, as ranges (first, end),
        `end` exclusive, ascending and apart.
    format_version
        Version of the layout of all files, this one included. Version 3 had two lists of folders in
        place of `parts`.
    """

    written_by: str
    created: str
    generation: int
    options: dict[str, Any]
    fingerprints: dict[str, Any]
    facts: dict[str, Any]
    catalogs: tuple[FolderEntry, ...]
    embedder: FolderEntry
    parts: Mapping[str, tuple[FolderEntry, ...]]
    deleted_columns: tuple[tuple[int, int], ...] = ()
    format_version: int = FORMAT_VERSION

    @property
    def snapshot(self) -> tuple[int, str]:
        """What tells a snapshot from others in the same place, also of an index built anew."""
        return self.generation, self.created

    def __post_init__(self) -> None:
        object.__setattr__(self, "catalogs", tuple(self.catalogs))
        object.__setattr__(self, "parts", {name: tuple(part) for name, part in self.parts.items()})
        object.__setattr__(
            self, "deleted_columns", tuple(tuple(span) for span in self.deleted_columns)
        )
        _require_text(self.written_by, "written_by")
        _require_text(self.created, "created")
        _require_count(self.format_version, "format_version", minimum=OLDEST_VERSION)
        _require_count(self.generation, "generation", minimum=1)
        if self.generation >= 2**63:
            raise InputError(
                "generation must be a number of 63 bits. Got one of "
                f"{self.generation.bit_length()} bits."
            )
        for name in ("options", "fingerprints", "facts"):
            require_json_object(getattr(self, name), name)
        _require_own_places(self)
        _require_apart(self.deleted_columns)

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
        """Bytes of all files listed, without the manifest itself."""
        return sum(folder.n_bytes for folder in self.folders)

    def files(self) -> Iterator[FileEntry]:
        """Yield every file listed, its path taken from the index folder down."""
        for folder in self.folders:
            for file in folder.files:
                yield FileEntry(f"{folder.folder}/{file.path}", file.n_bytes, file.checksum)

    def to_bytes(self) -> bytes:
        """Return the canonical form as ASCII bytes.

        Keys are sorted, there is no white space between tokens, and a newline is at the end.

        Its field ``checksum`` is BLAKE2b with 128 bits over the canonical form of all other fields.
        """
        document = {item.name: _plain(getattr(self, item.name)) for item in fields(self)}
        if self.format_version == 3:
            parts = document.pop("parts")
            document |= {name: parts.get(part, []) for name, part in _FORMER_FIELDS.items()}
        return _canonical({**document, "checksum": _checksum(document)})

    @classmethod
    def from_bytes(cls, data: bytes) -> "Manifest":
        """Read what `to_bytes` wrote.

        Raises
        ------
        IndexCorruptError
            The bytes are not exactly what `to_bytes` writes for any manifest.
        IndexVersionError
            They are whole, but of another format version.
        """
        document = _verified_document(data)
        _require_version(document.get("format_version"))
        try:
            return _from_document(document)
        except (InputError, TypeError) as error:
            raise IndexCorruptError(
                f"The manifest of the index holds what no index can hold: {error}"
            ) from error


def read_manifest(root: Path, n_bytes: int) -> Manifest:
    """Read the manifest of the index at `root`, a plain file of `n_bytes` bytes."""
    path = root / MANIFEST
    require_readable_size(path, n_bytes)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise IndexCorruptError(f"'{path}' cannot be read: {error.strerror or error}.") from error
    return manifest_from(root, data)


def require_readable_size(path: Path, n_bytes: int) -> None:
    """Refuse to read a manifest of more than `MAX_MANIFEST_BYTES`."""
    if n_bytes > MAX_MANIFEST_BYTES:
        raise IndexCorruptError(
            f"'{path}' has {format_bytes(n_bytes)}; a manifest has at most "
            f"{format_bytes(MAX_MANIFEST_BYTES)}."
        )


def manifest_from(root: Path | str, data: bytes) -> Manifest:
    """Make a manifest of the bytes that stand at `root`, which messages name."""
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
    """Parse the bytes and require the canonical form and a correct checksum.

    This applies to every format version.
    """
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
            f"{FORMAT_VERSION}: "
            "upgrade pexeso, or build the index again with this one."
        )
    if version < OLDEST_VERSION:
        raise IndexVersionError(
            f"The index has format version {version}, and this pexeso reads versions "
            f"{OLDEST_VERSION} to {FORMAT_VERSION}: "
            "build the index again."
        )


def _from_document(document: dict[str, Any]) -> Manifest:
    if document["format_version"] == 3:
        if "parts" in document or not set(_FORMER_FIELDS) <= set(document):
            raise InputError(
                f"an index of format version 3 lists its folders as {' and '.join(_FORMER_FIELDS)}."
            )
        document["parts"] = {part: document.pop(name) for name, part in _FORMER_FIELDS.items()}
    parts = document.pop("parts", None)
    if not isinstance(parts, dict):
        raise InputError("the parts of an index must be an object of lists of folders.")
    return Manifest(
        catalogs=_folders(document.pop("catalogs", None)),
        embedder=_folder(document.pop("embedder", None)),
        parts={name: _folders(entries) for name, entries in parts.items()},
        deleted_columns=tuple(
            tuple(_list(span)) for span in _list(document.pop("deleted_columns", None))
        ),
        **document,
    )


def _folders(documents: Any) -> tuple[FolderEntry, ...]:
    return tuple(_folder(entry) for entry in _list(documents))


def _folder(document: Any) -> FolderEntry:
    if not isinstance(document, dict) or set(document) != {"folder", "files", "facts"}:
        raise InputError("a folder must be an object of folder, files and facts.")
    files = [_file(entry) for entry in _list(document["files"])]
    if [file.path for file in files] != sorted(file.path for file in files):
        raise InputError(f"the files of {document['folder']!r} must be sorted by path.")
    return FolderEntry(document["folder"], tuple(files), document["facts"])


def _file(document: Any) -> FileEntry:
    if not isinstance(document, dict) or set(document) != {"path", "n_bytes", "checksum"}:
        raise InputError("a file must be an object of path, n_bytes and checksum.")
    return FileEntry(**document)


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise InputError(f"a list is needed where {type(value).__name__} stands.")
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, FileEntry | FolderEntry):
        return {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _require_text(value: Any, name: str) -> None:
    if type(value) is not str or not value or not is_unicode(value):
        raise InputError(f"{name} must be a Unicode text that is not empty. Got {value!r}.")


def _require_count(value: Any, name: str, minimum: int = 0) -> None:
    # bool is an int to Python, but true is no number of bytes.
    if type(value) is not int or value < minimum:
        raise InputError(f"{name} must be a whole number, {minimum} or more. Got {value!r}.")


def _require_apart(ranges: tuple[tuple[int, ...], ...]) -> None:
    if any(len(span) != 2 for span in ranges):
        raise InputError("deleted_columns must be ranges of two numbers, first and end.")
    bounds = [bound for span in ranges for bound in span]
    for bound in bounds:
        _require_count(bound, "deleted_columns")
    if any(end <= first for first, end in ranges) or bounds != sorted(bounds):
        raise InputError("deleted_columns must be ranges that are not empty, ascending and apart.")
    if bounds and bounds[-1] >= 2**63:
        raise InputError(f"deleted_columns must hold numbers of 63 bits. Got {bounds[-1]}.")


def _require_distinct_files(folder: FolderEntry) -> None:
    paths = {file.path for file in folder.files}
    if not folder.files:
        raise InputError(f"The folder {folder.folder!r} of an index must have at least one file.")
    if len(paths) < len(folder.files):
        raise InputError(f"A file is listed twice in {folder.folder!r}.")
    for path in paths:
        above = path.rsplit("/", 1)[0] if "/" in path else None
        while above is not None:
            if above in paths:
                raise InputError(
                    f"{above!r} in {folder.folder!r} cannot be both a file and a folder."
                )
            above = above.rsplit("/", 1)[0] if "/" in above else None


def _require_own_places(manifest: Manifest) -> None:
    if not manifest.catalogs:
        raise InputError("An index must have a catalog.")
    for entry, position in (
        *((catalog, "catalog") for catalog in manifest.catalogs),
        (manifest.embedder, "embedder"),
    ):
        if not isinstance(entry, FolderEntry) or not entry.folder.startswith(position):
            raise InputError(
                f"The entry {position} must be a folder named {position} or {position}. with a "
                "number."
            )
    for name, entries in manifest.parts.items():
        if not isinstance(name, str) or not _PART_NAME.fullmatch(name):
            raise InputError(
                f"The name of a part must be of lower-case letters, digits and _. Got {name!r}."
            )
        if not all(
            isinstance(entry, FolderEntry) and entry.folder.startswith("partitions/")
            for entry in entries
        ):
            raise InputError("Every folder of a part must be a folder below partitions/.")
    names = [folder.folder for folder in manifest.folders]
    if len(set(names)) < len(names):
        raise InputError("Two entries of the manifest name the same folder.")


MAX_DEPTH = 32


def require_json_object(value: Any, name: str) -> None:
    """Accept a dictionary that comes back from JSON exactly as it went in.

    No tuples, NumPy scalars, NaN or keys that are no text; nested at most `MAX_DEPTH` deep.
    """
    if not isinstance(value, dict):
        raise InputError(f"{name} must be a dictionary. Got {type(value).__name__}.")
    _require_json(value, name, MAX_DEPTH)


def _require_json(value: Any, name: str, depth: int) -> None:
    if depth == 0:
        raise InputError(f"{name} must not be nested deeper than {MAX_DEPTH} levels.")
    kind = type(value)
    if kind is dict:
        for key, item in value.items():
            if type(key) is not str or not is_unicode(key):
                raise InputError(f"{name} must have Unicode texts as keys. Got {key!r}.")
            _require_json(item, name, depth - 1)
    elif kind is list:
        for item in value:
            _require_json(item, name, depth - 1)
    elif not _is_json_scalar(value):
        raise InputError(
            f"{name} must hold plain JSON values: dictionaries, lists, Unicode texts, finite "
            "numbers, whole numbers of "
            f"64 bits, true, false, None. Got a {kind.__name__}."
        )


def _is_json_scalar(value: Any) -> bool:
    kind = type(value)
    if kind is int:
        return -(2**63) <= value < 2**64
    if kind is float:
        return math.isfinite(value)
    return kind in (bool, type(None)) or (kind is str and is_unicode(value))
