"""Pairs of tables that may join, each with its best pairs of columns.

Of the pairs of columns (`pexeso.acquisition_search.pairs`) those are left out that would join two
measures: both columns hold numbers, neither is nearly a key of its table, and neither name says
that it is a code or a year. Of more than `MAX_PAIRS` pairs of columns those that share most tokens
are kept, since all sets of them are weighed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.acquisition_search.market.lake_market import Market
from pexeso.acquisition_search.market.lake_rows import names_a_code
from pexeso.acquisition_search.pairs.column_pairs import (
    KEY_PERCENT,
    ColumnPairs,
    OwnColumn,
    all_pairs,
    own_columns,
    pairs_from,
)
from pexeso.acquisition_search.pairs.lake_columns import LakeColumns
from pexeso.lake.sniff import profile_columns

MAX_PAIRS = 6
"""Pairs of columns of two tables: 63 sets of them are weighed."""

Pair = tuple[str, str]
PairsOfTables = dict[tuple[str, str], list[Pair]]
"""For each two tables, the first before the second, the pairs of columns that may join, by name."""

_YEAR = re.compile(r"year|date|month", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class TablePairs:
    """Finds pairs of tables that may join.

    Attributes
    ----------
    columns : LakeColumns
        The columns of all tables.
    measures : bool (n,)
        For each of them whether it is a measure.
    """

    columns: LakeColumns
    measures: np.ndarray = field(repr=False)

    @classmethod
    def of(cls, columns: LakeColumns, rows: pa.Table) -> TablePairs:
        """Return what finds the pairs of tables.

        Parameters
        ----------
        columns : LakeColumns
        rows : pyarrow.Table
            ``table, label, kind`` of columns, as a catalog has them.
        """
        numbers = rows.filter(pc.equal(rows["kind"], "number"))
        is_number = pc.is_in(
            _named(columns.tables, columns.labels),
            value_set=_named(numbers["table"], numbers["label"]),
        ).to_numpy(zero_copy_only=False)
        key = (columns.n_rows > 0) & (100 * columns.sizes >= KEY_PERCENT * columns.n_rows)
        measures = is_number & ~key
        labels = columns.labels.filter(pa.array(measures)).dictionary_encode()
        coded = np.array([_says_key(label) for label in labels.dictionary.to_pylist()], bool)
        measures[measures] = ~coded[labels.indices.to_numpy()]
        return cls(columns, measures)

    @classmethod
    def of_market(cls, market: Market) -> TablePairs:
        """Return what finds the pairs of the tables of an index."""
        rows = market.opened.catalog.columns(["table", "label", "kind"])
        return cls.of(market.columns, rows)

    def all(self, *, limit: int | None = None) -> tuple[PairsOfTables, int]:
        """Return the pairs of all tables, and how many partners of columns a limit left out.

        Parameters
        ----------
        limit : int, optional
            Partners of a column, see `pexeso.acquisition_search.pairs.column_pairs`.
        """
        columns = self.columns
        pairs = all_pairs(columns) if limit is None else all_pairs(columns, limit=limit)
        usable = ~(self.measures[pairs.left] & self.measures[pairs.right])
        left, right, shared = (array[usable] for array in (pairs.left, pairs.right, pairs.shared))
        tables = columns.table_numbers
        positions = _best(tables[left], tables[right], shared)
        table_pairs: PairsOfTables = {}
        for one, other in zip(left[positions].tolist(), right[positions].tolist(), strict=True):
            (table, label), (other_table, other_label) = columns.name(one), columns.name(other)
            table_pairs.setdefault((table, other_table), []).append((label, other_label))
        return {
            tables: sorted(table_pairs[tables]) for tables in sorted(table_pairs)
        }, pairs.n_left_out

    def of_tables(self, tables: list[str]) -> tuple[PairsOfTables, int]:
        """Return the pairs of some tables with all others, as `all` does."""
        return self.of_own(own_columns(self.columns, tables))

    def of_own(self, own: list[OwnColumn]) -> tuple[PairsOfTables, int]:
        """Return the pairs of given columns with those of the index, as `all` does."""
        columns = self.columns
        pairs: ColumnPairs = pairs_from(columns, own)
        measures = np.array([self._is_measure(column) for column in own], bool)
        usable = ~(measures[pairs.left] & self.measures[pairs.right])
        left, right, shared = (array[usable] for array in (pairs.left, pairs.right, pairs.shared))
        numbers = {table: at for at, table in enumerate(sorted({column.table for column in own}))}
        of_left = np.array([numbers[column.table] for column in own], np.int64)
        positions = _best(of_left[left], columns.table_numbers[right], shared)
        table_pairs: PairsOfTables = {}
        for one, other in zip(left[positions].tolist(), right[positions].tolist(), strict=True):
            table, label = columns.name(other)
            ends, pair = (own[one].table, table), (own[one].label, label)
            if ends[0] > ends[1]:
                ends, pair = ends[::-1], pair[::-1]
            table_pairs.setdefault(ends, []).append(pair)
        return {
            ends: sorted(set(table_pairs[ends])) for ends in sorted(table_pairs)
        }, pairs.n_left_out

    def _is_measure(self, own_column: OwnColumn) -> bool:
        column = self.columns.column(own_column.table, own_column.label)
        if column >= 0:
            return bool(self.measures[column])
        if 100 * len(own_column.tokens) >= KEY_PERCENT * own_column.n_rows or _says_key(
            own_column.label
        ):
            return False
        return profile_columns([own_column.tokens.cast(pa.string())])[0].kind == "number"


def named_pairs(
    labels: Mapping[str, list[str]], tables: list[str], others: list[str]
) -> Iterator[tuple[tuple[str, str], list[Pair]]]:
    """Yield pairs of tables that have columns of equal names, as natural joins have them."""
    for one in tables:
        names = {label for label in labels[one] if not label.startswith("#")}
        for other in others:
            shared = sorted(names & set(labels[other])) if one != other else []
            if shared:
                ends = (one, other) if one < other else (other, one)
                yield ends, [(name, name) for name in shared]


def _best(left: np.ndarray, right: np.ndarray, shared: np.ndarray) -> np.ndarray:
    """Return the pairs of columns that are kept of each two tables, in their order."""
    order = np.lexsort([-shared, right, left])
    ends = np.stack([left[order], right[order]])
    first = np.ones(len(order), bool)
    first[1:] = (ends[:, 1:] != ends[:, :-1]).any(axis=0)
    begins = np.flatnonzero(first)
    rank = np.arange(len(order)) - np.repeat(begins, np.diff(np.append(begins, len(order))))
    return np.sort(order[rank < MAX_PAIRS])


def _says_key(label: str) -> bool:
    return names_a_code(label) or _YEAR.search(label) is not None


def _named(tables: pa.Array | pa.ChunkedArray, labels: pa.Array | pa.ChunkedArray) -> pa.Array:
    tables, labels = tables.cast(pa.large_string()), labels.cast(pa.large_string())
    return pc.binary_join_element_wise(tables, labels, pa.scalar("\0", pa.large_string()))
