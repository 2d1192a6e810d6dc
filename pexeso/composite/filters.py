"""The filters of rows that an index can keep, by their names and as plain JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from math import log
from typing import Any

import numpy as np
import pyarrow as pa

from pexeso.composite.row_keys import RowFilter
from pexeso.composite.xash import Xash, set_bit
from pexeso.errors import IndexCorruptError, InputError
from pexeso.registry import FILTER_BITS, require_filters
from pexeso.runtime.jit import loop
from pexeso.sets.overlap.loops import utf8_of

# A Bloom filter of the values of a row: the rival that the paper of XASH compares with.
#
# Each value sets bits at the places that several Murmur3 hashes of its UTF-8 bytes name, with
# seeds 0, 1, 2 and so on.


@dataclass(frozen=True)
class Bloom:
    """The parameters of a Bloom filter. A query must be hashed by those of the lake.

    Attributes
    ----------
    bits : int
        Of a hash: 64, 128, 256 or 512.
    n_hashes : int
        Bits that a value sets, at least 1; some of them may be the same. `hashes_for` is the best
        number for rows of a given width.

    Examples
    --------
    >>> Bloom(n_hashes=3).hashes(pa.array(["lee", ""])).any(axis=1).tolist()
    [True, False]
    """

    bits: int = 128
    n_hashes: int = 9

    name = "bloom"

    def __post_init__(self) -> None:
        if isinstance(self.bits, bool) or self.bits not in FILTER_BITS:
            raise InputError(
                f"bits of a Bloom filter must be one of {', '.join(map(str, FILTER_BITS))}. Got "
                f"{self.bits!r}."
            )
        wrong = isinstance(self.n_hashes, bool) or not isinstance(self.n_hashes, int)
        if wrong or self.n_hashes < 1:
            raise InputError(
                f"n_hashes of a Bloom filter must be an integer from 1 on. Got {self.n_hashes!r}."
            )

    @property
    def n_words(self) -> int:
        """Number of 64-bit words of a hash."""
        return self.bits // 64

    def hashes(self, texts: pa.Array) -> np.ndarray:
        """Hash texts.

        Returns
        -------
        uint64 (n, bits / 64)
            The most significant word first.
        """
        offsets, data = utf8_of(texts)
        hashes = np.zeros((len(texts), self.n_words), np.uint64)
        _set_bits(offsets, data, self.bits, self.n_hashes, hashes)
        return hashes


def hashes_for(bits: int, columns: float) -> int:
    """Return the number of hashes with the fewest false positives.

    Parameters
    ----------
    bits : int
        Of a hash.
    columns : float
        Mean number of values of a row, above 0.

    Examples
    --------
    >>> hashes_for(128, 5), hashes_for(128, 26)
    (18, 3)
    """
    return max(1, round(bits / columns * log(2)))


@loop
def _set_bits(offsets, data, bits, n_hashes, hashes):
    for row in range(len(hashes)):
        if offsets[row] == offsets[row + 1]:
            continue
        for seed in range(n_hashes):
            bit = np.int64(_murmur3(data, offsets[row], offsets[row + 1], seed)) % bits
            set_bit(hashes, row, bit)


@loop
def _murmur3(data, begin, end, seed):
    """Return Murmur3 of 32 bits (A. Appleby, public domain) of the bytes from `begin` to `end`."""
    mask = np.uint64(0xFFFFFFFF)
    state = np.uint64(seed)
    at = begin
    while at < end:
        n = min(4, end - at)
        word = np.uint64(0)
        for i in range(n):
            word |= np.uint64(data[at + i]) << np.uint64(8 * i)
        word = (word * np.uint64(0xCC9E2D51)) & mask
        word = ((word << np.uint64(15)) | (word >> np.uint64(17))) & mask
        state ^= (word * np.uint64(0x1B873593)) & mask
        if n == 4:
            state = ((state << np.uint64(13)) | (state >> np.uint64(19))) & mask
            state = (state * np.uint64(5) + np.uint64(0xE6546B64)) & mask
        at += 4
    state ^= np.uint64(end - begin)
    state ^= state >> np.uint64(16)
    state = (state * np.uint64(0x85EBCA6B)) & mask
    state ^= state >> np.uint64(13)
    state = (state * np.uint64(0xC2B2AE35)) & mask
    return state ^ (state >> np.uint64(16))


_KINDS = {"bloom": Bloom, "xash": Xash}


def filters_of(names: Iterable[str], mean_columns: float) -> list[RowFilter]:
    """Return the filters of these names for rows of so many columns on average.

    Examples
    --------
    >>> filters_of(["bloom-128", "xash-128-ref"], 5)[0].n_hashes
    18
    """
    filters: list[RowFilter] = []
    for name in require_filters(names):
        kind, bits, *layout = name.split("-")
        if kind == "bloom":
            filters.append(Bloom(int(bits), hashes_for(int(bits), max(1.0, mean_columns))))
        else:
            filters.append(Xash(int(bits), layout="ref" if layout else "paper"))
    return filters


def filter_to_json(hashing: RowFilter) -> dict[str, Any]:
    """Return the name and the parameters of a filter as plain JSON."""
    return {"name": hashing.name, **asdict(hashing)}


def filter_from_json(document: Any) -> RowFilter:
    """Make a filter of what `filter_to_json` returned."""
    try:
        if not isinstance(document, Mapping):
            raise TypeError(f"it is {type(document).__name__}")
        options = dict(document)
        return _KINDS[options.pop("name")](**options)
    except (KeyError, TypeError, InputError) as error:
        raise IndexCorruptError(
            f"The manifest of the index tells of a filter of rows that none can have: {error}. "
            "Build the index again."
        ) from error
