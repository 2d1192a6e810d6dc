"""The bytes of one file: read whole under a size limit, unpacked, hashed."""

import bz2
import gzip
import hashlib
import io
import lzma
import os
import stat
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from pexeso.errors import PlaceError, TableReadError
from pexeso.lake.readers.budget import DEFAULT_MAX_BYTES, ReadingBudget
from pexeso.store.io.location import READ_BYTES, Location, is_refusal, locate, read_up_to

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
    n_stored
        Size of the file as it is stored, in bytes; that of `data` unless given.
    """

    data: bytes
    fingerprint: str
    n_stored: int | None = None


def read_content(
    path: str | os.PathLike[str] | Location,
    *,
    max_bytes: int = DEFAULT_MAX_BYTES,
    shown: str | None = None,
) -> Content:
    """Read one regular file whole, unpacking what is packed by gzip, bzip2, xz or zstd.

    That is known by the first bytes of the file, not by its name.

    Parameters
    ----------
    max_bytes
        Limit on the stored size and on the size after decompression; at least 1. Reading stops
        there, and for a small file earlier (`ReadingBudget.max_unpacked`), so that one which
        unpacks to a huge one costs no more memory than this.
    """
    shown = str(path) if shown is None else shown
    location = locate(path)
    data = (
        _read_place(location, shown, max_bytes)
        if isinstance(location, Location)
        else _read_file(location, shown, max_bytes)
    )
    check_size(shown, len(data), max_bytes)
    return Content(unpacked(shown, data, max_bytes), bytes_fingerprint(data), len(data))


def bytes_fingerprint(data: bytes) -> str:
    """Return BLAKE2b-128 of bytes in hexadecimal, as `Content` has it."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def unpacked(shown: str, data: bytes, max_bytes: int, n_stored: int | None = None) -> bytes:
    """Return what packed bytes hold, and others as they are; see `read_content`.

    `n_stored` is the size of what the bytes were taken from, where they are packed twice.
    """
    for packing in _PACKINGS:
        if data.startswith(packing.magic) or (packing is _ZSTD and _is_zstd(data)):
            n_stored = len(data) if n_stored is None else n_stored
            return _unpack(data, packing, ReadingBudget(shown, n_stored, max_bytes))
    return data


def _is_zstd(data: bytes) -> bool:
    """Return whether zstd begins behind the frames that programs keep notes of their own in."""
    start = 0
    for _ in range(_MOST_SKIPPED):
        if data[start : start + 4] not in _SKIPPED_MAGICS:
            break
        start += 8 + int.from_bytes(data[start + 4 : start + 8], "little")
    return data.startswith(_ZSTD.magic, start)


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
            if not data and (entry := location.look()) is not None and entry.kind != "file":
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
    """
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise _no_file(shown)
    return status


def _no_file(shown: str) -> TableReadError:
    return TableReadError(f"{shown} is not a regular file; a table is one file.")


class _Packing(NamedTuple):
    kind: str
    magic: bytes
    open: Callable[[io.BytesIO], Any]


_ZSTD = _Packing(
    "a zstd", b"\x28\xb5\x2f\xfd", lambda packed: pa.CompressedInputStream(packed, "zstd")
)
_SKIPPED_MAGICS = tuple(bytes([number]) + b"\x2a\x4d\x18" for number in range(0x50, 0x60))
_MOST_SKIPPED = 16
_PACKINGS = (
    _Packing("a gzip", b"\x1f\x8b", lambda packed: gzip.GzipFile(fileobj=packed)),
    _Packing("a bzip2", b"BZh", bz2.BZ2File),
    _Packing("an xz", b"\xfd7zXZ\x00", lzma.LZMAFile),
    _ZSTD,
)
_BZIP2_BLOCK = (
    b"1AY&SY",
    b"\x17rE8P\x90",
)  # begin of the first block, or of the end where there is none


def _unpack(packed: bytes, packing: _Packing, budget: ReadingBudget) -> bytes:
    if packing.magic == b"BZh" and packed[4:10] not in _BZIP2_BLOCK:
        return packed  # a text that begins with these letters
    try:
        with packing.open(io.BytesIO(packed)) as stream:
            return _read_within(stream, budget)
    except EOFError as error:
        raise TableReadError(
            f"{budget.shown} is {packing.kind} file that was cut short; write or download it again."
        ) from error
    except (OSError, zlib.error, lzma.LZMAError, pa.ArrowException, ValueError) as error:
        cause = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        raise TableReadError(
            f"{budget.shown} is {packing.kind} file that is damaged ({cause}); write or download "
            "it again."
        ) from error


def _read_within(stream: Any, budget: ReadingBudget) -> bytes:
    """Read in pieces: some libraries set aside as much memory as they are asked for."""
    data = io.BytesIO()
    while piece := stream.read(_PIECE_BYTES):
        budget.check_unpacked(data.tell() + len(piece))
        budget.check_seconds()
        data.write(piece)
    return data.getvalue()


def check_size(shown: str, n_bytes: int, max_bytes: int) -> None:
    """Raise TableReadError for more bytes than are read."""
    if n_bytes > max_bytes:
        raise TableReadError(
            f"{shown} holds more than {max_bytes:,} bytes, the most that is read (max_bytes)."
        )
