"""Search over all partitions of a store: one partition after the other, each for all queries of a batch; the value pairs behind an answer."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import torch

from pexeso.ahead import one_ahead
from pexeso.batching import batches_of
from pexeso.engine.pairs import column_pairs
from pexeso.engine.partition import Partition
from pexeso.engine.prefixes import LEAST_WORK
from pexeso.engine.stats import SearchStats
from pexeso.engine.threads import few_threads
from pexeso.engine.validation import damage_made_plain
from pexeso.errors import IndexCorruptError
from pexeso.kinds import kinds_of
from pexeso.options import SearchOptions
from pexeso.pair_table import PairTable
from pexeso.pass_of_many import PassOfMany
from pexeso.pass_of_one import PassOfOne
from pexeso.passes import Looked, Pass
from pexeso.prepared import PreparedQuery
from pexeso.ranking import Hit
from pexeso.scanning import PartitionScan
from pexeso.store.texts import take_texts

__all__ = ["Hit", "PartitionScan", "find_pairs", "posting_arrays", "search_store"]


@damage_made_plain("the index")
def search_store(
    scan: PartitionScan, queries: Sequence[PreparedQuery], options: Sequence[SearchOptions]
) -> list[tuple[list[Hit], SearchStats]]:
    """Search all partitions for several query columns, each with its options; columns that ask alike share one pass.

    A partition whose summary shows that no column in it can be found is skipped. With `k` those that promise most come first. While one is searched, the
    summary of the next is looked at, and what will be read of it is asked for where pages are missing.

    Returns
    -------
    list of (hits, stats)
        In the order of `queries`; hits best first, equal counts by table, then column, at most `k`. Query columns that shared a pass have its
        counters and seconds as a whole, each.
    """
    scan.require_room()
    scan.watch.restart()
    passes = _passes(scan, queries, options)
    with one_ahead(_visits(scan, passes), threaded=_is_long(scan, passes)) as visits:
        for visit in visits:
            partition = scan.open(visit.number) if visit.partition is None else visit.partition
            for each, looked in visit.looked:
                each.search(visit.number, partition, looked)
            # The next one is copied to a device only when this one is gone, unless there is room for both.
            del partition, visit
    results: list[tuple[list[Hit], SearchStats]] = [([], SearchStats()) for _ in queries]
    for each in passes:
        for place, answer in each.results():
            results[place] = answer
    return results


@dataclass(frozen=True)
class Visit:
    """A partition that must be searched.

    Attributes
    ----------
    number : int
    partition : Partition or None
        On the device, where it could be brought there ahead.
    looked : list of (pass, what it saw)
        The passes that cannot skip it.
    """

    number: int
    partition: Partition | None
    looked: list[tuple[Pass, Looked]]


def _passes(scan: PartitionScan, queries: Sequence[PreparedQuery], options: Sequence[SearchOptions]) -> list[Pass]:
    shared = batches_of(queries, options)
    alone = sorted(set(range(len(queries))) - {place for batch in shared for place in batch.places})
    return [
        *(PassOfMany(scan, batch, queries, options) for batch in shared),
        *(PassOfOne(scan, place, queries[place], options[place]) for place in alone),
    ]


def _visits(scan: PartitionScan, passes: Sequence[Pass]) -> Iterator[Visit]:
    """Yield the partitions that must be searched, in the order in which they are."""
    overlap = scan.room_for_two
    for number in _order(scan, passes):
        with few_threads():
            looked = [(each, each.look(number)) for each in passes]
        looked = [(each, seen) for each, seen in looked if seen is not None]
        if looked:
            yield Visit(number, scan.open_ahead(number) if overlap else None, looked)


def _order(scan: PartitionScan, passes: Sequence[Pass]) -> list[int]:
    """Put the partitions that promise most first, where that raises the count that further columns need."""
    numbers = list(range(scan.store.n_partitions))
    ranked = [each for each in passes if each.ranks]
    if not ranked or len(numbers) < 2:
        return numbers
    with few_threads():
        promises = {
            number: [sum(part) for part in zip(*(each.promise(number) for each in ranked), strict=True)]
            for number in numbers
        }
    return sorted(numbers, key=lambda number: [-part for part in promises[number]])


def _is_long(scan: PartitionScan, passes: Sequence[Pass]) -> bool:
    """Tell whether a search takes so long that a thread of its own for what comes next pays."""
    n_partitions = scan.store.n_partitions
    if n_partitions < 2 or not passes:
        return False
    n_values = sum(each.n_values for each in passes)
    return scan.room_for_two or n_values * scan.mapped(0).n_values * n_partitions >= LEAST_WORK


@damage_made_plain("the index")
def find_pairs(
    scan: PartitionScan, query: PreparedQuery, hits: Sequence[Hit], options: SearchOptions, stats: SearchStats
) -> list[PairTable]:
    """Give the matching value pairs of columns found, one table a hit, each in the query's order, nearest first."""
    started = time.perf_counter()
    tables: dict[int, PairTable] = {}
    texts_of_value = _rows_by_value(query)
    for number in sorted({hit.partition for hit in hits}):
        here = [position for position, hit in enumerate(hits) if hit.partition == number]
        places = torch.tensor([hits[position].place for position in here])
        found = column_pairs(scan.open(number), query.vectors, places, options.max_distance, stats)
        column, value, posting, distance = (each.cpu().numpy() for each in found)
        values, keys = posting_arrays(scan, number, posting)
        kinds = kinds_of(query.values.take(pa.array(value)), keys)
        # Pairs come ordered by column.
        bounds = np.searchsorted(column, np.arange(len(here) + 1))
        for position, start, end in zip(here, bounds[:-1], bounds[1:], strict=True):
            rows, text = _of_texts(value[start:end], *texts_of_value)
            # Stable: within a text the pairs stay nearest first.
            order = np.argsort(text, kind="stable")
            rows = start + rows[order]
            taken = pa.array(rows)
            tables[position] = PairTable(
                query.text_array, text[order], values.take(taken), keys.take(taken), distance[rows], kinds[rows]
            )
    stats.add_seconds("explain", time.perf_counter() - started)
    return [tables[position] for position in range(len(hits))]


def posting_arrays(scan: PartitionScan, number: int, postings: np.ndarray) -> tuple[pa.Array, pa.Array]:
    """Give the texts of postings as they stand in their columns, and as the index holds them; none of a whole index is missing."""
    store = scan.store
    rows = store.array(number, "posting_texts")[postings]
    values = store.array(number, "column_values_members")[postings]
    found = take_texts(store.texts(number, "texts"), rows), take_texts(store.texts(number, "values"), values)
    if any(each.null_count for each in found):
        raise IndexCorruptError(
            f"A text of partition {number} of '{store.path}' is missing: build the index again. 'pexeso check' lists what is damaged."
        )
    return found


def _rows_by_value(query: PreparedQuery) -> tuple[np.ndarray, np.ndarray]:
    """Put the places of texts in the order of their values: where those of each value start, and the places."""
    _, value_of_text = query.texts
    starts = np.zeros(len(query.values) + 1, dtype=np.int64)
    np.cumsum(np.bincount(value_of_text, minlength=len(query.values)), out=starts[1:])
    return starts, np.argsort(value_of_text, kind="stable")


def _of_texts(values: np.ndarray, starts: np.ndarray, texts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Repeat each row of `values` for each text of its value; give the rows and the places of the texts."""
    sizes = starts[values + 1] - starts[values]
    rows = np.repeat(np.arange(len(values)), sizes)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return rows, texts[np.repeat(starts[values], sizes) + within]
