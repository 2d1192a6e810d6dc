"""MergeList for many queries at once, over posting lists in memory, on any device of torch.

For lakes whose lists fit into the memory of a machine or a GPU: counting is one addition an entry,
and nothing is decided on the way. The answers are those of `pexeso.sets.overlap.josie`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import torch

from pexeso.errors import DeviceError
from pexeso.sets.overlap.index import (
    NO_SUCH_SET,
    OverlapIndex,
    OverlapQuery,
    Overlaps,
    Reads,
    cut_short,
)
from pexeso.sets.overlap.planner import MEMBER_BYTES

MAX_COUNTS = 1 << 24  # Counts, and entries, that are held at a time: some 60 bytes each, 1 GiB


class BatchedMergeList:
    """The posting lists of an index on a device of torch.

    One count is held for each set and each query of a part of the batch, and one entry of a list;
    queries go in as many parts as `MAX_COUNTS` of them take. A query alone may need more.
    """

    def __init__(self, index: OverlapIndex, device: str = "cpu") -> None:
        self._index = index
        try:
            self._device = torch.device(device)
            index.pages.want("list_sets", np.array([0]), np.array([len(index.list_sets)]))
            self._sets = torch.from_numpy(np.array(index.list_sets)).to(self._device)
        # torch asserts that it was built for the device
        except (RuntimeError, AssertionError) as error:
            raise DeviceError(
                f"The posting lists of an overlap index cannot be held on the device {device!r}: "
                f"{str(error).splitlines()[0]} "
                "Choose another device, such as 'cpu'."
            ) from error
        if len(self._sets) and (int(self._sets.min()) < 0 or int(self._sets.max()) >= index.n_sets):
            raise cut_short(NO_SUCH_SET)
        offsets = index.token_offsets
        if offsets[0] != 0 or offsets[-1] != len(self._sets) or (np.diff(offsets) < 0).any():
            raise cut_short("The offsets of an overlap index lead out of it")

    def search(
        self,
        queries: Sequence[OverlapQuery],
        k: int,
        exclude: Sequence[Collection[int]],
        *,
        at_least: int = 1,
    ) -> list[Overlaps]:
        """Find the k sets that share most tokens with each query.

        Linear in the entries of all lists, and in sets times queries. `reads` counts the lists of
        each query as though it had gone alone.
        """
        answers: list[Overlaps] = []
        while len(answers) < len(queries):
            part = slice(len(answers), self._end_of_part(queries, len(answers)))
            answers += self._search(queries[part], k, exclude[part], at_least)
        return answers

    def _end_of_part(self, queries: Sequence[OverlapQuery], begin: int) -> int:
        """Return the first query for which counts or entries would be too many."""
        n_entries = np.cumsum([int(query.frequencies.sum()) for query in queries[begin:]])
        within = int(np.searchsorted(n_entries, MAX_COUNTS, side="right"))
        return begin + max(1, min(within, MAX_COUNTS // max(self._index.n_sets, 1)))

    def _search(
        self,
        queries: Sequence[OverlapQuery],
        k: int,
        excluded: Sequence[Collection[int]],
        at_least: int,
    ) -> list[Overlaps]:
        n_sets = self._index.n_sets
        counts = self._count(queries)
        for row, ids in enumerate(excluded):
            numbers = torch.from_numpy(self._index.numbers_of(ids))
            counts[row, numbers.to(self._device)] = 0
        # The overlap before the number: one integer for both, of which the largest are wanted. Set
        # numbers ascend as ids do, so that of equal ones the one with the smaller id is the larger.
        keys = counts * n_sets + torch.arange(n_sets - 1, -1, -1, device=self._device)
        best = torch.topk(keys, min(k, n_sets), dim=1).values.cpu().numpy()
        answers = []
        for query, row in zip(queries, best, strict=True):
            overlaps, numbers = np.divmod(row, max(n_sets, 1))
            mask = overlaps >= at_least
            n_entries = int(query.frequencies.sum())
            reads = Reads(lists=query.n_blocks, entries=n_entries, n_bytes=MEMBER_BYTES * n_entries)
            ids = np.asarray(self._index.ids)[n_sets - 1 - numbers[mask]]
            answers.append(Overlaps(ids, overlaps[mask].astype(np.int64), reads))
        return answers

    def _count(self, queries: Sequence[OverlapQuery]) -> torch.Tensor:
        """Count the tokens that each set shares with each query: int64 (queries, sets)."""
        n_sets = self._index.n_sets
        tokens = np.concatenate([query.lists for query in queries])
        weights = np.concatenate([query.weights for query in queries])
        rows = np.repeat(np.arange(len(queries)), [query.n_blocks for query in queries])
        lengths = self._index.frequencies(tokens)
        shifts = self._index.token_offsets[tokens] - (np.cumsum(lengths) - lengths)
        n_entries = int(lengths.sum())
        shift, row, weight, repeats = (
            torch.from_numpy(np.asarray(column, np.int64)).to(self._device)
            for column in (shifts, rows * n_sets, weights, lengths)
        )
        block = torch.repeat_interleave(
            torch.arange(len(tokens), device=self._device), repeats, output_size=n_entries
        )
        entries = torch.arange(n_entries, device=self._device) + shift[block]
        counts = torch.zeros(len(queries) * n_sets, dtype=torch.int64, device=self._device)
        counts.index_add_(0, self._sets[entries].long() + row[block], weight[block])
        return counts.view(len(queries), n_sets)
