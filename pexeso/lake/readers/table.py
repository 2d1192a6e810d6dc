"""One file that is to be read, wherever it lies, the table in it, and what reading may take.

A small file can stand for any number of bytes and cells, or for work without end. Each reader asks
its budget before it sets memory aside, and between pieces. All bounds follow from the size of the
file as it is stored, so that whoever sends a small file has a small budget.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import os
import shutil
import stat
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import PlaceError, TableReadError
from pexeso.runtime.formatting import first_line
from pexeso.runtime.threads import release_unused
from pexeso.store.io.location import READ_BYTES, Location, is_refusal, locate, read_up_to

# Largest file that is read, in bytes after decompression, by default: 1 GiB.
DEFAULT_MAX_BYTES = 1 << 30

# A file may unpack to so many times its size, and to so many bytes in any case.
MAX_RATIO, MIN_UNPACKED_BYTES = 250, 32 << 20

# A table may have so many cells for each byte of its file, and so many in any case.
#
# A cell takes a byte of a text at least, if only a delimiter; in a table of the filled-in ends of
# short rows, of objects without most of the keys, or of nulls, it takes none.
CELLS_A_BYTE, MIN_CELLS = 4, 32 << 20

# Reading may take so many seconds of processor time, and so many more for each MiB.
MIN_SECONDS, SECONDS_A_MIB = 10, 4

_Item = TypeVar("_Item")


class ReadingBudget:
    """The bounds of reading one table; its clock runs from when it is made."""

    def __init__(self, shown: str, n_bytes: int, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self.shown, self.n_bytes, self.max_bytes = shown, n_bytes, max_bytes
        self._since, self._spent = time.thread_time(), 0.0

    @property
    def max_unpacked(self) -> int:
        return min(self.max_bytes, max(MAX_RATIO * self.n_bytes, MIN_UNPACKED_BYTES))

    @property
    def max_seconds(self) -> int:
        return MIN_SECONDS + SECONDS_A_MIB * (self.n_bytes >> 20)

    def check_unpacked(self, n_bytes: int) -> None:
        check_size(self.shown, n_bytes, self.max_bytes)
        if n_bytes > self.max_unpacked:
            raise TableReadError(
                f"{self.shown} is refused: its {self.n_bytes:,} bytes unpack to more than "
                f"{self.max_unpacked:,}; unpack it yourself if that is meant."
            )

    def check_unpacked_columns(self, n_bytes: float) -> None:
        if n_bytes > self.max_bytes:
            raise TableReadError(
                f"{self.shown} unpacks to more than {self.max_bytes:,} bytes, the most that is "
                "read (max_bytes)."
            )

    def check_cells(self, n_rows: int, n_columns: int, n_unpacked: int = 0) -> None:
        """Raise `TableReadError` for more cells than a table of so many bytes has.

        n_unpacked: bytes of the text, where the file is packed.
        """
        n_bytes = max(self.n_bytes, n_unpacked)
        if n_rows * max(1, n_columns) > max(CELLS_A_BYTE * n_bytes, MIN_CELLS):
            raise TableReadError(
                f"{self.shown} has almost no cells: it comes to more than {n_rows:,} rows of "
                f"{n_columns:,} columns, and has {n_bytes:,} bytes."
            )

    def is_over(self) -> bool:
        return self._spent + time.thread_time() - self._since > self.max_seconds

    def check_seconds(self) -> None:
        if self.is_over():
            raise self.out_of_time()

    def out_of_time(self) -> TableReadError:
        return TableReadError(
            f"{self.shown} cannot be read: after {self.max_seconds:,} seconds of work there was no "
            "end."
        )

    def paced(self, items: Iterable[_Item]) -> Iterator[_Item]:
        """Yield items; what is done between them by whoever asks takes none of the time."""
        iterator = iter(items)
        while True:
            self._since = time.thread_time()
            try:
                item = next(iterator)
            except StopIteration:
                return
            self.check_seconds()
            self._spent += time.thread_time() - self._since
            yield item


# Largest cell that is kept, in bytes of UTF-8, by default: 1 MiB.
#
# Larger ones are read as empty.
DEFAULT_MAX_CELL_BYTES = 1 << 20

# Most columns that a table may have (the limit of spreadsheets).
#
# A file with more is not taken for a table.
MAX_COLUMNS = 16_384

_FEW_CELLS = 500
_UTF8_BYTES = 4


@dataclass(frozen=True)
class Table:
    """One table as written in its file."""

    # The header, white space around each name removed; repeated and empty names are kept.
    names: list[str]
    # One string array for each name, all of `n_rows` values; null where the cell is empty. Cells
    # are otherwise as written, white space included.
    columns: list[pa.StringArray]
    encoding: str | None = None  # Python's name of the character encoding; None for Parquet
    delimiter: str | None = None  # What separates cells; None where the format has no delimiter.
    # Sentences about what was repaired or left out while reading.
    notes: list[str] = field(default_factory=list)

    @property
    def n_rows(self) -> int:
        return len(self.columns[0]) if self.columns else 0


def check_width(shown: str, n_columns: int) -> None:
    if n_columns > MAX_COLUMNS:
        raise TableReadError(
            f"{shown} has {n_columns:,} columns; a table has at most {MAX_COLUMNS:,}."
        )


def clean_name(name: str) -> str:
    return name.strip().strip("\ufeff").strip()


def empty_to_null(column: pa.StringArray, max_cell_bytes: int) -> tuple[pa.StringArray, int]:
    """Make empty cells and cells over the size limit null.

    Returned with the column is how many cells were over the limit.
    """
    lengths = pc.binary_length(column)
    bounds = pc.min_max(lengths, skip_nulls=False).as_py()
    if bounds["min"] and bounds["max"] <= max_cell_bytes:
        return column, 0
    too_big = pc.greater(lengths, max_cell_bytes)
    n_too_big = pc.sum(too_big).as_py() or 0
    unwanted = pc.or_(too_big, pc.equal(lengths, 0)) if n_too_big else pc.equal(lengths, 0)
    if pc.any(unwanted).as_py():
        column = pc.if_else(unwanted, pa.scalar(None, column.type), column)
    return column, n_too_big


def cells_to_column(cells: Sequence[str], max_cell_bytes: int) -> tuple[pa.StringArray, int]:
    """Return cells as a column, empty ones and those over the size limit as null.

    Returned with the column is how many cells were over the limit.
    """
    # Arrow's functions take longer to be called than a few hundred cells take in Python.
    if len(cells) <= _FEW_CELLS and _UTF8_BYTES * max(map(len, cells), default=0) <= max_cell_bytes:
        return strings([cell or None for cell in cells]), 0
    return empty_to_null(strings(cells), max_cell_bytes)


def too_big_note(n_too_big: int, max_cell_bytes: int) -> str:
    return f"cells of more than {max_cell_bytes:,} bytes were read as empty: {n_too_big:,}"


def join_chunks(chunks: list[pa.StringArray]) -> pa.StringArray:
    """Join the chunks of a column, and empty the list: so one column alone is held twice."""
    if len(chunks) == 1:
        return chunks.pop()
    column = pa.concat_arrays(chunks) if chunks else pa.array([], pa.string())
    chunks.clear()
    release_unused(column.nbytes)
    return column


def strings(values: list[str | None] | tuple[str | None, ...]) -> pa.StringArray:
    """Convert Python strings to an Arrow array.

    Lone surrogates, which UTF-8 cannot hold, become ``?``.
    """
    try:
        return pa.array(values, pa.string())
    except UnicodeEncodeError:
        texts = [
            None if value is None else value.encode("utf-8", "replace").decode("utf-8")
            for value in values
        ]
        return pa.array(texts, pa.string())


_PIECE_BYTES, _PACKED_BYTES, _COPIED_BYTES = 1 << 20, 1 << 16, 8 << 20
_ATTEMPTS = 3

# Frames in which programs keep notes of their own.
_SKIPPED_MAGICS = tuple(bytes([number]) + b"\x2a\x4d\x18" for number in range(0x50, 0x60))
_MOST_SKIPPED = 16
_ENDS_OF_LOGS = ("-wal", ".wal")  # of SQLite, and of DuckDB
# Begin of the first block of bzip2, or of the end where there is none.
_BZIP2_BLOCK = (b"1AY&SY", b"\x17rE8P\x90")


@dataclass(frozen=True)
class FileSource:
    """A file, as the formats that hold several tables want it: a stream or a path.

    location: Path, Location or None, where it lies; None for one that was taken out of another
    file; n_stored: int or None, size of the file that `data` was unpacked from, in bytes; None: it
    was not packed.
    """

    shown: str
    location: Path | Location | None = None
    data: bytes | None = field(default=None, repr=False)
    max_bytes: int = DEFAULT_MAX_BYTES
    n_stored: int | None = None
    digest: str | None = None

    def budget(self) -> ReadingBudget:
        """Return a new budget for reading a table of the file; its clock runs."""
        n_stored = self.n_stored
        if n_stored is None and self.data is not None:
            n_stored = len(self.data)
        elif n_stored is None and isinstance(self.location, Location):
            entry = self.location.look()
            n_stored = None if entry is None else entry.n_bytes
        elif n_stored is None and self.location is not None:
            with suppress(OSError, ValueError):  # whoever opens it says why
                n_stored = os.stat(self.location).st_size
        return ReadingBudget(self.shown, n_stored or 0, self.max_bytes)

    @cached_property
    def fingerprint(self) -> str | None:
        """BLAKE2b-128 of the bytes as stored, in hexadecimal, when first asked for.

        None where they cannot be read. Of a database with a log next to it, that of both.
        """
        if self.digest is not None:
            return self.digest
        if self.data is not None:
            return bytes_fingerprint(self.data)
        if self.location is None:
            return None
        fingerprint, log = fingerprint_file(self.location), log_beside(self.location)
        if fingerprint is None or log is None:
            return fingerprint
        return bytes_fingerprint(f"{fingerprint} {fingerprint_file(log)}".encode())

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open the file for reading, with `seek`; of one elsewhere only what is read is fetched."""
        if self.data is not None:
            yield io.BytesIO(self.data)
        elif isinstance(self.location, Location):
            with self._opened_elsewhere(self.location) as stream:
                yield stream
        elif self.location is None:
            raise TableReadError(f"{self.shown} has no place that it could be read from.")
        else:
            with self._opened_here(self.location) as stream:
                yield stream

    @contextmanager
    def local_path(self) -> Iterator[Path]:
        """Return a path of this machine for a library that needs one.

        That of the file itself, which must not be written to, or of a copy in a folder that is
        removed afterwards.
        """
        if isinstance(self.location, Path) and self.data is None:
            with self.open():
                yield self.location
            return
        with tempfile.TemporaryDirectory(prefix="pexeso-") as folder:
            copy = Path(folder) / "file"
            with self.open() as stream, open(copy, "wb") as target:
                shutil.copyfileobj(stream, target, _COPIED_BYTES)
            yield copy

    def _opened_here(self, path: Path) -> BinaryIO:
        try:
            check_size(self.shown, _regular_file_size(path, self.shown), self.max_bytes)
            return open(path, "rb")
        except OSError as error:
            raise _unreadable(self.shown, error) from error

    @contextmanager
    def _opened_elsewhere(self, location: Location) -> Iterator[BinaryIO]:
        try:
            entry = location.look()
            if entry is None or entry.kind != "file":
                raise _no_file(self.shown)
            check_size(self.shown, entry.n_bytes, self.max_bytes)
            with location.open() as stream:
                yield io.BufferedReader(_Raw(stream), 1 << 20)
        except PlaceError as error:
            if is_refusal(error):
                raise TableReadError(str(error)) from error
            raise


