"""Results of exact-value searches: columns, best first.

Each column provides on demand the values that it shares with the query.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pexeso.results.column_matches import ColumnMatch, ColumnMatches, Hints
from pexeso.runtime.formatting import many, percent

if TYPE_CHECKING:
    from pexeso.sets.part.open import Shard


@dataclass(frozen=True, repr=False)
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
    # Where its tokens are: a shard of the index, and the number of the set there.
    _at: tuple[Shard, int] = field(repr=False, compare=False)
    _shared: Callable[[], list[str]] = field(repr=False, compare=False)
    _aliases: Callable[[], Mapping[str, list[str]]] = field(repr=False, compare=False, default=dict)
    _day_first: bool | None = field(repr=False, compare=False, default=None)

    def _measured(self) -> str:
        share = percent(self.containment)
        if self.overlap is None:
            return f"about {share} of the values shared"
        return f"{many(self.overlap, 'value')} shared ({share})"

    @property
    def estimated(self) -> bool:
        """Whether `containment` is an estimate, and nothing was counted."""
        return self.overlap is None

    def shared(self) -> list[str]:
        """Return the values that both columns have, sorted.

        They have the form in which values are compared (`pexeso.lake.tokens`).
        """
        return self._shared()

    def aliases(self) -> dict[str, list[str]]:
        """Return by shared value the texts of the query column that are aliases of it, sorted."""
        aliases = self._aliases()
        if not aliases:
            return {}
        return {value: aliases[value] for value in self.shared() if value in aliases}

    def explained(self) -> dict[str, Any]:
        """Return what both columns have as plain JSON; aliases where there are any."""
        aliases = self.aliases()
        return {"shared": self.shared(), **({"aliases": aliases} if aliases else {})}

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form, as copies have it."""
        names = ("table", "column", "overlap", "containment")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, repr=False)
class TokenSearchResult(ColumnMatches[TokenMatch]):
    """The columns found, best first; equal ones by table, then column.

    Attributes
    ----------
    query : dict
        Where the query came from, its rows, and ``values``: how many distinct ones it has.
    options : dict
        What was asked for, defaults filled in.
    matches : tuple of TokenMatch
    measures : tuple of str
        What `to_dict` tells of each column found.
    stats : dict
        What was read and counted, and the seconds that it took.
    """

    measures: tuple[str, ...]
    stats: dict[str, Any]

    def hints(self) -> Hints:
        """Find what helps where nothing was found, or less than half of the values.

        Where something was found, these are readings of cells alone by which more would be.
        """
        return self._find_hints()

    def _row_of(self, match: TokenMatch) -> dict[str, Any]:
        return {**self._described(match, False), "n_copies": len(match.copies)}

    def _as_json(self, match: TokenMatch, explain: bool) -> dict[str, Any]:
        return {**super()._as_json(match, explain), **(match.explained() if explain else {})}

    def _described(self, match: TokenMatch, explain: bool) -> dict[str, Any]:
        return {name: getattr(match, name) for name in self.measures}
