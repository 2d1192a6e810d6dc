"""The lines of semantic answers: columns found, copies folded, searched for until there are enough.

A search with a threshold finds all columns that meet it, and the lines are counted. One for the k
best columns alone asks for some more than k, since some may be copies of others, and for more still
where these were too few.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pexeso.engine.stats import SearchStats
from pexeso.options import SearchOptions, columns_wanted
from pexeso.results.copies import (
    MOST_LINES,
    first_request,
    fold,
    lines_compared,
    lines_of,
    next_request,
    sets_of_hits,
)

if TYPE_CHECKING:
    from pexeso.results.ranking import Hit
    from pexeso.semantic.encoded_query import EncodedQuery
    from pexeso.semantic.executor import Answer
    from pexeso.semantic.partition_loader import PartitionLoader

    Search = Callable[[Sequence[EncodedQuery], Sequence[SearchOptions]], list[Answer]]


@dataclass(frozen=True)
class Lines:
    """What was found for one query column.

    Attributes
    ----------
    n_more : int or None
        How many lines there are behind them; None where there may be some that nobody counted.
    """

    lines: list[list[Hit]]
    n_more: int | None
    stats: SearchStats = field(default_factory=SearchStats)


def find_lines(
    search: Search,
    loader: PartitionLoader,
    queries: Sequence[EncodedQuery],
    options: Sequence[SearchOptions],
    *,
    folds: bool,
    with_tied: bool = False,
) -> list[Lines]:
    """Search for several query columns, each with its options."""
    limits = [_limit(query_options, folds) for query_options in options]
    by_position: dict[int, Lines] = {}
    stats = [SearchStats() for _ in queries]
    while pending := [position for position in range(len(queries)) if position not in by_position]:
        answers = search(
            [queries[position] for position in pending],
            [replace(options[position], k=limits[position]) for position in pending],
        )
        for position, (hits, spent) in zip(pending, answers, strict=True):
            stats[position].add(spent)
            limit, n_wanted = limits[position], columns_wanted(options[position].k)
            near = lines_compared(n_wanted)
            lines = fold_hits(loader, hits, near) if folds else [[hit] for hit in hits]
            if limit is None or n_wanted is None:
                by_position[position] = Lines(lines, 0, stats[position])
                continue
            is_whole = len(hits) < limit
            selected = lines[: _end_of_tied(lines, n_wanted) if with_tied else n_wanted]
            has_all_tied = not with_tied or len(selected) < len(lines) or limit >= MOST_LINES
            if is_whole or (len(selected) >= n_wanted and has_all_tied):
                n_more = len(lines) - len(selected) if is_whole else None
                by_position[position] = Lines(selected, n_more, stats[position])
            else:
                limits[position] = next_request(limit)
    return [by_position[position] for position in range(len(queries))]


def fold_hits(loader: PartitionLoader, hits: Sequence[Hit], limit: int | None) -> list[list[Hit]]:
    """Fold columns found, given in order; see `pexeso.results.copies.fold`."""
    if len(hits) < 2:
        return [[hit] for hit in hits]
    first_of = fold(sets_of_hits(loader, hits), limit)
    return [[hits[position] for position in line] for line in lines_of(first_of)]


def by_leader(lines: Sequence[Sequence[Hit]]) -> Mapping[int, list[Hit]]:
    """Return the lines by the id of the column that stands for each."""
    return {line[0].column_id: list(line) for line in lines}


def _end_of_tied(lines: list[list[Hit]], n_wanted: int) -> int:
    """Return how many lines there are up to the last with as many matches as the last wanted."""
    end = min(n_wanted, len(lines))
    limit = min(len(lines), MOST_LINES)
    while 0 < end < limit and lines[end][0].matched == lines[end - 1][0].matched:
        end += 1
    return end


def _limit(options: SearchOptions, folds: bool) -> int | None:
    """Return how many columns the executor is first asked for; None for all that there are."""
    n_wanted = columns_wanted(options.k)
    if options.min_joinability is not None or n_wanted is None:
        return None
    return first_request(n_wanted, folds=folds)
