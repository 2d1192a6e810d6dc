"""Search over all partitions of a store: one partition after the other, each for all queries of a batch."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from pexeso.batching import Batch, batches_of
from pexeso.engine.grid_options import GridOptions
from pexeso.engine.kernels.interface import BYTES_A_PAIR, MAX_PAIRS, KernelChoice
from pexeso.engine.lemmas import lemma_set
from pexeso.engine.partition import Partition
from pexeso.engine.search import (
    BatchQuery,
    Goal,
    column_pairs,
    count_needed,
    exact_partition,
    search_batch_partition,
    search_partition,
)
from pexeso.engine.stats import SearchStats
from pexeso.options import SearchOptions
from pexeso.prepared import PreparedQuery
from pexeso.results import Pair
from pexeso.store.reader import Store
from pexeso.store.scan import scan_partitions

ENGINE_ARRAYS_NOT_NEEDED = frozenset({"column_ids", "posting_texts"})


@dataclass(frozen=True)
class Hit:
    """A column found: where it is, and how many query rows match it."""

    column_id: int
    matched: int
    partition: int
    place: int


class PartitionScan:
    """Opens the partitions of a store on a device, one at a time, within a memory budget.

    On the CPU partitions are memory-mapped, so opening is free and they are kept; on a device one at a time is copied there.

    Attributes
    ----------
    kernel : KernelChoice
        What searches them.
    max_pairs : int
        Most (query value, stored value) pairs held at a time, as the budget allows.
    """

    def __init__(
        self,
        store: Store,
        grid_options: GridOptions,
        device: torch.device,
        memory_budget: int | None,
        kernel: KernelChoice,
    ) -> None:
        self.store, self.kernel = store, kernel
        self.max_pairs = max_pairs_within(memory_budget)
        self._options, self._device, self._budget = grid_options, device, memory_budget
        self._kept: dict[int, Partition] = {}

    def __iter__(self):
        """Yield (number, partition)."""
        on_cpu = self._device.type == "cpu"
        if on_cpu and len(self._kept) == self.store.n_partitions:
            yield from sorted(self._kept.items())
            return
        copied = () if on_cpu else None
        for number, arrays in scan_partitions(self.store, copied=copied, memory_budget=self._budget):
            partition = self._tensors(arrays)
            if on_cpu:
                self._kept[number] = partition
            yield number, partition

    def open(self, number: int) -> Partition:
        """Open one partition."""
        if number in self._kept:
            return self._kept[number]
        return self._tensors(self.store.partition(number))

    def _tensors(self, arrays: dict[str, np.ndarray]) -> Partition:
        needed = {name: array for name, array in arrays.items() if name not in ENGINE_ARRAYS_NOT_NEEDED}
        return Partition.from_arrays(needed, self._options, self._device)


def max_pairs_within(memory_budget: int | None) -> int:
    """Give how many pairs a budget in bytes allows, at least 2**20: half of it, for what a pair takes on its way.

    Examples
    --------
    >>> max_pairs_within(None) == MAX_PAIRS, max_pairs_within(1 << 20)
    (True, 1048576)
    """
    if memory_budget is None:
        return MAX_PAIRS
    return min(MAX_PAIRS, max(1 << 20, memory_budget // 2 // BYTES_A_PAIR))


def search_store(
    scan: PartitionScan, queries: Sequence[PreparedQuery], options: Sequence[SearchOptions]
) -> list[tuple[list[Hit], SearchStats]]:
    """Search all partitions for several query columns, each with its options; columns that ask alike share one pass.

    Returns
    -------
    list of (hits, stats)
        In the order of `queries`; hits best first, equal counts by column id, at most `k`. Query columns that shared a pass have its
        counters and seconds as a whole, each.
    """
    results: list[tuple[list[Hit], SearchStats]] = [([], SearchStats()) for _ in queries]
    shared = batches_of(queries, options)
    alone = sorted(set(range(len(queries))) - {place for batch in shared for place in batch.places})
    for number, partition in scan:
        column_ids = scan.store.array(number, "column_ids")
        for batch in shared:
            answers = _search_together(scan, number, partition, batch, queries, options, results)
            for place, found in zip(batch.places, answers, strict=True):
                _add_hits(results[place][0], column_ids, found, number, options[place].k)
        for place in alone:
            query, chosen, (hits, stats) = queries[place], options[place], results[place]
            left_out = _left_out(scan.store, number, chosen.exclude_table)
            found = _search_one(scan, partition, query, chosen, _goal(query, chosen, hits), left_out, stats)
            _add_hits(hits, column_ids, found, number, chosen.k)
    return results


Found = tuple[torch.Tensor, torch.Tensor]
"""Columns of a partition and their counts."""


def _add_hits(hits: list[Hit], column_ids: np.ndarray, found: Found, partition: int, k: int | None) -> None:
    """Merge what a partition gave into the hits so far, best first."""
    columns, counts = found
    ids = column_ids[columns.numpy()]
    hits += [
        Hit(*each, partition, place)
        for *each, place in zip(ids.tolist(), counts.tolist(), columns.tolist(), strict=True)
    ]
    hits.sort(key=lambda hit: (-hit.matched, hit.column_id))
    if k is not None:
        del hits[k:]


def _search_together(
    scan: PartitionScan,
    number: int,
    partition: Partition,
    batch: Batch,
    queries: Sequence[PreparedQuery],
    options: Sequence[SearchOptions],
    results: Sequence[tuple[list[Hit], SearchStats]],
) -> list[Found]:
    """Search one partition for the query columns of a batch in one pass."""
    goals = [_goal(queries[place], options[place], results[place][0]) for place in batch.places]
    asked = [
        BatchQuery(members, queries[place].weights, goal.min_count)
        for members, place, goal in zip(batch.members, batch.places, goals, strict=True)
    ]
    stats = SearchStats()
    answers = search_batch_partition(
        partition,
        batch.vectors,
        asked,
        goals[0].max_distance,
        stats,
        lemmas=goals[0].lemmas,
        kernel=scan.kernel,
        max_pairs=scan.max_pairs,
    )
    for place in batch.places:
        results[place][1].add(stats)
    masks = [_left_out(scan.store, number, options[place].exclude_table) for place in batch.places]
    return [
        found if mask is None else tuple(each[~mask[found[0]]] for each in found)
        for found, mask in zip(answers, masks, strict=True)
    ]


def _search_one(
    scan: PartitionScan,
    partition: Partition,
    query: PreparedQuery,
    options: SearchOptions,
    goal: Goal,
    left_out: torch.Tensor | None,
    stats: SearchStats,
) -> Found:
    if options.exact:
        started = time.perf_counter()
        found = exact_partition(partition, query.vectors, query.weights, goal, left_out)
        stats.partitions += 1
        stats.distances += len(query.vectors) * partition.n_values
        stats.add_seconds("verify", time.perf_counter() - started)
        return found
    total = query.total(options.ignore_missing)
    return search_partition(
        partition,
        query.vectors,
        query.weights,
        total,
        goal,
        stats,
        left_out,
        kernel=scan.kernel,
        max_pairs=scan.max_pairs,
    )


def _goal(query: PreparedQuery, options: SearchOptions, hits: list[Hit]) -> Goal:
    """Say what a column of the next partition needs; with k, no less than the k-th found so far."""
    total = query.total(options.ignore_missing)
    needed = 1 if options.min_joinability is None else count_needed(options.min_joinability, total)
    goal = Goal(options.max_distance, needed, options.k, options.counts == "decide", lemma_set(options.lemmas))
    if options.k is not None and len(hits) == options.k:
        # Equal counts stay in: a column of a smaller id wins the tie.
        return replace(goal, min_count=max(needed, hits[-1].matched))
    return goal


def _left_out(store: Store, number: int, exclude_table: str | None) -> torch.Tensor | None:
    """Mark the columns of a partition that must not be found: of the table excluded, or deleted."""
    deleted = store.manifest.deleted_columns
    if exclude_table is None and not deleted:
        return None
    mask = np.isin(store.array(number, "column_ids"), np.asarray(deleted, dtype=np.int64))
    if exclude_table is not None:
        same = pc.equal(store.texts(number, "tables"), pa.scalar(exclude_table))
        mask |= same.to_numpy(zero_copy_only=False)
    return torch.from_numpy(mask)


def find_pairs(
    scan: PartitionScan, query: PreparedQuery, hits: Sequence[Hit], options: SearchOptions, stats: SearchStats
) -> list[list[Pair]]:
    """Give the matching value pairs of columns found, one list a hit, each in the query's order, nearest first."""
    started = time.perf_counter()
    lists: list[list[Pair]] = [[] for _ in hits]
    texts, value_of_text = query.texts
    texts_of_value = _group(value_of_text, len(query.values))
    for number in sorted({hit.partition for hit in hits}):
        here = [position for position, hit in enumerate(hits) if hit.partition == number]
        places = torch.tensor([hits[position].place for position in here])
        column, value, posting, distance = column_pairs(
            scan.open(number), query.vectors, places, options.max_distance, stats
        )
        lake_texts, lake_values = posting_texts(scan, number, posting)
        rows = zip(column.tolist(), value.tolist(), lake_texts, distance.tolist(), lake_values, strict=True)
        found: dict[int, list[tuple[int, Pair]]] = {}
        for which, value_place, *lake_side in rows:
            for text in texts_of_value[value_place]:
                found.setdefault(which, []).append((text, Pair(texts[text], *lake_side)))
        for which, pairs in found.items():
            # Stable: within a text the pairs stay nearest first.
            lists[here[which]] = [pair for _, pair in sorted(pairs, key=lambda item: item[0])]
    stats.add_seconds("explain", time.perf_counter() - started)
    return lists


def posting_texts(scan: PartitionScan, number: int, postings: torch.Tensor) -> tuple[list[str], list[str]]:
    """Give the texts of postings as they stand in their columns, and as the index holds them."""
    store = scan.store
    rows = store.array(number, "posting_texts")[postings.numpy()]
    values = store.array(number, "column_values_members")[postings.numpy()]
    texts = store.texts(number, "texts").take(pa.array(rows)).to_pylist()
    return texts, store.texts(number, "values").take(pa.array(values)).to_pylist()


def _group(keys: np.ndarray, n_keys: int) -> list[list[int]]:
    groups: list[list[int]] = [[] for _ in range(n_keys)]
    for position, key in enumerate(keys.tolist()):
        groups[key].append(position)
    return groups
