"""The join graph of all tables of an index, kept in a file and brought up to date.

Weights of joins rest on all rows of both tables, so they are what takes long; pairs of columns take
seconds. An update finds all pairs anew and weighs the joins of tables that have changed or are new;
the graph is then what a build from scratch would be.

A file is Parquet: a row for each table with its fingerprint in the catalog, and one for each set of
columns by which two tables join.
"""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pexeso.acquisition.graph.building import candidate_sets, weighed
from pexeso.acquisition.graph.coded import CodedColumns
from pexeso.acquisition.graph.joins import JoinEdge, JoinGraph, JoinSet
from pexeso.acquisition.graph.tables import MarketTable
from pexeso.acquisition.measures.informativeness import JoinInformativeness
from pexeso.acquisition_search.graphs.table_pairs import Pair, PairsOfTables, TablePairs
from pexeso.acquisition_search.market.lake_market import Market
from pexeso.errors import InputError, PexesoError
from pexeso.io.whole_files import written_whole
from pexeso.runtime.formatting import first_line

VERSION = b"1"
MAX_ROWS = 100_000_000
MAX_BYTES = 16 << 30
"""Rows, and bytes in memory, of a file that is read."""

SCHEMA = pa.schema(
    [
        pa.field("left", pa.string(), nullable=False),
        pa.field("right", pa.string()),  # null in the row of a table
        pa.field("fingerprint", pa.string()),
        pa.field("left_columns", pa.list_(pa.string())),
        pa.field("right_columns", pa.list_(pa.string())),
        *(pa.field(name, pa.float64()) for name in ("value", "matched", "left_only", "right_only")),
        *(
            pa.field(name, pa.int64())
            for name in ("null_rows", "n_keys", "left_most", "right_most")
        ),
    ],
    metadata={b"pexeso join graph": VERSION},
)

JoinOf = tuple[str, str, tuple[Pair, ...]]
"""Two tables and pairs of columns by which they are joined."""

Weigh = Callable[[Mapping[str, MarketTable], list[JoinOf]], Iterable[JoinSet]]
"""Returns what joins are worth, in their order."""


@dataclass(frozen=True, eq=False)
class StoredGraph:
    """The joins of all tables of an index.

    Attributes
    ----------
    fingerprints : dict of str to str
        For each table the state of its file that its joins rest on.
    edges : dict of (str, str) to JoinEdge
        By left and right table; join sets of which no key is in both tables are left out.
    """

    fingerprints: dict[str, str] = field(default_factory=dict)
    edges: dict[tuple[str, str], JoinEdge] = field(default_factory=dict)

    def fresh(self, market: Market) -> set[str]:
        """Return the tables of an index whose files are as they were."""
        now = fingerprints_of(market)
        return {
            table
            for table, fingerprint in self.fingerprints.items()
            if now.get(table) == fingerprint
        }

    def graph(self, market: Market) -> JoinGraph:
        """Return the graph over the tables of a market that are as they were.

        Columns that the market says are numeric join nothing.
        """
        fresh = self.fresh(market)
        edges = [
            edge
            for ends in self.edges
            if fresh.issuperset(ends) and (edge := self._joined_by_codes(ends, market)) is not None
        ]
        joined: dict[str, set[str]] = defaultdict(set)
        for edge in edges:
            for join_set in edge.join_sets:
                joined[edge.left].update(join_set.left)
                joined[edge.right].update(join_set.right)
        return JoinGraph.of(market.tables(sorted(fresh), joined), edges)

    def _joined_by_codes(self, ends: tuple[str, str], market: Market) -> JoinEdge | None:
        numeric = [set(market.numeric.get(table, ())) for table in ends]
        if not any(numeric):
            return self.edges[ends]
        join_sets = [
            join_set
            for join_set in self.edges[ends].join_sets
            if numeric[0].isdisjoint(join_set.left) and numeric[1].isdisjoint(join_set.right)
        ]
        return JoinEdge.of(*ends, join_sets) if join_sets else None


@dataclass(frozen=True)
class GraphChanges:
    """What an update of a stored graph did.

    Attributes
    ----------
    added, changed, removed : tuple of str
        Tables that came, whose files have changed, and that have gone.
    n_weighed : int
        Joins that were weighed.
    notes : tuple of str
        Tables that could not be read, and what limits left out.
    """

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    n_weighed: int
    notes: tuple[str, ...]


