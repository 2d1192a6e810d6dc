"""The part of a lake that a request can use: tables on short paths between its ends.

From the shopper's tables and those with wanted columns, joins are followed outwards, nearest tables
first and of equally near ones those that share most; the columns of each table are looked up in the
posting lists when its turn comes, so that no pass over the lake is needed. Kept are the tables that
are on a path of at most `max_joins` joins between two ends.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pexeso.acquisition_search.graphs.table_pairs import PairsOfTables

DEFAULT_TABLES = 100
"""Tables that are looked at."""

DEFAULT_JOINS = 4
"""Joins of a path between two ends: five tables."""

Neighbours = Callable[[str], PairsOfTables]
"""From a table to its pairs with all other tables."""


@dataclass(frozen=True)
class Reached:
    """Tables that matter to a request.

    Attributes
    ----------
    tables : tuple of str
        By name, the ends among them.
    pairs : dict
        Pairs of columns of each two of them.
    n_looked_at : int
        Tables that were looked at.
    n_waiting : int
        Tables that joins lead to, near enough, that a limit left out.
    """

    tables: tuple[str, ...]
    pairs: PairsOfTables
    n_looked_at: int
    n_waiting: int


def reachable(
    ends: Sequence[Iterable[str]],
    neighbours: Neighbours,
    *,
    max_tables: int = DEFAULT_TABLES,
    max_joins: int = DEFAULT_JOINS,
    belongs: Mapping[int, frozenset[str]] | None = None,
) -> Reached:
    """Return the tables on short paths between the ends of a request.

    Parameters
    ----------
    ends : sequence of iterable of str
        For each end the tables that it can be: one for a table of the shopper's, several for a
        wanted column of any table.
    neighbours : callable
        See `Neighbours`.
    max_tables : int
        Tables that are looked at, the ends among them.
    max_joins : int
        Joins of a path.
    belongs : mapping of int to frozenset of str, optional
        For an end all tables that it can be, if not all of them are to be begun from.

    Returns
    -------
    Reached
        All that joins reach within `max_joins`, where there is one end.

    Examples
    --------
    >>> lake = {("a", "b"): [("x", "x")], ("b", "c"): [("y", "z")], ("b", "d"): [("y", "w")]}
    >>> def neighbours(table):
    ...     return {ends: pairs for ends, pairs in lake.items() if table in ends}
    >>> reachable([["a"], ["c"]], neighbours).tables
    ('a', 'b', 'c')
    """
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
