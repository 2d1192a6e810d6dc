"""From matching pairs to answers, for one query column or many: the same for every rival.

A query value counts once for a column, however many of the column's values it matches. Nothing here
is larger than what matches: no array of columns is made for a lake where few columns are hit.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from benchmarks.batching import QueryBatch
from benchmarks.lake import Answer, BenchmarkQuery
from pexeso.engine.arrays import Csr, expand_ranges, expand_ranges_in_chunks, offsets_of

POSTINGS_AT_ONCE = 1 << 20
ENTRIES_AT_ONCE = 1 << 22
DENSE_CELLS = 1 << 24

_SPARSE = 64
"""A sum over fewer entries than one in this many cells is sorted instead of laid out."""


def count_columns(
    queries: torch.Tensor,
    values: torch.Tensor,
    query: BenchmarkQuery,
    value_columns: Csr,
    n_columns: int,
) -> Answer:
    """Count the query rows with a match in each column and keep the columns with enough of them."""
    hit_queries, columns = column_hits(queries, values, len(query), value_columns, n_columns)
    weights = query.weights.to(queries.device)
    hit_columns, counts = sum_by_key(columns, weights[hit_queries], n_columns)
    enough = counts >= query.needed
    return hit_columns[enough].cpu(), counts[enough].cpu()


def count_batch(
    queries: torch.Tensor,
    values: torch.Tensor,
    batch: QueryBatch,
    value_columns: Csr,
    n_columns: int,
) -> list[Answer]:
    """Do as `count_columns` for every query column of a batch."""
    device = queries.device
    hit_values, hit_columns = column_hits(
        queries, values, len(batch.vectors), value_columns, n_columns
    )
    hit_sizes = torch.bincount(hit_values, minlength=len(batch.vectors))
    hit_offsets = offsets_of(hit_sizes)
    rows, weights, needed = (part.to(device) for part in (batch.rows, batch.weights, batch.needed))
    sizes = hit_sizes[rows]
    answers: list[Answer] = []
    for first, last in _groups(batch.offsets, sizes, n_columns):
        members = slice(int(batch.offsets[first]), int(batch.offsets[last]))
        owner, position = expand_ranges(hit_offsets[rows[members]], sizes[members])
        column_sizes = (batch.offsets[first + 1 : last + 1] - batch.offsets[first:last]).to(device)
        query = torch.repeat_interleave(torch.arange(last - first, device=device), column_sizes)
        keys = query[owner] * n_columns + hit_columns[position]
        hit_keys, counts = sum_by_key(keys, weights[members][owner], (last - first) * n_columns)
        number = torch.div(hit_keys, n_columns, rounding_mode="floor")
        enough = counts >= needed[first:last][number]
        hit_keys, counts, number = hit_keys[enough], counts[enough], number[enough]
        per_query = torch.bincount(number, minlength=last - first).tolist()
        columns = (hit_keys - number * n_columns).cpu().split(per_query)
        answers += zip(columns, counts.cpu().split(per_query), strict=True)
    return answers


def column_hits(
    queries: torch.Tensor, values: torch.Tensor, n_queries: int, value_columns: Csr, n_columns: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the distinct (query value, column) pairs, ordered by query value, then column."""
    order = torch.argsort(queries)
    queries, values = queries[order], values[order]
    starts = value_columns.offsets[values]
    sizes = value_columns.offsets[values + 1] - starts
    hits = [
        _hits(queries[run], starts[run], sizes[run], value_columns, n_columns)
        for run in _runs(queries, sizes, n_queries)
    ]
    if not hits:
        nothing = torch.zeros(0, dtype=torch.int64, device=queries.device)
        return nothing, nothing
    hit_queries, columns = (torch.cat(part) for part in zip(*hits, strict=True))
    return hit_queries, columns


def _runs(queries: torch.Tensor, sizes: torch.Tensor, n_queries: int) -> Iterator[slice]:
    """Cut sorted pairs into runs of whole query values with at most `POSTINGS_AT_ONCE` postings."""
    if int(sizes.sum()) <= POSTINGS_AT_ONCE:
        yield slice(0, len(queries))
        return
    pair_offsets = offsets_of(torch.bincount(queries, minlength=n_queries)).cpu().numpy()
    postings = offsets_of(sizes).cpu().numpy()[pair_offsets]
    first = 0
    while first < n_queries:
        last = int(np.searchsorted(postings, postings[first] + POSTINGS_AT_ONCE, side="right")) - 1
        last = max(last, first + 1)
        yield slice(int(pair_offsets[first]), int(pair_offsets[last]))
        first = last


def _hits(
    queries: torch.Tensor,
    starts: torch.Tensor,
    sizes: torch.Tensor,
    value_columns: Csr,
    n_columns: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    if int(sizes.sum()) <= POSTINGS_AT_ONCE:
        owner, posting = expand_ranges(starts, sizes)
        keys = _distinct(queries[owner] * n_columns + value_columns.members[posting])
        rows = torch.div(keys, n_columns, rounding_mode="floor")
        return rows, keys - rows * n_columns
    marked = torch.zeros(n_columns, dtype=torch.bool, device=queries.device)
    for _, posting in expand_ranges_in_chunks(starts, sizes, POSTINGS_AT_ONCE):
        marked[value_columns.members[posting].long()] = True
    columns = torch.nonzero(marked)[:, 0]
    return queries[:1].expand(len(columns)), columns


def _distinct(keys: torch.Tensor) -> torch.Tensor:
    """Return the distinct keys in ascending order."""
    if keys.device.type != "cpu":
        return torch.unique(keys)
    ordered = np.sort(keys.numpy())
    return torch.from_numpy(ordered[np.flatnonzero(np.diff(ordered, prepend=-1))])


def sum_by_key(
    keys: torch.Tensor, weights: torch.Tensor, n_keys: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Sum the weights of equal keys."""
    if n_keys <= DENSE_CELLS and len(keys) * _SPARSE >= n_keys:
        sums = torch.zeros(n_keys, dtype=torch.int64, device=keys.device).index_add_(
            0, keys, weights
        )
        distinct_keys = torch.nonzero(sums)[:, 0]
        return distinct_keys, sums[distinct_keys]
    ordered, order = torch.sort(keys)
    distinct_keys, counts = torch.unique_consecutive(ordered, return_counts=True)
    running = offsets_of(weights[order])
    ends = counts.cumsum(0)
    return distinct_keys, running[ends] - running[ends - counts]


def _groups(
    offsets: torch.Tensor, sizes: torch.Tensor, n_columns: int
) -> Iterator[tuple[int, int]]:
    """Cut the query columns into groups of bounded size."""
    entries = offsets_of(sizes)[offsets.to(sizes.device)].cpu().numpy()
    n_queries, first = len(offsets) - 1, 0
    limit = max(1, DENSE_CELLS // max(1, n_columns))
    while first < n_queries:
        last = int(np.searchsorted(entries, entries[first] + ENTRIES_AT_ONCE, side="right")) - 1
        last = min(max(last, first + 1), first + limit, n_queries)
        yield first, last
        first = last
