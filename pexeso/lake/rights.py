"""What a reader of indexes may see, by the file that the environment names, or as a program says.

The file is a table of text with the columns ``table`` and ``column``, one row for each column that
may be seen; without a column all of a table. Where it cannot be read nothing is shown.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pexeso.errors import InputError
from pexeso.runtime.formatting import shown
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

    def both(self, other: Rights) -> Rights:
        """Return what may be seen by these rights and by others."""
        tables = {}
        for table in self.tables.keys() & other.tables.keys():
            one, two = self.tables[table], other.tables[table]
            tables[table] = two if one is None else one if two is None else one & two
        return Rights(tables)


@dataclass(frozen=True)
class LakeView:
    """How tables of a lake are read: in which state, and which of their columns.

    `as_of` is a state of tables that keep their history; `rights` are None where all may be seen.
    """

    as_of: str | None = None
    rights: Rights | None = None

    def sees_whole(self, table: str) -> bool:
        return self.rights is None or self.rights.sees_whole(table)

    def positions(self, table: str, labels: Iterable[str]) -> list[int]:
        """Return the positions of the columns of a table that may be seen."""
        rights = self.rights
        return [n for n, label in enumerate(labels) if rights is None or rights.sees(table, label)]


# Tables as they are, and all of them.
EVERYTHING = LakeView()


def rights(visible: Any = None) -> Rights | None:
    """Return what may be seen in this process, and by `visible`; None where that is everything.

    visible: see `pexeso.open_index`.
    """
    own, given = os.environ.get(VISIBLE), None
    if visible is not None:
        is_path = isinstance(visible, str | os.PathLike)
        given = _from_file(os.fspath(visible), "visible") if is_path else _from_mapping(visible)
    if own is None:
        return given
    chosen = _from_file(own, VISIBLE)
    return chosen if given is None else chosen.both(given)


def _from_file(path: str, source: str) -> Rights:
    try:
        status = os.stat(path)
        return _read(path, status.st_mtime_ns, status.st_size)
    except (OSError, ValueError, csv.Error) as error:
        raise InputError(
            f"What may be seen cannot be read from '{path}' ({source}): {error}. It is a CSV file "
            "with the columns 'table' and 'column'."
        ) from error


def _from_mapping(visible: Any) -> Rights:
    if isinstance(visible, Rights):
        return visible
    entries = list(visible.items()) if isinstance(visible, Mapping) else [(None, None)]
    tables: dict[str, frozenset[str] | None] = {}
    for table, labels in entries:
        several = () if labels is None else labels
        is_list = isinstance(several, Iterable) and not isinstance(several, str | bytes)
        names = list(several) if is_list else [None]
        if not isinstance(table, str) or not all(isinstance(name, str) for name in names):
            raise InputError(
                "visible is the path of a CSV file with the columns 'table' and 'column', or a "
                "dictionary: for each table that may be seen a list of its columns, or None for "
                f"all. Got {shown(visible)}."
            )
        tables[table] = None if labels is None else frozenset(names)
    return Rights(tables)


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
