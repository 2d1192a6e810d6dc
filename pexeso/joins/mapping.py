"""Mapping of joined values: query text -> query value -> lake value -> distance.

It is created once, from the pairs that match.

A *value* is what normalisation leaves of a text, on both sides: rows that differ in case or
punctuation alone are joined alike. The lake values of a query value are ranked by distance; equally
near ones by whether they are the same normalised text, then by code point. Three ways to choose:

- ``nearest``: the first of each query value. Several query values may take the same lake value.
- ``one-to-one``: no value is joined twice. Values of the same normalised text go together; the
  others are assigned so that as many as possible have a partner, and among these choices with the
  least total distance (`pexeso.joins.mapping`).
- ``all``: every pair.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.results.match_kinds import Pair
from pexeso.store.io.wide_offsets import take_wide

# One-to-one assignment: the maximum number of links with the least total distance.
#
# No two links share a value. Among the choices with as many links as possible, the one with the
# least total distance is selected.
#
# The graph of query values and lake values that match falls into components. A component in which
# one value stands on one side, which is nearly every one, is decided by its smallest distance, all
# of them at once. The others go to the sparse Jonker-Volgenant algorithm, many small ones
# together: each query value has a place of its own for "no partner", which costs more than all
# distances together, so that a full assignment is there and takes as few of these places as can
# be. Distances are whole numbers of steps, so that sums are exact in float64: `steps_of` says how
# fine.

NODES_AT_ONCE = 2048
"""Values that go to the algorithm together, unless one component has more: its time grows with the
square of what it is given."""

_EXACT_BITS = 51
"""Whole numbers below 2**53 are exact in float64; sums and differences of two costs must be."""

_FINEST_BITS = 40


def steps_of(n_queries: int) -> int:
    """Return the number of steps that distances in [0, 1] are divided into, a power of two.

    The number depends on how many query values a component has.

    Distances are compared to the nearest step: 2**40 of them up to 2,000 query values, 2**31 at a
    million.
    """
    return 1 << max(1, min(_FINEST_BITS, _EXACT_BITS - math.ceil(math.log2(n_queries + 2))))


def assign(query: np.ndarray, lake: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """Choose links so that no value is in two.

    Memory: some hundred bytes a link. Time: as sorting, but for a component with several values on
    both sides, where it grows with the square of its query values at least: 300,000 values in
    components of four take some seconds, 100,000 in a single component took two minutes. Such
    components come of a `max_distance` at which a value matches many unrelated neighbours.

    Parameters
    ----------
    query, lake : int64 (l,)
        The ends of each link; no link twice.
    distance : float64 (l,)
        In [0, 1].

    Returns
    -------
    bool (l,)
        The links chosen. Among equally good choices it is always the same one for the same links,
        in whatever order they come.
    """
    chosen = np.zeros(len(query), dtype=bool)
    if not len(query):
        return chosen
    order = np.lexsort((lake, query))
    query, query_ids = _renumbered(query[order])
    lake, lake_ids = _renumbered(lake[order])
    distance = distance[order]
    component = _components(query, lake, query_ids, lake_ids)
    simple = _is_star(component, query, lake)
    picked = np.zeros(len(query), dtype=bool)
    picked[_least_of_each(component, distance, simple)] = True
    for links in _parcels(component, simple, query, lake):
        picked[links] = _solve(query[links], lake[links], distance[links])
    chosen[order] = picked
    return chosen


def _renumbered(ids: np.ndarray) -> tuple[np.ndarray, int]:
    distinct, positions = np.unique(ids, return_inverse=True)
    return positions, len(distinct)


def _components(query: np.ndarray, lake: np.ndarray, n_queries: int, n_lake: int) -> np.ndarray:
    """Return the component of each link."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n_nodes = n_queries + n_lake
    graph = coo_array(
        (np.ones(len(query), dtype=np.int8), (query, lake + n_queries)), shape=(n_nodes, n_nodes)
    )
    _, of_node = connected_components(graph.tocsr(), directed=False)
    return of_node[query].astype(np.int64)


def _is_star(component: np.ndarray, query: np.ndarray, lake: np.ndarray) -> np.ndarray:
    """Return for each link whether its component has one value on one side."""
    n_queries, n_lake = (_distinct_in(component, ends) for ends in (query, lake))
    return (n_queries == 1)[component] | (n_lake == 1)[component]


def _distinct_in(component: np.ndarray, ends: np.ndarray) -> np.ndarray:
    _, first = np.unique(ends, return_index=True)
    return np.bincount(component[first], minlength=component.max() + 1)


def _least_of_each(component: np.ndarray, distance: np.ndarray, simple: np.ndarray) -> np.ndarray:
    """Return the link of least distance of each simple component.

    Ties are resolved by query value, then lake value.
    """
    links = np.flatnonzero(simple)
    order = links[np.lexsort((links, distance[links], component[links]))]
    _, first = np.unique(component[order], return_index=True)
    return order[first]


