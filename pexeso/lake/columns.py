"""How a column of a table is named: by its name where that is unambiguous, else by its position."""

from __future__ import annotations

import csv
import difflib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pexeso.errors import ColumnNotFoundError, QueryError, TableReadError
from pexeso.runtime.formatting import csv_row, listed_names, shown

_POSITION = re.compile(r"#[0-9]+", re.ASCII)
_MAX_NAMES_COMPARED = 20_000

# Most columns of a key.
MAX_COLUMNS = 10
# Behind the name of a column: its values match similar ones.
SIMILAR = "~"


def label_columns(names: Sequence[str]) -> list[str]:
    """Return a unique label for each column.

    The label is the column's name where that is unique, not empty and not like ``#3``, else ``#``
    and its 0-based position.
    """
    counts = Counter(names)
    return [
        name if name and counts[name] == 1 and not _POSITION.fullmatch(name) else f"#{position}"
        for position, name in enumerate(names)
    ]


def find_column(names: Sequence[str], spec: str) -> int:
    if not isinstance(spec, str):
        raise ColumnNotFoundError(
            "A column is named by a text, such as 'year', or '#3' by its position. Got "
            f"{shown(spec)}. {names_shown(names)}"
        )
    if _POSITION.fullmatch(spec):
        return _at_position(names, spec)
    positions = [position for position, name in enumerate(names) if name == spec]
    if len(positions) == 1:
        return positions[0]
    if not positions:
        raise ColumnNotFoundError(
            f"There is no column {spec!r}{spelling_hint(names, spec)}. {names_shown(names)}"
        )
    listed = ", ".join(f"#{position}" for position in positions)
    if not spec:
        raise ColumnNotFoundError(
            f"An empty name stands for no single column; columns without a name: {listed}."
        )
    raise ColumnNotFoundError(
        f"{len(positions)} columns are named {spec!r}; choose one by its position: {listed}."
    )


def _at_position(names: Sequence[str], spec: str) -> int:
    digits = spec[1:].lstrip("0") or "0"
    # Compared by length first: a number of many thousand digits cannot be converted.
    if len(digits) > 9 or int(digits) >= len(names):
        allowed = f"#0 to #{len(names) - 1}" if names else "none"
        raise ColumnNotFoundError(
            f"There is no column {spec[:20]}; positions count from 0, here {allowed}."
        )
    return int(digits)


def did_you_mean(names: Sequence[str], spec: str) -> str:
    """Return a question that names what is spelled much like `spec`, or an empty text."""
    by_lower_case = {name.lower(): name for name in names[:_MAX_NAMES_COMPARED]}
    lower = spec.lower()
    close = [lower]
    if lower not in by_lower_case:
        close = difflib.get_close_matches(lower, by_lower_case, n=3)
    meant = " or ".join(repr(by_lower_case[name]) for name in close)
    return f"did you mean {meant}?" if close else ""


def spelling_hint(names: Sequence[str], spec: str) -> str:
    """Return that question in brackets, as it follows a name in a message, or an empty text."""
    question = did_you_mean(names, spec)
    return f" ({question})" if question else ""


def no_such_table(shown: str, kind: str, name: str, names: Sequence[str]) -> TableReadError:
    """Return the error that a file holds no table of a name, with those that it holds."""
    return TableReadError(
        f"{shown} has no such {kind}: {name!r}{spelling_hint(names, name)}. It has "
        f"{listed_names(names)}."
    )


def names_shown(names: Sequence[str]) -> str:
    """Return a sentence that lists the columns there are, by their labels; the first 20."""
    return f"The columns are {listed_names(label_columns(names))}."


@dataclass(frozen=True)
class KeyColumn:
    """A column of a composite key.

    `label` is that of `label_columns`; `similar` columns match similar values, not equal ones
    alone.
    """

    position: int
    label: str
    similar: bool = False


def names_in(spec: str) -> list[str]:
    """Return the columns that a text names, with commas between them.

    A name that holds a comma is in double quotes, as in CSV.
    """
    return [name.strip() for row in csv.reader([spec], skipinitialspace=True) for name in row]


def specs_in(columns: str | Iterable[str]) -> list[str]:
    if not isinstance(columns, Iterable):
        raise QueryError(
            "Columns are named by a text, such as 'country,year', or by a list of texts. Got "
            f"{shown(columns)}."
        )
    return names_in(columns) if isinstance(columns, str) else list(columns)


def spec_of(names: Iterable[str | None]) -> str:
    """Return columns, or the cells of a key, as one text, as `names_in` reads it."""
    return csv_row(names).removesuffix("\n")


def names_one_column(names: Sequence[str], spec: str) -> bool:
    """Return whether a text names one column of a table, not those of a composite key.

    It does where it is the name of a column, commas and all, or holds no comma.
    """
    return spec in names or len(names_in(spec)) == 1


def find_key_columns(
    names: Sequence[str], specs: str | Iterable[str], *, min_columns: int = 2
) -> list[KeyColumn]:
    column_specs = specs_in(specs)
    labels = label_columns(names)
    columns = [_find(names, labels, spec) for spec in column_specs]
    positions = [column.position for column in columns]
    if len(set(positions)) < len(positions):
        twice = next(column for column in columns if positions.count(column.position) > 1)
        raise QueryError(
            f"A composite key names each column once. Got {twice.label!r} twice: leave one out."
        )
    if len(columns) < min_columns:
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