def updated_graph(
    market: Market,
    before: StoredGraph | None = None,
    *,
    weigh: Weigh | None = None,
    coded: CodedColumns | None = None,
) -> tuple[StoredGraph, GraphChanges]:
    """Return the graph of all tables of a market, from scratch or from an earlier one.

    Parameters
    ----------
    market : Market
        Its prices, dependencies and given kinds of columns do not matter here.
    before : StoredGraph, optional
        The graph before; what it has of tables whose files are as they were is taken over.
    weigh : callable, optional
        Weighs joins; by default this process does, see `weighed_here`.
        `pexeso.acquisition_search.graphs.spark_weights` has one for Spark.
    coded : CodedColumns, optional
        Columns that are kept while this process weighs.

    Returns
    -------
    (StoredGraph, GraphChanges)

    Notes
    -----
    Memory: that of `pexeso.acquisition_search.pairs.column_pairs`, some kilobytes a join, and what
    `coded` keeps.
    """
    before = StoredGraph() if before is None else before
    if market.numeric:
        market = replace(market, numeric={})
    now, fresh = fingerprints_of(market), before.fresh(market)
    pairs, n_left_out = TablePairs.of_market(market).all()
    known = {
        (*ends, join_set.pairs): join_set
        for ends, edge in before.edges.items()
        if fresh.issuperset(ends)
        for join_set in edge.join_sets
    }
    notes = []
    if n_left_out:
        notes.append(
            f"Of columns with many partners those that share most were kept; {n_left_out:,} "
            "partners were left out."
        )
    joins = [
        (*ends, chosen) for ends, of_edge in pairs.items() for chosen in candidate_sets(of_edge)
    ]
    unmatched = _unmatched_before(joins, known, fresh, before)
    new = [join for join in joins if join not in known and join not in unmatched]
    tables, unreadable = _readable(market, pairs, new)
    for name, reason in unreadable.items():
        notes.append(f"'{name}' is left out: {reason}")
    new = [join for join in new if join[0] in tables and join[1] in tables]
    weigh = weighed_here(coded) if weigh is None else weigh
    known.update(zip(new, weigh(tables, new), strict=True))
    sets: dict[tuple[str, str], list[JoinSet]] = defaultdict(list)
    for join in joins:
        join_set = known.get(join)
        if join_set is not None and join_set.n_keys and not unreadable.keys() & set(join[:2]):
            sets[join[0], join[1]].append(join_set)
    edges = {ends: JoinEdge.of(*ends, join_sets) for ends, join_sets in sets.items()}
    fingerprints = {
        table: fingerprint for table, fingerprint in now.items() if table not in unreadable
    }
    changes = GraphChanges(
        tuple(sorted(set(fingerprints) - set(before.fingerprints))),
        tuple(sorted((set(fingerprints) & set(before.fingerprints)) - fresh)),
        tuple(sorted(set(before.fingerprints) - set(fingerprints))),
        len(new),
        tuple(notes),
    )
    return StoredGraph(fingerprints, edges), changes


def _unmatched_before(
    joins: list[JoinOf],
    known: Mapping[JoinOf, JoinSet],
    fresh: set[str],
    before: StoredGraph,
) -> set[JoinOf]:
    """Return the joins that a graph before left out, since no key is in both tables.

    It did if both tables are as they were and it has all single pairs of columns of the join: the
    sets of these were weighed together.
    """
    unmatched = set()
    for join in joins:
        left, right, chosen = join
        if join in known or len(chosen) < 2 or not fresh.issuperset((left, right)):
            continue
        edge = before.edges.get((left, right))
        if edge is not None and all((left, right, (pair,)) in known for pair in chosen):
            singles = [join_set.pairs[0] for join_set in edge.join_sets if len(join_set.pairs) == 1]
            if chosen in candidate_sets(singles):
                unmatched.add(join)
    return unmatched


def weighed_here(coded: CodedColumns | None = None) -> Weigh:
    """Return what weighs joins in this process: the keys of both tables as numbers, counted."""
    coded_columns = CodedColumns() if coded is None else coded

    def weigh(tables: Mapping[str, MarketTable], joins: list[JoinOf]) -> Iterable[JoinSet]:
        for left, right, chosen in joins:
            yield weighed(chosen, coded_columns.keys(tables[left], tables[right], chosen))

    return weigh


def fingerprints_of(market: Market) -> dict[str, str]:
    """Return for each table of an index that could be read what its file was like."""
    names = ["table", "fingerprint", "n_bytes", "modified", "version", "n_rows"]
    rows = market.opened.catalog.tables(names).to_pylist()
    return {
        row["table"]: row["fingerprint"]
        or f"{row['n_bytes']} {row['modified']} {row['version'] or ''}".rstrip()
        for row in rows
        if row["n_rows"] is not None
    }


def _readable(
    market: Market, pairs: PairsOfTables, joins: list[JoinOf]
) -> tuple[dict[str, MarketTable], dict[str, str]]:
    """Return the tables of joins, and why some of them cannot be read."""
    joined: dict[str, set[str]] = defaultdict(set)
    for (left, right), of_edge in pairs.items():
        joined[left] |= {left_column for left_column, _ in of_edge}
        joined[right] |= {right_column for _, right_column in of_edge}
    names = sorted({name for join in joins for name in join[:2]})
    tables, unreadable = {}, {}
    for table in market.tables(names, joined):
        try:
            table.read(sorted(joined[table.name])[:1])
            tables[table.name] = table
        except PexesoError as error:
            unreadable[table.name] = str(error)
    return tables, unreadable


