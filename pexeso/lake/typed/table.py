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
    names : list of str
        As they stand in the file.
    types : list of pa.DataType
        Of the columns.
    batches : iterable of sequences of pa.Array
        Rows: of each column an array of its type, all of equal length. Read once, as it is asked
        for; reading raises `TableReadError`.
    notes : list of str
        Sentences about what was repaired or left out; complete when all batches are read.
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
    name : str
        What the file calls it.
    reason : str or None
        Why it is no table that can be read, a clause; None where it can.
    """

    name: str
    reason: str | None = None
