"""Pairs of tables that may join, each with its best pairs of columns.

Of the pairs of columns (`pexeso.sets.lake_columns`) those are left out that would join two
measures: both columns hold numbers, neither is nearly a key of its table, and neither name says
that it is a code or a year. Of more than `MAX_PAIRS` pairs of columns those that share most tokens
are kept, since all sets of them are weighed.
"""

from __future__ import annotations

import heapq
import os
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.acquisition.graph import JoinGraph, edges_of
from pexeso.acquisition.lake_market import LakeMarket, names_a_code, own_table
from pexeso.acquisition.tables import CodedColumns, MarketTable
from pexeso.errors import ColumnNotFoundError, InputError, PexesoError
from pexeso.lake.choose import profile_columns
from pexeso.lake.tokens import distinct_tokens
from pexeso.runtime.formatting import listed_names
from pexeso.runtime.progress import advance, begin_steps, checkpoint
from pexeso.sets.lake_columns import (
    KEY_PERCENT,
    ColumnPairs,
    LakeColumns,
    OwnColumn,
    own_columns,
    pairs_from,
)

if TYPE_CHECKING:
    from pexeso.semantic.open_index import OpenIndex


MAX_PAIRS = 6  # Pairs of columns of two tables: 63 sets of them are weighed

Pair = tuple[str, str]
# For each two tables, the first before the second, the pairs of columns that may join, by name.
PairsOfTables = dict[tuple[str, str], list[Pair]]

