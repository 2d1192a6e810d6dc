"""Mapping of joined values: query text -> query value -> lake value -> distance.

It is created once, from the pairs that match.

A *value* is what normalisation leaves of a text, on both sides: rows that differ in case or
punctuation alone are joined alike. The lake values of a query value are ranked by their costs: the
distances, and a penalty where both have unmatched words; equal ones by whether they are the same
normalised text, then by their first row in the table of the lake, or by code point where its rows
have no order, as in Spark. Three ways to choose:

- ``nearest``: the first of each query value. Several query values may take the same lake value.
- ``one-to-one``: no value is joined twice. Values of the same normalised text go together; the
  others are assigned so that as many as possible have a partner, and among these choices with the
  least total cost (`pexeso.joins.mapping`).
- ``all``: every pair.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.runtime.compiled import compiled
from pexeso.store.arrays import take_wide

if TYPE_CHECKING:
    from pexeso.results.matches import Pair

loops = compiled("pexeso.runtime.loops")

# One-to-one assignment: the maximum number of links with the least total cost.
#
# No two links share a value. Among the choices with as many links as possible, the one with the
# least total cost is selected.
#
# The graph of query values and lake values that match falls into components. A component in which
# one side has one value, which is nearly every one, is decided by its smallest distance, all
# of them at once. The others go to the sparse Jonker-Volgenant algorithm, many small ones
# together: each query value has a place of its own for "no partner", which costs more than all
# distances together, so that a full assignment exists and takes as few of these places as can
# be. Distances are whole numbers of steps, so that sums are exact in float64: `steps_of` says how
# fine.

# Values that go to the algorithm together, unless one component has more: its time grows with the
# square of what it is given.
CHUNK_NODES = 2048

# Whole numbers below 2**53 are exact in float64; sums and differences of two costs must be.
_EXACT_BITS = 51

_FINEST_BITS = 40


def steps_of(n_queries: int) -> int:
    return 1 << max(1, min(_FINEST_BITS, _EXACT_BITS - math.ceil(math.log2(n_queries + 2))))


def assign(query: np.ndarray, lake: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """Choose links so that no value is in two, the same whatever order they come in: bool (l,).

    No link is there twice. Its cost is at least 0, a distance, or this and a penalty of at most 1.

    Memory: some hundred bytes a link. Time: as sorting, but for a component with several values on
    both sides, where it grows with the square of its query values at least: 300,000 values in
    components of four take some seconds, 100,000 in a single component took two minutes. Such
    components come of a `max_distance` at which a value matches many unrelated neighbours.
    """
    chosen = np.zeros(len(query), dtype=bool)
    if not len(query):
        return chosen
    order = np.lexsort((lake, query))
    query, query_ids = _renumbered(query[order])
    lake, lake_ids = _renumbered(lake[order])
    cost = cost[order]
    component = _components(query, lake, query_ids, lake_ids)
    n_queries, n_lake = (_distinct_in(component, ends) for ends in (query, lake))
    simple = ((n_queries == 1) | (n_lake == 1))[component]
    picked = np.zeros(len(query), dtype=bool)
    # Of simple components the link of least cost; ties by query value, then lake value.
    links = np.flatnonzero(simple)
    nearest = links[np.lexsort((links, cost[links], component[links]))]
    picked[nearest[np.unique(component[nearest], return_index=True)[1]]] = True
    for links in _parcels(component, ~simple, n_queries + n_lake):
        picked[links] = _solve(query[links], lake[links], cost[links])
    chosen[order] = picked
    return chosen


def _renumbered(ids: np.ndarray) -> tuple[np.ndarray, int]:
    distinct, positions = np.unique(ids, return_inverse=True)
    return positions, len(distinct)


def _components(query: np.ndarray, lake: np.ndarray, n_queries: int, n_lake: int) -> np.ndarray:
    return loops.components(n_queries + n_lake, query, lake + n_queries)[query]


def _distinct_in(component: np.ndarray, ends: np.ndarray) -> np.ndarray:
    _, first = np.unique(ends, return_index=True)
    return np.bincount(component[first], minlength=component.max() + 1)


def _parcels(component: np.ndarray, chosen: np.ndarray, n_nodes: np.ndarray) -> list[np.ndarray]:
    """Divide the links of some components into parcels of whole components.

    A parcel has about `CHUNK_NODES` values.
    """
    links = np.flatnonzero(chosen)
    if not len(links):
        return []
    # In the order of their first query value, not of their numbers, which hang on how components
    # were found.
    components, first = np.unique(component[links], return_index=True)
    in_order = components[np.argsort(first)]
    ends = np.cumsum(n_nodes[in_order])
    parcel = np.zeros(component.max() + 1, dtype=np.int64)
    parcel[in_order] = (ends - n_nodes[in_order]) // CHUNK_NODES
    order = links[np.argsort(parcel[component[links]], kind="stable")]
    return np.split(order, np.flatnonzero(np.diff(parcel[component[order]])) + 1)


def _solve(query: np.ndarray, lake: np.ndarray, cost: np.ndarray) -> np.ndarray:
    query, n_queries = _renumbered(query)
    lake, n_lake = _renumbered(lake)
    steps = steps_of(n_queries)
    offsets = np.searchsorted(query, np.arange(n_queries + 1))
    costs, nobody = np.rint(cost * steps), float((n_queries + 1) * steps)
    return loops.assign_rows(offsets, lake, costs, n_lake, nobody)[query] == lake


@dataclass(frozen=True)
class JoinMapping:
    """The links between query values and lake values, and which of them are joined.

    Links go by the query value, from 0, that `query_of_text` has for each text, the best first:
    that of the least `cost`, which is the distance, in [0, 1], and penalties.

    Memory: the texts of both sides and some thirty bytes a link.
    """

    texts: pa.StringArray
    query_of_text: np.ndarray
    query_names: pa.StringArray
    lake_keys: pa.StringArray
    lake_names: pa.StringArray
    query: np.ndarray
    lake: np.ndarray
    distance: np.ndarray
    cost: np.ndarray
    same: np.ndarray
    chosen: np.ndarray
    text_names: pa.StringArray | None = None

    @property
    def shown_texts(self) -> pa.StringArray:
        return self.texts if self.text_names is None else self.text_names

    @property
    def nearest(self) -> np.ndarray:
        return np.diff(self.query, prepend=-1) != 0

    @property
    def may_tie(self) -> bool:
        """Whether the order of the lake values may decide which are joined."""
        return not self.nearest.all()

    def in_order(self, first_row: np.ndarray, values: str) -> JoinMapping:
        """Return the mapping whose equal links go by the first row of each lake value.

        first_row: int64, for each of `lake_keys`.
        """
        if not self.may_tie:
            return self
        rank = np.empty(len(first_row), np.int64)
        rank[np.argsort(first_row, kind="stable")] = np.arange(len(first_row))
        order = np.lexsort((rank[self.lake], ~self.same, self.cost, self.query))
        names = ("query", "lake", "distance", "cost", "same")
        links = {name: getattr(self, name)[order] for name in names}
        ends = links["query"], rank[links["lake"]], links["cost"], links["same"]
        return replace(self, **links, chosen=_chosen(*ends, values))


class PairColumns(NamedTuple):
    """The pairs of two columns: texts of both sides, large_string (n,), and float64 (n,).

    Of several pairs of a value that of the least cost is the best.
    """

    queries: pa.LargeStringArray
    keys: pa.LargeStringArray
    values: pa.LargeStringArray
    distances: np.ndarray
    costs: np.ndarray

    @classmethod
    def of(cls, pairs: Sequence[Pair]) -> PairColumns:
        """Return the columns of pairs that are objects."""
        texts = (
            pa.array([getattr(pair, name) for pair in pairs], pa.large_string())
            for name in ("query", "key", "value")
        )
        distances = np.array([pair.distance for pair in pairs], np.float64)
        return cls(*texts, distances, distances)


def make_mapping(
    texts: pa.StringArray,
    query_of_text: np.ndarray,
    query_values: pa.StringArray,
    pairs: PairColumns,
    values: str = "nearest",
) -> JoinMapping:
    """Make the mapping of a query column to a lake column."""
    queries, keys, values_of_pairs, distance, cost = pairs
    text = places_in(queries, texts)
    query = query_of_text[text]
    # There is a pair for each text of a query value: one of them is the link.
    lake_keys = keys.unique().sort().cast(pa.string())
    lake = places_in(keys, lake_keys)
    _, first = np.unique(query * len(lake_keys) + lake, return_index=True)
    names = values_of_pairs.take(pa.array(_first_of(lake, len(lake_keys)))).cast(pa.string())
    own_values = take_wide(query_values, pa.array(query)).cast(pa.large_string())
    same = pc.equal(own_values, keys).to_numpy(zero_copy_only=False)
    order = first[np.lexsort((lake[first], ~same[first], cost[first], query[first]))]
    links = (query[order], lake[order], cost[order], same[order])
    return JoinMapping(
        texts=texts,
        query_of_text=query_of_text,
        query_names=texts.take(pa.array(_first_of(query_of_text, len(query_values)))),
        lake_keys=lake_keys,
        lake_names=names,
        query=links[0],
        lake=links[1],
        distance=distance[order],
        cost=links[2],
        same=links[3],
        chosen=_chosen(*links, values),
    )


def _chosen(
    query: np.ndarray, lake: np.ndarray, cost: np.ndarray, same: np.ndarray, values: str
) -> np.ndarray:
    if values == "all":
        return np.ones(len(query), dtype=bool)
    if values == "nearest":
        return np.diff(query, prepend=-1) != 0
    # A value of the same text is never given to another, so what is left has neither of its ends.
    chosen = same.copy()
    left = np.flatnonzero(~np.isin(query, query[same]) & ~np.isin(lake, lake[same]))
    chosen[left] = assign(query[left], lake[left], cost[left])
    return chosen


def places_in(values: pa.Array | pa.ChunkedArray, among: pa.Array) -> np.ndarray:
    """Return the place of each value among distinct ones, -1 where it is none: int64."""
    places = pc.fill_null(pc.index_in(values, among.cast(values.type), skip_nulls=True), -1)
    return places.to_numpy(zero_copy_only=False).astype(np.int64)


def _first_of(positions: np.ndarray, n_places: int) -> np.ndarray:
    first = np.zeros(n_places, dtype=np.int64)
    first[positions[::-1]] = np.arange(len(positions))[::-1]
    return first
