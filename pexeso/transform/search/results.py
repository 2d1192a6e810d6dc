"""Results of searches for columns that join after a program."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pexeso.results.column_matches import ColumnMatch, ColumnMatches
from pexeso.runtime.formatting import percent, plain

if TYPE_CHECKING:
    from pexeso.transform.joins.joined import TransformJoin
    from pexeso.transform.programs.renderings import Dialect
    from pexeso.transform.transformation import Direction

FIELDS = ("table", "column", "joinability", "matched", "total", "equal", "direction", "program")


@dataclass(frozen=True, repr=False)
class TransformMatch(ColumnMatch):
    """A column of the lake that joins the query column after a program.

    Attributes
    ----------
    table : str
        Path of the table, relative to the lake.
    column : str
        The column's name, or ``#position`` where the header repeats or lacks it.
    matched : int
        Distinct values of the query column that have a partner, equal or by a program.
    total : int
        Distinct values of the query column.
    equal : int
        Those of `matched` whose partner is equal.
    transformation : TransformJoin
        The query column as its source, and this one as its target, of distinct values each; its
        programs can be saved, and applied by `pexeso.learn_transformation` with ``program=``.
    """

    matched: int
    total: int
    equal: int
    transformation: TransformJoin = field(repr=False, compare=False)

    def _measured(self) -> str:
        joined = f"{self.matched:,} of {self.total:,} values joined"
        return f"{joined} ({percent(self.joinability)}) by {plain(self.program)}"

    @property
    def joinability(self) -> float:
        """Share of the query column's distinct values that have a partner, in [0, 1]."""
        return self.matched / self.total

    @property
    def direction(self) -> Direction:
        """Whose values the programs read: ``"source to target"``, those of the query column."""
        return self.transformation.rule.direction

    @property
    def program(self) -> str:
        """The programs in words."""
        return self.transformation.program or ""

    def sql(self, dialect: Dialect = "duckdb") -> str:
        """Return the programs as an SQL expression."""
        return self.transformation.sql(dialect) or ""

    @property
    def python(self) -> str:
        """Source of a function ``transform(row)``."""
        return self.transformation.python or ""

    def pairs(self) -> list[tuple[str, str, str]]:
        """Return query value, value of this column, and ``"equal"`` or ``"program"``."""
        return self.transformation.pairs

    def to_dict(self, *, explain: bool = False) -> dict[str, Any]:
        """Return the plain JSON form; with `explain`, also SQL, Python and the pairs."""
        answer = {name: getattr(self, name) for name in FIELDS}
        if explain:
            answer |= {"sql": self.sql(), "sql_spark": self.sql("spark"), "python": self.python}
            answer["pairs"] = [list(pair) for pair in self.pairs()]
        return answer


@dataclass(frozen=True, repr=False)
class TransformSearchResult(ColumnMatches[TransformMatch]):
    """The columns found, those that join most values first; equal ones by table, then column.

    Attributes
    ----------
    query : dict
        Where the query came from, its rows, and ``values``: how many distinct ones it has.
    options : dict
        What was asked for, defaults filled in.
    matches : tuple of TransformMatch
    stats : dict
        How many columns were candidates, and how many learned from; the seconds that it took.
    """

    stats: dict[str, Any] = field(compare=False)

    measures = FIELDS  # of no dataclass field
