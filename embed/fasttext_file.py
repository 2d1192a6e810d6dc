"""Check that a fastText `.bin` file is whole, before the package reads it.

The package takes what is missing at the end for zeros, or goes on reading for ever.

Source of the layout: `FastText::saveModel` of fastText 0.9.2.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from pexeso.errors import EmbedderError
from pexeso.runtime.jit import loop

MAGIC = 793712314
_HEAD = struct.Struct("<2i 12i d 3i 2q")
"""Magic number and version; options; entries, words, labels, tokens and pruned rows."""
_SHAPE = struct.Struct("<?2q")
"""Whether a matrix is quantised, and its rows and columns; float32 numbers follow."""


def require_whole(path: Path) -> None:
    """Raise EmbedderError unless a file is a fastText model, complete and not quantised."""
    try:
        n_bytes = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(_HEAD.size)
        if len(head) < _HEAD.size or struct.unpack_from("<i", head)[0] != MAGIC:
            raise EmbedderError(f"{path} is not a fastText model (a .bin file saved by fastText).")
        *_, n_entries, _, _, _, n_pruned = _HEAD.unpack(head)
        data = np.memmap(path, np.uint8, "r")
    except OSError as error:
        raise EmbedderError(f"{path} cannot be read: {error.strerror or error}.") from error
    offset = end_of_entries(data, _HEAD.size, n_entries) + 8 * max(n_pruned, 0)
    for _ in ("words", "output"):
        if offset + _SHAPE.size > n_bytes:
            break
        is_quantised, n_rows, n_columns = _SHAPE.unpack_from(data, offset)
        if is_quantised:
            raise EmbedderError(
                f"{path} is a quantised fastText model, whose vectors cannot be read; use the .bin "
                "file instead."
            )
        if n_rows < 0 or n_columns < 0:
            break
        offset += _SHAPE.size + 4 * n_rows * n_columns
    else:
        if offset <= n_bytes:
            return
    raise EmbedderError(
        f"{path} is a fastText model that is damaged or cut short, at {n_bytes:,} bytes: copy or "
        "download it again."
    )


@loop
def end_of_entries(data: np.ndarray, start: int, n_entries: int) -> int:
    """Return where the entries of a dictionary end, beyond the data where these are too short.

    Each is a text that a zero ends, a count of eight bytes and a kind of one.
    """
    offset = start
    for _ in range(n_entries):
        while offset < len(data) and data[offset] != 0:
            offset += 1
        offset += 10
        if offset > len(data):
            break
    return offset
