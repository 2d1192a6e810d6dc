"""Search over all partitions of a store.

Partitions are searched one after the other, each for all queries of a batch. The engine is imported
by the first search.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from pexeso.engine.stats import SearchStats
from pexeso.runtime.progress import advance, begin_steps

if TYPE_CHECKING:
    from pexeso.engine.vector_space import SpacePartition
    from pexeso.options import SearchOptions
    from pexeso.results.ranking import Hit
    from pexeso.semantic.encoded_query import EncodedQuery
    from pexeso.semantic.partition_loader import PartitionLoader
    from pexeso.semantic.passes.base import Pass, ProbeResult

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


class Executor(Protocol):
    """Protocol of what runs the searches of an index.

    An executor holds no snapshot, so it serves the current snapshot of the index.
    """

    def search(
        self,
        loader: PartitionLoader,
        queries: Sequence[EncodedQuery],
        options: Sequence[SearchOptions],
    ) -> list[Answer]:
        """Search all partitions for several query columns, each with its options.

        The answers are in the order of the queries.
        """
        ...


class LocalExecutor:
    """Searches in this process."""

    def search(
        self,
        loader: PartitionLoader,
        queries: Sequence[EncodedQuery],
        options: Sequence[SearchOptions],
    ) -> list[Answer]:
        """Search all partitions, one after the other; see `search_store`."""
        return search_store(loader, queries, options)


def search_store(
    scan: PartitionLoader, queries: Sequence[EncodedQuery], options: Sequence[SearchOptions]
) -> list[tuple[list[Hit], SearchStats]]:
    """Search all partitions for several query columns, each with its options.

    Query columns with the same threshold and filters can share one pass.

    A partition whose summary shows that no column in it can be found is skipped. With `k` those
    that promise most come first. While one is searched, the summary of the next is looked at, and
    what will be read of it is asked for where pages are missing.

    Returns
    -------
    list of (hits, stats)
        In the order of `queries`; hits best first, equal counts by table, then column, at most `k`.
        Query columns that shared a pass have its counters and seconds as a whole, each.
    """
    from pexeso.engine.damage import damage_made_plain

    with damage_made_plain("the index"):
        return _search_store(scan, queries, options)


def _search_store(
    scan: PartitionLoader, queries: Sequence[EncodedQuery], options: Sequence[SearchOptions]
) -> list[Answer]:
    scan.require_room()
    scan.watch.restart()
    passes = _passes(scan, queries, options)
    n_values = sum(search_pass.n_values for search_pass in passes)
    begin_steps(n_values * scan.store.n_partitions)
    n_searched = 0
    with (
        prefetched(_visits(scan, passes), threaded=_is_long(scan, passes)) as visits,
        # Copies wait for no look at a summary: that of the one after is looked at meanwhile.
        prefetched(_opened(scan, visits), threaded=scan.copies_ahead) as opened,
    ):
        for visit, partition in opened:
            for search_pass, probed in visit.probed:
                scan.search(
                    visit.number,
                    partition,
                    partial(search_pass.search, visit.number, probed=probed),
                )
            n_searched += 1
            advance(0, to=n_values * n_searched)
            # The next one is copied to a device only when this one is gone, unless there is room
            # for both.
            del partition, visit
    results: list[tuple[list[Hit], SearchStats]] = [([], SearchStats()) for _ in queries]
    for search_pass in passes:
        for position, answer in search_pass.results():
            results[position] = answer
    return results


@dataclass(frozen=True)
class Visit:
    """A partition that must be searched."""

    number: int
    probed: list[tuple[Pass, ProbeResult]]


def _passes(
    scan: PartitionLoader, queries: Sequence[EncodedQuery], options: Sequence[SearchOptions]
) -> list[Pass]:
    from pexeso.semantic.passes.shared import SharedPass, batches_of
    from pexeso.semantic.passes.single_query import SingleQueryPass

    shared = batches_of(scan.space, queries, options)
    alone = sorted(
        set(range(len(queries))) - {position for batch in shared for position in batch.positions}
    )
    return [
        *(SharedPass(scan, batch, queries, options) for batch in shared),
        *(
            SingleQueryPass(scan, position, queries[position], options[position])
            for position in alone
        ),
    ]


def _visits(scan: PartitionLoader, passes: Sequence[Pass]) -> Iterator[Visit]:
    """Yield the partitions that must be searched, in the order in which they are."""
    for number in _order(scan, passes):
        probed = [(search_pass, search_pass.look(number)) for search_pass in passes]
        probed = [(search_pass, seen) for search_pass, seen in probed if seen is not None]
        if probed:
            yield Visit(number, probed)


def _opened(
    scan: PartitionLoader, visits: Iterator[Visit]
) -> Iterator[tuple[Visit, SpacePartition]]:
    """Yield partitions with what is opened of them."""
    for visit in visits:
        yield visit, scan.open(visit.number)


def _order(scan: PartitionLoader, passes: Sequence[Pass]) -> list[int]:
    """Return the order of the partitions, the most promising first.

    They are reordered only if that raises the count that further columns need.
    """
    numbers = list(range(scan.store.n_partitions))
    ranked = [search_pass for search_pass in passes if search_pass.ranks]
    if not ranked or len(numbers) < 2:
        return numbers
    promises = {
        number: [sum(part) for part in zip(*(run.promise(number) for run in ranked), strict=True)]
        for number in numbers
    }
    return sorted(numbers, key=lambda number: [-part for part in promises[number]])


def _is_long(scan: PartitionLoader, passes: Sequence[Pass]) -> bool:
    """Return whether a search takes so long that a thread of its own for what comes next pays."""
    n_partitions = scan.store.n_partitions
    if n_partitions < 2 or not passes:
        return False
    from pexeso.engine.search.prefixes import LEAST_WORK

    n_values = sum(search_pass.n_values for search_pass in passes)
    return scan.copies_ahead or n_values * scan.mapped(0).n_values * n_partitions >= LEAST_WORK
