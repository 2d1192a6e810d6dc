"""Containment searches: the shards are searched in turn, and the results merged in one order.

The columns found contain at least a share of a query.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pexeso.options import require_min_containment
from pexeso.runtime.jit import loops_pay
from pexeso.sets.containment.conversion import tokens_needed
from pexeso.sets.overlap.merge import merge_list
from pexeso.sets.overlap.query import prepare_query
from pexeso.sets.overlap.topk import require_k
from pexeso.sets.part.open import Shard
from pexeso.sets.search.hits import SetFound, counted_ways, found_by_lists, result_of
from pexeso.sets.search.query import TokenQuery
from pexeso.sets.search.results import TokenSearchResult

if TYPE_CHECKING:
    from pexeso.sets.containment.ensemble import ContainingSets

FIELDS = ("table", "column", "containment", "estimated")


def search_containment(
    shards: Sequence[Shard],
    query: TokenQuery,
    min_containment: float,
    *,
    verify: bool = True,
    k: int | None = None,
    exclude_table: str | None = None,
) -> TokenSearchResult:
    """Find the columns that have at least a share of a query's distinct values.

    See `pexeso.Index.contain`.
    """
    require_min_containment(min_containment)
    if k is not None:
        require_k(k)
    started, hits, n_candidates, routes = time.perf_counter(), [], 0, []
    for shard in shards if len(query) else ():
        some, n_some, way = _containing(
            shard, query, float(min_containment), verify, shard.hidden(exclude_table)
        )
        n_candidates += n_some
        routes.append(way)
        hits += some
    hits = sorted(hits, key=lambda hit: hit.key)[:k]
    stats = {
        "shards": len(shards),
        "ways": counted_ways(routes),
        "candidates": n_candidates,
        "seconds": round(time.perf_counter() - started, 6),
    }
    options = {
        "min_containment": min_containment,
        "verify": verify,
        "k": k,
        "exclude_table": exclude_table,
    }
    return result_of(query, options, hits, FIELDS, stats)


def _containing(
    shard: Shard, query: TokenQuery, min_containment: float, verify: bool, hidden: np.ndarray
) -> tuple[list[SetFound], int, str]:
    """Search one shard: what is found, how many candidates there were, and which way was taken."""
    token_query = prepare_query(shard.overlap, query.tokens)
    if not loops_pay(int(token_query.frequencies.sum())):
        # Loading the loops would take longer than they save: arrays count every set that shares a
        # token.
        needed, limit = (
            tokens_needed(token_query.n_asked, min_containment),
            max(shard.overlap.n_sets, 1),
        )
        counted = merge_list(shard.overlap, token_query, limit, exclude=hidden, at_least=needed)
        return found_by_lists(shard, counted, len(query)), len(counted.ids), "merge_list"
    if shard.bands is None:
        from pexeso.sets.containment.ensemble import search_lists

        answer = search_lists(shard.lists, query.tokens, min_containment, exclude=hidden)
    else:
        answer = shard.bands.search(query.tokens, min_containment, verify=verify, exclude=hidden)
    return _contained(shard, answer), answer.n_candidates, answer.route


def _contained(shard: Shard, answer: ContainingSets) -> list[SetFound]:
    """Name the sets of an answer of `pexeso.sets.containment`."""
    return [
        SetFound(shard, number, table, label, size, overlap if overlap >= 0 else None, containment)
        for number, (table, label), size, overlap, containment in zip(
            answer.sets.tolist(),
            shard.names.of(answer.sets),
            answer.sizes.tolist(),
            answer.overlaps.tolist(),
            answer.containments.tolist(),
            strict=True,
        )
    ]
