"""The bytes of one file: read whole under a size limit, unpacked from gzip, hashed."""

import gzip
import hashlib
import io
import os
import stat
import zlib
from dataclasses import dataclass

from pexeso.errors import TableReadError

DEFAULT_MAX_BYTES = 1 << 30
"""Largest file that is read, in bytes after decompression, unless told otherwise: 1 GiB."""

_GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True)
class Content:
    """What a file holds.

    Attributes
    ----------
    data
        The bytes, decompressed.
    fingerprint
        BLAKE2b-128 of the bytes on disk, in hexadecimal: equal where the file has not changed.
    """

    data: bytes
    fingerprint: str


def read_content(
    path: str | os.PathLike[str], *, max_bytes: int = DEFAULT_MAX_BYTES, shown: str | None = None
) -> Content:
    """Read one regular file whole, unpacking gzip (known by its first two bytes, not by its name).

    Parameters
    ----------
    path
        The file.
    max_bytes
        Limit on the size on disk and on the size after decompression; at least 1. Reading stops there, so that a small
        file which unpacks to a huge one costs no more memory than this.
    shown
        The file's name in messages; the path unless given.

    Raises
    ------
    TableReadError
        The file is missing, no regular file, unreadable, too large, or its gzip stream is damaged.
    """
    shown = os.fspath(path) if shown is None else shown
    try:
        # Looked at before it is opened: opening a named pipe would wait for ever.
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise TableReadError(f"{shown} is not a regular file; a table is one file.")
        with open(path, "rb") as stream:
            data = stream.read(max_bytes + 1)
    except OSError as error:
        raise TableReadError(f"{shown} cannot be read: {error.strerror or error}.") from error
    _check_size(shown, len(data), max_bytes)
    fingerprint = hashlib.blake2b(data, digest_size=16).hexdigest()
    if data.startswith(_GZIP_MAGIC):
        data = _unpack(shown, data, max_bytes)
    return Content(data, fingerprint)


def _unpack(shown: str, packed: bytes, max_bytes: int) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as stream:
            data = stream.read(max_bytes + 1)
    except EOFError as error:
        raise TableReadError(f"{shown} is a gzip file that was cut short; write or download it again.") from error
    except (OSError, zlib.error) as error:
        raise TableReadError(f"{shown} is a damaged gzip file ({error}); write or download it again.") from error
    _check_size(shown, len(data), max_bytes)
    return data


def _check_size(shown: str, n_bytes: int, max_bytes: int) -> None:
    if n_bytes > max_bytes:
        raise TableReadError(f"{shown} holds more than {max_bytes:,} bytes, the most that is read (max_bytes).")
