"""Texts that are too many for offsets of 32 bits: where rows repeat, 2 GiB are soon reached."""

from __future__ import annotations

from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

MAX_BYTES = 2**31 - 1
"""Of the texts, or bytes, of an array whose offsets have 32 bits."""

_LARGE = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}

_Texts = TypeVar("_Texts", pa.Array, pa.ChunkedArray)


def wide_for(texts: _Texts, rows: pa.Array) -> _Texts:
    """Return texts that some rows can be taken of: with offsets of 64 bits where that is needed.

    Parameters
    ----------
    texts : pyarrow.Array or pyarrow.ChunkedArray
        Of any type; those that are no texts or bytes stay as they are.
    rows : pyarrow.Array of int64
        Nulls are allowed.

    Examples
    --------
    >>> wide_for(pa.array(["a"]), pa.array([0, 0])).type
    DataType(string)
    """
    large = _LARGE.get(texts.type)
    if large is not None and texts.nbytes * len(rows) > MAX_BYTES:
        sizes = pc.binary_length(texts)
        # Arrow puts all chunks together before it takes rows of them.
        needed = (pc.sum(lengths, min_count=0).as_py() for lengths in (sizes, sizes.take(rows)))
        if max(needed) > MAX_BYTES:
            return texts.cast(large)
    return texts


def take_wide(texts: _Texts, rows: pa.Array) -> _Texts:
    """Return rows of texts in a new order, with offsets that are wide enough."""
    return wide_for(texts, rows).take(rows)
