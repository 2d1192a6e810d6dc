"""Values of one type as texts: a value has the same text whichever way it comes.

Files, databases, tables in memory and Spark tables all go through here, so that equal values join
across them. A text depends on its value alone, not on the values beside it.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

EXACT = float(1 << 53)
"""From here on a float does not tell neighbouring whole numbers apart."""

_LEAST_WRITTEN_OUT = 1e-6
_EXPONENTS = range(10, 16)
"""Those with which Arrow writes numbers that are longer so than without one."""


def value_texts(values: pa.Array, kind: pa.DataType | None = None) -> pa.Array:
    """Return the text of each value.

    ========================  ====================================================================
    value                     text
    ========================  ====================================================================
    float, whole below 2**53  the digits of the integer; a zero has no sign
    other float               the shortest that reads back as the same number: with an exponent
                              below 1e-6 and from 2**53 on
    NaN                       none
    other                     Arrow's
    ========================  ====================================================================

    Parameters
    ----------
    values : pa.Array (n,)
        Numbers, truth values, dates, times or texts; dictionary-encoded ones too.
    kind : pa.DataType, optional
        `pa.string()`, or `pa.large_string()` unless given.

    Returns
    -------
    pa.StringArray or pa.LargeStringArray (n,)

    Raises
    ------
    pa.ArrowException
        The values are of a type that has no text, or bytes that are not UTF-8.

    Examples
    --------
    >>> value_texts(pa.array([49301234567.0, 1.5, -0.0, float("nan")])).to_pylist()
    ['49301234567', '1.5', '0', None]
    """
    kind = pa.large_string() if kind is None else kind
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_floating(values.type):
        return _float_texts(values, kind)
    return values.cast(kind)


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
