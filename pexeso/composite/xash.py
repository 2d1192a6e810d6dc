"""XASH: a hash of a text that sets few bits, by its letters, their places and its length.

M. Esmailoghli, J.-A. Quiané-Ruiz and Z. Abedjan, "MATE: Multi-Attribute Table Extraction", VLDB
2022, section 5. A hash has a segment of bits for the length, leftmost, and one for each of 37
symbols. The rarest letters of a text set a bit each in their segments, the further right the later
they stand; the segments of the symbols are then rotated by the length. The paper leaves open the
order of the symbols and how letters outside them count; the parameters say what is done.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import cache
from math import comb

import numpy as np
import pyarrow as pa

from pexeso.errors import InputError
from pexeso.registry import FILTER_BITS
from pexeso.runtime.jit import loop
from pexeso.sets.overlap.loops import utf8_of

LAYOUTS = ("paper", "ref")
OTHER_LETTERS = ("letters", "ignore")

_DIGITS_AND_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"
_SYMBOLS = {"paper": _DIGITS_AND_LETTERS + " ", "ref": " " + _DIGITS_AND_LETTERS}
_N_SYMBOLS = 37
_KNOWN_LETTERS_END = 0x30000
"""Unicode 3.2 has no letter or number from here on."""
_NO_SLOT, _NO_BIT = -1, -2


@dataclass(frozen=True)
class Xash:
    """The parameters of XASH. A query must be hashed by those of the lake.

    Attributes
    ----------
    bits : int
        Of a hash: 64, 128, 256 or 512.
    ones : int
        Most bits that a text sets, at least 2: one for its length, the others for its letters
        (alpha in the paper). `ones_for` is the paper's rule.
    layout : str
        ``"paper"``, or ``"ref"`` for the bits that the published program sets.
    other_letters : str
        What happens, in the paper's layout, to a letter or number that is none of ``0-9a-z``: with
        ``"letters"`` it shares the segment of a symbol, with ``"ignore"`` it sets no bit. What is
        a letter is read in Unicode 3.2, which no version of Python changes; younger ones set no
        bit.

    Examples
    --------
    >>> [f"{word:016x}" for word in Xash().hashes(pa.array(["lee"]))[0].tolist()]
    ['0004000000000020', '0004000000000000']
    """

    bits: int = 128
    ones: int = 6
    layout: str = "paper"
    other_letters: str = "letters"

    name = "xash"

    def __post_init__(self) -> None:
        for what, value, allowed in (
            ("bits", self.bits, FILTER_BITS),
            ("layout", self.layout, LAYOUTS),
            ("other_letters", self.other_letters, OTHER_LETTERS),
        ):
            if isinstance(value, bool) or value not in allowed:
                raise InputError(
                    f"{what} of XASH must be one of {', '.join(map(repr, allowed))}. Got {value!r}."
                )
        if isinstance(self.ones, bool) or not isinstance(self.ones, int) or self.ones < 2:
            raise InputError(
                "ones of XASH, the most bits that a text sets, must be an integer from 2 on. Got "
                f"{self.ones!r}."
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
        segments = _segments(self.layout, self.other_letters)
        _hash_all(offsets, data, segments, self.bits, self.ones - 1, self.layout == "ref", hashes)
        return hashes


def ones_for(bits: int, n_values: int) -> int:
    """Return the fewest bits that give so many values a hash each (equation 5 of the paper).

    Parameters
    ----------
    bits : int
        Of a hash.
    n_values : int
        Distinct values of the lake.

    Examples
    --------
    >>> ones_for(128, 660_000_000)
    6
    """
    ones = 2
    while ones < bits // 2 and comb(bits, ones) <= n_values:
        ones += 1
    return ones


@cache
def _segments(layout: str, other_letters: str) -> np.ndarray:
    """Return the segment of each code point below `_KNOWN_LETTERS_END`: int8.

    `_NO_SLOT` is a character that is passed over, `_NO_BIT` one that is ranked with the others and
    sets no bit, as all other characters do in the published program.
    """
    if layout == "ref":
        segments = np.full(_KNOWN_LETTERS_END, _NO_BIT, np.int8)
    else:
        segments = np.full(_KNOWN_LETTERS_END, _NO_SLOT, np.int8)
        if other_letters == "letters":
            category = unicodedata.ucd_3_2_0.category
            codes = np.arange(_KNOWN_LETTERS_END)
            letters = [category(chr(code))[0] in "LN" for code in range(_KNOWN_LETTERS_END)]
            segments[letters] = (codes % _N_SYMBOLS)[letters]
    for segment, symbol in enumerate(_SYMBOLS[layout]):
        segments[ord(symbol)] = segment
    segments.flags.writeable = False
    return segments


@loop
def _hash_all(offsets, data, segments, bits, n_letters, ref, hashes):
    areas = (bits - 1) // 37
    region = 37 * areas
    longest = 0
    for row in range(len(hashes)):
        longest = max(longest, offsets[row + 1] - offsets[row])
    # Of the distinct characters of a text: code point, count and sum of places from 1 on.
    codes, counts = np.empty(longest, np.int32), np.empty(longest, np.int64)
    sums = np.empty(longest, np.int64)
    slot_of = np.full(0x110000, -1, np.int32)
    for row in range(len(hashes)):
        at, end = offsets[row], offsets[row + 1]
        if at == end:
            continue
        length, n = 0, 0
        while at < end:
            code, at = _code_point(data, at, end)
            length += 1
            segment = segments[code] if code < len(segments) else (-2 if ref else -1)
            if segment == -1:
                continue
            slot = slot_of[code]
            if slot < 0:
                slot = n
                slot_of[code] = n
                codes[n], counts[n], sums[n] = code, 0, 0
                n += 1
            counts[slot] += 1
            sums[slot] += length
        for slot in range(n):
            slot_of[codes[slot]] = -1
        length_bits = bits - region
        rotation = region * (length % length_bits) // length_bits if ref else length % region
        for _ in range(min(n_letters, n)):
            best = 0
            for slot in range(1, n):
                if counts[slot] < counts[best] or (
                    counts[slot] == counts[best] and codes[slot] < codes[best]
                ):
                    best = slot
            segment = segments[codes[best]] if codes[best] < len(segments) else -2
            if segment >= 0:
                whole = counts[best] * length
                if ref:
                    # Places from 0 on, and segments from the least significant bit on.
                    area = max(1, -(-(sums[best] - counts[best]) * areas // whole))
                    bit = segment * areas + area - 1
                else:
                    area = -(-sums[best] * areas // whole)
                    bit = region - (segment * areas + area)
                set_bit(hashes, row, (bit + rotation) % region)
            n -= 1
            codes[best], counts[best], sums[best] = codes[n], counts[n], sums[n]
        set_bit(hashes, row, region + length % length_bits)


@loop
def set_bit(hashes, row, bit):
    """Set a bit of a hash, counted from the least significant one."""
    hashes[row, hashes.shape[1] - 1 - (bit >> 6)] |= np.uint64(1) << np.uint64(bit & 63)


@loop
def _code_point(data, at, end):
    """Return the character of UTF-8 bytes that begins at `at`, and where the next one begins."""
    first = np.int32(data[at])
    if first < 0x80:
        return first, at + 1
    n_more = 1 if first < 0xE0 else 2 if first < 0xF0 else 3
    code = first & (0x3F >> n_more)
    for i in range(1, n_more + 1):
        if at + i < end:
            code = (code << 6) | (np.int32(data[at + i]) & 0x3F)
    return min(code, np.int32(0x10FFFF)), at + n_more + 1
