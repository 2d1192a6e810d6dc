"""Location of a lake or an index: a local folder, or storage that fsspec or pyarrow reaches.

What lies on this machine is a `pathlib.Path` and stays one; nothing but the standard library is
loaded for it. All else is a `Location`: an URL such as ``s3://bucket/lake`` with the options of its
storage. It holds no connection, can be pickled, and shows no password.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal
from urllib.parse import unquote

from pexeso.errors import InputError, MissingPackageError, PexesoError, PlaceError
from pexeso.runtime.extras import lack_of, require
from pexeso.store.io.catalogues import CATALOGUES, require_plain

if TYPE_CHECKING:
    import pyarrow as pa

S3_PROTOCOLS = ("s3", "s3a")
_LOCAL = ("file", "local")

_PASSWORD = re.compile(r"(://[^/@:]*):[^/@]*@")
_SECRET_NAME = re.compile(
    r"secret|token|passw|key|credential|signature|connection_string", re.IGNORECASE
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_VERSION_FIELDS = ("ETag", "etag", "e_tag")
_TIME_FIELDS = ("LastModified", "last_modified", "mtime", "updated", "modified")
_MAX_MESSAGE = 300
_NOT_FOUND, _CONFLICT, _CONDITION_FAILED = 404, 409, 412
_ATTEMPTS = 6
_PAUSE_SECONDS = 0.1


@dataclass(frozen=True)
class PlaceEntry:
    """What a storage says about one name."""

    # The last part of the path; empty for a folder without a name, as the key ``a//b.csv`` makes
    # one.
    name: str
    kind: Literal["file", "folder", "table", "other"]
    n_bytes: int  # Size in bytes; 0 where it is no file
    # When it was last changed, in nanoseconds since 1970; None where the storage does not say.
    # Whole seconds where there is a version: some requests return no more.
    modified: int | None
    # A text that changes whenever the bytes do (the ETag of S3); None where the storage has none.
    version: str | None


def as_fsspec(filesystem: Any) -> Any:
    """Return a filesystem of fsspec, one of pyarrow wrapped; None for anything else."""
    arrow, spec = sys.modules.get("pyarrow.fs"), sys.modules.get("fsspec.spec")
    if arrow is not None and isinstance(filesystem, arrow.FileSystem):
        import_fsspec()
        from fsspec.implementations.arrow import ArrowFSWrapper

        return ArrowFSWrapper(filesystem)
    return (
        filesystem if spec is not None and isinstance(filesystem, spec.AbstractFileSystem) else None
    )


def import_fsspec() -> Any:
    """Import fsspec, which is needed for other storages alone."""
    return require("fsspec", "A file in another storage")


def filesystem_class(protocol: str, shown: str) -> Any:
    """Return the fsspec class for a protocol; `shown` is the URL in messages."""
    fsspec = import_fsspec()
    try:
        return fsspec.get_filesystem_class(protocol)
    except ImportError as error:
        sentence = f"A package is missing to reach '{shown}': {_one_line(error)}."
        if protocol in S3_PROTOCOLS:
            sentence = lack_of("s3fs", f"'{shown}'")
        raise MissingPackageError(sentence) from error
    except ValueError as error:
        raise InputError(
            f"The protocol of '{shown}' is not known: give a path, or an URL such as "
            "s3://bucket/folder."
        ) from error


def shown_url(url: str) -> str:
    """Return an URL without its password; of a web address also without its query."""
    url = _PASSWORD.sub(r"\1@", url)
    return url.partition("?")[0] if url.startswith(("http:", "https:")) else url


def entry_of(info: Mapping[str, Any]) -> PlaceEntry:
    kinds: dict[str, Literal["file", "folder", "table"]]
    kinds = {"file": "file", "directory": "folder", "table": "table"}
    kind = kinds.get(info.get("type", ""), "other")
    name = str(info["name"])
    last = name.rstrip("/") if kind == "folder" and not name.endswith("/") else name
    version = (
        next((str(info[key]) for key in _VERSION_FIELDS if info.get(key)), None)
        if kind in ("file", "table")
        else None
    )
    modified = next((_nanoseconds(info[key]) for key in _TIME_FIELDS if info.get(key)), None)
    if modified is not None and version is not None:
        modified -= modified % 10**9
    n_bytes = int(info.get("size") or 0) if kind in ("file", "table") else 0
    return PlaceEntry(last.rpartition("/")[2], kind, n_bytes, modified, version)


def put_object_if(filesystem: Any, path: str, data: bytes, expected: str | None) -> str | None:
    """Write an object through s3fs if the stored one has that version, None for no object.

    Returns the new version; None where the condition did not hold. Whoever asks again after a
    broken connection may find that a first request had been done: so None does not say that these
    very bytes are not there.
    """
    condition = {"IfNoneMatch": "*"} if expected is None else {"IfMatch": expected}
    bucket, key, _ = filesystem.split_path(path)
    for attempt in range(_ATTEMPTS):
        try:
            answer = filesystem.call_s3(
                "put_object", Bucket=bucket, Key=key, Body=data, **condition
            )
            return str(answer["ETag"])
        except Exception as error:
            status = _status(error)
            if status == _CONFLICT:  # another request for this key is under way, undecided
                time.sleep(_PAUSE_SECONDS * 2**attempt)
            elif status == _CONDITION_FAILED or (status == _NOT_FOUND and expected is not None):
                return None
            else:
                raise
    return None


def _status(error: BaseException | None) -> int | None:
    """Return the HTTP status behind an error of s3fs, which keeps botocore's as its cause."""
    while error is not None:
        answer = getattr(error, "response", None)
        if isinstance(answer, Mapping):
            return answer.get("ResponseMetadata", {}).get("HTTPStatusCode")
        error = error.__cause__
    return None


