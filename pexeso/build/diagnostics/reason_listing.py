"""Every table and column that was left out, and every note, one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from pexeso.lake.catalog import COLUMNS, TABLES, Catalog
from pexeso.lake.frames.results import Tabular
from pexeso.lake.left_out.groups import (
    NOTES,
    ReasonGroup,
    count_repaired,
    counted,
    keyed,
)
from pexeso.runtime.shown import many

_ROWS = 1 << 14
"""Rows that are turned into Python objects together."""


class ReasonRow(NamedTuple):
    """A table or column that was left out, or a note about a table.

    Attributes
    ----------
    column : str or None
        None for a table.
    """

    group: ReasonGroup
    table: str
    column: str | None
    reason: str

    @property
    def name(self) -> str:
        """The table's name, or ``table:column``."""
        return self.table if self.column is None else f"{self.table}:{self.column}"

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form: ``table``, ``column``, ``group`` and ``reason``."""
        return {
            "table": self.table,
            "column": self.column,
            "group": self.group.reason,
            "reason": self.reason,
        }


class ReasonListing(Tabular):
    """All that an index is without, or all notes about what was repaired, by reason.

    Iterates over `ReasonRow`, those of a group together, in the order of `groups` and within a
    group in that of the catalog. The catalog is read a file at a time, once for each group that has
    rows in it, so memory grows with the rows left out in one file, however many there are in all.

    Parameters
    ----------
    catalog : Catalog
    notes : bool
        List notes, instead of what was left out.

    Attributes
    ----------
    groups : tuple of ReasonGroup
        Of tables, then of columns, each the largest first.
    """

    def __init__(self, catalog: Catalog, *, notes: bool = False) -> None:
        listed = [NOTES] if notes else [TABLES, COLUMNS]
        self._catalog = catalog
        self._counted = [
            counted_group for kind in listed for counted_group in counted(catalog, kind)
        ]
        self.groups: tuple[ReasonGroup, ...] = tuple(group for group, _, _ in self._counted)
        self.is_of_notes = notes

    fields = ("table", "column", "group", "reason")

    def rows(self) -> list[dict[str, Any]]:
        """Return the values of `fields` for each table, column or note."""
        return [row.to_dict() for row in self]

    def _field_types(self) -> dict[str, pa.DataType]:
        return dict.fromkeys(self.fields, pa.string())

    def _summary(self) -> str:
        return f"{len(self):,} in {many(len(self.groups), 'group')}"

    def _shown(self) -> tuple[list[str], list[list[Any]]]:
        rows = [[group.kind, group.reason, group.count, group.examples] for group in self.groups]
        return ["kind", "reason", "count", "examples"], rows

    def __len__(self) -> int:
        return sum(group.count for group in self.groups)

    def __iter__(self) -> Iterator[ReasonRow]:
        for group, key, pieces in self._counted:
            for piece in pieces:
                yield from _rows_of(piece(), group, key)

    def count_repaired(self) -> int:
        """Count the tables that were repaired, or read by a guess; reads the catalog once more."""
        return count_repaired(self._catalog)

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form: ``groups``, and ``rows``, a dictionary each."""
        return {
            "groups": [group.to_dict() for group in self.groups],
            "rows": self.rows(),
        }


def _rows_of(rows: pa.Table, group: ReasonGroup, key: tuple[str, ...]) -> Iterator[ReasonRow]:
    reasons, codes = keyed(rows)
    is_of_it = np.array([reason.key == key for reason in reasons], bool)
    positions = np.flatnonzero(is_of_it[codes])
    for start in range(0, len(positions), _ROWS):
        chosen = positions[start : start + _ROWS]
        batch = rows.take(pa.array(chosen))
        for code, table, column in zip(
            codes[chosen].tolist(),
            batch["table"].to_pylist(),
            batch["column"].to_pylist(),
            strict=True,
        ):
            yield ReasonRow(group, table, column, reasons[code].text)
