"""What a shopper asks for."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from pexeso.acquisition.graph.joins import JoinGraph
from pexeso.acquisition.measures.correlation import SCALES
from pexeso.acquisition.search.defaults import DEFAULT_MAX_TABLES
from pexeso.errors import InputError


@dataclass(frozen=True)
class Terminal:
    """A column that a plan must have.

    Attributes
    ----------
    column : str
        Its name.
    tables : tuple of str
        The tables that it can be taken from, at least one; sorted.
    """

    column: str
    tables: tuple[str, ...]

    @classmethod
    def of(cls, graph: JoinGraph, column: str, table: str | None = None) -> Terminal:
        """Return a column of one table, or of any table that has it.

        Raises
        ------
        InputError
            If no table of the graph has it, or the named table is not there.
        """
        if table is None:
            tables = tuple(
                name for name in sorted(graph.tables) if column in graph.tables[name].columns
            )
            if not tables:
                raise InputError(f"No table has a column {column!r}.")
            return cls(column, tables)
        if table not in graph.tables:
            raise InputError(f"There is no table '{table}'.")
        graph.tables[table].require(column)
        return cls(column, (table,))


@dataclass(frozen=True)
class AcquisitionRequest:
    """What a shopper has and wants, and the bounds of a plan.

    Attributes
    ----------
    have : tuple of Terminal
        A_S, the columns to be explained. Without any, wanted columns are to be correlated with
        each other, which takes two of them.
    want : tuple of Terminal
        A_T, the columns that are wanted; at least one.
    budget : float
        B, the largest price of a plan, inclusive.
    max_informativeness : float
        alpha, the largest sum of the weights of a plan's joins, inclusive.
    min_quality : float
        beta, the least quality of a plan's join result, inclusive.
    max_tables : int
        The most tables of a plan, the shopper's own included.
    max_fan_out : float
        The most rows of a key, inclusive, in the table that a join leads to, seen from the table of
        the first column of `have`, or of `want` if there is none: 1 for joins that look one row up
        and multiply none.
    y_bins, numeric_scale
        As those of `pexeso.acquisition.measures.correlation.correlation`.

    Raises
    ------
    InputError
        If there is nothing wanted, or a bound is out of its range.
    """

    have: tuple[Terminal, ...]
    want: tuple[Terminal, ...]
    budget: float = math.inf
    max_informativeness: float = math.inf
    min_quality: float = 0.0
    max_tables: int = DEFAULT_MAX_TABLES
    max_fan_out: float = math.inf
    y_bins: int = 16
    numeric_scale: str = "raw"

    def __post_init__(self) -> None:
        if not self.want or (not self.have and len(self.want) < 2):
            raise InputError(
                "A plan needs a wanted column, and two if there is nothing to explain. Got "
                f"{[terminal.column for terminal in self.want]}."
            )
        for name in ("budget", "max_informativeness"):
            if not getattr(self, name) >= 0:
                raise InputError(f"{name} must be a number from 0, got {getattr(self, name)}.")
        if not 0 <= self.min_quality <= 1:
            raise InputError(f"min_quality must be from 0 to 1, got {self.min_quality}.")
        if self.max_tables < 1:
            raise InputError(f"max_tables must be 1 or more, got {self.max_tables}.")
        if not self.max_fan_out >= 1:
            raise InputError(f"max_fan_out must be 1 or more, got {self.max_fan_out}.")
        if self.y_bins < 1:
            raise InputError(f"y_bins must be 1 or more, got {self.y_bins}.")
        if self.numeric_scale not in SCALES:
            raise InputError(f"numeric_scale must be one of {SCALES}, got {self.numeric_scale!r}.")
        _require_distinct(self.terminals)

    @property
    def terminals(self) -> tuple[Terminal, ...]:
        """All columns that a plan must have, the shopper's first."""
        return (*self.have, *self.want)


def _require_distinct(terminals: Iterable[Terminal]) -> None:
    seen: set[Terminal] = set()
    for terminal in terminals:
        if terminal in seen:
            raise InputError(f"The column {terminal.column!r} is named twice.")
        seen.add(terminal)
