"""Types of columns by families: values of one family can be equal, values of two cannot.

Specification of R2D2, section on the type gate. The source compares names of columns alone.
"""

from __future__ import annotations

import json
import re

import pyarrow as pa

NULL = "null"
"""The family of columns without any value: compatible with all."""

_NUMBERS = frozenset({"int", "decimal"})
"""Whole numbers and decimals are compared by their number."""


def family(kind: pa.DataType) -> str:
    """Return the family of a type.

    Returns
    -------
    str
        ``int``, ``decimal``, ``float``, ``string``, ``binary``, ``boolean``, ``date``,
        ``timestamp``, ``timestamp_ntz`` (without a zone), ``time``, ``null``, ``array<...>``,
        ``map<...,...>``, ``struct<...>`` with its fields by name, whatever their order; other
        types by their own text.

    Examples
    --------
    >>> family(pa.int8()), family(pa.list_(pa.float32())), family(pa.timestamp("ms", "UTC"))
    ('int', 'array<float>', 'timestamp')
    >>> family(pa.struct([("b", pa.int8()), ("a", pa.string())]))
    'struct<"a":string,"b":int>'
    """
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return family(kind.storage_type)
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return family(kind.value_type)
    for is_kind, name in _SIMPLE:
        if is_kind(kind):
            return name
    if types.is_timestamp(kind):
        return "timestamp_ntz" if kind.tz is None else "timestamp"
    if types.is_map(kind):
        return f"map<{family(kind.key_type)},{family(kind.item_type)}>"
    if is_list(kind):
        return f"array<{family(kind.value_type)}>"
    if types.is_struct(kind):
        inner = (f"{json.dumps(field.name)}:{family(field.type)}" for field in kind)
        return f"struct<{','.join(sorted(inner))}>"
    return str(kind)


def compatible(ours: str, theirs: str) -> bool:
    """Return whether values of two families can be equal.

    Examples
    --------
    >>> compatible("int", "decimal"), compatible("int", "float"), compatible("null", "string")
    (True, False, True)
    """
    if ours == theirs or NULL in (ours, theirs) or {ours, theirs} <= _NUMBERS:
        return True
    for kind in ("array<", "map<", "struct<"):
        if ours.startswith(kind) and theirs.startswith(kind):
            inner = _parts(ours[len(kind) : -1]), _parts(theirs[len(kind) : -1])
            return len(inner[0]) == len(inner[1]) and all(
                our_name == their_name and compatible(our_family, their_family)
                for (our_name, our_family), (their_name, their_family) in zip(*inner, strict=True)
            )
    return False


_NAME = re.compile(r'"(?:[^"\\]|\\.)*":?')
_SIGNS = re.compile(rf"{_NAME.pattern}|[<>,]")


def _parts(inner: str) -> list[tuple[str, str]]:
    """Split what is within the brackets of a family: (name, family), no name but in a struct."""
    depth, begin, pieces = 0, 0, []
    for sign in _SIGNS.finditer(inner):
        depth += (sign[0] == "<") - (sign[0] == ">")
        if sign[0] == "," and not depth:
            pieces.append(inner[begin : sign.start()])
            begin = sign.end()
    parts = [*pieces, inner[begin:]] if inner else []
    names = [match[0] if (match := _NAME.match(part)) else "" for part in parts]
    return [(name, part[len(name) :]) for name, part in zip(names, parts, strict=True)]


def is_list(kind: pa.DataType) -> bool:
    """Return whether a type is one of Arrow's lists."""
    return any(is_kind(kind) for is_kind in _LISTS)


_LISTS = (
    pa.types.is_list,
    pa.types.is_large_list,
    pa.types.is_fixed_size_list,
    pa.types.is_list_view,
    pa.types.is_large_list_view,
)

_SIMPLE = (
    (pa.types.is_null, NULL),
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_integer, "int"),
    (pa.types.is_decimal, "decimal"),
    (pa.types.is_floating, "float"),
    (pa.types.is_string, "string"),
    (pa.types.is_large_string, "string"),
    (pa.types.is_string_view, "string"),
    (pa.types.is_binary, "binary"),
    (pa.types.is_large_binary, "binary"),
    (pa.types.is_binary_view, "binary"),
    (pa.types.is_fixed_size_binary, "binary"),
    (pa.types.is_date, "date"),
    (pa.types.is_time, "time"),
)