def _nanoseconds(moment: Any) -> int | None:
    if isinstance(moment, datetime):
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return (aware - _EPOCH) // timedelta(microseconds=1) * 1000
    return int(moment * 1e9) if isinstance(moment, int | float) else None


@contextmanager
def plain_errors(url: str, options: Mapping[str, Any], done: str) -> Iterator[None]:
    """Replace errors of storage packages, of any kind, by one sentence without credentials."""
    try:
        yield
    except (PexesoError, MemoryError):
        raise
    except ImportError as error:
        raise MissingPackageError(
            f"A package is missing to reach '{url}': {_one_line(error)}."
        ) from error
    except Exception as error:
        raise PlaceError(f"'{url}' cannot be {done}: {_reason(error, options)}.") from error


def is_refusal(error: PlaceError) -> bool:
    """Return whether the storage answered that a name is missing or must not be read.

    Any other error says nothing about the name: asked again, the storage may give it.
    """
    return isinstance(error.__cause__, FileNotFoundError | PermissionError)


def _reason(error: Exception, options: Mapping[str, Any]) -> str:
    text = _one_line(error)
    if isinstance(error, FileNotFoundError):
        return text[0].lower() + text[1:] if "bucket" in text else "there is no such file or folder"
    for secret in _secrets(options):
        text = text.replace(secret, "***")
    text = _PASSWORD.sub(r"\1@", text)
    return f"there is no permission ({text})" if isinstance(error, PermissionError) else text


def _one_line(error: BaseException) -> str:
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(str(text).split()).rstrip(".")[:_MAX_MESSAGE]


def _secrets(options: Mapping[str, Any]) -> Iterator[str]:
    for name, value in options.items():
        if isinstance(value, Mapping):
            yield from _secrets(value)
        elif isinstance(value, str) and len(value) > 2 and _SECRET_NAME.search(name):
            yield value


# Bytes asked of a storage at a time.
READ_BYTES = 16 << 20

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*)://")


