"""Typed cells as 128-bit hashes, and the hashes of cells within their columns.

Two values have one hash where they are equal by the type gate of R2D2 (specification of Shah et
al., SIGMOD 2023, section on types): whole numbers and decimals by their number, floats by their
double (NaN is one value, and -0.0 is 0.0), times of a kind by their instant, texts by their bytes,
lists and maps by their elements, structs by the names and values of their fields. All others
differ, whatever their texts look like: the number 1, the double 1.0 and the text "1" are three
values.

A hash has two halves of 64 bits, each a function of the value by other constants. Two given
different values have equal halves with probability 2**-64 each, if the functions behave like random
ones; they are not cryptographic.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.lake.readers.plain_arrays import plain
from pexeso.redundancy.type_families import is_list
from pexeso.runtime.mixing import mixed
from pexeso.runtime.ranges import offsets_of
from pexeso.sets.containment.hashing import hash_bytes

HALVES = 2

_SEEDS = (42, 0x51ED_270B_9F1B_4C7D)
"""Of the hashes of bytes, one for each half."""

_STEP = np.uint64(0x9E3779B97F4A7C15)


def _key(name: str) -> np.ndarray:
    """Return two constants that stand for a name: uint64 (2,)."""
    return np.frombuffer(blake2b(name.encode(), digest_size=16).digest(), "<u8").copy()


_NUMBER, _FLOAT, _TEXT, _BYTES, _BOOLEAN, _DATE = map(
    _key, ("number", "float", "text", "bytes", "boolean", "date")
)
_INSTANT, _LOCAL_TIME, _TIME_OF_DAY = map(_key, ("timestamp", "timestamp_ntz", "time"))
_LIST, _MAP, _ENTRY, _STRUCT, _JSON = map(_key, ("list", "map", "entry", "struct", "json"))

NULL = _key("null")
"""The hash of a missing value, of any type."""


def value_hashes(values: pa.Array, *, is_json: bool = False) -> np.ndarray:
    """Hash typed values.

    Returns
    -------
    uint64 (n, 2)
        The same on every machine; `NULL` where a value is missing.

    Examples
    --------
    >>> one, other = value_hashes(pa.array([1, 2])), value_hashes(pa.array(["1", "2"]))
    >>> bool((one == other).any())
    False
    >>> bool((one == value_hashes(pa.array([1, 2], pa.int8()))).all())
    True
    """
    values = plain(values)
    hashes = _of_type(values, is_json)
    if values.null_count:
        hashes[values.is_null().to_numpy(zero_copy_only=False)] = NULL
    return hashes


def cells_of_column(hashes: np.ndarray, token: str) -> np.ndarray:
    """Return what values are worth as cells of a column: hashes to be added up over a row.

    Parameters
    ----------
    hashes : uint64 (n, 2)
        Of `value_hashes`.

    Returns
    -------
    uint64 (n, 2)
    """
    return _mixed_with(hashes, _key(f"column {token}"))


def _mixed_with(hashes: np.ndarray, key: np.ndarray) -> np.ndarray:
    return mixed(mixed(hashes + key) ^ key[::-1])


def _of_words(words: np.ndarray, key: np.ndarray) -> np.ndarray:
    """Hash 64-bit numbers of one kind: each half is a one-to-one function of the number."""
    return _mixed_with(np.stack([words, words], axis=1), key)


def _of_bytes(values: pa.Array, key: np.ndarray) -> np.ndarray:
    return _mixed_with(np.stack([hash_bytes(values, seed) for seed in _SEEDS], axis=1), key)


def _of_type(values: pa.Array, is_json: bool) -> np.ndarray:
    kind = values.type
    types = pa.types
    if types.is_dictionary(kind):
        return _of_dictionary(values, is_json)
    if types.is_null(kind):
        return np.tile(NULL, (len(values), 1))
    if types.is_string(kind) or types.is_large_string(kind):
        return _of_bytes(values.cast(pa.large_string()), _JSON if is_json else _TEXT)
    if types.is_binary(kind) or types.is_large_binary(kind):
        return _of_bytes(values.cast(pa.large_binary()), _BYTES)
    if types.is_fixed_size_binary(kind):
        return _of_bytes(values.cast(pa.binary()).cast(pa.large_binary()), _BYTES)
    if types.is_boolean(kind):
        return _of_words(_filled(values.cast(pa.int8())), _BOOLEAN)
    if types.is_uint64(kind):
        return _of_decimals(values.cast(pa.decimal128(20, 0)))
    if types.is_integer(kind):
        return _of_words(_filled(values.cast(pa.int64())), _NUMBER)
    if types.is_decimal(kind):
        return _of_decimals(values)
    if types.is_floating(kind):
        return _of_floats(values)
    if types.is_date(kind):
        return _of_words(_filled(values.cast(pa.date32()).cast(pa.int32())), _DATE)
    if types.is_timestamp(kind):
        return _of_times(
            values.cast(pa.int64()), kind.unit, _LOCAL_TIME if kind.tz is None else _INSTANT
        )
    if types.is_time(kind):
        whole = values.cast(pa.int32() if types.is_time32(kind) else pa.int64())
        return _of_times(whole.cast(pa.int64()), kind.unit, _TIME_OF_DAY)
    if types.is_duration(kind):  # one unit is a type of its own
        return _of_words(_filled(values.cast(pa.int64())), _key(f"type {kind}"))
    if types.is_map(kind):
        return _of_maps(values)
    if is_list(kind):
        return _of_lists(values)
    if types.is_struct(kind):
        return _of_structs(values)
    return _of_others(values)


def _filled(values: pa.Array) -> np.ndarray:
    """Return integers as words, uint64, with 0 for a missing one."""
    whole = values.cast(pa.int64())
    return (whole.fill_null(0) if whole.null_count else whole).to_numpy().view(np.uint64)


def _of_dictionary(values: pa.DictionaryArray, is_json: bool) -> np.ndarray:
    distinct = np.concatenate([value_hashes(values.dictionary, is_json=is_json), [NULL]])
    return distinct[values.indices.cast(pa.int64()).fill_null(len(distinct) - 1).to_numpy()]


def _of_floats(values: pa.Array) -> np.ndarray:
    numbers = values.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0
    numbers[np.isnan(numbers)] = np.nan  # one bit pattern
    return _of_words(numbers.view(np.uint64), _FLOAT)


def _of_decimals(values: pa.Array) -> np.ndarray:
    """Hash decimals by their number: 1.50 is 1.5, and 2.00 is the whole number 2."""
    kind = values.type
    if kind.scale < 0:
        values = values.cast(pa.decimal256(76, 0))
    texts = values.cast(pa.string()).fill_null("0")
    if kind.scale > 0:
        tiny = pc.match_substring(texts, "E")
        if pc.any(tiny).as_py():
            texts = pc.if_else(tiny, _plain_digits(values, kind.scale), texts)
        texts = pc.replace_substring_regex(texts, r"(\.\d*?)0+$", r"\1")
        texts = pc.replace_substring_regex(texts, r"\.$", "")
        texts = pc.if_else(pc.equal(texts, "-0"), "0", texts)
    hashes = _of_bytes(texts.cast(pa.large_string()), _NUMBER)
    whole = pc.and_(
        pc.invert(pc.match_substring(texts, ".")), pc.less(pc.binary_length(texts), 19)
    ).to_numpy(zero_copy_only=False)
    if whole.any():
        rows = pa.array(np.flatnonzero(whole))
        hashes[whole] = _of_words(_filled(texts.take(rows).cast(pa.int64())), _NUMBER)
    return hashes


def _plain_digits(values: pa.Array, scale: int) -> pa.Array:
    """Write decimals out without an exponent, which Arrow uses for very small ones."""
    return pa.array(
        [None if value is None else f"{value:.{scale}f}" for value in values.to_pylist()],
        pa.string(),
    ).fill_null("0")


def _of_times(whole: pa.Array, unit: str, key: np.ndarray) -> np.ndarray:
    """Hash times by their microsecond and what is left of it, whatever their unit."""
    numbers = whole.fill_null(0).to_numpy()
    if unit == "ns":
        micros, left = np.divmod(numbers, 1000)
    else:
        factor = {"s": 1_000_000, "ms": 1000, "us": 1}[unit]
        micros, left = numbers * factor, np.zeros_like(numbers)  # wraps 300,000 years from now
    hashes = _of_words(micros.view(np.uint64), key)
    return np.where(
        left[:, None] == 0, hashes, mixed(hashes + left.view(np.uint64)[:, None] * _STEP)
    )


def _of_lists(values: pa.Array) -> np.ndarray:
    lengths = pc.list_value_length(values).fill_null(0).to_numpy().astype(np.int64)
    elements = value_hashes(values.flatten())
    begins = offsets_of(lengths)
    positions = np.arange(len(elements)) - np.repeat(begins[:-1], lengths)
    placed = mixed(elements + (positions.astype(np.uint64) * _STEP)[:, None])
    return _mixed_with(_sums(placed, begins) + lengths.astype(np.uint64)[:, None], _LIST)


def _of_maps(values: pa.MapArray) -> np.ndarray:
    """Hash maps by their entries in any order."""
    offsets = values.offsets.to_numpy().astype(np.int64)
    known = values.is_valid().to_numpy(zero_copy_only=False)
    first, end = int(offsets[0]), int(offsets[-1])
    keys = value_hashes(values.keys.slice(first, end - first))
    items = value_hashes(values.items.slice(first, end - first))
    entries = mixed(_mixed_with(keys, _ENTRY) + mixed(items))
    lengths = np.where(known, np.diff(offsets), 0).astype(np.uint64)
    return _mixed_with(_sums(entries, offsets - first) + lengths[:, None], _MAP)


def _of_structs(values: pa.StructArray) -> np.ndarray:
    """Hash structs by the names of their fields, in any order."""
    names = [field.name for field in values.type]
    if len(set(names)) < len(names):
        raise pa.ArrowInvalid(f"two fields of a struct have one name: {', '.join(names)}")
    total = np.tile(_STRUCT, (len(values), 1))
    for field, part in zip(values.type, values.flatten(), strict=True):
        total = total + _mixed_with(value_hashes(part), _key(f"field {field.name}"))
    return mixed(total)


def _sums(hashes: np.ndarray, begins: np.ndarray) -> np.ndarray:
    """Add up runs of hashes, modulo 2**64: uint64 (runs, 2)."""
    totals = np.concatenate(
        [np.zeros((1, HALVES), np.uint64), np.cumsum(hashes, axis=0, dtype=np.uint64)]
    )
    return totals[begins[1:]] - totals[begins[:-1]]


def _of_others(values: pa.Array) -> np.ndarray:
    """Hash values of types that equal only their own: by the type and the value as text."""
    texts = pa.array(
        [None if value is None else repr(value) for value in values.to_pylist()], pa.large_string()
    )
    return _of_bytes(texts, _key(f"type {values.type}"))