def save_graph(stored: StoredGraph, path: str | os.PathLike[str]) -> None:
    """Write a graph to a file, completely or not at all; a file that is there is replaced.

    Raises
    ------
    OutputError
        If it cannot be written.
    """
    tables = [
        {"left": table, "fingerprint": fingerprint}
        for table, fingerprint in sorted(stored.fingerprints.items())
    ]
    joins = [
        _row(edge, join_set)
        for _, edge in sorted(stored.edges.items())
        for join_set in edge.join_sets
    ]
    rows = pa.Table.from_pylist([*tables, *joins], schema=SCHEMA)
    with written_whole(path, overwrite=True) as draft, draft.open("wb") as file:
        pq.write_table(rows, file)


def load_graph(path: str | os.PathLike[str]) -> StoredGraph:
    """Read a graph that `save_graph` wrote.

    Raises
    ------
    InputError
        If the file is missing, too large, or not what `save_graph` writes.
    """
    shown = os.fspath(path)

    def refuse(why: str) -> InputError:
        return InputError(
            f"'{shown}' is not a join graph that this version wrote: {why}. Choose another name; "
            "where it is a graph of another version, remove it, and it is made again."
        )

    try:
        file = pq.ParquetFile(path)
        schema = file.schema_arrow
        if (
            not schema.equals(SCHEMA)
            or (schema.metadata or {}).get(b"pexeso join graph") != VERSION
        ):
            raise refuse("it has other columns")
        if file.metadata.num_rows > MAX_ROWS:
            raise refuse(f"it has more than {MAX_ROWS:,} rows")
        batches, n_bytes = [], 0
        for batch in file.iter_batches():
            n_bytes += batch.nbytes
            if n_bytes > MAX_BYTES:
                raise refuse(f"it takes more than {MAX_BYTES:,} bytes")
            batches.append(batch)
        rows = pa.Table.from_batches(batches, SCHEMA)
        rows.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise refuse(first_line(error)) from error
    fingerprints: dict[str, str] = {}
    sets: dict[tuple[str, str], list[JoinSet]] = defaultdict(list)
    for row in rows.to_pylist():
        if row["right"] is None:
            if row["fingerprint"] is None or row["left"] in fingerprints:
                raise refuse(f"it has the table '{row['left']}' twice, or without its state")
            fingerprints[row["left"]] = row["fingerprint"]
        else:
            sets[row["left"], row["right"]].append(_join_set(row, refuse))
    edges = {}
    for ends, join_sets in sorted(sets.items()):
        known = len({join_set.pairs for join_set in join_sets}) == len(join_sets)
        if not known or not ends[0] < ends[1] or not fingerprints.keys() >= set(ends):
            raise refuse(f"the joins of '{ends[0]}' and '{ends[1]}' cannot be")
        edges[ends] = JoinEdge.of(*ends, join_sets)
    return StoredGraph(fingerprints, edges)


_COUNTS = ("null_rows", "n_keys", "left_most", "right_most")
_SUMS = ("matched", "left_only", "right_only")


def _row(edge: JoinEdge, join_set: JoinSet) -> dict[str, object]:
    informativeness = join_set.informativeness
    return {
        "left": edge.left,
        "right": edge.right,
        "left_columns": list(join_set.left),
        "right_columns": list(join_set.right),
        "value": informativeness.value,
        **{name: getattr(informativeness, name) for name in (*_SUMS, "null_rows")},
        **{name: getattr(join_set, name) for name in _COUNTS[1:]},
    }


def _join_set(row: dict[str, object], refuse: Callable[[str], InputError]) -> JoinSet:
    left, right = row["left_columns"], row["right_columns"]
    numbers = np.array([_number(row[name]) for name in ("value", *_SUMS, *_COUNTS)])
    named = isinstance(left, list) and isinstance(right, list) and 0 < len(left) == len(right)
    if not named or None in (*left, *right) or not (numbers >= 0).all() or numbers[0] > 1:
        raise refuse(f"a join of '{row['left']}' and '{row['right']}' has columns or counts amiss")
    pairs = tuple(zip(left, right, strict=True))
    if pairs != tuple(sorted(set(pairs))) or not row["n_keys"]:
        raise refuse(f"a join of '{row['left']}' and '{row['right']}' names columns twice")
    informativeness = JoinInformativeness(
        row["value"], *(row[name] for name in _SUMS), row["null_rows"]
    )
    return JoinSet(tuple(left), tuple(right), informativeness, *(row[name] for name in _COUNTS[1:]))


def _number(value: object) -> float:
    finite = isinstance(value, int | float) and math.isfinite(value)
    return float(value) if finite else math.nan
