"""Overlap searches: the shards are searched in turn, and the results merged in one order.

The columns found are those with the largest overlaps.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from pexeso.sets.overlap.index.reading import Reads
from pexeso.sets.overlap.query import prepare_query
from pexeso.sets.overlap.topk import require_k
from pexeso.sets.part.open import Shard
from pexeso.sets.search.hits import (
    SetFound,
    best_of,
    counted_ways,
    found_by_lists,
    match_of,
    result_of,
)
from pexeso.sets.search.query import TokenQuery
from pexeso.sets.search.results import TokenMatch, TokenSearchResult

FIELDS = ("table", "column", "overlap")


def search_overlap(
    shards: Sequence[Shard], query: TokenQuery, k: int, *, exclude_table: str | None = None
) -> TokenSearchResult:
    """Find the k columns that share most distinct values with a query, exactly.

    See `pexeso.Index.overlap`.

    Notes
    -----
    The k-th overlap found so far is what the shards that follow must reach, so that they stop
    early.
    """
    require_k(k)
    started, hits, reads, ways = time.perf_counter(), [], [], []
    for shard in shards if len(query) else ():
        lowest = hits[k - 1].overlap if len(hits) >= k else 1
        token_query = prepare_query(shard.overlap, query.tokens)
        ways.append(shard.planner.choose(shard.overlap, token_query, k))
        hidden = shard.hidden(exclude_table)
        answer = shard.planner.search(
            shard.overlap, token_query, k, exclude=hidden, at_least=lowest
        )
        hits = best_of([*hits, *found_by_lists(shard, answer, len(query))], k)
        reads.append(answer.reads)
    stats = _overlap_stats(shards, ways, reads, started)
    return result_of(query, {"k": k, "exclude_table": exclude_table}, hits, FIELDS, stats)


def search_overlap_batch(
    shards: Sequence[Shard],
    queries: Sequence[TokenQuery],
    k: int,
    *,
    device: str = "cpu",
    exclude_tables: Sequence[str | None] | None = None,
) -> list[TokenSearchResult]:
    """Find the k columns that share most distinct values with each of several queries.

    The lists of the queries are counted together on a device.
    """
    require_k(k)
    started = time.perf_counter()
    without = [None] * len(queries) if exclude_tables is None else list(exclude_tables)
    hits: list[list[SetFound]] = [[] for _ in queries]
    reads: list[list[Reads]] = [[] for _ in queries]
    for shard in shards:
        prepared = [prepare_query(shard.overlap, query.tokens) for query in queries]
        answers = shard.batched(device).search(
            prepared, k, exclude=[shard.hidden(table) for table in without]
        )
        for row, answer in enumerate(answers):
            hits[row] = best_of([*hits[row], *found_by_lists(shard, answer, len(queries[row]))], k)
            reads[row].append(answer.reads)
    ways = ["batched"] * len(shards)
    return [
        result_of(
            query,
            {"k": k, "exclude_table": table},
            best,
            FIELDS,
            _overlap_stats(shards, ways, read, started),
        )
        for query, table, best, read in zip(queries, without, hits, reads, strict=True)
    ]


def _overlap_stats(
    shards: Sequence[Shard], ways: list[str], reads: Sequence[Reads], started: float
) -> dict[str, Any]:
    names = ("lists", "sets", "entries", "tokens", "n_bytes")
    return {
        "shards": len(shards),
        "ways": counted_ways(ways),
        **{name: sum(getattr(read, name) for read in reads) for name in names},
        "seconds": round(time.perf_counter() - started, 6),
    }


def overlap_with(
    shards: Sequence[Shard], query: TokenQuery, columns: Sequence[tuple[str, str]]
) -> list[TokenMatch | None]:
    """Count what named columns share with a query.

    Returns
    -------
    list of TokenMatch or None
        None for a column that shares nothing, or that no shard holds.
    """
    matches: list[TokenMatch | None] = [None] * len(columns)
    for shard in shards if columns and len(query) else ():
        numbers = shard.numbers_of(columns)
        query_tokens = shard.overlap.find(query.tokens)
        for position in np.flatnonzero(numbers >= 0).tolist():
            number, (table, label) = int(numbers[position]), columns[position]
            tokens = shard.overlap.suffix(number, 0)
            overlap = int(np.isin(query_tokens, tokens).sum())
            if overlap:
                one = SetFound(
                    shard, number, table, label, len(tokens), overlap, overlap / len(query)
                )
                matches[position] = match_of(query, one)
    return matches
