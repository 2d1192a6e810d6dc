"""Mapping of joined values: query text -> query value -> lake value -> distance.

It is created once, from the pairs that match.

A *value* is what normalisation leaves of a text, on both sides: rows that differ in case or
punctuation alone are joined alike. The lake values of a query value are ranked by distance; equally
near ones by whether they are the same normalised text, then by code point. Three ways to choose:

- ``nearest``: the first of each query value. Several query values may take the same lake value.
- ``one-to-one``: no value is joined twice. Values of the same normalised text go together; the
  others are assigned so that as many as possible have a partner, and among these choices with the
  least total distance (`pexeso.joins.assignment`).
- ``all``: every pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.joins.assignment import assign
from pexeso.results.match_kinds import Pair
from pexeso.store.io.wide_offsets import take_wide


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