@dataclass(frozen=True)
class Location:
    """A file or folder on another storage; made by `locate`.

    Attributes
    ----------
    url
        What people read, without a password.
    path
        What the storage calls it.
    options
        How the storage is reached: arguments of its fsspec filesystem. May hold credentials, and is
        never shown.
    given
        The fsspec filesystem, where the caller gave one.
    """

    url: str
    path: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)
    given: Any = field(default=None, repr=False, hash=False)

    def __str__(self) -> str:
        return self.url

    @property
    def protocol(self) -> str:
        return self.url.partition("://")[0]

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def filesystem(self) -> Any:
        """The fsspec filesystem; one object a process for equal options."""
        if self.given is not None:
            return self.given
        if self.is_of_catalogue:
            return CATALOGUES[self.protocol](self.path, self.options.get("as_of"))
        with self._plain_errors("opened"):
            return import_fsspec().filesystem(self.protocol, **self.options)

    @property
    def is_of_catalogue(self) -> bool:
        """Whether this is a database or catalogue, or a table there."""
        return self.protocol in CATALOGUES

    def joined(self, relative: str) -> Location:
        """Return the place of a name below this one."""
        if (
            not relative
            or "\0" in relative
            or any(part in ("", ".", "..") for part in relative.split("/"))
        ):
            raise InputError(
                f"{relative!r} does not name anything below '{self}': give a relative path "
                "without '.' and '..'."
            )
        return replace(self, url=f"{self.url}/{relative}", path=f"{self.path}/{relative}")

    def __truediv__(self, relative: str) -> Location:
        return self.joined(relative)

    def look(self) -> PlaceEntry | None:
        """Ask for size, time and version; None where nothing is there."""
        with self._plain_errors("looked at"):
            try:
                return entry_of(self._fresh().info(self.path))
            except FileNotFoundError:
                return None

    def entries(self) -> list[PlaceEntry]:
        """List the entries directly below, in no particular order.

        Memory grows with the number of names in this one folder.
        """
        with self._plain_errors("listed"):
            entries = [
                (info["name"], entry_of(info)) for info in self._fresh().ls(self.path, detail=True)
            ]
        return [entry for name, entry in entries if not self._is_marker(name, entry)]

    def find(self) -> dict[str, PlaceEntry]:
        """List all files below, at any depth, by their relative path.

        The list is empty if there are none.
        """
        with self._plain_errors("listed"):
            try:
                infos = self._fresh().find(self.path, detail=True)
            except FileNotFoundError:
                return {}
        start = len(self.path) + 1
        entries = ((name[start:], entry_of(info)) for name, info in infos.items())
        return {
            relative: entry
            for relative, entry in entries
            if relative and not relative.endswith("/")
        }

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open the file for reading, with `seek`; only what is read is fetched."""
        with (
            self._plain_errors("read"),
            self._fresh().open(self.path, "rb", cache_type="none") as stream,
        ):
            yield stream

    @contextmanager
    def rows(self) -> Iterator[pa.RecordBatchReader]:
        """Open the rows of a table of a catalogue."""
        catalogue = self.filesystem
        with (
            self._plain_errors("read"),
            catalogue.rows(catalogue.table(self.path)) as batches,
        ):
            yield batches

    def read(self, start: int = 0, stop: int | None = None) -> bytes:
        """Read a range of bytes of a file, the end exclusive; all of it where no end is given.

        A range must begin within the file: of an empty one read all.
        """
        with self._plain_errors("read"):
            return bytes(self.filesystem.cat_file(self.path, start=start or None, end=stop))

    def write(self, data: bytes) -> None:
        with self._plain_errors("written"):
            self.filesystem.pipe_file(self.path, data)

    def write_file(self, local: Path) -> None:
        """Put the bytes of a local file there, in pieces; on S3 only where nothing is there."""
        with self._plain_errors("written"):
            self.filesystem.put_file(
                os.fspath(local), self.path, **({"mode": "create"} if self.has_conditions else {})
            )

    def put_if(self, data: bytes, expected: str | None) -> str | None:
        """Put bytes there in one request, on one condition that the storage itself checks.

        data: the bytes, at most 5 GiB; expected: the version that must still be there; None:
        nothing may be there. Returns str or None: the new version; None where the condition did not
        hold, and nothing was written.
        """
        with self._plain_errors("written on a condition"):
            return put_object_if(self._fresh(), self.path, data, expected)

    @property
    def has_conditions(self) -> bool:
        """Whether the storage is S3, which checks conditions; a server may still not do it."""
        return self.protocol in S3_PROTOCOLS and hasattr(self.filesystem, "call_s3")

    def remove(self) -> None:
        """Remove one file; nothing happens where there is none."""
        with self._plain_errors("removed"):
            try:
                self._fresh().rm_file(self.path)
            except FileNotFoundError:
                return

    def _plain_errors(self, action: str) -> AbstractContextManager[None]:
        options = self.options if self.given is None else getattr(self.given, "storage_options", {})
        return plain_errors(self.url, options, action)

    def _fresh(self) -> Any:
        """Return the filesystem without its cached state of this path, which others may change."""
        filesystem = self.filesystem
        filesystem.invalidate_cache(self.path)
        return filesystem

    def _is_marker(self, name: str, entry: PlaceEntry) -> bool:
        """Return whether a listed name is the folder itself, kept as an empty object."""
        return entry.kind != "folder" and name.rstrip("/").lstrip("/") == self.path.lstrip("/")


def locate(where: Any, path: str | None = None, **options: Any) -> Path | Location:
    """Return the folder of this machine, or the place elsewhere, that is meant.

    Parameters
    ----------
    where
        A local path; an URL (``s3://bucket/lake``, ``memory://lake``, ``file:///data/lake``, or any
        other protocol of fsspec); a `Location`; or a filesystem of pyarrow or fsspec, with `path`.
    path
        The path within the filesystem that was given.
    **options
        Storage options of an URL, such as ``endpoint_url``, ``key`` and ``secret`` of S3. What is
        not given is taken from where the storage's package looks: the environment, its
        configuration files.

    Raises
    ------
    InputError
        The protocol is not known, or the path has ``.`` or ``..`` parts.
    MissingPackageError
        The package for this storage is not installed.

    Examples
    --------
    >>> locate("data/lake")
    PosixPath('data/lake')
    >>> print(locate("memory://lake").joined("nested/cities.csv"))
    memory://lake/nested/cities.csv
    """
    if isinstance(where, Location):
        return replace(where, options={**where.options, **options}) if options else where
    if isinstance(where, str | os.PathLike):
        text = os.fspath(where)
        match = _URL.match(text) if isinstance(text, str) else None
        return (
            _from_url(text, match.group(1).lower(), options) if match else Path(os.fsdecode(text))
        )
    filesystem = as_fsspec(where)
    if filesystem is None or not isinstance(path, str) or options:
        raise InputError(
            "A place is a path, an URL with its storage options, or a filesystem of pyarrow or "
            f"fsspec with a path. Got {type(where).__name__}."
        )
    return _from_filesystem(filesystem, path)


def locate_state(where: Any, as_of: str | None) -> Path | Location:
    """Return a lake or table as `locate` does; a catalogue then reads its tables in that state."""
    location = locate(where)
    if as_of is not None and isinstance(location, Location) and location.is_of_catalogue:
        return locate(location, as_of=as_of)
    return location


def is_url(where: Any) -> bool:
    """Return whether a text or place refers to storage outside this machine's file system."""
    match = _URL.match(where) if isinstance(where, str) else None
    return isinstance(where, Location) or (
        match is not None and match.group(1).lower() not in _LOCAL
    )


