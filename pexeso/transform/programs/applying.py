"""Programs applied to columns, as fast as Arrow's kernels are.

Rows are taken in batches, so the memory besides columns and result is bounded: a batch has at most
`BATCH_ROWS` rows, and at most `BATCH_BYTES` of cells, of constants and of characters that a
replacement makes of them, unless it is a single row. How many these are is counted before they are
made.
Casing takes the most, about 40 bytes a character of a block of 4 MiB.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import InputError
from pexeso.lake.normalise.characters import change_characters
from pexeso.transform.programs.conversions import conversion, lower
from pexeso.transform.programs.program import (
    Casing,
    Constant,
    Extract,
    Operator,
    Program,
    Split,
    capital,
    check_written,
)

# Small letters, capitals and title case of many texts at a time.
#
# What each letter becomes is read from tables that `pexeso.transform.programs.program` fills, so
# that a column is cased exactly as its single texts are.

_SHARP_S = ord("ß")


def cased_array(texts: pa.StringArray, casing: Casing) -> pa.StringArray:
    """Return texts in a casing, as `pexeso.transform.programs.program.cased` returns each."""
    if casing == "none" or not len(texts):
        return texts
    if casing != "title" and pc.all(pc.string_is_ascii(texts)).as_py() is not False:
        # The ASCII functions of Arrow 26 misread texts whose first offset is not 0.
        return pc.utf8_lower(texts) if casing == "lower" else pc.utf8_upper(texts)
    changed = change_characters(pc.fill_null(texts, ""), partial(_cased, casing=casing))
    return pc.if_else(texts.is_valid(), changed, _NO_TEXT)


def _cased(points: np.ndarray, rows: np.ndarray, casing: Casing) -> tuple[np.ndarray, np.ndarray]:
    """Return what each character becomes, two for a ``ß`` that becomes a capital."""
    small, capitals, is_letter = _tables(int(points.max(initial=0)).bit_length())
    changed = (small if casing == "lower" else capitals)[points]
    if casing == "title":
        # Each text is followed by a newline, which is no letter.
        letters = is_letter[points]
        changed = np.where(letters, changed, points)
        follows = letters & np.append(False, letters[:-1])
        changed[follows] = small[points[follows]]
    counts = 1 + ((points == _SHARP_S) & (changed == ord("S")))
    counts[np.append(rows[1:] != rows[:-1], True)] = 0
    return np.repeat(changed, counts), np.repeat(rows, counts)


@cache
def _tables(n_bits: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return small letters, capitals (one S for ``ß``) and which are letters, below a bound."""
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


BATCH_ROWS = 1 << 17
BATCH_BYTES = 1 << 23
MAX_BYTES = 1 << 31

_NO_TEXT = pa.scalar(None, pa.string())


def apply_program(program: Program, columns: Sequence[pa.Array | pa.ChunkedArray]) -> pa.Array:
    """Return what a program writes for each row: exactly `Program.of`, for all rows together."""
    texts = {column: columns[column] for column in program.columns}
    arrays, n_bytes = [], 0
    for stop, array in _written(program, texts, 0, len(columns[0])):
        arrays.append(array)
        n_bytes += array.nbytes
        if n_bytes >= MAX_BYTES:
            raise InputError(
                f"the program writes {n_bytes:,} bytes for the first {stop:,} of "
                f"{len(columns[0]):,} rows; at most 2 GiB can be written at once, so apply it "
                "to fewer rows at a time"
            )
    return pa.concat_arrays(arrays) if arrays else pa.array([], pa.string())


class _TooManyCharactersError(Exception):
    """A batch of several rows has more cells, or writes more, than is made at once."""


def _written(
    program: Program, texts: dict[int, pa.Array | pa.ChunkedArray], start: int, stop: int
) -> Iterator[tuple[int, pa.Array]]:
    """Yield what a program writes for some rows, halved until they are few enough."""
    n_rows = stop - start
    if not n_rows:
        return
    pieces = {column: cells.slice(start, n_rows) for column, cells in texts.items()}
    constants = [one.text.encode() for one in program.operators if isinstance(one, Constant)]
    n_bytes = max(sum(cells.nbytes for cells in pieces.values()), n_rows * sum(map(len, constants)))
    try:
        if n_rows > 1 and (n_rows > BATCH_ROWS or n_bytes > BATCH_BYTES):
            raise _TooManyCharactersError
        plain = {column: _plain(cells) for column, cells in pieces.items()}
        array = _Batch(plain, n_rows).of(program)
    except _TooManyCharactersError:
        middle = start + n_rows // 2
        yield from _written(program, texts, start, middle)
        yield from _written(program, texts, middle, stop)
    else:
        yield stop, array


