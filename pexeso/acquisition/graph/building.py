"""Join graphs from tables: edges where columns have one name, or where they are known to join.

For each two tables that have columns to join by, all sets of these are weighed up to a size: with
k pairs of columns 2**k - 1 sets, and beyond `MAX_ALL_SETS` pairs those of at most `MAX_JOIN_SIZE`
pairs and the full one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np

from pexeso.acquisition.graph.coded import CodedColumns, JoinKeys
from pexeso.acquisition.graph.joins import JoinEdge, JoinGraph, JoinSet
from pexeso.acquisition.graph.tables import MarketTable
from pexeso.acquisition.measures.informativeness import join_informativeness

MAX_ALL_SETS = 6
MAX_JOIN_SIZE = 3

Pair = tuple[str, str]


def natural_graph(tables: Iterable[MarketTable], coded: CodedColumns) -> JoinGraph:
    """Return the graph whose tables join where columns have equal names, as the paper has it.

    Parameters
    ----------
    tables : iterable of MarketTable
        Names of their columns must be harmonised: a key has one name in all tables, and what is
        no key has a name of its own.
    coded : CodedColumns
        Reads and keeps their columns.

    Examples
    --------
    >>> import pyarrow as pa
    >>> states = MarketTable.of("states", pa.table({"state": ["NJ", "NY"], "size": [1, 2]}))
    >>> cities = MarketTable.of("cities", pa.table({"city": ["Troy"], "state": ["NY"]}))
    >>> graph = natural_graph([states, cities], CodedColumns())
    >>> graph.edge("states", "cities").join_sets[0].pairs
    (('state', 'state'),)
    """
    graph = JoinGraph.of(tables)
    pairs: dict[tuple[str, str], list[Pair]] = {}
    for one, other in combinations(sorted(graph.tables), 2):
        shared = sorted(set(graph.tables[one].columns) & set(graph.tables[other].columns))
        if shared:
            pairs[one, other] = [(name, name) for name in shared]
    return graph.with_tables([], edges_of(graph.tables, pairs, coded, natural=True))


def edges_of(
    tables: Mapping[str, MarketTable],
    pairs: Mapping[tuple[str, str], Sequence[Pair]],
    coded: CodedColumns,
    *,
    natural: bool = False,
) -> Iterator[JoinEdge]:
    """Weigh the joins of tables by known pairs of columns.

    Parameters
    ----------
    tables : mapping of str to MarketTable
        By name.
    pairs : mapping of (str, str) to sequence of (str, str)
        For each two tables the pairs of columns that may be equal.
    coded : CodedColumns
        Reads and keeps their columns.
    natural : bool
        See `JoinEdge`.

    Yields
    ------
    JoinEdge
        In the order of `pairs`.
    """
    for (left, right), of_edge in pairs.items():
        sets = [
            weighed(chosen, coded.keys(tables[left], tables[right], chosen))
            for chosen in candidate_sets(of_edge)
        ]
        yield JoinEdge.of(left, right, sets, natural=natural)


def candidate_sets(pairs: Sequence[Pair]) -> list[tuple[Pair, ...]]:
    """Return the sets of pairs of columns that are weighed, small ones first.

    A column is in one pair of a set at most.

    Examples
    --------
    >>> candidate_sets([("home", "team"), ("away", "team"), ("year", "year")])[3:]
    [(('away', 'team'), ('year', 'year')), (('home', 'team'), ('year', 'year'))]
    """
    ordered = sorted(set(pairs))
    few = len(ordered) <= MAX_ALL_SETS
    sizes = range(1, len(ordered) + 1) if few else [*range(1, MAX_JOIN_SIZE + 1), len(ordered)]
    return [
        chosen for size in sizes for chosen in combinations(ordered, size) if _is_matching(chosen)
    ]


def weighed(pairs: Sequence[Pair], keys: JoinKeys) -> JoinSet:
    """Return the join set of two tables from their keys.

    Examples
    --------
    >>> keys = JoinKeys(np.array([0, 1, 1]), np.array([1, 2]), 3)
    >>> found = weighed([("a", "b")], keys)
    >>> found.n_keys, found.left_most, found.right_most, found.informativeness.matched
    (1, 2, 1, 2.0)
    """
    left, right = (
        np.bincount(side[side >= 0], minlength=keys.n_codes) for side in (keys.left, keys.right)
    )
    shared = (left > 0) & (right > 0)
    null_rows = sum(int((side < 0).sum()) for side in (keys.left, keys.right))
    return JoinSet(
        tuple(left_column for left_column, _ in pairs),
        tuple(right_column for _, right_column in pairs),
        join_informativeness(left, right, null_rows=null_rows),
        int(shared.sum()),
        int(left[shared].max(initial=0)),
        int(right[shared].max(initial=0)),
    )


def _is_matching(pairs: Sequence[Pair]) -> bool:
    return all(len({pair[side] for pair in pairs}) == len(pairs) for side in (0, 1))
