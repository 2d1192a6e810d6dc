"""Arrays as ``.npy`` and texts as Arrow files, with their checksum, memory-mapped, never unpickled.

Of mapped arrays only the pages used are read, and they are requested in advance.
"""

from __future__ import annotations

import ast
import math
import mmap
import os
import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.lib import format as npy

from pexeso.errors import IndexCorruptError, failing_as
from pexeso.runtime.buffers import string_buffers
from pexeso.runtime.system import GIVES_ADVICE, usage
from pexeso.store.files import CHUNK_BYTES, new_file, open_plain, sync_folder, writing
from pexeso.store.manifest import FileEntry

# Pages that a process may find missing now and then, as its own code does when a function first
# runs.
FEW_FAULTS = 8

PAGE_BYTES = mmap.PAGESIZE


class FaultWatch:
    """Tells whether this process had to wait for a disk lately."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Forget the pages that were missing until now."""
        self._before = self._latest = usage("ru_majflt")

    def move_on(self) -> None:
        """Forget the pages that were missing before this was called last."""
        self._before, self._latest = self._latest, usage("ru_majflt")

    def missing(self) -> bool:
        return usage("ru_majflt") - self._before > FEW_FAULTS


class MappedPages:
    """The pages of some arrays that are mapped files.

    A system that finds a page missing reads its neighbours too, some megabytes of them where it is
    set up for films and backups. A search touches a page here and a page there, so the
    arrays are marked as read at random.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray], watch: FaultWatch) -> None:
        self._watch = watch
        self._arrays = {
            name: array
            for name, array in arrays.items()
            if isinstance(array, np.memmap) and isinstance(array.base, mmap.mmap) and GIVES_ADVICE
        }
        for array in self._arrays.values():
            array.base.madvise(mmap.MADV_RANDOM)

    def missing(self) -> bool:
        """Return whether pages were missing lately: else nothing need be asked for."""
        return self._watch.missing()

    def want(self, name: str, rows: np.ndarray) -> None:
        """Ask the system to read the pages of some rows of an array, and wait for none."""
        array = self._arrays.get(name)
        if array is None:
            return
        for first, last in page_runs(rows, len(array), array.strides[0], array.offset):
            array.base.madvise(
                mmap.MADV_WILLNEED, first * PAGE_BYTES, (last + 1 - first) * PAGE_BYTES
            )


def page_runs(rows: np.ndarray, n_rows: int, row_bytes: int, offset: int) -> list[tuple[int, int]]:
    """Return the pages that rows of a file, best ascending, lie on, as runs (first, last)."""
    rows = np.asarray(rows, np.int64)  # bytes of a file are more than int32 counts
    if not len(rows):
        return []
    if rows[0] < 0 or rows[-1] >= n_rows or (rows[1:] < rows[:-1]).any():  # from a damaged file
        return page_runs(np.sort(rows[(rows >= 0) & (rows < n_rows)]), n_rows, row_bytes, offset)
    if rows[-1] - rows[0] == len(rows) - 1:
        end = offset + (int(rows[-1]) + 1) * row_bytes
        return [((offset + int(rows[0]) * row_bytes) // PAGE_BYTES, max(0, end - 1) // PAGE_BYTES)]
    begin = offset + rows * row_bytes
    first, last = begin // PAGE_BYTES, (begin + max(1, row_bytes) - 1) // PAGE_BYTES
    cuts = np.flatnonzero(first[1:] > last[:-1] + 1) + 1
    ends = np.r_[cuts - 1, len(last) - 1]
    return list(zip(first[np.r_[0, cuts]].tolist(), last[ends].tolist(), strict=True))


DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")
_STORED = {(kind := np.dtype(name).newbyteorder("<")).str: kind for name in DTYPES}
_MAX_HEADER_BYTES = 4096
_MAX_AXES = 32


def write_arrays(
    folder: Path, arrays: Mapping[str, np.ndarray] | Iterable[tuple[str, np.ndarray]]
) -> list[FileEntry]:
    """Write each array to ``name.npy`` in an existing folder and wait until all are on the disk.

    Those that come in turn are dropped in turn. They are of `DTYPES`. Those that are not in C
    order, or not little-endian, are copied once.
    """
    in_turn = arrays.items() if isinstance(arrays, Mapping) else arrays
    entries = [_write_array(folder / f"{name}.npy", array) for name, array in in_turn]
    with writing(folder):
        sync_folder(folder)
    return entries


def open_array(path: Path, n_bytes: int | None = None) -> np.ndarray:
    """Open an array read-only and memory-mapped; its numbers are read when they are used."""
    try:
        with open_plain(path) as file:
            return map_array(file, path, n_bytes)
    except OSError as error:
        raise IndexCorruptError(f"'{path}' cannot be opened: {error.strerror}.") from error


def map_array(file: BinaryIO, path: Path, n_bytes: int | None = None) -> np.ndarray:
    """Map the array of an open file, which may be closed afterwards; messages name its path."""
    size = os.fstat(file.fileno()).st_size
    shape, dtype, offset = _read_header(file, path)
    n_items = math.prod(shape)
    expected = offset + n_items * dtype.itemsize
    if size != expected or (n_bytes is not None and size != n_bytes):
        raise IndexCorruptError(
            f"'{path}' has {size} bytes, but {n_bytes if size == expected else expected} bytes "
            "are expected: it was changed or cut short. 'pexeso check' lists all such files."
        )
    if n_items == 0:  # nothing to map
        empty = np.empty(shape, dtype)
        empty.flags.writeable = False
        return empty
    return np.memmap(file, dtype, "r", offset, shape, "C")


def _write_array(path: Path, array: np.ndarray) -> FileEntry:
    # asarray, as ascontiguousarray would turn an array without axes into one with one axis.
    stored = np.asarray(array, dtype=_STORED[array.dtype.newbyteorder("<").str], order="C")
    with new_file(path) as file:
        npy.write_array_header_1_0(file, npy.header_data_from_array_1_0(stored))
        data = stored.reshape(-1).view(np.uint8)
        for start in range(0, data.size, CHUNK_BYTES):
            file.write(data[start : start + CHUNK_BYTES])
    return file.entry(path.name)


def _read_header(file: BinaryIO, path: Path) -> tuple[tuple[int, ...], np.dtype, int]:
    """Return shape, dtype and the position of the first item, read as strictly as it is written.

    NumPy's own reader repairs or warns about headers of other writers; here anything unusual is a
    changed file.
    """
    start = file.read(10)
    if len(start) < 10 or start[:8] != b"\x93NUMPY\x01\x00":
        raise IndexCorruptError(
            f"'{path}' is not an array that pexeso wrote: it must begin as a .npy file, version "
            "1.0."
        )
    (length,) = struct.unpack("<H", start[8:])
    header = file.read(length)
    try:
        if len(header) < length or length > _MAX_HEADER_BYTES:
            raise ValueError(f"its header has {length} bytes")
        return *_shape_and_dtype(header), 10 + length
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise IndexCorruptError(
            f"'{path}' is not an array that pexeso wrote: its header is not readable."
        ) from error


def _shape_and_dtype(header: bytes) -> tuple[tuple[int, ...], np.dtype]:
    fields = ast.literal_eval(header.decode("ascii"))
    if not isinstance(fields, dict) or set(fields) != {"descr", "fortran_order", "shape"}:
        raise ValueError("other fields than descr, fortran_order and shape")
    shape, descr = fields["shape"], fields["descr"]
    if fields["fortran_order"] is not False or not isinstance(descr, str) or descr not in _STORED:
        raise ValueError("not in C order, or of a dtype that is not stored")
    if (
        not isinstance(shape, tuple)
        or len(shape) > _MAX_AXES
        or any([type(n) is not int or n < 0 for n in shape])
    ):
        raise ValueError("no shape")
    if math.prod([max(n, 1) for n in shape]) * _STORED[descr].itemsize > 2**62:
        raise ValueError("a shape that no file has")
    return shape, _STORED[descr]


# Of the texts, or bytes, of an array whose offsets have 32 bits.
MAX_BYTES = 2**31 - 1

_LARGE = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}

_Texts = TypeVar("_Texts", pa.Array, pa.ChunkedArray)


def wide_for(texts: _Texts, rows: pa.Array) -> _Texts:
    """Return texts that some rows can be taken of: with offsets of 64 bits where that is needed."""
    large = _LARGE.get(texts.type)
    if large is not None and texts.nbytes * len(rows) > MAX_BYTES:
        sizes = pc.binary_length(texts)
        # Arrow puts all chunks together before it takes rows of them.
        needed = (pc.sum(lengths, min_count=0).as_py() for lengths in (sizes, sizes.take(rows)))
        if max(needed) > MAX_BYTES:
            return texts.cast(large)
    return texts


def take_wide(texts: _Texts, rows: pa.Array) -> _Texts:
    """Return rows of texts in a new order, with offsets that are wide enough."""
    return wide_for(texts, rows).take(rows)


# A few bytes of a compressed file may ask for any amount of memory, and Arrow grants it as soon as
# the batch is looked at. So the batch's description is read by hand first: a flatbuffer, whose
# tables say where each of their fields is (`Message`, `RecordBatch` and `Footer` in Arrow's
# ``Message.fbs`` and ``File.fbs``).

_MAGIC = b"ARROW1"
_CONTINUES = 0xFFFFFFFF
_MAX_DESCRIPTION_BYTES = 1 << 16

_FOOTER_BATCHES = 3
_MESSAGE_KIND, _MESSAGE_HEADER = 1, 2
_BATCH_COMPRESSION = 3
_RECORD_BATCH = 3
_BLOCK = struct.Struct("<qi4xq")


def is_plain(file: BinaryIO) -> bool:
    """Return whether an Arrow file, of any content, holds one record batch, not compressed."""
    try:
        size = file.seek(0, os.SEEK_END)
        ends = _read(file, size - 10, 10)
        (length,) = struct.unpack_from("<i", ends)
        if ends[4:] != _MAGIC or not 0 < length <= min(_MAX_DESCRIPTION_BYTES, size - 10):
            return False
        footer = _read(file, size - 10 - length, length)
        batches = _inner(footer, _root(footer), _FOOTER_BATCHES)
        if batches is None or struct.unpack_from("<I", footer, batches)[0] != 1:
            return False
        offset, length, _ = _BLOCK.unpack_from(footer, batches + 4)
        if not (0 <= offset < size and 8 < length <= _MAX_DESCRIPTION_BYTES):
            return False
        message = _read(file, offset, length)
        if struct.unpack_from("<I", message)[0] != _CONTINUES:
            return False
        return _is_plain_message(message[8:])
    except (struct.error, ValueError):
        return False


def _is_plain_message(message: bytes) -> bool:
    root = _root(message)
    kind = _field(message, root, _MESSAGE_KIND)
    header = _inner(message, root, _MESSAGE_HEADER)
    if kind is None or header is None or message[kind] != _RECORD_BATCH:
        return False
    return _field(message, header, _BATCH_COMPRESSION) is None


def _read(file: BinaryIO, start: int, length: int) -> bytes:
    if start < 0:
        raise ValueError("a file that is too short")
    file.seek(start)
    return file.read(length)


def _root(buffer: bytes) -> int:
    return struct.unpack_from("<I", buffer)[0]


def _field(buffer: bytes, table: int, number: int) -> int | None:
    """Return the place of a field of a table; None where the table does not have it."""
    fields = table - struct.unpack_from("<i", buffer, table)[0]
    if fields < 0:
        raise ValueError("a table that begins before its buffer")
    (length,) = struct.unpack_from("<H", buffer, fields)
    if 6 + 2 * number > length:
        return None
    (distance,) = struct.unpack_from("<H", buffer, fields + 4 + 2 * number)
    if not distance:
        return None
    if table + distance >= len(buffer):
        raise ValueError("a field beyond its buffer")
    return table + distance


def _inner(buffer: bytes, table: int, number: int) -> int | None:
    """Return the place of the table or vector that a field refers to."""
    position = _field(buffer, table, number)
    return None if position is None else position + struct.unpack_from("<I", buffer, position)[0]


Texts = pa.StringArray | pa.LargeStringArray

_COLUMN = "text"
_TYPES = (pa.string(), pa.large_string())
_DAMAGED = (
    "A list of texts of the index is damaged: 'pexeso check' tells which. Restore it from "
    "a copy, or build the index again."
)
_SCHEMAS = tuple(pa.schema([(_COLUMN, kind)]) for kind in _TYPES)


def write_texts(path: Path, texts: Texts | pa.ChunkedArray) -> FileEntry:
    """Write texts as one record batch of one column, and wait until the file is on the disk."""
    array = _one_array(texts)
    schema = pa.schema([(_COLUMN, array.type)])
    batch = pa.record_batch([array], schema=schema)
    with new_file(path) as file, pa.ipc.new_file(pa.PythonFile(file, mode="w"), schema) as writer:
        writer.write_batch(batch)
    return file.entry(path.name)


def open_texts(path: Path) -> Texts:
    """Open texts memory-mapped; their bytes are read when they are used.

    They may be damaged: Arrow goes wherever an offset of the file leads. So texts are taken with
    `take_texts`, and used as a whole after `require_sound` alone.
    """
    return open_mapped_texts(path)[0]


def open_mapped_texts(path: Path) -> tuple[Texts, np.ndarray]:
    """Open texts as `open_texts` does, with the bytes of the file, np.memmap of uint8.

    Pages of the bytes can be requested before texts on them are read.
    """
    what = f"'{path}' is not a list of texts that pexeso wrote"
    with failing_as(IndexCorruptError, what), open_plain(path) as file:
        return map_texts(file, path)


def map_texts(file: BinaryIO, path: Path) -> tuple[Texts, np.ndarray]:
    """Map the texts of an open file, which may be closed afterwards; messages name its path."""
    try:
        if not is_plain(file):
            raise pa.ArrowInvalid("it must hold one batch of one column of texts, not compressed")
        mapped = np.memmap(file, np.uint8, "r")
        reader = pa.ipc.open_file(pa.py_buffer(mapped))
        if reader.schema not in _SCHEMAS or reader.num_record_batches != 1:
            raise pa.ArrowInvalid("it must hold one batch of one column of texts")
        texts = reader.get_batch(0).column(0)
        texts.validate()
    except (pa.ArrowException, ValueError) as error:
        reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        raise IndexCorruptError(
            f"'{path}' is not a list of texts that pexeso wrote: {reason}."
        ) from error
    return texts, mapped


def take_texts(texts: Texts, rows: np.ndarray | Sequence[int]) -> Texts:
    """Return selected texts, the position and the characters of each of them checked."""
    rows = np.asarray(rows, dtype=np.int64)
    outside = (rows < 0) | (rows >= len(texts))
    if outside.any():
        raise IndexCorruptError(
            f"A file of the index names the text {rows[outside][0]}, and there are "
            f"{len(texts):,}: it was changed. 'pexeso check' tells which."
        )
    if len(rows) == 0:
        return texts.slice(0, 0)
    text, positions = string_buffers(texts)
    first, last = positions[rows], positions[rows + 1]
    if ((first < 0) | (last < first) | (last > len(text))).any():
        raise IndexCorruptError(_DAMAGED)
    if texts.type == pa.string() and (last - first).sum(dtype=np.int64) > MAX_BYTES:
        texts = texts.cast(pa.large_string())
    selection = texts.take(pa.array(rows))
    require_sound(selection)
    return selection


def require_sound(texts: Texts) -> None:
    """Read all of the texts, and refuse them where one leads out of its file or is no UTF-8."""
    try:
        texts.validate(full=True)
    except pa.ArrowException as error:
        raise IndexCorruptError(f"{_DAMAGED} ({error})") from error


def _one_array(texts: Texts | pa.ChunkedArray) -> Texts:
    if isinstance(texts, pa.Array):
        return texts
    if texts.type == pa.string() and texts.nbytes > MAX_BYTES:
        texts = texts.cast(pa.large_string())
    joined = texts.combine_chunks()
    return joined if isinstance(joined, pa.Array) else joined.chunk(0)
