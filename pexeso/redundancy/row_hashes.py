"""Rows of tables as 128-bit hashes on any of their columns, and how many of them occur elsewhere.

Two values have one hash where they are equal by the type gate of R2D2 (specification of Shah et
al., SIGMOD 2023, section on types): whole numbers and decimals by their number, floats by their
double (NaN is one value, and -0.0 is 0.0), times of a kind by their instant, texts by their bytes,
lists and maps by their elements, structs by the names and values of their fields. All others
differ, whatever their texts look like: the number 1, the double 1.0 and the text "1" are three
values.

A cell is worth a hash by its column and value; a row on some columns is the sum of its cells,
modulo 2**64 in each half. So one pass over a table gives the hashes of its rows on the columns of
every other table. A hash has two halves of 64 bits, each a function of the value by other
constants: two rows that differ have one hash with probability 2**-128, if the functions behave like
random ones (they are not cryptographic). Among E pairs of tables of at most n rows a wrong answer
then has probability at most E * n**2 / 2**128: 3e-17 for 10,000 pairs of tables of a billion rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.engine.lists import offsets_of
from pexeso.lake.typed.value_texts import plain
from pexeso.redundancy.schema_tokens import is_list
from pexeso.runtime.compiled import compiled
from pexeso.runtime.ranges import mixed
from pexeso.sets.containment.hashing import hash_bytes

loops = compiled("pexeso.redundancy.loops")

HALVES = 2
MIN_ROWS_PER_VALUE = 4  # columns of fewer are kept as a hash of each row

_SEEDS = (42, 0x51ED_270B_9F1B_4C7D)  # of the hashes of bytes, one for each half
_STEP = np.uint64(0x9E3779B97F4A7C15)
_WIDTHS = (np.uint8, np.uint16, np.uint32)


def _key(name: str) -> np.ndarray:
    """Return two constants that stand for a name: uint64 (2,)."""
    return np.frombuffer(blake2b(name.encode(), digest_size=16).digest(), "<u8").copy()


_NUMBER, _FLOAT, _TEXT, _BYTES, _BOOLEAN, _DATE, NULL = map(
    _key, ("number", "float", "text", "bytes", "boolean", "date", "null")
)
_INSTANT, _LOCAL_TIME, _TIME_OF_DAY = map(_key, ("timestamp", "timestamp_ntz", "time"))
_LIST, _MAP, _ENTRY, _STRUCT, _JSON = map(_key, ("list", "map", "entry", "struct", "json"))


def value_hashes(values: pa.Array, *, is_json: bool = False) -> np.ndarray:
    """Hash typed values: uint64 (n, 2), `NULL` where one is missing; the same on every machine."""
    values = plain(values)
    hashes = _hashes_by_type(values, is_json)
    if values.null_count:
        hashes[values.is_null().to_numpy(zero_copy_only=False)] = NULL
    return hashes


def _hashes_by_type(values: pa.Array, is_json: bool) -> np.ndarray:
    kind, types = values.type, pa.types
    if types.is_dictionary(kind):
        distinct = np.concatenate([value_hashes(values.dictionary, is_json=is_json), [NULL]])
        return distinct[values.indices.cast(pa.int64()).fill_null(len(distinct) - 1).to_numpy()]
    if types.is_null(kind):
        return np.tile(NULL, (len(values), 1))
    if types.is_string(kind) or types.is_large_string(kind):
        return _byte_hashes(values.cast(pa.large_string()), _JSON if is_json else _TEXT)
    if types.is_binary(kind) or types.is_large_binary(kind):
        return _byte_hashes(values.cast(pa.large_binary()), _BYTES)
    if types.is_fixed_size_binary(kind):
        return _byte_hashes(values.cast(pa.binary()).cast(pa.large_binary()), _BYTES)
    if types.is_boolean(kind):
        return _word_hashes(values.cast(pa.int8()), _BOOLEAN)
    if types.is_uint64(kind):
        return _decimal_hashes(values.cast(pa.decimal128(20, 0)))
    if types.is_integer(kind):
        return _word_hashes(values, _NUMBER)
    if types.is_decimal(kind):
        return _decimal_hashes(values)
    if types.is_floating(kind):
        numbers = values.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0
        numbers[np.isnan(numbers)] = np.nan  # one bit pattern
        return _hashes_of_words(numbers.view(np.uint64), _FLOAT)
    if types.is_date(kind):
        return _word_hashes(values.cast(pa.date32()).cast(pa.int32()), _DATE)
    if types.is_timestamp(kind):
        return _time_hashes(values, kind.unit, _LOCAL_TIME if kind.tz is None else _INSTANT)
    if types.is_time(kind):
        whole = values.cast(pa.int32() if types.is_time32(kind) else pa.int64())
        return _time_hashes(whole, kind.unit, _TIME_OF_DAY)
    if types.is_duration(kind):  # one unit is a type of its own
        return _word_hashes(values, _key(f"type {kind}"))
    if types.is_map(kind):
        return _map_hashes(values)
    if is_list(kind):
        return _list_hashes(values)
    if types.is_struct(kind):
        return _struct_hashes(values)
    # Values of other types equal only their own: by the type and the value as text.
    texts = [None if value is None else repr(value) for value in values.to_pylist()]
    return _byte_hashes(pa.array(texts, pa.large_string()), _key(f"type {kind}"))


def _mixed_with(hashes: np.ndarray, key: np.ndarray) -> np.ndarray:
    return mixed(mixed(hashes + key) ^ key[::-1])


def _byte_hashes(values: pa.Array, key: np.ndarray) -> np.ndarray:
    return _mixed_with(np.stack([hash_bytes(values, seed) for seed in _SEEDS], axis=1), key)


def _word_hashes(values: pa.Array, key: np.ndarray) -> np.ndarray:
    whole = values.cast(pa.int64())
    whole = whole.fill_null(0) if whole.null_count else whole
    return _hashes_of_words(whole.to_numpy().view(np.uint64), key)


def _hashes_of_words(words: np.ndarray, key: np.ndarray) -> np.ndarray:
    """Hash 64-bit numbers of one kind: each half is a one-to-one function of the number."""
    return _mixed_with(np.stack([words, words], axis=1), key)


def _decimal_hashes(values: pa.Array) -> np.ndarray:
    """Hash decimals by their number: 1.50 is 1.5, and 2.00 is the whole number 2."""
    scale = values.type.scale
    if scale < 0:
        values = values.cast(pa.decimal256(76, 0))
    texts = values.cast(pa.string()).fill_null("0")
    if scale > 0:
        tiny = pc.match_substring(texts, "E")
        if pc.any(tiny).as_py():  # Arrow writes very small ones with an exponent
            digits = [
                None if value is None else f"{value:.{scale}f}" for value in values.to_pylist()
            ]
            texts = pc.if_else(tiny, pa.array(digits, pa.string()).fill_null("0"), texts)
        texts = pc.replace_substring_regex(texts, r"(\.\d*?)0+$", r"\1")
        texts = pc.replace_substring_regex(texts, r"\.$", "")
        texts = pc.if_else(pc.equal(texts, "-0"), "0", texts)
    hashes = _byte_hashes(texts.cast(pa.large_string()), _NUMBER)
    whole = pc.and_(
        pc.invert(pc.match_substring(texts, ".")), pc.less(pc.binary_length(texts), 19)
    ).to_numpy(zero_copy_only=False)
    if whole.any():
        rows = pa.array(np.flatnonzero(whole))
        hashes[whole] = _word_hashes(texts.take(rows).cast(pa.int64()), _NUMBER)
    return hashes


def _time_hashes(values: pa.Array, unit: str, key: np.ndarray) -> np.ndarray:
    """Hash times by their microsecond and what is left of it, whatever their unit."""
    numbers = values.cast(pa.int64()).fill_null(0).to_numpy()
    if unit == "ns":
        micros, left = np.divmod(numbers, 1000)
    else:
        factor = {"s": 1_000_000, "ms": 1000, "us": 1}[unit]
        micros, left = numbers * factor, np.zeros_like(numbers)  # wraps 300,000 years from now
    hashes = _hashes_of_words(micros.view(np.uint64), key)
    finer = mixed(hashes + left.view(np.uint64)[:, None] * _STEP)
    return np.where(left[:, None] == 0, hashes, finer)


def _list_hashes(values: pa.Array) -> np.ndarray:
    lengths = pc.list_value_length(values).fill_null(0).to_numpy().astype(np.int64)
    elements = value_hashes(values.flatten())
    begins = offsets_of(lengths)
    positions = np.arange(len(elements)) - np.repeat(begins[:-1], lengths)
    placed = mixed(elements + (positions.astype(np.uint64) * _STEP)[:, None])
    return _mixed_with(_sums(placed, begins) + lengths.astype(np.uint64)[:, None], _LIST)


def _map_hashes(values: pa.MapArray) -> np.ndarray:
    """Hash maps by their entries in any order."""
    offsets = values.offsets.to_numpy().astype(np.int64)
    known = values.is_valid().to_numpy(zero_copy_only=False)
    first, n = int(offsets[0]), int(offsets[-1] - offsets[0])
    keys = value_hashes(values.keys.slice(first, n))
    items = value_hashes(values.items.slice(first, n))
    entries = mixed(_mixed_with(keys, _ENTRY) + mixed(items))
    lengths = np.where(known, np.diff(offsets), 0).astype(np.uint64)
    return _mixed_with(_sums(entries, offsets - first) + lengths[:, None], _MAP)


def _struct_hashes(values: pa.StructArray) -> np.ndarray:
    """Hash structs by the names of their fields, in any order."""
    names = [field.name for field in values.type]
    if len(set(names)) < len(names):
        raise pa.ArrowInvalid(f"two fields of a struct have one name: {', '.join(names)}")
    total = np.tile(_STRUCT, (len(values), 1))
    for name, part in zip(names, values.flatten(), strict=True):
        total = total + _mixed_with(value_hashes(part), _key(f"field {name}"))
    return mixed(total)


def _sums(hashes: np.ndarray, begins: np.ndarray) -> np.ndarray:
    totals = np.concatenate(
        [np.zeros((1, HALVES), np.uint64), np.cumsum(hashes, axis=0, dtype=np.uint64)]
    )
    return totals[begins[1:]] - totals[begins[:-1]]


@dataclass(frozen=True)
class HashedColumn:
    """The cells of a column as hashes of their values."""

    # uint64 (d, 2): of each distinct value, or of each row where there are no codes
    hashes: np.ndarray
    # uint8, uint16 or uint32 (n,), or None: of each row the number of its value
    codes: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.hashes if self.codes is None else self.codes)


def hashed_column(values: pa.Array, *, is_json: bool = False) -> HashedColumn:
    values = plain(values)
    kind, types = values.type, pa.types
    if types.is_nested(kind) or types.is_null(kind) or types.is_interval(kind):
        return HashedColumn(value_hashes(values, is_json=is_json))
    if not types.is_dictionary(kind):
        values = values.dictionary_encode()
    distinct = np.concatenate([value_hashes(values.dictionary, is_json=is_json), NULL[None]])
    indices = values.indices.fill_null(len(distinct) - 1).to_numpy()
    if not values.null_count and not values.dictionary.null_count:
        distinct = distinct[:-1]
    if len(indices) < MIN_ROWS_PER_VALUE * len(distinct):
        return HashedColumn(distinct[indices])
    width = next(width for width in _WIDTHS if len(distinct) <= np.iinfo(width).max + 1)
    return HashedColumn(distinct, indices.astype(width))


def row_hashes(
    n_rows: int, columns: Sequence[HashedColumn | None], tokens: Sequence[str]
) -> np.ndarray:
    """Return the hashes of rows on some columns: uint64 (n, 2). None is a column without values."""
    hashes = np.zeros((n_rows, HALVES), np.uint64)
    for column, token in zip(columns, tokens, strict=True):
        key = _key(f"column {token}")
        if column is None:
            hashes += _mixed_with(NULL[None], key)
        elif column.codes is None:
            hashes += _mixed_with(column.hashes, key)
        else:
            loops.add_coded(hashes, _mixed_with(column.hashes, key), column.codes)
    return hashes


@dataclass(frozen=True)
class RowCounts:
    """Distinct rows with how often each occurs, behind a hash table."""

    rows: np.ndarray  # uint64 (d, 2)
    counts: np.ndarray  # int64 (d,)
    # int32 or int64 (power of two,): open addressing by the first half: the number of a row, -1
    # where empty
    slots: np.ndarray

    def __len__(self) -> int:
        return len(self.rows)


def counted_rows(hashes: np.ndarray) -> RowCounts:
    """Count rows by their hashes, uint64 (n, 2). Memory is at most 64 bytes a row more."""
    size = 1 << max(3, (2 * len(hashes)).bit_length())
    slots = np.full(size, -1, np.int32 if len(hashes) < 2**31 else np.int64)
    hashes = np.ascontiguousarray(hashes)
    rows, counts = np.empty_like(hashes), np.zeros(len(hashes), np.int64)
    n = loops.count_rows(hashes, slots, rows, counts)
    return RowCounts(rows[:n], counts[:n], slots)


def contained_rows(
    child: RowCounts, parent: RowCounts, semantics: str = "set", *, max_missing: int | None = None
) -> int:
    """Count the rows of a table that occur in another; -1 where more are missing than allowed."""
    n_rows = int(child.counts.sum())
    limit = n_rows if max_missing is None else max_missing
    theirs = parent.rows, parent.counts, parent.slots
    missing = loops.missing_rows(child.rows, child.counts, *theirs, semantics == "bag", limit)
    return -1 if missing < 0 else n_rows - missing


def places_of(hashes: np.ndarray, rows: RowCounts) -> np.ndarray:
    """Return which distinct row each row is: int64 (n,), -1 where it is none of them."""
    positions = np.empty(len(hashes), np.int64)
    loops.find_rows(np.ascontiguousarray(hashes), rows.slots, rows.rows, positions)
    return positions
