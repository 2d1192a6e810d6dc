"""Values of one type as texts: a value has the same text whichever way it comes.

Files, databases, tables in memory and Spark tables all go through here, so that equal values join
across them. A text depends on its value alone, not on the values beside it, nor on the unit in
which a type keeps times.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

EXACT = float(1 << 53)
"""From here on a float does not tell neighbouring whole numbers apart."""

_LEAST_WRITTEN_OUT = 1e-6
_EXPONENTS = range(10, 16)
"""Those with which Arrow writes numbers that are longer so than without one."""
_MOST_SECONDS = 970_000_000_000
"""Some 30,000 years: of later or earlier times in a time zone Arrow writes what is no time."""
_NO_TIME = "<"
"""How Arrow's text of a date, time or decimal that is out of range begins."""

_HEXADECIMAL = np.frombuffer(b"0123456789abcdef", np.uint8)
_HAS_DIGIT = np.frombuffer(b"xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", np.uint8) == ord("x")
"""Of the characters of a UUID."""


def value_texts(values: pa.Array, kind: pa.DataType | None = None) -> pa.Array:
    """Return the text of each value.

    ========================  ====================================================================
    value                     text
    ========================  ====================================================================
    float, whole below 2**53  the digits of the integer; a zero has no sign
    other float               the shortest that reads back as the same number: with an exponent
                              below 1e-6 and from 2**53 on
    NaN                       none
    decimal                   all its digits, without an exponent: ``0.0000000001``
    date, time                ISO form, a space between them; the fraction of a second in 6 digits,
                              or 9 where 6 are too few, and left out where it is zero
    date beyond year 32,767   none
    UUID                      hexadecimal digits in small letters, in groups of 8, 4, 4, 4 and 12
    other                     Arrow's
    ========================  ====================================================================

    Examples
    --------
    >>> value_texts(pa.array([49301234567.0, 1.5, -0.0, float("nan")])).to_pylist()
    ['49301234567', '1.5', '0', None]
    >>> value_texts(pa.array([5_000, 5_500], pa.timestamp("ms"))).to_pylist()
    ['1970-01-01 00:00:05', '1970-01-01 00:00:05.500000']
    """
    kind = pa.large_string() if kind is None else kind
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_floating(values.type):
        return _float_texts(values, kind)
    if pa.types.is_decimal(values.type):
        return _in_range(_decimal_texts(values.cast(kind)))
    if pa.types.is_timestamp(values.type):
        return _time_texts(_near(values), _units(values.type), kind)
    if pa.types.is_time(values.type):
        return _in_range(_time_texts(values, _units(values.type), kind))
    if isinstance(values.type, pa.UuidType):
        return _uuid_texts(values, kind)
    texts = values.cast(kind)
    return _in_range(texts) if pa.types.is_date(values.type) else texts


def is_text(kind: pa.DataType) -> bool:
    """Return whether a type is one of texts."""
    types = pa.types
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


