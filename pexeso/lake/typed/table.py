"""A table of typed columns, a batch of rows at a time, and what a file holds of such tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa


@dataclass(frozen=True)
class TypedTable:
    """One table with the types of its file.

    Attributes
    ----------
    batches : iterable of sequences of pa.Array
        Rows: of each column an array of its type, all of equal length. Read once, as it is asked
        for; reading raises `TableReadError`.
    """

    names: list[str]
    types: list[pa.DataType]
    batches: Iterable[list[pa.Array]]
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class InnerTable:
    """A table inside a file that may hold several.

    Attributes
    ----------
    reason : str or None
        Why it is no table that can be read, a clause; None where it can.
    """

    name: str
    reason: str | None = None
