"""Search over all partitions of a store.

Partitions are searched one after the other, each for all queries of a batch. The engine is imported
by the first search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from pexeso.engine.stats import SearchStats
from pexeso.runtime.progress import advance, begin_steps

if TYPE_CHECKING:
    from pexeso.options import SearchOptions
    from pexeso.results.query import Hit
    from pexeso.semantic.encoded_query import EncodedQuery
    from pexeso.semantic.partition_loader import PartitionLoader
    from pexeso.semantic.passes import ProbeResult, SharedPass, SingleQueryPass

    Pass = SingleQueryPass | SharedPass

Item = TypeVar("Item")

_END = object()


@contextmanager
def prefetched(items: Iterable[Item], *, threaded: bool = True) -> Iterator[Iterator[Item]]:
    """Go through items, each made while the caller works on the one before."""
    if not threaded:
        yield iter(items)
        return
    source = iter(items)
    with ThreadPoolExecutor(1, thread_name_prefix="pexeso-prefetch") as pool:
        yield _made_by(pool, source)


def _made_by(pool: ThreadPoolExecutor, source: Iterator[Item]) -> Iterator[Item]:
    waiting = pool.submit(next, source, _END)
    while (item := waiting.result()) is not _END:
        waiting = pool.submit(next, source, _END)
        yield item
        del item  # the caller may need its memory for the next one


Answer = tuple[list["Hit"], SearchStats]
"""The columns found for one query column, best first, and the work that it took."""


Executor = Callable[
    ["PartitionLoader", "Sequence[EncodedQuery]", "Sequence[SearchOptions]"], list[Answer]
]
"""What runs the searches of an index: `search_store`, or a `SparkExecutor`."""


def search_store(
    scan: PartitionLoader, queries: Sequence[EncodedQuery], options: Sequence[SearchOptions]
) -> list[Answer]:
    """Search all partitions for several query columns, each with its options.

    A partition whose summary shows that no column in it can be found is skipped. While one is
    searched, the summary of the next is looked at, and what will be read of it is asked for where
    pages are missing. Hits are best first, equal counts by table, then column. Query columns that
    share a pass, with the same threshold and filters, all have its counters and seconds.
    """
    from pexeso.engine.lists import damage_of
    from pexeso.semantic.passes import SharedPass, passes_of

    try:
        scan.require_room()
        if scan.n_partitions > 1 or scan.space.has_kernels:  # else nothing of it is read ahead
            scan.watch.move_on()
        passes = passes_of(scan, queries, options)
        left = [
            search_pass
            for search_pass in passes
            if scan.on_cpu or isinstance(search_pass, SharedPass) or not search_pass.search_all()
        ]
        n_values = sum(search_pass.n_values for search_pass in left)
        begin_steps(n_values * scan.n_partitions)
        copies_ahead = is_long = scan.n_partitions > 1 and scan.copies_ahead
        if scan.n_partitions > 1 and left:
            from pexeso.engine.dense.prefixes import LEAST_WORK

            n_pairs = n_values * scan.mapped(0).n_values * scan.n_partitions
            is_long = copies_ahead or n_pairs >= LEAST_WORK
        n_searched = 0
        with (
            prefetched(_visits(scan, left), threaded=is_long) as visits,
            # Copies wait for no look at a summary: that of the one after is looked at meanwhile.
            prefetched(
                ((number, scan.open(number), probed) for number, probed in visits),
                threaded=copies_ahead,
            ) as opened,
        ):
            for visit in opened:
                number, partition, probed = visit
                for search_pass, seen in probed:
                    work = partial(search_pass.search, number, probed=seen)
                    scan.search(number, partition, work)
                n_searched += 1
                advance(0, to=n_values * n_searched)
                # The next one is copied to a device only when this one is gone, unless there is
                # room for both.
                del visit, partition, probed
    except IndexError as error:
        raise damage_of("the index") from error
    answers = dict(answer for search_pass in passes for answer in search_pass.results())
    return [answers[position] for position in range(len(queries))]


def _visits(
    scan: PartitionLoader, passes: Sequence[Pass]
) -> Iterator[tuple[int, list[tuple[Pass, ProbeResult]]]]:
    """Yield the partitions to be searched, the most promising first where that prunes others."""
    numbers = list(range(scan.n_partitions))
    if ranked := [search_pass for search_pass in passes if search_pass.ranks]:
        promises = {
            number: np.sum([search_pass.promise(number) for search_pass in ranked], axis=0).tolist()
            for number in numbers
        }
        numbers.sort(key=lambda number: [-part for part in promises[number]])
    for number in numbers:
        looks = [(search_pass, search_pass.look(number)) for search_pass in passes]
        if probed := [(search_pass, seen) for search_pass, seen in looks if seen is not None]:
            yield number, probed
