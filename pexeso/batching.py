"""Query columns that ask alike, put together so that they share one pass over the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import torch

from pexeso.options import SearchOptions
from pexeso.prepared import PreparedQuery

MAX_VALUES = 1 << 16
"""Most distinct values of a batch, if it has more than one query column: their vectors are held together."""


@dataclass(frozen=True)
class Batch:
    """Query columns of one pass.

    Attributes
    ----------
    places : list of int
        Which queries.
    vectors : float32 (n, d)
        The distinct values of all of them.
    members : list of int64 (m,)
        For each query the rows of `vectors` that its values are.
    """

    places: list[int]
    vectors: torch.Tensor
    members: list[torch.Tensor]


def batches_of(queries: Sequence[PreparedQuery], options: Sequence[SearchOptions]) -> list[Batch]:
    """Group the queries that can share a pass: same threshold and filters, and not by brute force.

    Queries that would be alone in their batch, and those whose counts need not be exact, are left out: a search of its own prunes more.
    """
    alike: dict[tuple[object, ...], list[int]] = {}
    for place, each in enumerate(options):
        if not each.exact and each.counts == "exact":
            alike.setdefault((each.max_distance, frozenset(each.lemmas)), []).append(place)
    groups = [run for places in alike.values() for run in _runs(queries, places)]
    return [_batch(queries, places) for places in groups if len(places) > 1]


def _runs(queries: Sequence[PreparedQuery], places: Sequence[int]) -> list[list[int]]:
    """Cut queries into runs of a bounded number of values."""
    runs: list[list[int]] = []
    room = 0
    for place in places:
        if not runs or len(queries[place].values) > room:
            runs.append([])
            room = MAX_VALUES
        runs[-1].append(place)
        room -= len(queries[place].values)
    return runs


def _batch(queries: Sequence[PreparedQuery], places: list[int]) -> Batch:
    """Tell the distinct values of several queries apart by their texts: equal texts have equal vectors."""
    encoded = pa.chunked_array([queries[place].values for place in places]).combine_chunks().dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    _, first = np.unique(codes, return_index=True)
    vectors = torch.cat([queries[place].vectors for place in places])[torch.from_numpy(first)]
    members = torch.split(torch.from_numpy(codes), [len(queries[place].values) for place in places])
    return Batch(places, vectors, list(members))
