"""Location of a lake or an index: a local folder, or storage that fsspec or pyarrow reaches.

What lies on this machine is a `pathlib.Path` and stays one; nothing but the standard library is
loaded for it. All else is a `Location`: an URL such as ``s3://bucket/lake`` with the options of its
storage. It holds no connection, can be pickled, and shows no password.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote

from pexeso.errors import InputError
from pexeso.store.io.filesystems import (
    S3_PROTOCOLS,
    PlaceEntry,
    as_fsspec,
    entry_of,
    filesystem_class,
    import_fsspec,
    is_refusal,
    plain_errors,
    put_object_if,
    shown_url,
)

__all__ = [
    "READ_BYTES",
    "Location",
    "PlaceEntry",
    "is_refusal",
    "is_url",
    "locate",
    "read_parquet",
    "read_up_to",
    "require_utf8",
    "spark_path",
]

READ_BYTES = 16 << 20
"""Bytes asked of a storage at a time."""

_PATTERN = re.compile(r"[*?\[\]{}\\]")
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
        """What stands before ``://``."""
        return self.url.partition("://")[0]

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    @property
    def filesystem(self) -> Any:
        """The fsspec filesystem; one object a process for equal options.

        Raises
        ------
        MissingPackageError
            The package for this storage is not installed.
        PlaceError
            The options do not fit the storage.
        """
        if self.given is not None:
            return self.given
        with self._plain_errors("opened"):
            return import_fsspec().filesystem(self.protocol, **self.options)

    def joined(self, relative: str) -> Location:
        """Return the place of a name below this one.

        Raises
        ------
        InputError
            The name is absolute, empty, or has an empty, ``.`` or ``..`` part: it would lead
            elsewhere.
        """
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
        """Ask for size, time and version; None where nothing is there.

        Raises
        ------
        PlaceError
            The storage cannot be reached or refuses.
        """
        with self._plain_errors("looked at"):
            try:
                return entry_of(self._fresh().info(self.path))
            except FileNotFoundError:
                return None

    def entries(self) -> list[PlaceEntry]:
        """List the entries directly below, in no particular order.

        Memory grows with the number of names in this one folder.

        Raises
        ------
        PlaceError
            The folder is not there, or cannot be listed.
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
        """Open the file for reading, with `seek`; only what is read is fetched, and nothing ahead.

        Raises
        ------
        PlaceError
            It cannot be opened, or a read in the block fails; also where the file was replaced
            meanwhile.
        """
        with (
            self._plain_errors("read"),
            self._fresh().open(self.path, "rb", cache_type="none") as stream,
        ):
            yield stream

    def read(self, start: int = 0, stop: int | None = None) -> bytes:
        """Read a range of bytes of a file, the end exclusive; all of it where no end is given.

        A range must begin within the file: of an empty one read all.

        Raises
        ------
        PlaceError
            It cannot be read.
        """
        with self._plain_errors("read"):
            return bytes(self.filesystem.cat_file(self.path, start=start or None, end=stop))

    def write(self, data: bytes) -> None:
        """Put bytes there, in place of what is there.

        Raises
        ------
        PlaceError
            It cannot be written.
        """
        with self._plain_errors("written"):
            self.filesystem.pipe_file(self.path, data)

    def write_file(self, local: Path) -> None:
        """Put the bytes of a local file there, in pieces; on S3 only where nothing is there.

        Raises
        ------
        PlaceError
            It cannot be written.
        """
        with self._plain_errors("written"):
            self.filesystem.put_file(
                os.fspath(local), self.path, **({"mode": "create"} if self.has_conditions else {})
            )

    def put_if(self, data: bytes, expected: str | None) -> str | None:
        """Put bytes there in one request, on one condition that the storage itself checks.

        Parameters
        ----------
        data
            The bytes, at most 5 GiB.
        expected
            The version that must still be there; None: nothing may be there.

        Returns
        -------
        str or None
            The new version; None where the condition did not hold, and nothing was written.

        Raises
        ------
        PlaceError
            The storage has no such requests, or cannot be written.
        """
        with self._plain_errors("written on a condition"):
            return put_object_if(self._fresh(), self.path, data, expected)

    @property
    def has_conditions(self) -> bool:
        """Whether the storage is of a kind that checks conditions.

        That is S3, through s3fs. A server may still not do it.
        """
        return self.protocol in S3_PROTOCOLS and hasattr(self.filesystem, "call_s3")

    def remove(self) -> None:
        """Remove one file; nothing happens where there is none.

        Raises
        ------
        PlaceError
            It cannot be removed.
        """
        with self._plain_errors("removed"):
            try:
                self._fresh().rm_file(self.path)
            except FileNotFoundError:
                return

    def _plain_errors(self, action: str) -> AbstractContextManager[None]:
        options = self.options if self.given is None else getattr(self.given, "storage_options", {})
        return plain_errors(self.url, options, action)

    def _fresh(self) -> Any:
        """Return the filesystem without its cached state of this path.

        Other processes may have changed it.
        """
        filesystem = self.filesystem
        filesystem.invalidate_cache(self.path)
        return filesystem

    def _is_marker(self, name: str, entry: PlaceEntry) -> bool:
        """Return whether a listed name is the folder itself.

        Object stores may keep an empty object for a folder.
        """
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
            "fsspec with a path. "
            f"Got {type(where).__name__}."
        )
    return _from_filesystem(filesystem, path)


def is_url(where: Any) -> bool:
    """Return whether a text or place refers to storage outside this machine's file system.

    Examples
    --------
    >>> is_url("s3://bucket/lake"), is_url("data/lake"), is_url("file:///data/lake")
    (True, False, False)
    """
    match = _URL.match(where) if isinstance(where, str) else None
    return isinstance(where, Location) or (
        match is not None and match.group(1).lower() not in ("file", "local")
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


def spark_path(path: str | os.PathLike[str]) -> str:
    """Return what Spark calls a file or folder of this machine.

    Spark takes every character as it stands: nothing is percent-encoded. To read from there, use
    `read_parquet`, since Spark's readers take ``* ? [ ] { }`` for patterns.

    Examples
    --------
    >>> spark_path("/data/100%20 [new]/lake.pexeso")
    'file:///data/100%20 [new]/lake.pexeso'
    """
    absolute = str(Path(path).absolute())
    if ".." in Path(absolute).parts:
        # Hadoop would take the name before it away, even that of a link
        absolute = os.path.realpath(absolute)
    require_utf8(absolute)
    return f"file://{absolute}"


def read_parquet(spark: Any, *paths: str | os.PathLike[str], schema: Any = None) -> Any:
    """Return the Spark DataFrame of local Parquet files or folders, whatever their names."""
    from pexeso.store.io.spark_schema import schema_of_files  # brings pyarrow

    schema = schema_of_files(paths) if schema is None else schema
    reader = spark.read if schema is None else spark.read.schema(schema)
    names = [spark_path(path) for path in paths]
    if not any(_PATTERN.search(name) for name in names):
        return reader.parquet(*names)
    # Escaping the characters is not enough: Hadoop cannot expand any path with a colon. Told not to
    # expand, Spark reads all paths once for each of them, so it gets them one by one.
    reader = reader.option("__globPaths__", "false")
    return reduce(lambda frame, other: frame.unionByName(other), map(reader.parquet, names))


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
    if protocol in ("file", "local"):
        return _from_file_url(url)
    if "::" in url:
        raise InputError(
            f"The URL {shown_url(url)!r} is a chain of filesystems: give the URL of one."
        )
    rest = url.partition("://")[2].rstrip("/")
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
    if protocol in ("file", "local"):
        return Path(path)
    if any(part in (".", "..") for part in path.split("/")):
        raise InputError(f"The path {path!r} has '.' or '..' parts: give it without them.")
    path = filesystem._strip_protocol(path).rstrip("/")
    return Location(f"{protocol}://{path.lstrip('/')}", path, given=filesystem)