def _parcels(
    component: np.ndarray, simple: np.ndarray, query: np.ndarray, lake: np.ndarray
) -> list[np.ndarray]:
    """Divide the links of components that are not simple into parcels of whole components.

    A parcel has about `NODES_AT_ONCE` values.
    """
    links = np.flatnonzero(~simple)
    if not len(links):
        return []
    n_nodes = _distinct_in(component, query) + _distinct_in(component, lake)
    # In the order of their first query value, not of their numbers, which hang on how components
    # were found.
    components, first = np.unique(component[links], return_index=True)
    in_order = components[np.argsort(first)]
    ends = np.cumsum(n_nodes[in_order])
    parcel = np.zeros(component.max() + 1, dtype=np.int64)
    parcel[in_order] = (ends - n_nodes[in_order]) // NODES_AT_ONCE
    order = links[np.argsort(parcel[component[links]], kind="stable")]
    return np.split(order, np.flatnonzero(np.diff(parcel[component[order]])) + 1)


def _solve(query: np.ndarray, lake: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """Solve components that go together; links in the order of query value, then lake value."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    query, n_queries = _renumbered(query)
    lake, n_lake = _renumbered(lake)
    steps = steps_of(n_queries)
    nobody = float((n_queries + 1) * steps)
    # One step more for all: the algorithm takes a cost of 0 for no link.
    costs = np.concatenate([np.rint(distance * steps) + 1, np.full(n_queries, nobody + 1)])
    rows = np.concatenate([query, np.arange(n_queries)])
    columns = np.concatenate([lake, n_lake + np.arange(n_queries)])
    matrix = csr_array((costs, (rows, columns)), shape=(n_queries, n_lake + n_queries))
    _, partner = min_weight_full_bipartite_matching(matrix)
    return partner[query] == lake


@dataclass(frozen=True)
class JoinMapping:
    """The links between query values and lake values, and which of them are joined.

    Memory: the texts of both sides and some thirty bytes a link.

    Attributes
    ----------
    query_of_text : int64 (t,)
        The query value of each, from 0.
    query, lake : int64 (l,)
        The ends of each link, by query value, nearest first.
    distance : float64 (l,)
        In [0, 1].
    """

    texts: pa.StringArray
    query_of_text: np.ndarray
    query_names: pa.StringArray
    lake_keys: pa.StringArray
    lake_names: pa.StringArray
    query: np.ndarray
    lake: np.ndarray
    distance: np.ndarray
    same: np.ndarray
    chosen: np.ndarray
    text_names: pa.StringArray | None = None

    @property
    def shown_texts(self) -> pa.StringArray:
        """What reports call each of `texts`."""
        return self.texts if self.text_names is None else self.text_names

    @property
    def nearest(self) -> np.ndarray:
        """Bool (l,): the first link of each query value."""
        return np.diff(self.query, prepend=-1) != 0


def make_mapping(
    texts: pa.StringArray,
    query_of_text: np.ndarray,
    query_values: pa.StringArray,
    pairs: Sequence[Pair],
    values: str = "nearest",
) -> JoinMapping:
    """Make the mapping of a query column to a lake column.

    Parameters
    ----------
    query_of_text : int64 (t,)
        For each its place in `query_values`.
    """
    queries, keys, values_of_pairs = (
        pa.array([getattr(pair, name) for pair in pairs], pa.large_string())
        for name in ("query", "key", "value")
    )
    text = _places(queries, texts)
    query = query_of_text[text]
    # A pair is there for each text of a query value: one of them is the link.
    lake_keys = keys.unique().sort().cast(pa.string())
    lake = _places(keys, lake_keys)
    _, first = np.unique(query * len(lake_keys) + lake, return_index=True)
    distance = np.array([pair.distance for pair in pairs], dtype=np.float64)
    names = values_of_pairs.take(pa.array(_first_of(lake, len(lake_keys)))).cast(pa.string())
    own_values = take_wide(query_values, pa.array(query)).cast(pa.large_string())
    same = pc.equal(own_values, keys).to_numpy(zero_copy_only=False)
    order = first[np.lexsort((lake[first], ~same[first], distance[first], query[first]))]
    links = (query[order], lake[order], distance[order], same[order])
    return JoinMapping(
        texts=texts,
        query_of_text=query_of_text,
        query_names=texts.take(pa.array(_first_of(query_of_text, len(query_values)))),
        lake_keys=lake_keys,
        lake_names=names,
        query=links[0],
        lake=links[1],
        distance=links[2],
        same=links[3],
        chosen=_chosen(*links, values),
    )


def _chosen(
    query: np.ndarray, lake: np.ndarray, distance: np.ndarray, same: np.ndarray, values: str
) -> np.ndarray:
    if values == "all":
        return np.ones(len(query), dtype=bool)
    if values == "nearest":
        return np.diff(query, prepend=-1) != 0
    # A value of the same text is never given to another, so what is left has neither of its ends.
    chosen = same.copy()
    left = np.flatnonzero(~np.isin(query, query[same]) & ~np.isin(lake, lake[same]))
    chosen[left] = assign(query[left], lake[left], distance[left])
    return chosen


def _places(values: pa.LargeStringArray, among: pa.StringArray) -> np.ndarray:
    """Return the place of each value among distinct ones, all of which are there; int64."""
    return (
        pc.index_in(values, among.cast(values.type)).to_numpy(zero_copy_only=False).astype(np.int64)
    )


def _first_of(positions: np.ndarray, n_places: int) -> np.ndarray:
    """Return where each place stands first."""
    first = np.zeros(n_places, dtype=np.int64)
    first[positions[::-1]] = np.arange(len(positions))[::-1]
    return first
