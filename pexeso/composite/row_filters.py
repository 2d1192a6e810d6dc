"""Filters of rows that an index keeps: XASH, and the Bloom filter its paper compares with.

M. Esmailoghli, J.-A. Quiané-Ruiz and Z. Abedjan, "MATE: Multi-Attribute Table Extraction", VLDB
2022, section 5. A hash has a segment of bits for the length, leftmost, and one for each of 37
symbols. The rarest letters of a text set a bit each in their segments, the further right the later
they are in it; the segments of the symbols are then rotated by the length. The paper leaves open
the order of the symbols and how letters outside them count; the parameters say what is done.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from math import log
from typing import Any

import numpy as np
import pyarrow as pa

from pexeso.composite.row_keys import RowFilter
from pexeso.errors import IndexCorruptError, InputError
from pexeso.registry import FILTER_BITS, require_filters
from pexeso.runtime.compiled import compiled
from pexeso.sets.overlap.dictionary import utf8_of

loops = compiled("pexeso.composite.loops")

_SYMBOLS = "0123456789abcdefghijklmnopqrstuvwxyz "
_KNOWN_LETTERS_END = 0x30000  # Unicode 3.2 has no letter or number from here on.
_NO_SLOT = -1

# What a manifest says of the segments of letters, of which there is one way.
_LAYOUT = {"layout": "paper", "other_letters": "letters"}


def _require(what: str, bits: Any, count_name: str, count: Any, minimum: int) -> None:
    if isinstance(bits, bool) or bits not in FILTER_BITS:
        raise InputError(
            f"bits of {what} must be one of {', '.join(map(str, FILTER_BITS))}. Got {bits!r}."
        )
    if isinstance(count, bool) or not isinstance(count, int) or count < minimum:
        raise InputError(
            f"{count_name} of {what} must be an integer from {minimum} on. Got {count!r}."
        )


@dataclass(frozen=True)
class Xash:
    """The parameters of XASH. A query must be hashed by those of the lake."""

    bits: int = 128  # Of a hash: 64, 128, 256 or 512
    # Most bits that a text sets, at least 2: one for its length, the others for its letters (alpha
    # in the paper)
    ones: int = 6

    name = "xash"

    def __post_init__(self) -> None:
        _require("XASH", self.bits, "ones", self.ones, 2)

    @property
    def n_words(self) -> int:
        return self.bits // 64

    def hashes(self, texts: pa.Array) -> np.ndarray:
        """Hash texts: uint64 (n, bits / 64)."""
        offsets, data = utf8_of(texts)
        hashes = np.zeros((len(texts), self.n_words), np.uint64)
        loops.xash(offsets, data, _segments(), self.bits, self.ones - 1, hashes)
        return hashes


@cache
def _segments() -> np.ndarray:
    """Return the segment of each code point below `_KNOWN_LETTERS_END`: int8."""
    segments = np.full(_KNOWN_LETTERS_END, _NO_SLOT, np.int8)
    category = unicodedata.ucd_3_2_0.category
    codes = np.arange(_KNOWN_LETTERS_END)
    letters = [category(chr(code))[0] in "LN" for code in range(_KNOWN_LETTERS_END)]
    segments[letters] = (codes % len(_SYMBOLS))[letters]
    for segment, symbol in enumerate(_SYMBOLS):
        segments[ord(symbol)] = segment
    segments.flags.writeable = False
    return segments


# A Bloom filter of the values of a row: the rival that the paper of XASH compares with.
#
# Each value sets bits at the places that several Murmur3 hashes of its UTF-8 bytes name, with
# seeds 0, 1, 2 and so on.


@dataclass(frozen=True)
class Bloom:
    """The parameters of a Bloom filter. A query must be hashed by those of the lake."""

    bits: int = 128  # Of a hash: 64, 128, 256 or 512
    # Bits that a value sets, at least 1; some of them may be the same. `hashes_for` is the best
    # number for rows of a given width.
    n_hashes: int = 9

    name = "bloom"

    def __post_init__(self) -> None:
        _require("a Bloom filter", self.bits, "n_hashes", self.n_hashes, 1)

    @property
    def n_words(self) -> int:
        return self.bits // 64

    def hashes(self, texts: pa.Array) -> np.ndarray:
        """Hash texts: uint64 (n, bits / 64)."""
        offsets, data = utf8_of(texts)
        hashes = np.zeros((len(texts), self.n_words), np.uint64)
        loops.bloom(offsets, data, self.bits, self.n_hashes, hashes)
        return hashes


def hashes_for(bits: int, columns: float) -> int:
    """Return the number of hashes with the fewest false positives."""
    return max(1, round(bits / columns * log(2)))


_KINDS = {"bloom": Bloom, "xash": Xash}


def filters_of(names: Iterable[str], mean_columns: float) -> list[RowFilter]:
    filters: list[RowFilter] = []
    for name in require_filters(names):
        kind, bits = name.split("-")
        if kind == "bloom":
            filters.append(Bloom(int(bits), hashes_for(int(bits), max(1.0, mean_columns))))
        else:
            filters.append(Xash(int(bits)))
    return filters


def filter_to_json(hashing: RowFilter) -> dict[str, Any]:
    layout = _LAYOUT if isinstance(hashing, Xash) else {}
    return {"name": hashing.name, **asdict(hashing), **layout}


def filter_from_json(document: Any) -> RowFilter:
    try:
        if not isinstance(document, Mapping):
            raise TypeError(f"it is {type(document).__name__}")
        options = dict(document)
        kind = _KINDS[options.pop("name")]
        if kind is Xash and {name: options.pop(name) for name in _LAYOUT} != _LAYOUT:
            raise TypeError("its letters have other segments")
        return kind(**options)
    except (KeyError, TypeError, InputError) as error:
        raise IndexCorruptError(
            f"The manifest of the index records a filter of rows that none can have: {error}. "
            "Build the index again."
        ) from error
