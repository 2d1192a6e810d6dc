"""Values of one type as texts: a value has the same text whichever way it comes.

Files, databases, tables in memory and Spark tables all go through here, so that equal values join
across them. A text depends on its value alone, not on the values next to it, nor on the unit in
which a type keeps times.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.lake.readers.table import strings

# From here on a float does not distinguish neighbouring whole numbers.
EXACT = float(1 << 53)

_LEAST_WRITTEN_OUT = 1e-6
# Those with which Arrow writes numbers that are longer so than without one.
_EXPONENTS = range(10, 16)
# Some 30,000 years: of later or earlier times in a time zone Arrow writes what is no time.
_MOST_SECONDS = 970_000_000_000
# How Arrow's text of a date, time or decimal that is out of range begins.
_NO_TIME = "<"

_INT64 = range(-(1 << 63), 1 << 63)
_PLAIN = (
    *(pa.types.is_null, pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating),
    *(pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary),
    *(pa.types.is_fixed_size_binary, pa.types.is_temporal),
)
# Nested types that are plain where those inside are.
_OF_PLAIN = (
    *(pa.types.is_struct, pa.types.is_map, pa.types.is_list, pa.types.is_large_list),
    pa.types.is_fixed_size_list,
)
# Bits of the shortest decimals that can be compared.
_WIDE = 128


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
    duration                  hours, minutes and seconds, ``30:05:00``, and a fraction as a time has
    UUID                      hexadecimal digits in small letters, in groups of 8, 4, 4, 4 and 12
    other                     Arrow's
    ========================  ====================================================================
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
    if pa.types.is_duration(values.type):
        return _duration_texts(values, kind)
    if isinstance(values.type, pa.UuidType):
        return _uuid_texts(values, kind)
    texts = values.cast(kind)
    return _in_range(texts) if pa.types.is_date(values.type) else texts


def is_text(kind: pa.DataType) -> bool:
    types = pa.types
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


def is_bytes(kind: pa.DataType) -> bool:
    types = pa.types
    is_fixed = types.is_fixed_size_binary(kind)
    return (
        is_fixed
        or types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_binary_view(kind)
    )


def in_utc(values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return points of time of Spark as files have them, all else as it is.

    Spark hands them over in the time zone of its session, which is not part of their type.
    """
    if not pa.types.is_timestamp(values.type) or values.type.tz is None:
        return values
    return values.cast(pa.timestamp(values.type.unit, "UTC"))


def float_text(value: float) -> str:
    """Return the text of one float: that of `value_texts`, ``nan`` besides."""
    if value.is_integer() and abs(value) < EXACT:
        return str(int(value))
    text = repr(float(value))
    if "e" not in text and abs(value) < EXACT:
        return text
    if _LEAST_WRITTEN_OUT <= abs(value) < EXACT:
        return np.format_float_positional(value, trim="-")
    return np.format_float_scientific(value, trim="-", exp_digits=1)


def _float_texts(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_float16(values.type):  # the double of the same digits: 0.1 stays 0.1
        halves = values.to_numpy(zero_copy_only=False)
        doubles, shown = halves.astype(np.float64), halves.astype("U").astype(np.float64)
        values = pa.array(np.where(doubles == np.floor(doubles), doubles, shown))
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
    data = memoryview(stored.buffers()[1] or b"")[16 * stored.offset :][: 16 * len(stored)]
    buffers = [None, pa.py_buffer(data.hex().encode())]
    digits = pa.Array.from_buffers(pa.binary(32), len(values), buffers).cast(kind)
    texts = pc.replace_substring_regex(digits, "^(.{8})(.{4})(.{4})(.{4})", r"\1-\2-\3-\4-")
    return pc.if_else(values.is_valid(), texts, pa.scalar(None, kind))


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


def column_array(values: Sequence[object]) -> pa.Array:
    """Return a column as an array of the one type that all its values have, else as texts.

    An empty cell is None. Whole numbers that a file keeps as floats are integers. The type is bool,
    int64, double, date32, timestamp of microseconds or string; null where all is empty.
    """
    kinds = {type(value) for value in values}
    kinds.discard(type(None))
    if not kinds:
        return pa.nulls(len(values))
    if kinds == {bool}:
        return pa.array(values, pa.bool_())
    if kinds <= {int, float}:
        return _numbers(values)
    if kinds <= {datetime.date, datetime.datetime}:
        return _dates(values)
    if kinds == {str}:
        return strings(values)
    return strings([None if value is None else cell_text(value) for value in values])


def cell_text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, datetime.timedelta):
        return _duration_text(round(value.total_seconds()))
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ")
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return str(value)


def _duration_text(seconds: int) -> str:
    minutes, rest = divmod(abs(seconds), 60)
    return f"{'-' if seconds < 0 else ''}{minutes // 60}:{minutes % 60:02}:{rest:02}"


