"""What explains why a key of several columns is joined with a table of the lake or not.

Columns can overlap where rows do not: every part of a key may stand in its column, in a row of
another key each. So what columns share is shown next to what rows share.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from pexeso.lake.columns import spec_of
from pexeso.results.column_matches import Hints, WouldMatch
from pexeso.runtime.formatting import Shown, percent, plain

Cells = tuple[str | None, ...]


@dataclass(frozen=True)
class PartOverlap:
    """A column of the key and the lake's column next to it, each for itself."""

    column: str
    lake_column: str
    # Distinct values of the column, of rows with a whole key, and those that the lake's column has
    # in whatever row.
    matched: int
    total: int


@dataclass(frozen=True)
class NearRow:
    """A key without a match, and the row of the lake's table that has most parts of it."""

    key: Cells  # The cells as they stand in the first row of yours with the key.
    # Those of the first such row of the lake, in its columns; None where none has a part.
    nearest: Cells | None
    parts: int  # Parts of the key that the row has


@dataclass(frozen=True)
class UnmatchedKeys:
    """Keys without a match of which the same parts are in the lake's columns."""

    # Columns of the key whose values stand somewhere in the lake's column, and the others. All of
    # them may be there: in different rows.
    there: tuple[str, ...]
    missing: tuple[str, ...]
    keys: int
    examples: tuple[NearRow, ...]  # In the order of your rows


@dataclass(frozen=True)
class RepeatedKey:
    """A key that several rows have, of yours or of the lake's table."""

    key: Cells
    rows: int
    lake_rows: int


@dataclass(frozen=True)
class FanOut:
    """How many rows of both tables meet.

    Attributes
    ----------
    relation : {"1:1", "1:N", "N:1", "N:M"} or None
        Yours first; None where no key is joined.
    rows, lake_rows : int
        Rows of yours, and of the lake's table, that are joined.
    joined_rows : int
        Rows of the inner join.
    most_rows, most_lake_rows : int
        Largest number of rows, of yours and of the lake's table, with the same key.
    examples : tuple of RepeatedKey
        Those keys of several rows that make most rows of the join.
    """

    relation: str | None
    rows: int
    lake_rows: int
    joined_rows: int
    most_rows: int
    most_lake_rows: int
    examples: tuple[RepeatedKey, ...]


@dataclass(frozen=True)
class OtherColumns:
    """Another choice of the lake's columns, and the keys that it joins."""

    columns: tuple[str, ...]
    matched_keys: int


@dataclass(frozen=True)
class JoinedRows:
    """The first of your rows that are joined, each with the first row of the lake that it meets."""

    columns: tuple[str, ...]  # Those of the key first
    lake_columns: tuple[str, ...]
    rows: tuple[tuple[Cells, Cells], ...]


@dataclass(frozen=True, repr=False)
class KeyExplanation(Shown):
    """Why a key of several columns is joined with a table or not.

    Attributes
    ----------
    query : dict
        File, columns of the key, rows, and ``rows_without_key``: those that lack a part of it.
    table : str
    columns : tuple of str
        Of the table, one for each column of the key.
    are_given : bool
        Whether these were named; else they are those that join most keys, or overlap most where
        none is joined.
    matched_keys, total_keys : int
        Distinct keys of yours that a row of the table has, and all.
    parts : tuple of PartOverlap
    unmatched : tuple of UnmatchedKeys
        The largest groups.
    fan_out : FanOut
    others : tuple of OtherColumns
        Choices that join at least 0.9 times as many keys, best first.
    all_tried : bool
        Whether every choice of columns was followed that could be among `others`.
    sample : JoinedRows
    readings : tuple of WouldMatch
        Rules that are off by which more keys would match.
    """

    query: dict[str, Any]
    table: str
    columns: tuple[str, ...]
    are_given: bool
    matched_keys: int
    total_keys: int
    parts: tuple[PartOverlap, ...]
    unmatched: tuple[UnmatchedKeys, ...]
    fan_out: FanOut
    others: tuple[OtherColumns, ...]
    all_tried: bool
    sample: JoinedRows
    readings: tuple[WouldMatch, ...] = ()

    def _summary(self) -> str:
        keys = f"{self.matched_keys:,} of {self.total_keys:,} keys match"
        where = plain(f"{self.table}:{spec_of(self.columns)}")
        return f"{where}, {keys} ({percent(self.joinability)})"

    def _shown(self) -> tuple[list[str], list[list[Any]]]:
        rows = [list(asdict(part).values()) for part in self.parts]
        return list(PartOverlap.__dataclass_fields__), rows

    @property
    def joinability(self) -> float:
        """Share of your distinct keys that are joined, in [0, 1]; 0 where there is none."""
        return self.matched_keys / self.total_keys if self.total_keys else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form that the command line prints."""
        fields = {**asdict(self), "joinability": self.joinability}
        if fields.pop("readings"):
            fields["hints"] = Hints(readings=self.readings).to_dict()
        first = ("query", "table", "columns", "matched_keys", "total_keys", "joinability")
        return {name: fields.pop(name) for name in first} | fields
