"""Results of exact-value searches: columns, best first.

Each column provides on demand the values that it shares with the query.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pexeso.search.column_matches import ColumnMatch, ColumnMatches


@dataclass(frozen=True)
class TokenMatch(ColumnMatch):
    """A column of the lake that has values of the query column, as equal texts.

    Attributes
    ----------
    table : str
        Path of the table, relative to the lake.
    column : str
        The column's name, or ``#position`` where the header repeats or lacks it.
    overlap : int or None
        Distinct values that both columns have; None where containment is an estimate.
    containment : float
        The share in [0, 1] of the query column's distinct values that this column has.
    size : int
        Distinct values of this column.
    """

    overlap: int | None
    containment: float
    size: int
    _shared: Callable[[], list[str]] = field(repr=False, compare=False)

    @property
    def estimated(self) -> bool:
        """Whether `containment` is an estimate, and nothing was counted."""
        return self.overlap is None

    def shared(self) -> list[str]:
        """Return the values that both columns have, sorted.

        They have the form in which values are compared (`pexeso.lake.tokens`).
        """
        return self._shared()


@dataclass(frozen=True)
class TokenSearchResult(ColumnMatches[TokenMatch]):
    """The columns found, best first; equal ones by table, then column.

    Attributes
    ----------
    query : dict
        Where the query came from, its rows, and ``values``: how many distinct ones it has.
    options : dict
        What was asked for, defaults filled in.
    matches : tuple of TokenMatch
    fields : tuple of str
        What `to_dict`, `to_pandas` and CSV tell of each column found.
    stats : dict
        What was read and counted, and the seconds that it took.
    """

    fields: tuple[str, ...]
    stats: dict[str, Any]

    def to_dict(self, *, explain: bool = False) -> dict[str, Any]:
        """Return the plain JSON form that the command line prints.

        Parameters
        ----------
        explain : bool
            Add ``"shared"``, the values that both columns have, to each result.
        """
        results = self.rows()
        if explain:
            results = [
                {**row, "shared": match.shared()}
                for row, match in zip(results, self.matches, strict=True)
            ]
        return {
            "query": self.query,
            "options": self.options,
            "results": results,
            "stats": self.stats,
        }
