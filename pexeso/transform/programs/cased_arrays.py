"""Small letters, capitals and title case of many texts at a time.

What each letter becomes is read from tables that `pexeso.transform.programs.program` fills, so that
a column is cased exactly as its single texts are.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.transform.programs.program import Casing, capital, lower

_SHARP_S = ord("ß")


def cased_array(texts: pa.StringArray, casing: Casing) -> pa.StringArray:
    """Return texts in a casing, as `pexeso.transform.programs.program.cased` returns each.

    Memory: about 40 bytes for each character.

    >>> cased_array(pa.array(["o'NEIL", None, "straße"]), "title").to_pylist()
    ["O'Neil", None, 'Straße']
    """
    if casing == "none" or not len(texts):
        return texts
    valid = np.asarray(texts.is_valid())
    offsets, data = _offsets_and_bytes(pc.fill_null(texts, ""))
    if data.max(initial=0) < 0x80 and casing != "title":
        return pc.ascii_lower(texts) if casing == "lower" else pc.ascii_upper(texts)
    starts, points = _code_points(offsets, data)
    cased_points = _cased_points(starts, points, casing)
    if casing != "lower":
        starts, cased_points = _with_two_capitals(starts, points, cased_points)
    offsets, data = _utf8(starts, cased_points)
    return pa.StringArray.from_buffers(
        len(texts),
        pa.py_buffer(offsets),
        pa.py_buffer(data),
        pa.py_buffer(np.packbits(valid, bitorder="little")),
    )


def _offsets_and_bytes(texts: pa.StringArray) -> tuple[np.ndarray, np.ndarray]:
    """Return the bytes of all texts, and where each begins and the last ends."""
    _, ends, data = texts.buffers()
    offsets = np.frombuffer(ends, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    held = np.frombuffer(data or b"", np.uint8)[offsets[0] : offsets[-1]]
    return offsets - offsets[0], held


def _code_points(offsets: np.ndarray, data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the characters of all texts, and where each text begins and the last ends."""
    if data.max(initial=0) < 0x80:
        return offsets, data
    points = np.frombuffer(data.tobytes().decode().encode("utf-32-le"), "<u4")
    return _sums(data & 0xC0 != 0x80)[offsets], points


def _utf8(starts: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray | bytes]:
    """Return what `_code_points` was made from."""
    if points.max(initial=0) < 0x80:
        return starts.astype(np.int32), points.astype(np.uint8)
    widths = 1 + (points >= 0x80) + (points >= 0x800) + (points >= 0x10000)
    return _sums(widths)[starts].astype(np.int32), points.tobytes().decode("utf-32-le").encode()


def _sums(counts: np.ndarray) -> np.ndarray:
    """Return the sum of the counts before each place, and of all."""
    sums = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=sums[1:])
    return sums


def _cased_points(starts: np.ndarray, points: np.ndarray, casing: Casing) -> np.ndarray:
    """Return what each character becomes; ``ß`` stays."""
    small, capitals, is_letter = _tables(int(points.max(initial=0)).bit_length())
    if casing != "title":
        return (small if casing == "lower" else capitals)[points]
    letters = is_letter[points]
    follows = np.zeros_like(letters)
    follows[1:] = letters[:-1]
    follows[starts[starts < len(points)]] = False
    return np.where(letters, np.where(follows, small[points], capitals[points]), points)


def _with_two_capitals(
    starts: np.ndarray, points: np.ndarray, cased_points: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return characters and starts after ``ß`` became SS wherever it was to be a capital."""
    twice = (points == _SHARP_S) & (cased_points == ord("S"))
    if not twice.any():
        return starts, cased_points
    counts = 1 + twice
    return _sums(counts)[starts], np.repeat(cased_points, counts)


@cache
def _tables(n_bits: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the small letter and the capital (one S for ``ß``) of each character below a bound.

    The third array says which characters are letters. All of Unicode takes half a second.
    """
    characters = [chr(point) for point in range(min(1 << n_bits, 0x110000))]
    capitals = [character.upper() for character in characters]
    return (
        np.array([ord(lower(character)) for character in characters], np.uint32),
        np.array(
            [
                ord(uppercase if len(uppercase) == 1 else capital(character)[0])
                for character, uppercase in zip(characters, capitals, strict=True)
            ],
            np.uint32,
        ),
        np.array([character.isalpha() for character in characters]),
    )
