"""Arrays of types that few functions of Arrow know, as arrays of types that all of them know.

Views, short decimals, runs, extensions and dictionaries of nested values hold what ordinary arrays
hold. Arrow 26 cannot filter or take views, cannot compare decimals of 32 and 64 bits, and casts
views of lists with a missing one to lists with wrong offsets.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_PLAIN = (
    pa.types.is_null,
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
    pa.types.is_temporal,
)
_WIDE = 128
"""Bits of the shortest decimals that can be compared."""


def plain(values: pa.Array) -> pa.Array:
    """Return the same values in an array of ordinary types, inside nested ones as well.

    Dictionaries of values that are not nested stay dictionaries.

    Examples
    --------
    >>> plain(pa.array([["a"], None], pa.list_view(pa.string_view()))).type
    LargeListType(large_list<item: large_string>)
    >>> plain(pa.array([1, 2])).type
    DataType(int64)
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
    if types.is_string_view(kind):
        return values.cast(pa.large_string())
    if types.is_binary_view(kind):
        return values.cast(pa.large_binary())
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


def _is_plain(kind: pa.DataType) -> bool:
    """Return whether all functions that are used here know a type."""
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return False
    if types.is_struct(kind):
        return all(_is_plain(field.type) for field in kind)
    if types.is_map(kind):
        return _is_plain(kind.key_type) and _is_plain(kind.item_type)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _is_plain(kind.value_type)
    if types.is_dictionary(kind):
        return _is_plain(kind.value_type) and not (
            types.is_nested(kind.value_type) or types.is_dictionary(kind.value_type)
        )
    if types.is_decimal(kind):
        return kind.bit_width >= _WIDE
    return any(is_kind(kind) for is_kind in _PLAIN)
