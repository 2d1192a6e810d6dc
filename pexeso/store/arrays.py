"""Arrays on disk as ``.npy`` files, written with their checksum, memory-mapped, never unpickled.

Of mapped arrays only the pages used are read, and they are requested in advance.
"""

from __future__ import annotations

import ast
import math
import mmap
import os
import re
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.lib import format as npy

from pexeso.errors import IndexCorruptError, InputError
from pexeso.runtime.system import GIVES_ADVICE, usage
from pexeso.store.files import CHUNK_BYTES, new_file, open_plain, sync_folder, writing
from pexeso.store.manifest import FileEntry

FEW_FAULTS = 8
"""Pages that a process may find missing now and then, as its own code does when a function first
runs."""

PAGE_BYTES = mmap.PAGESIZE


class FaultWatch:
    """Tells whether this process had to wait for a disk lately."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Forget the pages that were missing until now."""
        self._before = usage("ru_majflt")

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
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)
_MAX_HEADER_BYTES = 4096
_MAX_AXES = 32


def write_arrays(folder: Path, arrays: Mapping[str, np.ndarray]) -> list[FileEntry]:
    """Write each array to ``name.npy`` in an existing folder and wait until all are on the disk.

    Parameters
    ----------
    arrays
        Name (a letter, then letters, digits, underscores) to array of one of `DTYPES`, of any
        shape, empty ones included. Arrays that are not in C order, or not little-endian, are copied
        once; others are not copied.
    """
    for name, array in arrays.items():
        _require_storable(name, array)
    entries = [_write_array(folder / f"{name}.npy", array) for name, array in arrays.items()]
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


def _require_storable(name: str, array: np.ndarray) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InputError(
            f"An array's name must be a letter, then letters, digits or underscores. Got {name!r}."
        )
    if not isinstance(array, np.ndarray):
        raise InputError(f"The array {name!r} must be a NumPy array. Got {type(array).__name__}.")
    if array.dtype.newbyteorder("<").str not in _STORED:
        raise InputError(
            f"The array {name!r} has dtype {array.dtype}; allowed are {', '.join(DTYPES)}."
        )


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
