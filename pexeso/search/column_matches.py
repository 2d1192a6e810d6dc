"""What every search returns: columns found, in order; each kind adds the measure of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class ColumnMatch:
    """A column of the lake that a search found.

    Attributes
    ----------
    table : str
        Path of the table, relative to the lake.
    column : str
        The column's name, or ``#position`` where the header repeats or lacks it.
    """

    table: str
    column: str


AnyMatch = TypeVar("AnyMatch", bound=ColumnMatch)


@dataclass(frozen=True)
class ColumnMatches(Sequence[AnyMatch], Generic[AnyMatch]):
    """The columns that a search found, best first.

    Attributes
    ----------
    query : dict
        Where the query came from, and what was counted in it.
    options : object
        The options of the search, with defaults filled in.
    matches : tuple of ColumnMatch
    """

    query: dict[str, Any]
    options: Any
    matches: tuple[AnyMatch, ...]

    @overload
    def __getitem__(self, position: int) -> AnyMatch: ...

    @overload
    def __getitem__(self, position: slice) -> tuple[AnyMatch, ...]: ...

    def __getitem__(self, position: int | slice) -> AnyMatch | tuple[AnyMatch, ...]:
        return self.matches[position]

    def __len__(self) -> int:
        return len(self.matches)

    def __iter__(self) -> Iterator[AnyMatch]:
        return iter(self.matches)

    def rows(self) -> list[dict[str, Any]]:
        """Return the values of `fields` for each column found."""
        return [{name: getattr(match, name) for name in self.fields} for match in self.matches]

    def to_pandas(self) -> pd.DataFrame:
        """Return one row a column found, with the columns `fields`."""
        import pandas as pd

        return pd.DataFrame(self.rows(), columns=list(self.fields))
