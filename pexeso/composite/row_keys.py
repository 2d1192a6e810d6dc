"""The rows of tables by the values in them, what composite keys are searched in; their filters.

Every distinct value has a number, in the order of the texts. A table lies row by row as numbers of
values, and every value has a posting list of its rows. So the cells of a row lie together and are
compared as numbers, and no text is read but those of the query.

Memory: 4 bytes for a cell and 4 for its entry in a posting list, where it has one; 16 for a
distinct value, and its text; 32 for a table; 16 for each row and super key of 128 bits.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property
from math import log
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.engine.lists import offsets_of
from pexeso.errors import IndexCorruptError, InputError
from pexeso.registry import FILTER_BITS, require_filters
from pexeso.runtime.compiled import compiled
from pexeso.sets.overlap.dictionary import find_texts, utf8_of

loops = compiled("pexeso.composite.loops")

MISSING = -1  # A cell without a value.

_MAX_INT32 = np.iinfo(np.int32).max
_ARRAYS = {
    "cells": np.int32,
    "table_rows": np.int64,
    "table_columns": np.int64,
    "value_offsets": np.int64,
    "posting_rows": np.int32,
}


_NO_FIT = (
    "The arrays of an index for composite keys do not fit together: %s. Restore the index from a "
    "copy, or build it again."
)


@dataclass(frozen=True)
class RowFilter:
    """The parameters of a hash of texts. A query must be hashed by those of the lake.

    A row is hashed by all the bits that its values set: its super key.
    """

    bits: int = 128  # Of a hash: 64, 128, 256 or 512

    name: ClassVar[str]

    @property
    def n_words(self) -> int:
        """Number of 64-bit words of a hash."""
        return self.bits // 64

    def hashes(self, texts: pa.Array) -> np.ndarray:
        """Hash texts: uint64 (n, n_words)."""
        hashes = np.zeros((len(texts), self.n_words), np.uint64)
        self.set_bits(*utf8_of(texts), hashes)
        return hashes

    def set_bits(self, offsets: np.ndarray, data: np.ndarray, hashes: np.ndarray) -> None:
        """Set the bits of texts, given as UTF-8, in their hashes."""
        raise NotImplementedError


class SuperKeys(NamedTuple):
    """The super key of each row."""

    hashing: RowFilter
    # uint64 (rows, words): the most significant word first, which holds the length bits of XASH
    words: np.ndarray


@dataclass(frozen=True, eq=False)
class RowKeys:
    """Tables as arrays, which may be memory-mapped. `build_row_keys` makes them."""

    values: pa.Array  # Arrow texts (v,): distinct, not empty, in the order of their bytes
    # int32 (c,): numbers of values, -1 for a missing one: table after table, row after row
    cells: np.ndarray
    # int64 (t + 1,): the rows of table i have the numbers from ``table_rows[i]`` to ``table_rows[i
    # + 1] - 1``
    table_rows: np.ndarray
    table_columns: np.ndarray  # int64 (t + 1,): columns likewise
    # int64 (v + 1,): the list of value i is ``posting_rows[value_offsets[i]:value_offsets[i + 1]]``
    value_offsets: np.ndarray
    posting_rows: np.ndarray  # int32 (p,): rows that hold the value, ascending, each once
    super_keys: Mapping[str, SuperKeys] = field(default_factory=dict)

    def __post_init__(self) -> None:
        wrong = _what_is_wrong(self)
        if wrong:
            raise IndexCorruptError(_NO_FIT % wrong)
        for name in _ARRAYS:
            # Plain views of maps: a memmap takes microseconds longer for each access.
            object.__setattr__(self, name, np.asarray(getattr(self, name)))

    @property
    def n_tables(self) -> int:
        return len(self.table_rows) - 1

    @property
    def n_rows(self) -> int:
        return int(self.table_rows[-1])

    @cached_property
    def widths(self) -> np.ndarray:
        return np.diff(self.table_columns)

    @cached_property
    def table_cells(self) -> np.ndarray:
        """Return where the cells of each table begin: int64 (t + 1,)."""
        return offsets_of(np.diff(self.table_rows) * self.widths)

    def find(self, texts: pa.Array) -> np.ndarray:
        """Return the number of each text, -1 where no cell holds it: int32 (n,)."""
        return find_texts(self.values, texts).astype(np.int32)


def build_row_keys(
    tables: Iterable[pa.Table | pa.RecordBatch], filters: Sequence[RowFilter] = ()
) -> RowKeys:
    chunks: list[pa.Array] = []
    n_rows: list[int] = []
    widths: list[int] = []
    for number, table in enumerate(tables):
        for name, column in zip(table.schema.names, table.columns, strict=True):
            chunks += texts_of(column, f"Column {name!r} of table {number}")
        n_rows.append(table.num_rows)
        widths.append(table.num_columns)
    # A table without columns has no rows: there is nothing in them to find.
    sizes = np.array([n if width else 0 for n, width in zip(n_rows, widths, strict=True)], np.int64)
    table_rows, table_columns = offsets_of(sizes), offsets_of(np.array(widths, np.int64))
    values, by_column = numbered(pa.chunked_array(chunks, pa.large_string()))
    cells = np.empty(len(by_column), np.int32)
    loops.row_after_row(by_column, table_rows, table_columns, cells)
    return row_keys_of(values, cells, table_rows, table_columns, filters)


def row_keys_of(
    values: pa.Array,
    cells: np.ndarray,
    table_rows: np.ndarray,
    table_columns: np.ndarray,
    filters: Sequence[RowFilter] = (),
) -> RowKeys:
    if int(table_rows[-1]) > _MAX_INT32 or len(values) > _MAX_INT32:
        raise InputError(
            f"An index for composite keys holds at most {_MAX_INT32:,} rows and as many distinct "
            f"values. Got {int(table_rows[-1]):,} and {len(values):,}: build several indexes."
        )
    nothing = np.zeros(len(values) + 1, np.int64), np.empty(0, np.int32)
    rows = RowKeys(values, cells, table_rows, table_columns, *nothing)
    if (wrong := _fault_of_cells(rows)) is not None:  # what counts postings trusts them
        raise IndexCorruptError(_NO_FIT % wrong)
    arrays = rows.cells, rows.table_rows, rows.widths
    last_row = np.full(len(values), -1, np.int64)
    ends = np.zeros(len(values) + 1, np.int64)
    loops.count_postings(*arrays, last_row, ends)
    offsets = np.cumsum(ends)
    posting_rows = np.empty(offsets[-1], np.int32)
    last_row[:] = -1
    loops.fill_postings(*arrays, last_row, offsets[:-1].copy(), posting_rows)
    super_keys = {}
    for hashing in filters:
        words = np.zeros((int(table_rows[-1]), hashing.n_words), np.uint64)
        loops.join_bits(*arrays, hashing.hashes(values), words)
        super_keys[hashing.name] = SuperKeys(hashing, words)
    return RowKeys(values, cells, table_rows, table_columns, offsets, posting_rows, super_keys)


def texts_of(
    column: pa.Array | pa.ChunkedArray, what: str, error: type[InputError] = InputError
) -> list[pa.Array]:
    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        raise error(f"{what} must hold normalised texts. Got {column.type}: cast it first.")
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return [chunk.cast(pa.large_string()) for chunk in chunks]


def numbered(texts: pa.ChunkedArray) -> tuple[pa.Array, np.ndarray]:
    """Return the distinct texts in order, and the number of each: -1 for null and ""."""
    texts = pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.large_string()), texts)
    encoded = texts.dictionary_encode().combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):  # as it is where there are no chunks
        encoded = pa.array([], pa.large_string()).dictionary_encode()
    order = pc.sort_indices(encoded.dictionary)
    rank = np.empty(len(order), np.int32)
    rank[order.to_numpy()] = np.arange(len(order), dtype=np.int32)
    numbers = pc.fill_null(encoded.indices, MISSING).to_numpy()
    return encoded.dictionary.take(order), np.where(
        numbers < 0, np.int32(MISSING), rank[numbers] if len(rank) else np.int32(MISSING)
    ).astype(np.int32, copy=False)


def _what_is_wrong(rows: RowKeys) -> str | None:
    for name, dtype in _ARRAYS.items():
        array = getattr(rows, name)
        if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != 1:
            return f"{name} must be an array {np.dtype(dtype)} with one axis"
    if rows.values.type not in (pa.string(), pa.large_string()) or rows.values.null_count:
        return "values must be texts without nulls"
    for name in ("table_rows", "table_columns"):
        if not _are_offsets(getattr(rows, name)):
            return f"{name} must begin with 0 and never sink"
    if len(rows.table_rows) != len(rows.table_columns):
        return "table_rows and table_columns must be equally long"
    if len(rows.value_offsets) != len(rows.values) + 1:
        return "value_offsets must be one longer than values"
    if rows.value_offsets[0] != 0 or rows.value_offsets[-1] != len(rows.posting_rows):
        return f"value_offsets must begin with 0 and end with {len(rows.posting_rows):,}"
    if max(rows.table_rows[-1], rows.table_columns[-1]) > _MAX_INT32:
        return f"the tables have more than {_MAX_INT32:,} rows or columns"
    if rows.table_cells[-1] != len(rows.cells) or (np.diff(rows.table_cells) < 0).any():
        return f"the tables have {int(rows.table_cells[-1]):,} cells, not {len(rows.cells):,}"
    for name, keys in rows.super_keys.items():
        shape = (rows.n_rows, keys.hashing.n_words)
        if keys.words.dtype != np.uint64 or keys.words.shape != shape:
            return f"super keys {name} must be an array uint64 of shape {shape}"
    return None


def faults_within(rows: RowKeys) -> Iterator[str]:
    """Yield what is wrong with the numbers and the texts of an index; reads all of it."""
    faults = [_fault_of_cells(rows), _what_is_wrong_with_values(rows.values)]
    if not _are_offsets(rows.value_offsets):
        faults.append("value_offsets must begin with 0 and never sink")
    yield from (wrong for wrong in faults if wrong is not None)
    if any(faults):
        return
    again = row_keys_of(
        rows.values,
        rows.cells,
        rows.table_rows,
        rows.table_columns,
        [keys.hashing for keys in rows.super_keys.values()],
    )
    if not np.array_equal(again.value_offsets, rows.value_offsets) or not np.array_equal(
        again.posting_rows, rows.posting_rows
    ):
        yield "posting_rows must be the rows of each value, ascending, each once"
    for name, keys in rows.super_keys.items():
        if not np.array_equal(again.super_keys[name].words, keys.words):
            yield f"super keys {name} must be those of the cells"


def _are_offsets(offsets: np.ndarray) -> bool:
    return len(offsets) > 0 and offsets[0] == 0 and not (np.diff(offsets) < 0).any()


def _fault_of_cells(rows: RowKeys) -> str | None:
    if len(rows.cells) and (rows.cells.min() < MISSING or rows.cells.max() >= len(rows.values)):
        return "cells must be numbers of values, or -1"
    return None


def _what_is_wrong_with_values(values: pa.Array) -> str | None:
    try:
        values.validate(full=True)
    except pa.ArrowInvalid as error:
        return f"values are damaged: {error}"
    if not len(values):
        return None
    if values[0].as_py() == "" or pc.any(pc.greater_equal(values[:-1], values[1:])).as_py():
        return "values must be distinct, not empty and in order"
    return None


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


# Filters of rows that an index keeps: XASH, and the Bloom filter its paper compares with.
#
# M. Esmailoghli, J.-A. Quiané-Ruiz and Z. Abedjan, "MATE: Multi-Attribute Table Extraction", VLDB
# 2022, section 5. A hash has a segment of bits for the length, leftmost, and one for each of 37
# symbols. The rarest letters of a text set a bit each in their segments, the further right the
# later they are in it; the segments of the symbols are then rotated by the length. The paper leaves
# open the order of the symbols and how letters outside them count; the parameters say what is done.


@dataclass(frozen=True)
class Xash(RowFilter):
    # Most bits that a text sets, at least 2: one for its length, the others for its letters (alpha
    # in the paper)
    ones: int = 6

    name = "xash"

    def __post_init__(self) -> None:
        _require("XASH", self.bits, "ones", self.ones, 2)

    def set_bits(self, offsets: np.ndarray, data: np.ndarray, hashes: np.ndarray) -> None:
        loops.xash(offsets, data, _segments(), self.bits, self.ones - 1, hashes)


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
class Bloom(RowFilter):
    # Bits that a value sets, at least 1; some of them may be the same. `hashes_for` is the best
    # number for rows of a given width.
    n_hashes: int = 9

    name = "bloom"

    def __post_init__(self) -> None:
        _require("a Bloom filter", self.bits, "n_hashes", self.n_hashes, 1)

    def set_bits(self, offsets: np.ndarray, data: np.ndarray, hashes: np.ndarray) -> None:
        loops.bloom(offsets, data, self.bits, self.n_hashes, hashes)


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
