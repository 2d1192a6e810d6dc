"""What values come to where each is written out, counted without writing one.

Dictionaries, runs and views say a value as often as they like: a file of a kilobyte can stand for
any number of bytes.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_VIEW_BYTES = 16
_TEXTS = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
)


def total_bytes(values: pa.Array) -> float:
    """Return the bytes that an array comes to at least; 0 for types that repeat no value.

    Examples
    --------
    >>> total_bytes(pa.array(["abc", "abc", None]).dictionary_encode())
    6.0
    >>> total_bytes(pa.array(["abc", "abc"]))
    0
    """
    return float(written_bytes(values).sum()) if _may_repeat(values.type) else 0


def _may_repeat(kind: pa.DataType) -> bool:
    types = pa.types
    return (
        types.is_dictionary(kind)
        or types.is_nested(kind)
        or types.is_run_end_encoded(kind)
        or types.is_string_view(kind)
        or types.is_binary_view(kind)
        or isinstance(kind, pa.BaseExtensionType)
    )


def written_bytes(values: pa.Array) -> np.ndarray:
    """Return the bytes of each value at least, one for what is no text: float64 (n,)."""
    kind, types = values.type, pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return written_bytes(values.storage)
    if types.is_run_end_encoded(kind):
        rows = np.arange(values.offset, values.offset + len(values))
        return _at_positions(
            values.values, np.searchsorted(np.asarray(values.run_ends), rows, "right")
        )
    if types.is_dictionary(kind):
        missing = np.asarray(values.indices.is_null())
        positions = np.asarray(values.indices.fill_null(0)).astype(np.int64)
        if not len(values.dictionary):
            return np.zeros(len(values))
        return np.where(missing, 0, written_bytes(values.dictionary)[positions])
    if types.is_struct(kind):
        parts = [written_bytes(values.field(number)) for number in range(kind.num_fields)]
        return np.sum(parts, axis=0) if parts else np.ones(len(values))
    if types.is_map(kind):
        keys, items = (_summed(values, child) for child in (values.keys, values.items))
        return keys + items
    if types.is_fixed_size_list(kind):
        begins = (values.offset + np.arange(len(values))) * kind.list_size
        return _sums(values.values, begins, begins + kind.list_size)
    if hasattr(values, "sizes"):  # a view
        begins = np.asarray(values.offsets).astype(np.int64)[: len(values)]
        return _sums(values.values, begins, begins + np.asarray(values.sizes)[: len(values)])
    if types.is_list(kind) or types.is_large_list(kind):
        return _summed(values, values.values)
    if types.is_string_view(kind) or types.is_binary_view(kind):
        views = np.frombuffer(values.buffers()[1] or b"", np.int32).reshape(-1, _VIEW_BYTES // 4)
        return views[values.offset : values.offset + len(values), 0].astype(np.float64)
    if any(is_kind(kind) for is_kind in _TEXTS):
        return np.asarray(pc.binary_length(values).fill_null(0)).astype(np.float64)
    return np.ones(len(values))


def _summed(values: pa.Array, items: pa.Array) -> np.ndarray:
    offsets = np.asarray(values.offsets).astype(np.int64)
    return _sums(items, offsets[:-1], offsets[1:])


def _sums(items: pa.Array, begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return what the items of each list come to together."""
    if not len(begins):
        return np.zeros(0)
    first, last = int(begins.min()), int(ends.max())
    sums = np.concatenate([[0.0], np.cumsum(written_bytes(items.slice(first, last - first)))])
    return sums[ends - first] - sums[begins - first]


def _at_positions(values: pa.Array, positions: np.ndarray) -> np.ndarray:
    if not len(positions):
        return np.zeros(0)
    first = int(positions.min())
    some = values.slice(first, int(positions.max()) + 1 - first)
    return written_bytes(some)[positions - first]
