"""What searches by equal values return: columns, best first, each with the values that it shares with the query on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class TokenMatch:
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

    table: str
    column: str
    overlap: int | None
    containment: float
    size: int
    _shared: Callable[[], list[str]] = field(repr=False, compare=False)

    @property
    def estimated(self) -> bool:
        """Whether `containment` is an estimate, and nothing was counted."""
        return self.overlap is None

    def shared(self) -> list[str]:
        """Return the values that both columns have, in the form in which they are compared (`pexeso.lake.tokens`), sorted."""
        return self._shared()


@dataclass(frozen=True)
class TokenSearchResult(Sequence[TokenMatch]):
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

    query: dict[str, Any]
    options: dict[str, Any]
    matches: tuple[TokenMatch, ...]
    fields: tuple[str, ...]
    stats: dict[str, Any]

    @overload
    def __getitem__(self, position: int) -> TokenMatch: ...

    @overload
    def __getitem__(self, position: slice) -> tuple[TokenMatch, ...]: ...

    def __getitem__(self, position: int | slice) -> TokenMatch | tuple[TokenMatch, ...]:
        return self.matches[position]

    def __len__(self) -> int:
        return len(self.matches)

    def __iter__(self) -> Iterator[TokenMatch]:
        return iter(self.matches)

    def rows(self) -> list[dict[str, Any]]:
        """Return `fields` of each column found."""
        return [{name: getattr(match, name) for name in self.fields} for match in self.matches]

    def to_dict(self, *, explain: bool = False) -> dict[str, Any]:
        """Return the plain JSON form that the command line prints.

        Parameters
        ----------
        explain : bool
            Add ``"shared"``, the values that both columns have, to each result.
        """
        results = self.rows()
        if explain:
            results = [{**row, "shared": match.shared()} for row, match in zip(results, self.matches, strict=True)]
        return {"query": self.query, "options": self.options, "results": results, "stats": self.stats}

    def to_pandas(self) -> pd.DataFrame:
        """Return one row a column found."""
        import pandas as pd

        return pd.DataFrame(self.rows(), columns=list(self.fields))