class _Raw(io.RawIOBase):
    """A stream of a storage as raw input, so that small reads of a library become large ones."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer).cast("B")  # type: ignore[arg-type]
        data = self._stream.read(len(view))
        view[: len(data)] = data
        return len(data)


def read_content(
    path: str | os.PathLike[str] | Location,
    *,
    max_bytes: int = DEFAULT_MAX_BYTES,
    shown: str | None = None,
) -> FileSource:
    """Read one regular file whole, unpacking what is packed by gzip, bzip2, xz or zstd.

    That is known by the first bytes of the file, not by its name. Reading stops at `max_bytes`, as
    stored and unpacked, and for a small file earlier (`ReadingBudget.max_unpacked`), so that one
    which unpacks to a huge one costs no more memory than this.
    """
    shown = str(path) if shown is None else shown
    location = locate(path)
    read = _read_elsewhere if isinstance(location, Location) else _read_here
    data = read(location, shown, max_bytes)
    check_size(shown, len(data), max_bytes)
    return FileSource(
        shown,
        data=unpacked(shown, data, max_bytes),
        max_bytes=max_bytes,
        n_stored=len(data),
        digest=bytes_fingerprint(data),
    )


def _read_here(path: Path, shown: str, max_bytes: int) -> bytes:
    try:
        _regular_file_size(path, shown)
        with open(path, "rb") as stream:
            return stream.read(max_bytes + 1)
    except OSError as error:
        raise _unreadable(shown, error) from error
    except ValueError as error:  # NUL, or half of a surrogate pair: no name of a file holds them
        raise TableReadError(f"{shown!r} cannot be the name of a file: {error}.") from error


def _read_elsewhere(location: Location, shown: str, max_bytes: int) -> bytes:
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


def _regular_file_size(path: Path, shown: str) -> int:
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise _no_file(shown)
    return status.st_size


def _no_file(shown: str) -> TableReadError:
    return TableReadError(f"{shown} is not a regular file; a table is one file.")


def _unreadable(shown: str, error: OSError) -> TableReadError:
    return TableReadError(f"{shown} cannot be read: {error.strerror or error}.")


def check_size(shown: str, n_bytes: int, max_bytes: int) -> None:
    if n_bytes > max_bytes:
        raise TableReadError(
            f"{shown} holds more than {max_bytes:,} bytes, the most that is read (max_bytes)."
        )


def bytes_fingerprint(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def fingerprint_file(path: str | os.PathLike[str] | Location) -> str | None:
    """Compute the fingerprint of a file, a piece at a time; None for an unreadable file."""
    location = locate(path)
    running = hashlib.blake2b(digest_size=16)
    is_local = isinstance(location, Path)
    size = _PIECE_BYTES if is_local else READ_BYTES  # elsewhere each is a request
    try:
        with open(location, "rb") if is_local else location.open() as stream:
            while piece := stream.read(size):
                running.update(piece)
    except PlaceError as error:
        if is_refusal(error):
            return None
        raise
    except (OSError, ValueError):
        return None
    return running.hexdigest()


def log_beside(location: Path | Location) -> Path | None:
    """Return the log of a database where it holds changes: the database is older than they.

    Of files elsewhere the log is not read.
    """
    for end in () if isinstance(location, Location) else _ENDS_OF_LOGS:
        log = location.with_name(f"{location.name}{end}")
        with suppress(OSError):
            if log.stat().st_size:
                return log
    return None


class _Packing(NamedTuple):
    kind: str
    magic: bytes
    pieces: Callable[[io.BytesIO], Iterator[bytes]]


def _pieces_of(opened: Callable[[io.BytesIO], Any]) -> Callable[[io.BytesIO], Iterator[bytes]]:
    def pieces(packed: io.BytesIO) -> Iterator[bytes]:
        with opened(packed) as stream:
            # In pieces: some libraries set aside as much memory as they are asked for.
            while piece := stream.read(_PIECE_BYTES):
                yield piece

    return pieces


def _pieces_by(new: Callable[[], Any]) -> Callable[[io.BytesIO], Iterator[bytes]]:
    """Unpack streams one after the other: Python's files end where a later one is damaged."""

    def pieces(packed: io.BytesIO) -> Iterator[bytes]:
        stream = new()
        while data := packed.read(_PACKED_BYTES):
            while data and not (stream.eof and not data.strip(b"\0")):
                stream = new() if stream.eof else stream
                yield stream.decompress(data, _PIECE_BYTES)
                while not (stream.eof or stream.needs_input):
                    yield stream.decompress(b"", _PIECE_BYTES)
                data = stream.unused_data if stream.eof else b""
        if not stream.eof:
            raise EOFError

    return pieces


