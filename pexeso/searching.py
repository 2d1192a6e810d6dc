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
from pexeso.errors import DeviceError
from pexeso.options import SearchOptions
from pexeso.prepared import PreparedQuery
from pexeso.results import Pair
from pexeso.store.reader import Store
from pexeso.store.scan import copied_bytes, scan_partitions
from pexeso.store.sizes import format_bytes

MIN_PAIRS = 1 << 18
"""So many pairs may be held however small the budget: 12 MiB."""

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

    On the CPU partitions are memory-mapped, so opening is free and they are kept; on a device one at a time is copied there, and kept if it is
    the only one.

    Attributes
    ----------
    kernel : KernelChoice
        What searches them.
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
        self._options, self._device, self._budget = grid_options, device, memory_budget
        self._kept: dict[int, Partition] = {}

    def __iter__(self):
        """Yield (number, partition)."""
        on_cpu = self._device.type == "cpu"
        if not on_cpu and self._budget is not None:
            self._require_room(self._budget)
        if len(self._kept) == self.store.n_partitions:
            yield from sorted(self._kept.items())
            return
        copied = () if on_cpu else None
        for number, arrays in scan_partitions(self.store, copied=copied, memory_budget=self._budget):
            partition = self._tensors(arrays)
            if on_cpu or self.store.n_partitions == 1:
                self._kept[number] = partition
            yield number, partition
            # The next one is copied to a device only when this one is gone.
            del partition

    def max_pairs(self, number: int) -> int:
        """Give the most (query value, stored value) pairs to be held at a time while a partition is searched, as the budget allows."""
        if self._budget is None:
            return MAX_PAIRS
        return max_pairs_within(self._budget - self._fixed_bytes(number))

    def _fixed_bytes(self, number: int) -> int:
        """Give what a search of a partition takes before it holds a single pair; on the CPU the partition itself takes nothing."""
        if self._device.type == "cpu":
            return self.kernel.working_bytes
        copied = copied_bytes(self.store, number) - copied_bytes(self.store, number, ENGINE_ARRAYS_NOT_NEEDED)
        return self.kernel.working_bytes + copied

    def _require_room(self, memory_budget: int) -> None:
        """Refuse a budget that a partition does not fit into."""
        needed, number = max((self._fixed_bytes(number), number) for number in range(self.store.n_partitions))
        needed += MIN_PAIRS * BYTES_A_PAIR
        if needed > memory_budget:
            raise DeviceError(
                f"To search partition {number} of '{self.store.path}' on the device {self._device} takes {format_bytes(needed)}, and the memory budget is "
                f"{format_bytes(memory_budget)}: raise the budget above that, build the index with smaller partitions (--partition-bytes), or search on the "
                "CPU (--device cpu)."
            )

    def open(self, number: int) -> Partition:
        """Open one partition."""
        if number in self._kept:
            return self._kept[number]
        return self._tensors(self.store.partition(number))

    def _tensors(self, arrays: dict[str, np.ndarray]) -> Partition:
        needed = {name: array for name, array in arrays.items() if name not in ENGINE_ARRAYS_NOT_NEEDED}
        try:
            return Partition.from_arrays(needed, self._options, self._device)
        except torch.OutOfMemoryError as error:
            raise DeviceError(
                f"A partition of '{self.store.path}' does not fit into the memory of the device {self._device}. Build the index with smaller partitions "
                "(--partition-bytes), or search on the CPU (--device cpu)."
            ) from error


def max_pairs_within(n_bytes: int) -> int:
    """Give how many pairs may be held in that many bytes, from `MIN_PAIRS` to `MAX_PAIRS`.

    Examples
    --------
    >>> max_pairs_within(1 << 40) == MAX_PAIRS, max_pairs_within(48_000_000), max_pairs_within(-1)
    (True, 1000000, 262144)
    """
    return min(MAX_PAIRS, max(MIN_PAIRS, n_bytes // BYTES_A_PAIR))


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
            found = _search_one(scan, number, partition, query, chosen, _goal(query, chosen, hits), left_out, stats)
            _add_hits(hits, column_ids, found, number, chosen.k)
        del partition
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
        max_pairs=scan.max_pairs(number),
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
    number: int,
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
        max_pairs=scan.max_pairs(number),
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