def in_utc(values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return points of time of Spark as files have them, all else as it is.

    Spark hands them over in the time zone of its session, which is not part of their type.
    """
    if not pa.types.is_timestamp(values.type) or values.type.tz is None:
        return values
    return values.cast(pa.timestamp(values.type.unit, "UTC"))


def float_text(value: float) -> str:
    """Return the text of one float: that of `value_texts`, ``nan`` besides.

    Examples
    --------
    >>> float_text(49301234567.0), float_text(12345678901.5), float_text(1e-5)
    ('49301234567', '12345678901.5', '0.00001')
    """
    if value.is_integer() and abs(value) < EXACT:
        return str(int(value))
    text = repr(float(value))
    if "e" not in text and abs(value) < EXACT:
        return text
    if _LEAST_WRITTEN_OUT <= abs(value) < EXACT:
        return np.format_float_positional(value, trim="-")
    return np.format_float_scientific(value, trim="-", exp_digits=1)


def _float_texts(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_float16(values.type):
        values = values.cast(pa.float32())
    whole = pc.and_(pc.equal(pc.floor(values), values), pc.less(pc.abs(values), EXACT))
    integers = pc.if_else(whole, values, 0).cast(pa.int64()).cast(kind)
    others = pc.if_else(pc.or_(whole, pc.is_nan(values)), None, values).cast(kind)
    return pc.if_else(whole, integers, _without_exponent(others))


def _without_exponent(texts: pa.Array) -> pa.Array:
    """Write numbers with a fraction out: ``12345678901.5``, where Arrow has 1.23456789015e+10."""
    if not pc.any(pc.match_substring(texts, "e+1")).as_py():
        return texts
    for exponent in _EXPONENTS:
        pattern = rf"^(-?[0-9])\.([0-9]{{{exponent}}})([0-9]+)e\+{exponent}$"
        texts = pc.replace_substring_regex(texts, pattern, r"\1\2.\3")
    return texts


def _decimal_texts(texts: pa.Array) -> pa.Array:
    """Write decimals out that Arrow gives an exponent: ``0E-10``, a zero with many places."""
    is_short = pc.match_substring(texts, "E")
    if not pc.any(is_short).as_py():
        return texts
    short = pc.if_else(is_short, texts, None).dictionary_encode()
    written = pa.array([f"{Decimal(text):f}" for text in short.dictionary.to_pylist()], texts.type)
    return pc.if_else(is_short, written.take(short.indices), texts)


def _near(values: pa.Array) -> pa.Array:
    """Leave out points of time that are too far from now to have a text."""
    seconds = values.cast(pa.timestamp("s", values.type.tz), safe=False).cast(pa.int64())
    far = pc.or_(pc.less(seconds, -_MOST_SECONDS), pc.greater(seconds, _MOST_SECONDS))
    return pc.if_else(far, pa.scalar(None, values.type), values)


def _in_range(texts: pa.Array) -> pa.Array:
    far = pc.starts_with(texts, _NO_TIME)
    return pc.if_else(far, pa.scalar(None, texts.type), texts) if pc.any(far).as_py() else texts


def _uuid_texts(values: pa.Array, kind: pa.DataType) -> pa.Array:
    stored = pc.fill_null(values.storage, bytes(16))
    data = np.frombuffer(stored.buffers()[1] or b"", np.uint8).reshape(-1, 16)
    data = data[stored.offset : stored.offset + len(stored)]
    texts = np.full((len(values), len(_HAS_DIGIT)), ord("-"), np.uint8)
    digits = np.stack([data >> 4, data & 15], axis=-1).reshape(-1, 32)
    texts[:, _HAS_DIGIT] = _HEXADECIMAL[digits]
    written = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(len(_HAS_DIGIT)), len(values), [None, pa.py_buffer(texts)]
    )
    return pc.if_else(values.is_valid(), written.cast(kind), pa.scalar(None, kind))


def _units(kind: pa.DataType) -> list[pa.DataType]:
    """Return the types of whole seconds, of six digits of their fraction and of nine.

    None has more digits than the values may need.
    """
    if pa.types.is_timestamp(kind):
        types = [pa.timestamp(unit, kind.tz) for unit in ("s", "us", "ns")]
    else:
        types = [pa.time32("s"), pa.time64("us"), pa.time64("ns")]
    return types[: {"s": 1, "ms": 2, "us": 2, "ns": 3}[kind.unit]]


def _time_texts(values: pa.Array, units: Sequence[pa.DataType], kind: pa.DataType) -> pa.Array:
    """Write each value in the first unit that holds it."""
    unit, *finer = units
    if not finer:
        return values.cast(unit).cast(kind)
    coarse = values.cast(unit, safe=False)
    fits = pc.equal(coarse.cast(values.type), values)
    if pc.all(fits).as_py():
        return coarse.cast(kind)
    return pc.if_else(fits, coarse.cast(kind), _time_texts(values, finer, kind))
