"""What updates have deleted in the shards of a part: ranges of numbers, a fact of each shard."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from pexeso.build.parts.base import worn_folders
from pexeso.store.id_ranges import merge_ranges, numbers_in, ranges_of
from pexeso.store.manifest import FolderEntry

DELETED = "deleted"
"""The fact of a shard's entry that lists what is not to be found, as ranges (first, end)."""


def deleted_numbers(entry: FolderEntry) -> np.ndarray:
    """Return the numbers of what is deleted in a shard, int64, ascending."""
    return numbers_in(entry.facts.get(DELETED, []))


def with_deleted(
    shards: Iterable[tuple[FolderEntry, np.ndarray]], counted: str
) -> list[FolderEntry]:
    """Return the entries of shards with more of what they hold deleted.

    Shards of which nothing remains are dropped.

    Parameters
    ----------
    shards : iterable of (FolderEntry, numpy.ndarray)
        Each with the ascending numbers of what is deleted now.
    """
    entries = []
    for entry, numbers in shards:
        if len(numbers):
            ranges = merge_ranges(entry.facts.get(DELETED, []), ranges_of(numbers))
            entry = replace(entry, facts={**entry.facts, DELETED: [list(span) for span in ranges]})
        if len(deleted_numbers(entry)) < entry.facts[counted]:
            entries.append(entry)
    return entries


def worn_shards(entries: Sequence[FolderEntry], counted: str, partition_bytes: int) -> list[int]:
    """Choose the shards that a compaction rewrites; `counted` is as in `with_deleted`."""
    shares = [len(deleted_numbers(entry)) / max(1, entry.facts[counted]) for entry in entries]
    return worn_folders(entries, shares, partition_bytes)
