"""The ways to answer an overlap query that the benchmark measures, with one interface.

Each takes a query's token numbers and returns (id, overlap) pairs.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.overlap_published import probe_set, published_josie
from pexeso.overlap.index.sets import OverlapIndex
from pexeso.overlap.josie import josie
from pexeso.overlap.merge import merge_list
from pexeso.overlap.planner import Planner
from pexeso.overlap.query import query_of_tokens
from pexeso.overlap.topk import Overlaps

Way = Callable[[np.ndarray, int, int], Overlaps]
"""From token numbers, the set not to be found, and k."""


def ways_of(index: OverlapIndex, planner: Planner, *, slow: bool) -> dict[str, Way]:
    """Return our own ways over an index; MergeList is the first.

    Parameters
    ----------
    index, planner
    slow : bool
        Also those that take long on large lakes: ProbeSet, and JOSIE as published.
    """

    def of(search: Callable[..., Overlaps]) -> Way:
        return lambda tokens, own_set, k: search(
            index, query_of_tokens(index, tokens), k, exclude=[own_set]
        )

    ways = {"MergeList": of(merge_list), "JOSIE": of(josie), "planner": of(planner.search)}
    return ways | (
        {"JOSIE, published": of(published_josie), "ProbeSet": of(probe_set)} if slow else {}
    )


class WholeLists:
    """An index that reads whole posting lists, with positions and sizes, where sets would do."""

    def __init__(self, index: OverlapIndex) -> None:
        self._index = index

    def __getattr__(self, name: str) -> Any:
        return getattr(self._index, name)

    def posting_sets(self, tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Read the sets of posting lists and all that stands beside them."""
        lists, lengths = self._index.posting_lists(tokens)
        return lists.sets, lengths


class PlainMap(WholeLists):
    """An index whose posting lists are read as from a plain memory map.

    Lists are read one after the other, with positions and sizes. The system decides which
    neighbouring pages it reads.
    """

    def __init__(self, index: OverlapIndex, folder: Path) -> None:
        super().__init__(index)
        self._files = [
            np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("list_sets", "list_places")
        ]

    def posting_sets(self, tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Read the sets of posting lists and all that stands beside them."""
        begins, ends = self._index.token_offsets[tokens], self._index.token_offsets[tokens + 1]
        sets = [
            self.entries(begin, end)
            for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)
        ]
        return np.concatenate(sets), ends - begins

    def entries(self, begin: int, end: int) -> np.ndarray:
        """Read some entries; give their sets."""
        sets, _ = (np.array(file[begin:end]) for file in self._files)
        return sets


class PositionedReads(PlainMap):
    """The same by calls of pread: one a list and file, of which there are two."""

    def __init__(self, index: OverlapIndex, folder: Path) -> None:
        super().__init__(index, folder)
        self._descriptors = [os.open(file.filename, os.O_RDONLY) for file in self._files]

    def entries(self, begin: int, end: int) -> np.ndarray:
        """Read some entries; give their sets."""
        sets, _ = (
            os.pread(
                descriptor, (end - begin) * file.strides[0], file.offset + begin * file.strides[0]
            )
            for descriptor, file in zip(self._descriptors, self._files, strict=True)
        )
        return np.frombuffer(sets, self._files[0].dtype)

    def close(self) -> None:
        """Close the files."""
        for descriptor in self._descriptors:
            os.close(descriptor)


def brute_force(index: OverlapIndex, tokens: np.ndarray, own: int, k: int) -> list[tuple[int, int]]:
    """Count the tokens of every set: the k best (id, overlap), equal overlaps by id. O(pairs)."""
    in_query = np.zeros(index.n_tokens, np.int8)
    in_query[tokens] = 1
    overlaps = np.add.reduceat(in_query[index.set_tokens], index.set_offsets[:-1], dtype=np.int64)
    overlaps[own] = 0
    best = np.argsort(-overlaps, kind="stable")[:k]
    return [(int(index.ids[row]), int(overlaps[row])) for row in best if overlaps[row]]


def set_similarity_search(
    index: OverlapIndex,
) -> Callable[[np.ndarray, int], list[tuple[int, float]]]:
    """Build SetSimilaritySearch over the same sets, and return its search function.

    The function takes token numbers and the least overlap wanted.

    It finds sets by threshold, not the best k: it is told the k-th overlap, which a search for the
    best k has to find out.

    Raises
    ------
    ImportError
        It is not installed (pip install SetSimilaritySearch==1.0.1).
    """
    from SetSimilaritySearch import SearchIndex

    sets = [
        part.tolist()
        for part in np.split(np.asarray(index.set_tokens), np.asarray(index.set_offsets)[1:-1])
    ]
    search_index = SearchIndex(sets, similarity_func_name="containment", similarity_threshold=0.5)

    def search(tokens: np.ndarray, at_least: int) -> list[tuple[int, float]]:
        # Its index is the same for all thresholds of containment. A little less, as its thresholds
        # are rounded down.
        search_index.similarity_threshold = (at_least - 1e-6) / len(tokens)
        return search_index.query(tokens.tolist())

    return search


def drop_pages(folder: Path) -> None:
    """Make the system drop the cached pages of the files of a folder.

    Pages of files that a process has mapped are not dropped.
    """
    for file in sorted(folder.iterdir()):
        descriptor = os.open(file, os.O_RDONLY)
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
