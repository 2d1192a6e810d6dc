"""The dictionary: from the text of a token to its number in the global order; pages of files.

Texts are kept sorted, and found by a binary search that takes the same step for all tokens of a
query in turn: log2(n) looks into an Arrow array that may be memory-mapped, and nothing to build
when an index is opened. From a disk each of these looks would wait for pages that only it uses. So
every `STRIDE`-th text, its head, is in a file of its own too, which is read as a whole once: the
search among the heads leaves each token a stretch of neighbouring texts, and the pages of all
stretches are requested together, as a B-tree of two levels would have it.

A posting list or the end of a set is one run of rows of a mapped array. Read one after the other
each would wait for the disk; requested together they wait once (`pexeso.store.arrays`).
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from pexeso.engine.lists import distinct_numbers
from pexeso.errors import IndexCorruptError
from pexeso.runtime.buffers import string_buffers
from pexeso.runtime.compiled import compiled
from pexeso.runtime.system import usage
from pexeso.store.arrays import FEW_FAULTS, PAGE_BYTES, FaultWatch, MappedPages

loops = compiled("pexeso.sets.loops")

UNKNOWN = -1
# Texts between two heads: those of a stretch, their offsets and their numbers lie on one or two
# pages each.
STRIDE = 128

# Bytes requested behind a stretch, so that the text after it, which may be the one wanted, is
# mostly there too.
_LETTERS = 256

# Systems read no more than this ahead for one request, unless they are set up otherwise.
_MAX_BYTES = 128 << 10

_BLOCK_BYTES = 512  # What systems count reads in


class DiskWatch(FaultWatch):
    """Watch for recent reads from a disk by this process, of requested pages too."""

    def restart(self) -> None:
        super().restart()
        self._read = usage("ru_inblock")

    def missing(self) -> bool:
        """Return whether more than a few pages were read since the start."""
        limit = FEW_FAULTS * PAGE_BYTES // _BLOCK_BYTES
        return super().missing() or usage("ru_inblock") - self._read > limit


class MappedRuns(MappedPages):
    """Arrays of which runs of rows are read; those that are not mapped files are passed over.

    From now on the system reads of the mapped ones what is touched, and no neighbours.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        super().__init__(arrays, DiskWatch())
        self._watch.restart()
        self._first = self._requests_from_start = True

    def restart(self) -> None:
        """Begin a search, and decide whether pages are requested from the start.

        They are if this is the first search, or if some were missing in the search before.
        Otherwise they are requested once some are missing.
        """
        self._requests_from_start = self._watch.missing() or self._first
        self._first = False
        self._watch.restart()

    @property
    def requests_pages(self) -> bool:
        return bool(self._arrays) and (self._requests_from_start or self._watch.missing())

    def want(self, name: str, begins: np.ndarray, ends: np.ndarray) -> None:
        """Request rows ``begins[r]`` to ``ends[r]`` of an array, int64 (n,), and do not wait.

        Nothing is requested if no pages were missing recently, nor what lies outside the array.
        Requests are whole pages without repetition, none larger than what systems read for one.
        """
        array = self._arrays.get(name)
        if array is None or not len(begins) or not self.requests_pages:
            return
        row_bytes, offset, n_bytes = array.strides[0], array.offset, array.offset + array.nbytes
        reached = 0
        for begin, end in sorted(zip(begins.tolist(), ends.tolist(), strict=True)):
            first = max(reached, (offset + begin * row_bytes) // PAGE_BYTES * PAGE_BYTES)
            last = min(n_bytes, offset + end * row_bytes)
            for position in range(first, last, _MAX_BYTES):
                size = min(_MAX_BYTES, last - position)
                array.base.madvise(mmap.MADV_WILLNEED, position, size)
            reached = max(reached, -(-last // PAGE_BYTES) * PAGE_BYTES)


@dataclass(frozen=True)
class Heads:
    """Every `STRIDE`-th text of a dictionary, the first one first."""

    texts: pa.LargeStringArray  # pa.LargeStringArray (h,)
    # int64 (h + 1,): where each begins among the letters of all texts, and where these end
    positions: np.ndarray
    # Of what is read behind the heads: ``texts``, the bytes of the file of all texts, and
    # ``numbers``
    pages: MappedRuns = field(default_factory=lambda: MappedRuns({}), compare=False)
    # Bytes of that file before the offsets of all texts, and before their letters
    offsets_at: int = 0
    letters_at: int = 0

    def want(self, stretches: np.ndarray) -> None:
        """Request offsets, letters and numbers of texts from one head, int64 (q,), to the next."""
        if not self.pages.requests_pages:
            return
        stretches = distinct_numbers(stretches)
        rows = STRIDE * stretches
        self.pages.want("numbers", rows, rows + STRIDE + 1)
        offsets, letters = self.offsets_at + 8 * rows, self.letters_at + self.positions[stretches]
        letter_ends = self.letters_at + self.positions[stretches + 1] + _LETTERS
        self.pages.want(
            "texts",
            np.concatenate([offsets, letters]),
            np.concatenate([offsets + 8 * (STRIDE + 2), letter_ends]),
        )


@dataclass(frozen=True)
class Dictionary:
    texts: pa.LargeStringArray  # pa.LargeStringArray (n,): distinct, ascending by code point
    numbers: np.ndarray  # int32 or int64 (n,): the token's position in the global order
    heads: Heads | None = None  # Where texts and numbers are mapped files

    def __len__(self) -> int:
        return len(self.texts)

    def find(self, tokens: pa.Array) -> np.ndarray:
        """Return the numbers of texts without nulls, `UNKNOWN` where there is none: int64 (q,)."""
        wanted = tokens.cast(pa.large_string())
        numbers = np.full(len(wanted), UNKNOWN, np.int64)
        if not len(self.texts) or not len(wanted):
            return numbers
        positions = find_texts(self.texts, wanted, self._stretches(wanted))
        known = positions >= 0
        numbers[known] = self.numbers[positions[known]]
        return numbers

    def _stretches(self, wanted: pa.LargeStringArray) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the bounds of the rows that may hold each text, and request their pages.

        None, which is for all rows, where there is nothing to request.
        """
        if self.heads is None:
            return None
        self.heads.pages.restart()
        if not self.heads.pages.requests_pages:
            return None
        after = first_not_less(self.heads.texts, wanted)
        stretches = np.maximum(after - 1, 0)
        self.heads.want(stretches)
        return STRIDE * stretches, np.minimum(STRIDE * after, len(self.texts))


def heads_of(texts: pa.LargeStringArray) -> Heads:
    _, positions = string_buffers(texts)
    rows = np.arange(0, len(texts), STRIDE)
    begins = np.append(positions[rows], positions[-1]) - positions[0]
    return Heads(texts.take(pa.array(rows)), begins)


def find_texts(
    texts: pa.Array, wanted: pa.Array, bounds: tuple[np.ndarray, np.ndarray] | None = None
) -> np.ndarray:
    """Return the positions of texts among sorted texts, -1 where there is none: int64 (q,).

    O(log n) steps each, which all texts take in turn, so that memory accesses do not wait for each
    other. Bounds are for each the first row that may hold it, and the row behind those that are
    less.
    """
    rows, ends = bounds or (np.zeros(len(wanted), np.int64), np.full(len(wanted), len(texts)))
    if not loops.find_texts(*utf8_of(texts), *utf8_of(wanted.cast(pa.large_string())), rows, ends):
        raise _damaged()
    return rows


def first_not_less(texts: pa.Array, wanted: pa.LargeStringArray) -> np.ndarray:
    """Find the first row whose text is not less than the wanted one; the end if there is none."""
    rows = np.zeros(len(wanted), np.int64)
    ends = np.full(len(wanted), len(texts))
    if not loops.first_not_less(*utf8_of(texts), *utf8_of(wanted), rows, ends):
        raise _damaged()
    return rows


def _damaged() -> IndexCorruptError:
    return IndexCorruptError(
        "A text of the index leads out of its file: 'pexeso check' tells which. Restore it from a "
        "copy, or build it again."
    )


def utf8_of(texts: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return where texts begin and end, int32 or int64 (n + 1,), and their bytes.

    Both lie in Arrow's buffers.
    """
    text, ends = string_buffers(texts)
    return ends, text
