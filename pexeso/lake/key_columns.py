"""Columns of a composite key, as a text names them: ``country,year`` or ``country~,#3``."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pexeso.errors import ColumnNotFoundError, QueryError
from pexeso.lake.columns import find_column, label_columns
from pexeso.runtime.formatting import shown
from pexeso.store.io.csv_rows import csv_row

MAX_COLUMNS = 10
"""Most columns of a key."""

SIMILAR = "~"
"""Behind the name of a column: its values match similar ones."""


@dataclass(frozen=True)
class KeyColumn:
    """A column of a composite key.

    Attributes
    ----------
    position : int
        In its table, from 0.
    label : str
        See `pexeso.lake.columns.label_columns`.
    similar : bool
        Whether values match similar ones, not equal ones alone.
    """

    position: int
    label: str
    similar: bool = False


def names_in(spec: str) -> list[str]:
    """Return the columns that a text names, with commas between them.

    A name that holds a comma stands in double quotes, as in CSV.

    Examples
    --------
    >>> names_in('country, year'), names_in('"city, state",#3')
    (['country', 'year'], ['city, state', '#3'])
    """
    return [name.strip() for row in csv.reader([spec], skipinitialspace=True) for name in row]


def specs_in(columns: str | Iterable[str]) -> list[str]:
    """Return columns that are named by one text, as `names_in` reads it, or by several."""
    if not isinstance(columns, Iterable):
        raise QueryError(
            "Columns are named by a text, such as 'country,year', or by a list of texts. Got "
            f"{shown(columns)}."
        )
    return names_in(columns) if isinstance(columns, str) else list(columns)


def spec_of(names: Iterable[str | None]) -> str:
    """Return columns, or the cells of a key, as one text, as `names_in` reads it.

    Examples
    --------
    >>> spec_of(["country", "year"]), spec_of(["city, state", "#3"])
    ('country,year', '"city, state",#3')
    """
    return csv_row(names).removesuffix("\n")


def names_one_column(names: Sequence[str], spec: str) -> bool:
    """Return whether a text names one column of a table, not those of a composite key.

    It does where it is the name of a column, commas and all, or holds no comma.
    """
    return spec in names or len(names_in(spec)) == 1


def find_key_columns(names: Sequence[str], specs: str | Iterable[str]) -> list[KeyColumn]:
    """Return the columns of a composite key.

    Examples
    --------
    >>> [(column.position, column.similar) for column in
    ...  find_key_columns(["year", "country", "gdp"], "country~,year")]
    [(1, True), (0, False)]
    """
    column_specs = specs_in(specs)
    labels = label_columns(names)
    columns = [_find(names, labels, spec) for spec in column_specs]
    positions = [column.position for column in columns]
    if len(set(positions)) < len(positions):
        twice = next(column for column in columns if positions.count(column.position) > 1)
        raise QueryError(
            f"A composite key names each column once. Got {twice.label!r} twice: leave one out."
        )
    if len(columns) < 2:
        raise QueryError(
            "A composite key has two columns or more. Got "
            f"{', '.join(repr(spec) for spec in column_specs) or 'none'}: for one column search by "
            "FILE:COLUMN."
        )
    if len(columns) > MAX_COLUMNS:
        raise QueryError(
            f"A composite key has at most {MAX_COLUMNS} columns. Got {len(columns)}: name those "
            "that tell its rows apart."
        )
    return columns


def by_positions(names: Sequence[str], spec: str) -> str:
    """Return a text that names the same columns of a table by their positions, without any colon.

    Examples
    --------
    >>> by_positions(["at 9:30", "city"], "at 9:30"), by_positions(["year", "city"], "city~,year")
    ('#0', '#1~,#0')
    """
    if names_one_column(names, spec):
        return f"#{find_column(names, spec)}"
    key = find_key_columns(names, spec)
    return ",".join(f"#{column.position}{SIMILAR if column.similar else ''}" for column in key)


def _find(names: Sequence[str], labels: Sequence[str], spec: str) -> KeyColumn:
    similar = False
    if not isinstance(spec, str) or not spec:
        raise QueryError(
            "Each column of a key is named by a text, such as 'year', or '#3' by its position. Got "
            f"{spec!r}."
        )
    try:
        position = find_column(names, spec)
    except ColumnNotFoundError:
        if not spec.endswith(SIMILAR):
            raise
        similar, position = True, find_column(names, spec.removesuffix(SIMILAR))
    return KeyColumn(position, labels[position], similar)