def require_utf8(path: str | os.PathLike[str]) -> None:
    """Raise `InputError` unless Arrow and Java can name a path of this machine."""
    try:
        os.fspath(path).encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"Arrow and Spark cannot use the path {os.fsencode(path)!r}: a name in it is not "
            "UTF-8. Rename it, or choose another place."
        ) from error


def read_up_to(stream: BinaryIO, limit: int) -> bytes:
    """Read a stream to its end, but no more than `limit` bytes, piece by piece.

    Memory: what is read, twice while the pieces are put together.
    """
    pieces, n_left = [], limit
    while n_left > 0 and (piece := stream.read(min(READ_BYTES, n_left))):
        pieces.append(piece)
        n_left -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _from_url(url: str, protocol: str, options: Mapping[str, Any]) -> Path | Location:
    if protocol in _LOCAL:
        return _from_file_url(url)
    rest = url.partition("://")[2].rstrip("/")
    if protocol in CATALOGUES:
        require_plain(protocol, rest)
        return Location(f"{protocol}://{rest}", rest, options)
    if "::" in url:
        raise InputError(
            f"The URL {shown_url(url)!r} is a chain of filesystems: give the URL of one."
        )
    if any(part in (".", "..") for part in rest.split("/")):
        raise InputError(
            f"The URL {shown_url(url)!r} has '.' or '..' parts: give the path without them."
        )
    kind = filesystem_class(protocol, shown_url(url))
    full = f"{protocol}://{rest}"
    return Location(
        shown_url(full), kind._strip_protocol(full), {**kind._get_kwargs_from_urls(full), **options}
    )


def _from_file_url(url: str) -> Path:
    host, slash, path = url.partition("://")[2].partition("/")
    if host not in ("", "localhost") or not slash:
        raise InputError(
            f"The URL {url!r} must name a path of this machine, as file:///data/lake does."
        )
    return Path("/" + unquote(path))


def _from_filesystem(filesystem: Any, path: str) -> Path | Location:
    protocol = (
        filesystem.protocol if isinstance(filesystem.protocol, str) else filesystem.protocol[0]
    )
    if protocol in _LOCAL:
        return Path(path)
    if any(part in (".", "..") for part in path.split("/")):
        raise InputError(f"The path {path!r} has '.' or '..' parts: give it without them.")
    path = filesystem._strip_protocol(path).rstrip("/")
    return Location(f"{protocol}://{path.lstrip('/')}", path, given=filesystem)