_YEAR = re.compile(r"year|date|month", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class TablePairs:
    columns: LakeColumns
    measures: np.ndarray = field(repr=False)

    @classmethod
    def of(cls, columns: LakeColumns, rows: pa.Table) -> TablePairs:
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
    def of_market(cls, market: LakeMarket) -> TablePairs:
        rows = market.opened.catalog.columns(["table", "label", "kind"])
        return cls.of(market.columns, rows)

    def of_tables(self, tables: list[str]) -> PairsOfTables:
        return self.of_own(own_columns(self.columns, tables))

    def of_own(self, own: list[OwnColumn]) -> PairsOfTables:
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
        return {ends: sorted(set(table_pairs[ends])) for ends in sorted(table_pairs)}

    def _is_measure(self, own_column: OwnColumn) -> bool:
        column = self.columns.column(own_column.table, own_column.label)
        if column >= 0:
            return bool(self.measures[column])
        if 100 * len(own_column.tokens) >= KEY_PERCENT * own_column.n_rows or _says_key(
            own_column.label
        ):
            return False
        return profile_columns([own_column.tokens.cast(pa.string())])[0].kind == "number"


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


Neighbours = Callable[[str], PairsOfTables]  # From a table to its pairs with all other tables


@dataclass(frozen=True)
class Reached:
    tables: tuple[str, ...]
    pairs: PairsOfTables
    n_looked_at: int
    n_waiting: int


def reachable(
    ends: Sequence[Iterable[str]],
    neighbours: Neighbours,
    *,
    max_tables: int,
    max_joins: int,
    belongs: Mapping[int, frozenset[str]] | None = None,
) -> Reached:
    groups = [frozenset(end) for end in ends]
    most_hops = max_joins if len(groups) < 2 else max_joins // 2
    waiting = [(0, 0, table) for table in sorted(frozenset().union(*groups))]
    hops = {table: 0 for _, _, table in waiting}
    looked: set[str] = set()
    pairs: PairsOfTables = {}
    while waiting and len(looked) < max_tables:
        hop, _, table = heapq.heappop(waiting)
        if table in looked or hop > hops[table]:
            continue
        looked.add(table)
        checkpoint()
        for both, columns in sorted(neighbours(table).items()):
            pairs[both] = columns
            other = both[1] if both[0] == table else both[0]
            if hop < most_hops and hop + 1 < hops.get(other, most_hops + 1):
                hops[other] = hop + 1
                heapq.heappush(waiting, (hop + 1, -len(columns), other))
    n_waiting = len({table for _, _, table in waiting} - looked)
    pairs = {both: columns for both, columns in pairs.items() if looked.issuperset(both)}
    tables = looked
    if len(groups) > 1:
        members = [
            (belongs or {}).get(number, group) & looked for number, group in enumerate(groups)
        ]
        tables = _between(looked, pairs, members, max_joins)
    return Reached(
        tuple(sorted(tables)),
        {both: pairs[both] for both in sorted(pairs) if tables.issuperset(both)},
        len(looked),
        n_waiting,
    )


def _between(
    tables: set[str], pairs: PairsOfTables, ends: Sequence[frozenset[str]], max_joins: int
) -> set[str]:
    """Return the ends, and tables near enough to two of them."""
    beside: dict[str, list[str]] = {table: [] for table in tables}
    for one, other in pairs:
        beside[one].append(other)
        beside[other].append(one)
    distances: dict[str, list[int]] = {table: [] for table in tables}
    for group in ends:
        hops = dict.fromkeys(sorted(group), 0)
        for table in (queue := list(hops)):
            for other in beside[table]:
                if other not in hops:
                    hops[other] = hops[table] + 1
                    queue.append(other)
        for table, distance in hops.items():
            distances[table].append(distance)
    chosen = {
        table
        for table, lengths in distances.items()
        if 0 in lengths or (len(lengths) > 1 and sum(sorted(lengths)[:2]) <= max_joins)
    }
    # What joins only one of them leads nowhere.
    degrees = {table: len(chosen.intersection(beside[table])) for table in chosen}
    leaves = [table for table in sorted(chosen) if degrees[table] < 2 and 0 not in distances[table]]
    for leaf in leaves:
        chosen.discard(leaf)
        for other in beside[leaf]:
            if other in chosen and 0 not in distances[other]:
                degrees[other] -= 1
                if degrees[other] == 1:
                    leaves.append(other)
    return chosen


MAX_NAMED = 5  # Tables that a message names

OwnRows = tuple[str, pa.Table]
Wanted = tuple[str | None, str]


def market_graph(
    opened: OpenIndex,
    own: OwnRows | None,
    *,
    wanted: Sequence[Wanted],
    have: Sequence[tuple[str, str]],
    prices: str | os.PathLike[str] | Mapping[str, Mapping[str, float]],
    max_tables: int,
    max_joins: int,
    exclude: Collection[str],
    coded: CodedColumns,
) -> tuple[JoinGraph, list[str]]:
    """Return the join graph of the tables that a request can use, and sentences on what it lacks.

    Columns are to be explained (`have`), or wanted, of a table or of any table; without a wanted
    one all tables that joins reach from the shopper's are in the graph. At most `max_tables` are
    looked at, over at most `max_joins` joins between two ends.
    """
    market = LakeMarket.of(opened, prices=prices, own=[] if own is None else [own[0]])
    request = _Request(market, own, list(wanted), list(have), set(exclude), max_tables)
    reached = reachable(
        request.begins,
        request.neighbours(),
        max_tables=max_tables,
        max_joins=max_joins,
        belongs=request.belongs,
    )
    notes = request.notes
    if reached.n_waiting:
        notes.append(
            f"{reached.n_looked_at:,} tables were looked at, the limit (max_tables); at least "
            f"{reached.n_waiting:,} further ones that joins lead to were not."
        )
    tables, pairs = request.tables(reached)
    edges = []
    begin_steps(len(pairs))
    for edge in edges_of(tables, pairs, coded):
        advance(1)
        join_sets = [join_set for join_set in edge.join_sets if join_set.n_keys]
        if join_sets:  # a key is in both tables
            edges.append(replace(edge, join_sets=tuple(join_sets)))
    return JoinGraph.of(tables.values(), edges), notes


def _nowhere(column: str, left_out: Sequence[str]) -> InputError:
    if not left_out:
        return InputError(f"No table of the lake has a column {column!r}.")
    return InputError(
        f"Only tables that are left out have a column {column!r}: "
        f"{listed_names(left_out, MAX_NAMED)}. Leave fewer out, or want another column."
    )


class _Request:
    def __init__(
        self,
        market: LakeMarket,
        own: OwnRows | None,
        wanted_columns: list[Wanted],
        have: list[tuple[str, str]],
        exclude: set[str],
        max_tables: int,
    ) -> None:
        self.market, self.own = market, {} if own is None else dict([own])
        self.hidden = exclude | set(self.own)
        self.notes: list[str] = []
        self.begins: list[list[str]] = [[name] for name in self.own]
        self.belongs: dict[int, frozenset[str]] = {}
        self.required: set[str] = set()
        self._numeric: dict[str, frozenset[str]] = {}
        self._named: dict[str, set[str]] = defaultdict(set)
        for table, column in (*wanted_columns, *have):
            if table is not None:
                self._named[table].add(column)
        for table, column in (*have, *wanted_columns):
            if table not in self.own:
                self._begin(table, column, max_tables)
        if not self.begins:
            raise InputError("A market needs your table, or a wanted column. Got neither.")

    def _begin(self, table: str | None, column: str, max_tables: int) -> None:
        if table is not None:
            if table in self.hidden:
                raise InputError(f"The table '{table}' is wanted and left out. Choose one.")
            self.market.require_tables([table])
            if column not in (labels := self.market.labels([table])[table]):
                raise ColumnNotFoundError(
                    f"'{table}' has no column {column!r}. Its columns: {', '.join(labels)}."
                )
            self.begins.append([table])
            self.required.add(table)
            return
        candidates = self.market.tables_with(column)
        tables = [name for name in candidates if name not in self.hidden]
        if not tables and not any(column in rows.column_names for rows in self.own.values()):
            raise _nowhere(column, candidates)
        for name in tables:
            self._named[name].add(column)
        begun = tables[: max(1, max_tables // 2)]
        if len(begun) < len(tables):
            self.notes.append(
                f"{len(tables):,} tables have a column {column!r}. The search began with "
                f"{len(begun):,} of them; name the table to choose one."
            )
        if tables:
            self.belongs[len(self.begins)] = frozenset(tables)
            self.begins.append(begun)

    def neighbours(self) -> Neighbours:
        finder = TablePairs.of_market(self.market)

        def neighbours(table: str) -> PairsOfTables:
            rows = self.own.get(table)
            if rows is None:
                return self._usable(finder.of_tables([table]))
            return self._usable(finder.of_own(list(_own_columns(table, rows))))

        return neighbours

    def _usable(self, table_pairs: PairsOfTables) -> PairsOfTables:
        """Leave out hidden tables, and pairs with measures that the request is about."""
        usable, hidden = {}, self.hidden - set(self.own)
        for (one, other), pairs in table_pairs.items():
            if one in hidden or other in hidden:
                continue
            lefts = self._measures(one) if one in self._named else ()
            rights = self._measures(other) if other in self._named else ()
            usable_pairs = [
                (left, right) for left, right in pairs if left not in lefts and right not in rights
            ]
            if usable_pairs:
                usable[one, other] = usable_pairs
        return usable

    def _measures(self, table: str) -> frozenset[str]:
        """Return the columns of a table that the request names and that are numbers."""
        if table not in self._numeric:
            rows = self.own.get(table)
            known = self.market.tables([table], {})[0] if rows is None else own_table(table, rows)
            self._numeric[table] = known.numeric
        return self._numeric[table] & self._named[table]

    def tables(self, reached: Reached) -> tuple[dict[str, MarketTable], PairsOfTables]:
        """Return the tables that can be read, and the pairs of these."""
        joined: dict[str, set[str]] = defaultdict(set)
        for (one, other), pairs in reached.pairs.items():
            joined[one] |= {left for left, _ in pairs}
            joined[other] |= {right for _, right in pairs}
        names = [name for name in reached.tables if name not in self.own]
        tables = {name: own_table(name, rows, joined[name]) for name, rows in self.own.items()}
        begin_steps(len(names))
        for table in self.market.tables(names, joined):
            advance(1)
            try:
                if joined[table.name]:
                    table.read(sorted(joined[table.name])[:1])
            except PexesoError as error:
                if table.name in self.required:
                    raise
                self.notes.append(f"'{table.name}' is left out: {error}")
                continue
            tables[table.name] = table
        pairs = {ends: links for ends, links in reached.pairs.items() if set(ends) <= set(tables)}
        return tables, pairs


def _own_columns(name: str, rows: pa.Table) -> Iterable[OwnColumn]:
    for label, column in zip(rows.column_names, rows.columns, strict=True):
        try:
            tokens = distinct_tokens(column)
        except InputError:  # lists and the like join nothing
            continue
        if len(tokens):
            yield OwnColumn(name, label, tokens, rows.num_rows)
