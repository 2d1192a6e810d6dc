"""The join graph that a request searches, from an index and the shopper's own tables."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pexeso.acquisition.graph.building import edges_of
from pexeso.acquisition.graph.coded import CodedColumns
from pexeso.acquisition.graph.joins import JoinEdge, JoinGraph
from pexeso.acquisition.graph.tables import MarketTable
from pexeso.acquisition_search.graphs.reachable import (
    DEFAULT_JOINS,
    DEFAULT_TABLES,
    Neighbours,
    Reached,
    reachable,
)
from pexeso.acquisition_search.graphs.row_pairs import pairs_of_rows
from pexeso.acquisition_search.graphs.stored_graph import (
    StoredGraph,
    fingerprints_of,
    load_graph,
)
from pexeso.acquisition_search.graphs.table_pairs import PairsOfTables, TablePairs, named_pairs
from pexeso.acquisition_search.market.dependencies import require_columns
from pexeso.acquisition_search.market.lake_market import Market, own_table
from pexeso.acquisition_search.pairs.column_pairs import OwnColumn
from pexeso.errors import ColumnNotFoundError, InputError, PexesoError
from pexeso.lake.columns import listed_names
from pexeso.lake.tokens import distinct_tokens
from pexeso.options import whole_number

if TYPE_CHECKING:
    from pexeso.search.open_index import OpenIndex

VALUES, NAMES = "values", "names"
MATCHES = (VALUES, NAMES)
"""Columns join if their values do, or if their names are equal, as the paper has it."""

MAX_NAMED = 5
"""Tables that a message names."""

OwnRows = tuple[str, pa.Table]
Wanted = tuple[str | None, str]


def market_graph(
    index: str | os.PathLike[str] | OpenIndex,
    *,
    own: Sequence[OwnRows] = (),
    wanted: Sequence[Wanted] = (),
    prices: str | os.PathLike[str] | Mapping[str, Mapping[str, float]] = "free",
    dependencies: str | os.PathLike[str] = "discover",
    match: str = VALUES,
    max_tables: int = DEFAULT_TABLES,
    max_joins: int = DEFAULT_JOINS,
    have: Sequence[tuple[str, str]] = (),
    exclude: Collection[str] = (),
    numeric: Mapping[str, Collection[str]] | None = None,
    categorical: Mapping[str, Collection[str]] | None = None,
    coded: CodedColumns | None = None,
    saved: StoredGraph | str | os.PathLike[str] | None = None,
) -> tuple[JoinGraph, CodedColumns, list[str]]:
    """Return the join graph of the tables that a request can use.

    Parameters
    ----------
    index : path or OpenIndex
        The index; it needs token sets.
    own : sequence of (str, pyarrow.Table)
        The shopper's tables. A table of the lake with the name of one of them is left out.
    wanted : sequence of (str or None, str)
        Wanted columns, each of a table or of any table. Without any, all tables that joins reach
        from the own ones are in the graph.
    prices, dependencies
        See `pexeso.acquisition_search.market`.
    match : {"values", "names"}
        Whether columns join by their values, or where their labels are equal.
    max_tables : int
        Tables that are looked at, 2 or more; see `pexeso.acquisition_search.graphs.reachable`.
    max_joins : int
        Joins of a path between two ends, 1 or more.
    have : sequence of (str, str)
        Columns of own tables, or of the lake, that are to be explained. They keep their kind: what
        is numeric joins nothing.
    exclude : collection of str
        Tables of the lake that are left out.
    numeric, categorical : mapping of str to collection of str, optional
        Columns by table, the own ones among them, whose kind is given. What is said to be numeric
        joins nothing.
    coded : CodedColumns, optional
        What reads and keeps columns.
    saved : StoredGraph or path, optional
        A graph of the lake, whose joins are not weighed again. Of tables whose files have changed
        since, or that are new, joins are found as without it. Columns join by values.

    Returns
    -------
    (JoinGraph, CodedColumns, list of str)
        The graph, the columns that were read for it, and sentences on what was left out.

    Raises
    ------
    InputError
        If an option is out of its range, or a wanted table or column is not there.
    TableReadError, PlaceError
        If a table with a wanted column cannot be read.
    """
    if match not in MATCHES:
        raise InputError(f"match must be one of {', '.join(MATCHES)}. Got {match!r}.")
    max_tables = whole_number("max_tables", max_tables, 2)
    max_joins = whole_number("max_joins", max_joins, 1)
    market = Market.of(
        _opened(index),
        prices=prices,
        dependencies=dependencies,
        numeric=numeric,
        categorical=categorical,
        own=[name for name, _ in own],
    )
    request = _Request(market, list(own), list(wanted), list(have), set(exclude), max_tables)
    stored = load_graph(saved) if isinstance(saved, str | os.PathLike) else saved
    if stored is not None:
        if match == NAMES:
            raise InputError("A saved graph joins by values: leave it out, or match by them.")
        request.take(stored)
    neighbours = request.by_names() if match == NAMES else request.by_values()
    reached = reachable(
        request.begins,
        neighbours,
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
    coded = CodedColumns() if coded is None else coded
    tables, pairs = request.tables(reached)
    known, pairs = request.known_edges(pairs)
    edges = edges_of(tables, pairs, coded, natural=match == NAMES)
    new_edges = edges if match == NAMES else matching(edges)
    return JoinGraph.of(tables.values(), [*known, *new_edges]), coded, notes


def matching(edges: Iterable[JoinEdge]) -> Iterable[JoinEdge]:
    """Yield edges without the join sets of which no key is in both tables."""
    for edge in edges:
        join_sets = [join_set for join_set in edge.join_sets if join_set.n_keys]
        if join_sets:
            yield JoinEdge.of(edge.left, edge.right, join_sets)


def _opened(index: str | os.PathLike[str] | OpenIndex) -> OpenIndex:
    if not isinstance(index, str | os.PathLike):
        return index
    from pexeso.search.open_index import open_without_models

    return open_without_models(index)


def _nowhere(column: str, left_out: Sequence[str]) -> InputError:
    if not left_out:
        return InputError(f"No table of the lake has a column {column!r}.")
    return InputError(
        f"Only tables that are left out have a column {column!r}: "
        f"{listed_names(left_out, MAX_NAMED)}. Leave fewer out, or want another column."
    )


class _Request:
    """What a request is about, and how its tables are found."""

    def __init__(
        self,
        market: Market,
        own_rows: list[OwnRows],
        wanted_columns: list[Wanted],
        have: list[tuple[str, str]],
        exclude: set[str],
        max_tables: int,
    ) -> None:
        self.market, self.own = market, dict(own_rows)
        if len(self.own) < len(own_rows):
            raise InputError("The shopper's tables must have different names. Rename one.")
        self.hidden = exclude | set(self.own)
        self.notes: list[str] = []
        self.begins: list[list[str]] = [[name] for name in self.own]
        self.belongs: dict[int, frozenset[str]] = {}
        self.required: set[str] = set()
        self.fresh: set[str] = set()
        self.edges: dict[tuple[str, str], JoinEdge] = {}
        self.known: dict[str, PairsOfTables] = defaultdict(dict)
        self._numeric: dict[str, frozenset[str]] = {}
        self.kept = {
            (table, column) for table, column in (*wanted_columns, *have) if table is not None
        }
        self.kept |= {(name, column) for name, group in market.numeric.items() for column in group}
        for table, column in (*have, *wanted_columns):
            if table not in self.own:
                self._begin(table, column, max_tables)
        if not self.begins:
            raise InputError("A market needs a table of yours, or a wanted column. Got neither.")

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
        self.kept |= {(name, column) for name in tables}
        begun = tables[: max(1, max_tables // 2)]
        if len(begun) < len(tables):
            self.notes.append(
                f"{len(tables):,} tables have a column {column!r}. The search began with "
                f"{len(begun):,} of them; name the table to choose one."
            )
        if tables:
            self.belongs[len(self.begins)] = frozenset(tables)
            self.begins.append(begun)

    def take(self, stored: StoredGraph) -> None:
        """Take over the joins of tables that are as they were."""
        fresh = stored.fresh(self.market)
        self.fresh = fresh - self.hidden
        self.edges = {ends: edge for ends, edge in stored.edges.items() if fresh.issuperset(ends)}
        for ends, edge in self.edges.items():
            pairs = [join_set.pairs[0] for join_set in edge.join_sets if len(join_set.pairs) == 1]
            for table in ends:
                self.known[table][ends] = sorted(pairs)
        stale = len(fingerprints_of(self.market)) - len(fresh)
        if stale:
            self.notes.append(
                f"Tables that have changed since the graph was saved, or are new: {stale:,}. "
                "Update it to find all joins of these."
            )

    def known_edges(self, pairs: PairsOfTables) -> tuple[list[JoinEdge], PairsOfTables]:
        """Return the edges that need not be weighed, and the pairs of the others."""
        edges, rest = [], {}
        for ends, of_edge in pairs.items():
            if ends not in self.edges or not self.fresh.issuperset(ends):
                rest[ends] = of_edge
                continue
            sets = self.edges[ends].join_sets
            join_sets = [join_set for join_set in sets if set(join_set.pairs) <= set(of_edge)]
            if join_sets:
                edges.append(JoinEdge.of(*ends, join_sets))
        return edges, rest

    def by_values(self) -> Neighbours:
        """Return what finds tables that join by values."""
        finder = TablePairs.of_market(self.market)
        between = pairs_of_rows(self.own) if len(self.own) > 1 else {}

        def neighbours(table: str) -> PairsOfTables:
            rows = self.own.get(table)
            if table in self.fresh:
                table_pairs = self.known[table]
            elif rows is None:
                table_pairs, _ = finder.of_tables([table])
            else:
                table_pairs, _ = finder.of_own(list(_own_columns(table, rows)))
                table_pairs |= {ends: pairs for ends, pairs in between.items() if table in ends}
            return self._usable(table_pairs)

        return neighbours

    def by_names(self) -> Neighbours:
        """Return what finds tables that have columns of equal names."""
        rows = self.market.opened.catalog.columns(["table", "label"])
        own_names = {name: list(table.column_names) for name, table in self.own.items()}

        def neighbours(table: str) -> PairsOfTables:
            names = own_names[table] if table in own_names else self.market.labels([table])[table]
            mask = pc.is_in(rows["label"], value_set=pa.array(names, pa.string()))
            labels: dict[str, list[str]] = defaultdict(list)
            for row in rows.filter(mask).to_pylist():
                labels[row["table"]].append(row["label"])
            labels = {
                **{name: fields for name, fields in labels.items() if name not in own_names},
                **own_names,
            }
            others = sorted(set(labels) - {table})
            return self._usable(dict(named_pairs({**labels, table: names}, [table], others)), True)

        return neighbours

    def _usable(self, table_pairs: PairsOfTables, natural: bool = False) -> PairsOfTables:
        """Leave out hidden tables, and pairs with measures that the request is about."""
        usable = {}
        for (one, other), pairs in table_pairs.items():
            if any(name in self.hidden and name not in self.own for name in (one, other)):
                continue
            usable_pairs = [
                (left, right)
                for left, right in pairs
                if natural or not (self._is_measure(one, left) or self._is_measure(other, right))
            ]
            if usable_pairs:
                usable[one, other] = usable_pairs
        return usable

    def _is_measure(self, table: str, column: str) -> bool:
        if (table, column) not in self.kept:
            return False
        if table not in self._numeric:
            rows = self.own.get(table)
            known = self.market.tables([table], {})[0] if rows is None else self._own(table, ())
            self._numeric[table] = known.numeric
        return column in self._numeric[table]

    def _own(self, name: str, joined: Collection[str]) -> MarketTable:
        market, rows = self.market, self.own[name]
        dependencies = None
        if market.dependencies is not None:
            dependencies = require_columns(name, rows.column_names, market.dependencies)
        return own_table(
            name,
            rows,
            joined,
            numeric=market.numeric.get(name, ()),
            categorical=market.categorical.get(name, ()),
            dependencies=dependencies,
        )

    def tables(self, reached: Reached) -> tuple[dict[str, MarketTable], PairsOfTables]:
        """Return the tables that can be read, and the pairs of these."""
        joined: dict[str, set[str]] = defaultdict(set)
        for (one, other), pairs in reached.pairs.items():
            joined[one] |= {left for left, _ in pairs}
            joined[other] |= {right for _, right in pairs}
        names = [name for name in reached.tables if name not in self.own]
        tables = {name: self._own(name, joined[name]) for name in self.own}
        for table in self.market.tables(names, joined):
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
