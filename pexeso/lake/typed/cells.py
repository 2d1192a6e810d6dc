"""Python values of one column, as spreadsheets and databases give them, to one Arrow array."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence

import pyarrow as pa

from pexeso.lake.readers.table import strings
from pexeso.lake.typed.value_texts import EXACT, float_text

_INT64 = range(-(1 << 63), 1 << 63)


def column_array(values: Sequence[object]) -> pa.Array:
    """Return a column as an array of the one type that all its values have, else as texts.

    Whole numbers that a file keeps as floats are integers.

    Parameters
    ----------
    values : sequence
        None for an empty cell; else text, numbers, booleans, dates, times or durations.

    Returns
    -------
    pa.Array
        bool, int64, double, date32, timestamp of microseconds or string; null where all is empty.

    Examples
    --------
    >>> column_array([1.0, None, 12.0]).to_pylist()
    [1, None, 12]
    >>> column_array([1.0, "n/a"]).to_pylist()
    ['1', 'n/a']
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
    """Return a value as a person sees it in its cell.

    Examples
    --------
    >>> cell_text(12.0), cell_text(True), cell_text(datetime.datetime(2020, 1, 2, 3, 4))
    ('12', 'TRUE', '2020-01-02 03:04:00')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, datetime.timedelta):
        return _duration_text(value)
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ")
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return str(value)


def _duration_text(value: datetime.timedelta) -> str:
    seconds = round(value.total_seconds())
    minutes, seconds = divmod(abs(seconds), 60)
    sign = "-" if value < datetime.timedelta(0) else ""
    return f"{sign}{minutes // 60}:{minutes % 60:02}:{seconds:02}"


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
    """Make dates of values without a time of day, else points of time."""
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
