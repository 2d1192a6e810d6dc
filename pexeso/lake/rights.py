"""What a reader of indexes may see, by the file that the environment names.

The file is a table of text with the columns ``table`` and ``column``, one row for each column that
may be seen; without a column all of a table. Where it cannot be read nothing is shown.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from pexeso.errors import InputError
from pexeso.store.opening import VISIBLE


@dataclass(frozen=True)
class Rights:
    """The labels of each table that may be seen; None for all of them."""

    tables: Mapping[str, frozenset[str] | None]

    def sees_whole(self, table: str) -> bool:
        """Return whether all columns may be seen, those too that the table gets later."""
        return self.tables.get(table, frozenset()) is None

    def sees(self, table: str, label: str) -> bool:
        labels = self.tables.get(table, frozenset())
        return labels is None or label in labels


def rights() -> Rights | None:
    """Return what this process may see; None where it may see everything."""
    path = os.environ.get(VISIBLE)
    if path is None:
        return None
    try:
        status = os.stat(path)
        return _read(path, status.st_mtime_ns, status.st_size)
    except (OSError, ValueError, csv.Error) as error:
        raise InputError(
            f"What may be seen cannot be read from '{path}' ({VISIBLE}): {error}. It is a CSV file "
            "with the columns 'table' and 'column'."
        ) from error


@lru_cache(maxsize=4)
def _read(path: str, _modified: int, _size: int) -> Rights:
    tables: dict[str, frozenset[str] | None] = {}
    with open(path, newline="", encoding="utf-8-sig") as file:
        rows = csv.DictReader(file, strict=True)
        if rows.fieldnames != ["table", "column"]:
            raise ValueError(f"its first line is {rows.fieldnames}")
        for row in rows:
            table, column = row["table"], row["column"]
            before = tables.get(table, frozenset())
            tables[table] = before | {column} if column and before is not None else None
    return Rights(tables)
