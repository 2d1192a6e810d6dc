"""Arrays on disk as plain ``.npy`` files.

They are written with their checksum and opened memory-mapped, never unpickled.
"""

import ast
import os
import re
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.lib import format as npy

from pexeso.errors import IndexCorruptError, InputError
from pexeso.store.files import (
    CHUNK_BYTES,
    ChecksumWriter,
    new_file,
    open_plain,
    sync_folder,
    writing,
)
from pexeso.store.manifest import FileEntry

DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")
_STORED = {
    np.dtype(name).newbyteorder("<").str: np.dtype(name).newbyteorder("<") for name in DTYPES
}
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

    Returns
    -------
    list[FileEntry]
        One entry an array, in the order given; the checksum is taken while writing.
    """
    for name, array in arrays.items():
        _require_storable(name, array)
    entries = [_write_array(folder / f"{name}.npy", array) for name, array in arrays.items()]
    with writing(folder):
        sync_folder(folder)
    return entries


def open_array(path: Path, n_bytes: int | None = None) -> np.ndarray:
    """Open an array read-only and memory-mapped; its numbers are read when they are used.

    Parameters
    ----------
    n_bytes
        Its size as the manifest has it; None takes the size the file has.

    Returns
    -------
    np.ndarray
        Little-endian, C order, of one of `DTYPES`, not writable.
    """
    try:
        with open_plain(path) as file:
            return map_array(file, path, n_bytes)
    except OSError as error:
        raise IndexCorruptError(f"'{path}' cannot be opened: {error.strerror}.") from error


def map_array(file: BinaryIO, path: Path, n_bytes: int | None = None) -> np.ndarray:
    """Map the array of an open file, as `open_array` does.

    The file may be closed afterwards. Error messages name it by its path.
    """
    size = os.fstat(file.fileno()).st_size
    shape, dtype, offset = _read_header(file, path)
    expected = offset + _n_items(shape) * dtype.itemsize
    if size != expected or (n_bytes is not None and size != n_bytes):
        raise IndexCorruptError(
            f"'{path}' has {size} bytes, but {n_bytes if size == expected else expected} bytes "
            "are expected: "
            "it was changed or cut short. 'pexeso check' lists all such files."
        )
    if _n_items(shape) == 0:  # nothing to map
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
        _write_items(file, stored)
    return file.entry(path.name)


def _write_items(file: ChecksumWriter, array: np.ndarray) -> None:
    data = array.reshape(-1).view(np.uint8)
    for start in range(0, data.size, CHUNK_BYTES):
        file.write(data[start : start + CHUNK_BYTES])


def _read_header(file: BinaryIO, path: Path) -> tuple[tuple[int, ...], np.dtype, int]:
    """Return shape, dtype and the position of the first item.

    The header is parsed here, as strictly as it is written.

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
        or any(type(n) is not int or n < 0 for n in shape)
    ):
        raise ValueError("no shape")
    if _n_items(tuple(max(n, 1) for n in shape)) > 2**62:
        raise ValueError("a shape that no file has")
    return shape, _STORED[descr]


def _n_items(shape: tuple[int, ...]) -> int:
    product = 1
    for length in shape:
        product *= length
    return product
