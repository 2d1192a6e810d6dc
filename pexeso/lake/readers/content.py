"""The bytes of one file: read whole under a size limit, unpacked from gzip, hashed."""

import gzip
import hashlib
import io
import os
import stat
import zlib
from dataclasses import dataclass
from pathlib import Path

from pexeso.errors import PlaceError, TableReadError
from pexeso.io.location import READ_BYTES, Location, is_refusal, locate, read_up_to

DEFAULT_MAX_BYTES = 1 << 30
"""Largest file that is read, in bytes after decompression, unless told otherwise: 1 GiB."""

_GZIP_MAGIC = b"\x1f\x8b"
_PIECE_BYTES = 1 << 20
_ATTEMPTS = 3


@dataclass(frozen=True)
class Content:
    """What a file holds.

    Attributes
    ----------
    data
        The bytes, decompressed.
    fingerprint
        BLAKE2b-128 of the bytes as they are stored, in hexadecimal: equal where the file has not
        changed.
    """

    data: bytes
    fingerprint: str


def read_content(
    path: str | os.PathLike[str] | Location,
    *,
    max_bytes: int = DEFAULT_MAX_BYTES,
    shown: str | None = None,
) -> Content:
    """Read one regular file whole, unpacking gzip (known by its first two bytes, not by its name).

    Parameters
    ----------
    path
        The file: a path, an URL or a `Location`.
    max_bytes
        Limit on the stored size and on the size after decompression; at least 1. Reading stops
        there, so that a small file which unpacks to a huge one costs no more memory than this.
    shown
        The file's name in messages; the path unless given.
    """
    shown = str(path) if shown is None else shown
    location = locate(path)
    data = (
        _read_place(location, shown, max_bytes)
        if isinstance(location, Location)
        else _read_file(location, shown, max_bytes)
    )
    check_size(shown, len(data), max_bytes)
    fingerprint = hashlib.blake2b(data, digest_size=16).hexdigest()
    if data.startswith(_GZIP_MAGIC):
        data = _unpack(shown, data, max_bytes)
    return Content(data, fingerprint)


def fingerprint_file(path: str | os.PathLike[str] | Location) -> str | None:
    """Compute the `fingerprint` of `read_content` in pieces; None for an unreadable file.

    One piece of the file is read at a time.
    """
    location = locate(path)
    running = hashlib.blake2b(digest_size=16)
    try:
        is_local = isinstance(location, Path)
        with open(location, "rb") if is_local else location.open() as stream:
            while piece := stream.read(
                _PIECE_BYTES if is_local else READ_BYTES
            ):  # elsewhere each is a request
                running.update(piece)
    except PlaceError as error:
        if is_refusal(error):
            return None
        raise
    except (OSError, ValueError):
        return None
    return running.hexdigest()


def _read_file(path: Path, shown: str, max_bytes: int) -> bytes:
    try:
        require_regular_file(path, shown)
        with open(path, "rb") as stream:
            return stream.read(max_bytes + 1)
    except OSError as error:
        raise TableReadError(f"{shown} cannot be read: {error.strerror or error}.") from error
    except ValueError as error:  # NUL, or half of a surrogate pair: no name of a file holds them
        raise TableReadError(f"{shown!r} cannot be the name of a file: {error}.") from error


def _read_place(location: Location, shown: str, max_bytes: int) -> bytes:
    for _ in range(_ATTEMPTS):
        try:
            with location.open() as stream:
                data = read_up_to(stream, max_bytes + 1)
            # A folder of an object store can be opened: it is as empty as an empty file.
            if not data and (found := location.look()) is not None and found.kind != "file":
                raise _no_file(shown)
            return data
        except PlaceError as error:
            if is_refusal(error):
                raise TableReadError(str(error)) from error
            broken = error  # it broke off, or the file was replaced meanwhile
    raise broken


def require_regular_file(path: Path, shown: str) -> os.stat_result:
    """Return the status of a file, which must be a regular one.

    It is looked at before it is opened: opening a named pipe would wait for ever.

    Raises
    ------
    TableReadError
        It is something else.
    OSError
        It cannot be looked at.
    """
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise _no_file(shown)
    return status


def _no_file(shown: str) -> TableReadError:
    return TableReadError(f"{shown} is not a regular file; a table is one file.")


def _unpack(shown: str, packed: bytes, max_bytes: int) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as stream:
            data = stream.read(max_bytes + 1)
    except EOFError as error:
        raise TableReadError(
            f"{shown} is a gzip file that was cut short; write or download it again."
        ) from error
    except (OSError, zlib.error) as error:
        raise TableReadError(
            f"{shown} is a damaged gzip file ({error}); write or download it again."
        ) from error
    check_size(shown, len(data), max_bytes)
    return data


def check_size(shown: str, n_bytes: int, max_bytes: int) -> None:
    """Raise TableReadError for more bytes than are read."""
    if n_bytes > max_bytes:
        raise TableReadError(
            f"{shown} holds more than {max_bytes:,} bytes, the most that is read (max_bytes)."
        )
