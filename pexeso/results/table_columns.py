"""The columns beside those that a search found: what a join with their tables brings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import pyarrow as pa

from pexeso.lake.catalog import Catalog


class HasCatalog(Protocol):
    """One snapshot of an index."""

    @property
    def catalog(self) -> Catalog:
        """Every table and column of the lake."""
        ...


class TableColumns:
    """Labels of the columns of tables, read from the catalog together when one is asked for.

    Parameters
    ----------
    opened : HasCatalog
    tables : iterable of str
        Those to read; others are read one by one when they are asked for.
    """

    def __init__(self, opened: HasCatalog, tables: Iterable[str]) -> None:
        self._opened, self._wanted = opened, set(tables)
        self._labels: dict[str, tuple[str, ...]] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> TableColumns:
        return self

    def beside(self, table: str, column: str) -> tuple[str, ...]:
        """Return the labels of the other columns of a table, in its order."""
        if table not in self._labels:
            self._read({table, *self._wanted} - self._labels.keys())
        return tuple(label for label in self._labels[table] if label != column)

    def _read(self, tables: set[str]) -> None:
        rows = self._opened.catalog.columns(
            ["table", "label", "position"], among=pa.array(sorted(tables), pa.string())
        ).sort_by([("table", "ascending"), ("position", "ascending")])
        labels: dict[str, list[str]] = {table: [] for table in tables}
        for table, label in zip(rows["table"].to_pylist(), rows["label"].to_pylist(), strict=True):
            labels[table].append(label)
        self._labels.update((table, tuple(named)) for table, named in labels.items())
