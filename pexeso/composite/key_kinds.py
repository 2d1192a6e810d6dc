"""What columns hold, as far as it says whether people choose them as keys."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.lake.choose import ColumnRules
from pexeso.lake.sniff import ColumnProfile, profile_columns

_WHOLE = r"^[0-9]+(\.0+)?$"
_MIN_WHOLE = 0.95
_MIN_FILLED = 0.5
_MAX_DIGITS = 18
"""Longer numbers, which are no counts of anything, may not fit into 64 bits."""

_YEARS = (1000, 2100)


class KeyKind(IntEnum):
    """Kinds of columns, those first that keys are made of."""

    TEXT = 0
    WHOLE = 1
    ROW_NUMBER = 2
    SPREAD = 3
    DECIMAL = 4
    FREE_TEXT = 5
    EMPTY = 6

    @property
    def rank(self) -> int:
        """The kinds that are preferred alike have the same."""
        return min(int(self), int(KeyKind.ROW_NUMBER))


_RARELY = {
    KeyKind.ROW_NUMBER: "row numbers",
    KeyKind.SPREAD: "spread whole numbers",
    KeyKind.DECIMAL: "decimal or formatted numbers",
    KeyKind.FREE_TEXT: "free text",
    KeyKind.EMPTY: "nothing",
}


def why_rarely(kind: KeyKind) -> str | None:
    """Return what a column holds that is rarely one of a key; None for others."""
    return _RARELY.get(kind)


def column_kinds(columns: Sequence[pa.StringArray]) -> list[KeyKind]:
    """Return the kind of each column of a table.

    ``TEXT`` has texts, dates, and years; ``WHOLE`` whole numbers as codes and counters have them:
    of equally many digits, or filling half of the range from the least to the largest; those of the
    first column are taken for such. ``SPREAD`` has other whole numbers, such as populations;
    ``ROW_NUMBER`` 0, 1, 2 or 1, 2, 3 and so on, row by row; ``DECIMAL`` decimal numbers, and those
    with signs, units or separators; ``FREE_TEXT`` texts of more words than an indexed column may
    have (`pexeso.lake.choose.ColumnRules`).

    Examples
    --------
    >>> year, people = ["2001", "2001", "2002"], ["12", "81000", "3400"]
    >>> [kind.name for kind in column_kinds([pa.array(people), pa.array(year), pa.array(people)])]
    ['WHOLE', 'TEXT', 'SPREAD']
    """
    profiles = profile_columns(columns)
    return [
        _kind(position, column, profile)
        for position, (column, profile) in enumerate(zip(columns, profiles, strict=True))
    ]


def _kind(position: int, column: pa.StringArray, profile: ColumnProfile) -> KeyKind:
    if profile.kind == "empty":
        return KeyKind.EMPTY
    if profile.kind != "number":
        is_long = profile.median_tokens > ColumnRules.max_median_tokens
        return KeyKind.FREE_TEXT if is_long else KeyKind.TEXT
    texts = pc.utf8_trim_whitespace(column.drop_null())
    distinct = texts.unique()
    whole = distinct.filter(pc.match_substring_regex(distinct, _WHOLE))
    if len(whole) < _MIN_WHOLE * len(distinct):
        return KeyKind.DECIMAL
    digits = pc.replace_substring_regex(whole, r"\.0+$", "")
    lengths = pc.min_max(pc.utf8_length(digits)).as_py()
    if lengths["max"] > _MAX_DIGITS:
        return KeyKind.WHOLE
    numbers = digits.cast(pa.int64()).to_numpy()
    smallest, largest = int(numbers.min()), int(numbers.max())
    if smallest >= _YEARS[0] and largest <= _YEARS[1]:
        return KeyKind.TEXT
    if _counts_rows(texts, numbers, len(column)):
        return KeyKind.ROW_NUMBER
    is_filled = len(np.unique(numbers)) >= _MIN_FILLED * (largest - smallest + 1)
    if position == 0 or lengths["min"] == lengths["max"] or is_filled:
        return KeyKind.WHOLE
    return KeyKind.SPREAD


def _counts_rows(texts: pa.StringArray, numbers: np.ndarray, n_rows: int) -> bool:
    """Return whether a column without gaps and repeats counts its rows from 0 or 1."""
    return (
        len(texts) == len(numbers) == n_rows
        and numbers[0] in (0, 1)
        and bool((np.diff(numbers) == 1).all())
    )
