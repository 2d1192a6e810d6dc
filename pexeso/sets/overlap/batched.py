"""MergeList for many queries at once, over posting lists in memory, on any device of torch.

For lakes whose lists fit into the memory of a machine or a GPU: counting is one addition an entry,
and nothing is decided on the way. The answers are those of `pexeso.sets.overlap.josie` with
``ties="id"``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import torch

from pexeso.errors import DeviceError, IndexCorruptError, InputError
from pexeso.sets.overlap.index.reading import Reads, excluded_numbers
from pexeso.sets.overlap.index.sets import OverlapIndex
from pexeso.sets.overlap.merge import MEMBER_BYTES
from pexeso.sets.overlap.query import OverlapQuery, Values, as_query
from pexeso.sets.overlap.topk import Overlaps, require_at_least, require_k

MAX_COUNTS = 1 << 24
"""Counts, and entries, that are held at a time unless told otherwise: some 60 bytes each, 1 GiB."""

_DAMAGED = "it was changed or cut short. Restore it from a copy, or build it again."


class BatchedMergeList:
    """The posting lists of an index on a device.

    Parameters
    ----------
    device : str
        As torch names it.
    max_counts : int
        One count is held for each set and each query of a part of the batch, and one entry of a
        list; queries go in as many parts as that takes. A query alone may need more.
    """

    def __init__(
        self, index: OverlapIndex, device: str = "cpu", *, max_counts: int = MAX_COUNTS
    ) -> None:
        if isinstance(max_counts, bool) or not isinstance(max_counts, int) or max_counts < 1:
            raise InputError(f"max_counts must be an integer from 1 on. Got {max_counts!r}.")
        self._index, self._max_counts = index, max_counts
        try:
            self._device = torch.device(device)
            index.pages.want("list_sets", np.array([0]), np.array([len(index.list_sets)]))
            self._sets = torch.from_numpy(np.array(index.list_sets)).to(self._device)
        except (
            RuntimeError,
            AssertionError,
        ) as error:  # torch asserts that it was built for the device
            raise DeviceError(
                f"The posting lists of an overlap index cannot be held on the device {device!r}: "
                f"{str(error).splitlines()[0]} "
                "Choose another device, such as 'cpu'."
            ) from error
        if len(self._sets) and (int(self._sets.min()) < 0 or int(self._sets.max()) >= index.n_sets):
            raise IndexCorruptError(
                f"A posting list of an overlap index names a set that is not there: {_DAMAGED}"
            )
        if (
            index.token_offsets[0] != 0
            or index.token_offsets[-1] != len(self._sets)
            or (np.diff(index.token_offsets) < 0).any()
        ):
            raise IndexCorruptError(f"The offsets of an overlap index lead out of it: {_DAMAGED}")
        # Set numbers ascend as ids do, so that the smaller of two equal ones is the one with the
        # smaller id.
        self._ids = np.asarray(index.ids)

    def search(
        self,
        queries: Sequence[Values | OverlapQuery],
        k: int,
        *,
        exclude: Sequence[Collection[int]] | None = None,
        at_least: int = 1,
    ) -> list[Overlaps]:
        """Find the k sets that share most tokens with each query.

        Returns
        -------
        list[Overlaps]
            One for each query, in their order. `reads` counts the lists of each query as though it
            had gone alone.

        Notes
        -----
        Linear in the entries of all lists, and in sets times queries.
        """
        require_k(k)
        require_at_least(at_least)
        if exclude is not None and len(exclude) != len(queries):
            raise InputError(
                f"exclude must hold one collection for each of {len(queries)} queries. Got "
                f"{len(exclude)}."
            )
        prepared = [as_query(self._index, values) for values in queries]
        answers: list[Overlaps] = []
        while len(answers) < len(prepared):
            part = slice(len(answers), self._end_of_part(prepared, len(answers)))
            answers += self._search(
                prepared[part], k, exclude[part] if exclude is not None else None, at_least
            )
        return answers

    def _end_of_part(self, queries: list[OverlapQuery], begin: int) -> int:
        """Return the first query for which counts or entries would be too many."""
        n_entries = np.cumsum([int(query.frequencies.sum()) for query in queries[begin:]])
        within = int(np.searchsorted(n_entries, self._max_counts, side="right"))
        return begin + max(1, min(within, self._max_counts // max(self._index.n_sets, 1)))

    def _search(
        self,
        queries: list[OverlapQuery],
        k: int,
        exclude: Sequence[Collection[int]] | None,
        at_least: int,
    ) -> list[Overlaps]:
        n_sets = self._index.n_sets
        counts = self._count(queries)
        for row, ids in enumerate(exclude or ()):
            numbers = excluded_numbers(self._index, ids)
            counts[row, torch.from_numpy(numbers).to(self._device)] = 0
        answers = []
        # The overlap before the number: one integer for both, of which the largest are wanted.
        keys = counts * n_sets + torch.arange(n_sets - 1, -1, -1, device=self._device)
        best = torch.topk(keys, min(k, n_sets), dim=1).values.cpu().numpy()
        for query, row in zip(queries, best, strict=True):
            overlaps, numbers = np.divmod(row, max(n_sets, 1))
            mask = overlaps >= at_least
            n_entries = int(query.frequencies.sum())
            reads = Reads(lists=query.n_blocks, entries=n_entries, n_bytes=MEMBER_BYTES * n_entries)
            ids = self._ids[n_sets - 1 - numbers[mask]]
            answers.append(Overlaps(ids, overlaps[mask].astype(np.int64), query.n_asked, reads))
        return answers

    def _count(self, queries: list[OverlapQuery]) -> torch.Tensor:
        """Count the tokens that each set shares with each query: int64 (queries, sets)."""
        n_sets = self._index.n_sets
        tokens = np.concatenate([query.tokens[query.ends - 1] for query in queries])
        weights = np.concatenate([query.ends - query.starts + 1 for query in queries])
        rows = np.repeat(np.arange(len(queries)), [query.n_blocks for query in queries])
        lengths = self._index.frequencies(tokens)
        ends = np.cumsum(lengths)
        shift, row, weight = (
            torch.from_numpy(np.asarray(column, np.int64)).to(self._device)
            for column in (
                self._index.token_offsets[tokens] - (ends - lengths),
                rows * n_sets,
                weights,
            )
        )
        n_entries = int(lengths.sum())
        repeats = torch.from_numpy(lengths).to(self._device)
        block = torch.repeat_interleave(
            torch.arange(len(tokens), device=self._device), repeats, output_size=n_entries
        )
        entries = torch.arange(n_entries, device=self._device) + shift[block]
        counts = torch.zeros(len(queries) * n_sets, dtype=torch.int64, device=self._device)
        counts.index_add_(0, self._sets[entries].long() + row[block], weight[block])
        return counts.view(len(queries), n_sets)
