"""Texts as arrays of code points.

Rules about single characters run over a whole column in one pass.

Regular expressions with Unicode classes would say the same, but each costs milliseconds to compile,
for every column.
"""

import unicodedata
from collections.abc import Callable, Iterator
from functools import cache, cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

OTHER, LETTER, MARK, NUMBER, SYMBOL, INVISIBLE = range(6)
"""Classes of characters: Unicode's L, M, N and S; what has no width; all else."""

DIGITS = b"0123456789"

_BLOCK_BYTES = 4 << 20
_END = "\n"
_INVISIBLE_CHARACTERS = frozenset([0xAD, *range(0x200B, 0x2010), 0x2060, 0xFEFF])

_PAGE = 0x100
_classes = np.zeros(0x110000, np.uint8)
_known_pages: set[int] = set()
# Classes are looked up page by page, since those of all characters take a quarter of a second, in
# every process, and few texts need them.

_CLASS_OF_CATEGORY = {"L": LETTER, "M": MARK, "N": NUMBER, "S": SYMBOL}


def classes_of(points: np.ndarray) -> np.ndarray:
    """Return the class of each code point: uint8, of the shape of `points`."""
    one_page = points.max(initial=0) < _PAGE
    pages = (0,) if one_page else np.flatnonzero(np.bincount(points.ravel() >> 8)).tolist()
    for page in pages:
        if page not in _known_pages:
            _classes[page * _PAGE : (page + 1) * _PAGE] = [
                _class_of(point) for point in range(page * _PAGE, (page + 1) * _PAGE)
            ]
            _known_pages.add(page)
    return _classes[points]


def _class_of(point: int) -> int:
    if point in _INVISIBLE_CHARACTERS:
        return INVISIBLE
    return _CLASS_OF_CATEGORY.get(unicodedata.category(chr(point))[0], OTHER)


def change_characters(
    values: pa.StringArray,
    change: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]],
) -> pa.StringArray:
    """Apply a function of code points to texts, in blocks of about 4 MiB to bound memory.

    Parameters
    ----------
    change
        Takes the code points of a block (uint32), each value followed by a newline, and the row of
        each code point (int64, ascending). Returns new code points without those newlines, and
        their rows.
    """
    blocks = [_assembled(*change(*_points(block)), len(block)) for block in _blocks(values)]
    return pa.concat_arrays(blocks) if blocks else values


def first_classes(values: pa.StringArray) -> np.ndarray:
    """Return the class of each text's first character, uint8; `OTHER` for an empty text."""
    first = Bytes(values).at(0)
    if (first < 0x80).all():
        return classes_of(first)
    points, rows = _points(pc.utf8_slice_codeunits(values, 0, 1))
    _, first = np.unique(rows, return_index=True)
    return classes_of(points[first])


class Bytes:
    """The bytes of texts, for cheap tests that come before patterns.

    Attributes
    ----------
    lengths : int32 (n,)
        In bytes.

    Examples
    --------
    >>> found = Bytes(pa.array(["at", ""]))
    >>> found.at(0).tolist(), found.at(-1).tolist(), found.lengths.tolist()
    ([97, 0], [116, 0], [2, 0])
    """

    def __init__(self, values: pa.StringArray) -> None:
        _, offsets, data = values.buffers()
        n = len(values)
        self._offsets = (
            np.frombuffer(offsets, np.int32)[values.offset : values.offset + n + 1]
            if n
            else np.zeros(1, np.int32)
        )
        self._data = (
            np.frombuffer(data, np.uint8)
            if data is not None and data.size
            else np.zeros(1, np.uint8)
        )
        self.lengths = np.diff(self._offsets)

    def at(self, position: int) -> np.ndarray:
        """Return one byte of each text as uint8, or 0 if the text is shorter.

        Positions count from the start, or from the end with -1 for the last byte.
        """
        if position >= 0:
            return self._data.take(self._offsets[:-1] + position, mode="clip") * (
                self.lengths > position
            )
        return self._data.take(self._offsets[1:] + position, mode="clip") * (
            self.lengths >= -position
        )

    @cached_property
    def occurring(self) -> np.ndarray:
        """Which bytes occur in the texts, bool (256,)."""
        data = self._data[self._offsets[0] : self._offsets[-1]]
        return np.bincount(data, minlength=256) > 0

    def start_with(self, positions: np.ndarray, start: bytes) -> np.ndarray:
        """Return which of the texts at given positions start with some bytes.

        ASCII capital letters are compared as small letters.
        """
        flags = self.lengths[positions] >= len(start)
        for step, byte in enumerate(start):
            flags &= _small()[self._data.take(self._offsets[positions] + step, mode="clip")] == byte
        return flags


@cache
def _small() -> np.ndarray:
    return np.frombuffer(bytes(range(256)).lower(), np.uint8)


def has_symbol(values: pa.StringArray) -> pa.BooleanArray:
    """Return for each text whether it holds a symbol of Unicode's class S."""
    flags = [np.zeros(0, dtype=bool)]
    for block in _blocks(values):
        points, rows = _points(block)
        flags.append(np.bincount(rows[classes_of(points) == SYMBOL], minlength=len(block)) > 0)
    return pa.array(np.concatenate(flags))


def _blocks(values: pa.StringArray) -> Iterator[pa.StringArray]:
    ends = np.cumsum(pc.binary_length(values).to_numpy(zero_copy_only=False).astype(np.int64))
    start = 0
    while start < len(values):
        limit = (ends[start - 1] if start else 0) + _BLOCK_BYTES
        stop = max(start + 1, int(np.searchsorted(ends, limit, side="right")))
        yield values.slice(start, stop - start)
        start = stop


def _points(values: pa.StringArray) -> tuple[np.ndarray, np.ndarray]:
    """Return the code points of the values, each followed by a newline, and their rows."""
    ended = pc.binary_join_element_wise(values, _END, "")
    offsets = np.frombuffer(ended.buffers()[1], dtype=np.int32)[
        ended.offset : ended.offset + len(ended) + 1
    ]
    text = ended.buffers()[2].to_pybytes()[offsets[0] : offsets[-1]]
    if text.isascii():
        lengths = np.diff(offsets)
        points = np.frombuffer(text, dtype=np.uint8).astype(np.uint32)
    else:
        points = np.frombuffer(text.decode("utf-8").encode("utf-32-le"), dtype=np.uint32)
        lengths = pc.utf8_length(ended).to_numpy()
    return points, np.repeat(np.arange(len(values)), lengths)


def _assembled(points: np.ndarray, rows: np.ndarray, n_rows: int) -> pa.StringArray:
    if points.max(initial=0) < 0x80:
        lengths, text = np.bincount(rows, minlength=n_rows), points.astype(np.uint8).tobytes()
    else:
        n_bytes = 1 + (points >= 0x80) + (points >= 0x800) + (points >= 0x10000)
        lengths = np.bincount(rows, weights=n_bytes, minlength=n_rows).astype(np.int64)
        text = points.astype("<u4").tobytes().decode("utf-32-le").encode("utf-8")
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.StringArray.from_buffers(n_rows, pa.py_buffer(offsets), pa.py_buffer(text))
