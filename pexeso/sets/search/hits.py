"""Sets found in shards, put in one order and turned into results."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from pexeso.errors import IndexCorruptError
from pexeso.sets.overlap.topk import Overlaps
from pexeso.sets.part.open import Shard
from pexeso.sets.search.query import TokenQuery
from pexeso.sets.search.results import TokenMatch, TokenSearchResult


@dataclass(frozen=True)
class SetFound:
    """A set that was found, with its shard, number, size, overlap and containment.

    The number is that of the set in the shard. The overlap is None if it was not counted.
    """

    shard: Shard
    number: int
    table: str
    label: str
    size: int
    overlap: int | None
    containment: float

    @property
    def key(self) -> tuple[float, str, str]:
        """What results are ordered by."""
        return -self.containment, self.table, self.label


def best_of(hits: list[SetFound], k: int) -> list[SetFound]:
    """Return the k best, in order."""
    return sorted(hits, key=lambda hit: hit.key)[:k]


def counted_ways(ways: list[str]) -> dict[str, int]:
    """Count in how many shards each way was taken."""
    return {way: ways.count(way) for way in sorted(set(ways))}


def found_by_lists(shard: Shard, answer: Overlaps, n_asked: int) -> list[SetFound]:
    """Name the sets of an answer of `pexeso.sets.overlap`; ids are numbers in a shard."""
    numbers = answer.ids
    if len(numbers) and not 0 <= numbers.min() <= numbers.max() < shard.overlap.n_sets:
        raise IndexCorruptError(
            f"The ids in '{shard.folder}' are not those of its sets: restore the index from a "
            "copy, or build it again."
        )
    sizes = shard.overlap.set_offsets[numbers + 1] - shard.overlap.set_offsets[numbers]
    return [
        SetFound(shard, number, table, label, size, overlap, overlap / n_asked)
        for number, (table, label), size, overlap in zip(
            numbers.tolist(),
            shard.names.of(numbers),
            sizes.tolist(),
            answer.overlaps.tolist(),
            strict=True,
        )
    ]


def match_of(query: TokenQuery, hit: SetFound) -> TokenMatch:
    """Make the match of a set that was found."""
    shared = partial(shared_values, hit.shard, hit.number, query.tokens)
    at = (hit.shard, hit.number)
    return TokenMatch(
        hit.table,
        hit.label,
        hit.overlap,
        hit.containment,
        hit.size,
        at,
        shared,
        partial(getattr, query, "aliases"),
    )


def result_of(
    query: TokenQuery,
    options: dict[str, Any],
    hits: list[SetFound],
    fields: tuple[str, ...],
    stats: dict[str, Any],
) -> TokenSearchResult:
    """Make a result of the sets found, in their order."""
    return TokenSearchResult(
        query.describe(), options, tuple(match_of(query, hit) for hit in hits), fields, stats
    )


def shared_values(shard: Shard, number: int, tokens: pa.LargeStringArray) -> list[str]:
    """Return the tokens of a query that a set of a shard has, sorted."""
    index = shard.overlap
    numbers = index.find(tokens)
    is_shared = np.isin(numbers, index.suffix(number, 0))
    return sorted(tokens.filter(pa.array(is_shared)).to_pylist())