def _duration_texts(values: pa.Array, kind: pa.DataType) -> pa.Array:
    unit = values.type.unit
    counts = values.cast(pa.int64())
    an_hour = 3600 * {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    hours = pc.divide(counts, an_hour)  # towards zero
    rest = pc.abs(pc.subtract(counts, pc.multiply(hours, an_hour)))
    clock = pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)
    times = rest.cast(pa.int32() if unit in ("s", "ms") else pa.int64()).cast(clock)
    minutes = pc.utf8_slice_codeunits(_time_texts(times, _units(clock), pa.string()), 2)
    sign = pc.if_else(pc.less(counts, 0), "-", "")
    whole = pc.abs(hours).cast(pa.string())
    return pc.binary_join_element_wise(sign, whole, minutes, "").cast(kind)


def _numbers(values: Sequence[object]) -> pa.Array:
    present = [value for value in values if value is not None]
    if all(
        value in _INT64 if isinstance(value, int) else value.is_integer() and abs(value) < EXACT
        for value in present
    ):
        return pa.array([None if value is None else int(value) for value in values], pa.int64())
    if any(isinstance(value, int) and abs(value) >= EXACT for value in present):
        # A float would change these digits, and they are mostly identifiers.
        return strings([None if value is None else cell_text(value) for value in values])
    floats = [None if value is None else float(value) for value in values]
    return pa.array([None if v is not None and math.isnan(v) else v for v in floats], pa.float64())


def _dates(values: Sequence[object]) -> pa.Array:
    midnight = datetime.time()
    moments = [
        datetime.datetime.combine(value, midnight)
        if value is not None and not isinstance(value, datetime.datetime)
        else value
        for value in values
    ]
    array = pa.array(moments, pa.timestamp("us"))
    if all(value is None or value.time() == midnight for value in moments):
        return array.cast(pa.date32())
    return array


def plain(values: pa.Array) -> pa.Array:
    """Return the same values in an array of ordinary types, inside nested ones as well.

    Dictionaries of values that are not nested stay dictionaries.
    """
    kind, types = values.type, pa.types
    if _is_plain(kind):
        return values
    if isinstance(kind, pa.BaseExtensionType):
        return plain(values.storage)
    if types.is_run_end_encoded(kind):
        return plain(pc.run_end_decode(values))
    if types.is_dictionary(kind):
        distinct = plain(values.dictionary)
        if pa.types.is_nested(distinct.type) or pa.types.is_dictionary(distinct.type):
            return plain(distinct.take(values.indices))
        return pa.DictionaryArray.from_arrays(values.indices, distinct)
    if (ordinary := without_view(kind)) is not kind:
        return values.cast(ordinary)
    if types.is_decimal(kind):
        return values.cast(pa.decimal128(kind.precision, kind.scale))
    missing = values.is_null() if values.null_count else None
    if types.is_struct(kind):
        parts = [plain(part) for part in values.flatten()]
        fields = [pa.field(field.name, part.type) for field, part in zip(kind, parts, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=fields, mask=missing)
    if types.is_map(kind):
        first, end = values.offsets[0].as_py(), values.offsets[-1].as_py()
        keys, items = (
            plain(child.slice(first, end - first)) for child in (values.keys, values.items)
        )
        offsets = pc.subtract(values.offsets, pa.scalar(first, pa.int32()))
        if missing is not None:  # an offset that is missing stands for a missing map
            validity = pa.concat_arrays([values.is_valid(), pa.array([True])])
            offsets = pc.if_else(validity, offsets, pa.scalar(None, pa.int32()))
        return pa.MapArray.from_arrays(offsets, keys, items)
    if hasattr(kind, "value_type"):  # a list of any kind
        lengths = pc.list_value_length(values).fill_null(0).cast(pa.int64())
        offsets = pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(lengths)])
        return pa.LargeListArray.from_arrays(offsets, plain(values.flatten()), mask=missing)
    raise pa.ArrowNotImplementedError(f"values of the type {kind} cannot be compared")


def without_view(kind: pa.DataType) -> pa.DataType:
    """Return the ordinary type of texts or bytes that are views, any other type as it is."""
    if pa.types.is_string_view(kind):
        return pa.large_string()
    return pa.large_binary() if pa.types.is_binary_view(kind) else kind


def _is_plain(kind: pa.DataType) -> bool:
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return False
    if any(is_kind(kind) for is_kind in _OF_PLAIN):
        return all(_is_plain(kind.field(number).type) for number in range(kind.num_fields))
    if types.is_dictionary(kind):
        return _is_plain(kind.value_type) and not (
            types.is_nested(kind.value_type) or types.is_dictionary(kind.value_type)
        )
    if types.is_decimal(kind):
        return kind.bit_width >= _WIDE
    return any(is_kind(kind) for is_kind in _PLAIN)
