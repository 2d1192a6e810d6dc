"""XASH with the bits that the published program of MATE sets, to compare with those of the paper.

Places and segments count as there: places from 0 on, the space first of the symbols, and segments
from the least significant bit on; letters outside the symbols take a turn and set no bit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pexeso.composite.row_keys import RowFilter

_SYMBOLS = " 0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class PublishedXash(RowFilter):
    """The published program of XASH, in plain Python."""

    ones: int = 6

    name = "xash"

    def hashes(self, texts: pa.Array) -> np.ndarray:
        """Hash texts: uint64 (n, bits / 64)."""
        data = b"".join(
            self.number_of(text).to_bytes(8 * self.n_words, "big") for text in texts.to_pylist()
        )
        return np.frombuffer(data, ">u8").reshape(-1, self.n_words).astype(np.uint64)

    def number_of(self, text: str) -> int:
        """Return the hash of a text as one number."""
        if not text:
            return 0
        areas = (self.bits - 1) // len(_SYMBOLS)
        region, length = len(_SYMBOLS) * areas, len(text)
        n_lengths = self.bits - region
        places: dict[str, list[int]] = {}
        for place, letter in enumerate(text):
            places.setdefault(letter, []).append(place)
        rotation = region * (length % n_lengths) // n_lengths
        number = 1 << (region + length % n_lengths)
        ranked = sorted(places, key=lambda letter: (len(places[letter]), letter))
        for letter in ranked[: self.ones - 1]:
            if letter in _SYMBOLS:
                here = places[letter]
                area = max(1, -(-sum(here) * areas // (len(here) * length)))
                bit = _SYMBOLS.index(letter) * areas + area - 1
                number |= 1 << ((bit + rotation) % region)
        return number