_ZSTD = _Packing(
    "a zstd",
    b"\x28\xb5\x2f\xfd",
    _pieces_of(lambda packed: pa.CompressedInputStream(packed, "zstd")),
)
_PACKINGS = (
    _Packing("a gzip", b"\x1f\x8b", _pieces_of(lambda packed: gzip.GzipFile(fileobj=packed))),
    _Packing("a bzip2", b"BZh", _pieces_by(bz2.BZ2Decompressor)),
    _Packing("an xz", b"\xfd7zXZ\x00", _pieces_by(lzma.LZMADecompressor)),
    _ZSTD,
)


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
    start = 0
    for _ in range(_MOST_SKIPPED):
        if data[start : start + 4] not in _SKIPPED_MAGICS:
            break
        start += 8 + int.from_bytes(data[start + 4 : start + 8], "little")
    return data.startswith(_ZSTD.magic, start)


def _unpack(packed: bytes, packing: _Packing, budget: ReadingBudget) -> bytes:
    if packing.magic == b"BZh" and packed[4:10] not in _BZIP2_BLOCK:
        return packed  # a text that begins with these letters
    data = io.BytesIO()
    try:
        for piece in packing.pieces(io.BytesIO(packed)):
            budget.check_unpacked(data.tell() + len(piece))
            budget.check_seconds()
            data.write(piece)
    except EOFError as error:
        raise TableReadError(
            f"{budget.shown} is {packing.kind} file that was cut short; write or download it again."
        ) from error
    except (OSError, zlib.error, lzma.LZMAError, pa.ArrowException, ValueError) as error:
        raise TableReadError(
            f"{budget.shown} is {packing.kind} file that is damaged ({first_line(error)}); write "
            "or download it again."
        ) from error
    return data.getvalue()
