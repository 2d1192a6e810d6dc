"""A check, before Arrow unpacks anything, that an Arrow file stores its batch uncompressed.

A few bytes of a compressed file may ask for any amount of memory, and Arrow grants it as soon as
the batch is looked at. So the batch's description is read by hand first: a flatbuffer, whose tables
tell where each of their fields is (`Message`, `RecordBatch` and `Footer` in Arrow's ``Message.fbs``
and ``File.fbs``).
"""

import os
import struct
from typing import BinaryIO

_MAGIC = b"ARROW1"
_CONTINUES = 0xFFFFFFFF
_MAX_DESCRIPTION_BYTES = 1 << 16

_FOOTER_BATCHES = 3
_MESSAGE_KIND, _MESSAGE_HEADER = 1, 2
_BATCH_COMPRESSION = 3
_RECORD_BATCH = 3
_BLOCK = struct.Struct("<qi4xq")


def is_plain(file: BinaryIO) -> bool:
    """Return whether an Arrow file holds exactly one record batch, which is not compressed.

    Parameters
    ----------
    file
        Open for reading, of any content; a few hundred bytes of it are read.
    """
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