def _plain(cells: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(cells, pa.ChunkedArray):
        cells = cells.combine_chunks()
    return cells.cast(pa.string())


class _Batch:
    """Rows that a program is applied to; operators that cut a cell at the same places share it."""

    def __init__(self, columns: dict[int, pa.Array], n_rows: int) -> None:
        self.columns, self.n_rows = columns, n_rows
        self.lists: dict[tuple[int, tuple[Split, ...], str], pa.ListArray] = {}

    def of(self, program: Program) -> pa.Array:
        pieces = [self.written(operator) for operator in program.operators]
        if all(isinstance(piece, pa.Scalar) for piece in pieces):
            text = "".join(piece.as_py() for piece in pieces)
            return pa.repeat(pa.scalar(text, pa.string()), self.n_rows)
        return pc.binary_join_element_wise(*pieces, "", null_handling="emit_null")

    def written(self, operator: Operator) -> pa.Array | pa.Scalar:
        if isinstance(operator, Constant):
            return pa.scalar(operator.text, pa.string())
        text = self.part(operator.column, operator.splits)
        for old, new in operator.replacements:
            if len(new) > len(old):
                self.check(text, old, len(new) - len(old))
            text = pc.replace_substring(text, old, new)
        if operator.conversion:
            text = converted(text, operator.conversion)
        return cased_array(substrings(text, operator), operator.casing)

    def check(self, text: pa.Array, old: str, n_more: int) -> None:
        """Raise an error where a replacement makes its places so much longer than it may."""
        places = pc.cast(pc.count_substring(text, old), pa.int64())
        lengths = pc.add(pc.cast(pc.utf8_length(text), pa.int64()), pc.multiply(places, n_more))
        check_written(pc.max(lengths).as_py() or 0)
        if self.n_rows > 1 and (pc.sum(lengths).as_py() or 0) > BATCH_BYTES:
            raise _TooManyCharactersError

    def part(self, column: int, splits: tuple[Split, ...]) -> pa.Array:
        if not splits:
            return self.columns[column]
        *before, last = splits
        key = column, tuple(before), last.separator
        if key not in self.lists:
            self.lists[key] = pc.split_pattern(self.part(*key[:2]), last.separator)
        return part(self.lists[key], last) if last.span == "one" else parts(self.lists[key], last)


def converted(texts: pa.Array, name: str) -> pa.Array:
    """Return what a conversion makes of each text, null where it makes nothing."""
    encoded = texts.dictionary_encode()
    new = map(conversion(name).of, encoded.dictionary.to_pylist())
    return pa.array(new, pa.string()).take(encoded.indices)


def parts(lists: pa.ListArray, split: Split) -> pa.Array:
    """Return several parts of each split text with the separators between them, as `part` does."""
    offsets = np.asarray(lists.offsets)
    counts = np.diff(offsets)
    applies = counts >= split.min_parts
    positions = split.part + np.where(split.part < 0, counts, 0)
    low, high = (0, positions + 1) if split.span == "to" else (positions, counts)
    number = np.arange(offsets[0], offsets[-1]) - np.repeat(offsets[:-1], counts)
    inside = np.repeat(applies, counts)
    inside &= number >= np.repeat(np.broadcast_to(low, counts.shape), counts)
    inside &= number < np.repeat(np.broadcast_to(high, counts.shape), counts)
    ends = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(np.where(applies, high - low, 0), out=ends[1:])
    values = lists.values.slice(offsets[0], len(inside)).filter(pa.array(inside))
    joined = pc.binary_join(pa.ListArray.from_arrays(ends, values), split.separator)
    return pc.if_else(pa.array(applies), joined, _NO_TEXT)


def part(lists: pa.ListArray, split: Split) -> pa.Array:
    """Return one part of each split text, null where the text was not split or has fewer parts."""
    offsets = np.asarray(lists.offsets)
    positions = (offsets[:-1] if split.part >= 0 else offsets[1:]) + split.part
    return lists.values.take(pa.array(positions, mask=np.diff(offsets) < split.min_parts))


def substrings(texts: pa.Array, extract: Extract) -> pa.Array:
    """Return a substring of each text, null where the text is too short for it."""
    fewest = extract.min_length
    if fewest is None:
        return pa.nulls(len(texts), pa.string())
    if extract.start == 0 and extract.length is None:
        return texts
    cut = pc.utf8_slice_codeunits(texts, extract.start, extract.stop)
    return pc.if_else(pc.greater_equal(pc.utf8_length(texts), fewest), cut, _NO_TEXT)
