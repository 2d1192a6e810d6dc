"""An index whose arrays are mapped files: the few numbers that every search needs are held in memory, and what is read next is asked for in one go.

Where a page has to come from a disk a search waits, and it waits twice where one page tells which other is wanted. The offsets of sets are such a page, so
they are read at the first search that needs them, 8 bytes a set, and stay. Offsets and groups of a query's tokens stand at the same rows of two files, and
are asked for together.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from pexeso.overlap.index.sets import OverlapIndex


class MappedIndex(OverlapIndex):
    """An `OverlapIndex` over mapped files; `pexeso.overlap.index.saving.open_index` makes it.

    Notes
    -----
    Memory that stays: 8 bytes a set once a set was read, beside what the system keeps of the files for as long as it likes.
    """

    @cached_property
    def held_set_offsets(self) -> np.ndarray:
        """The offsets of sets, in memory: int64 (n + 1,)."""
        self.pages.want("set_offsets", np.zeros(1, np.int64), np.full(1, self.n_sets + 1))
        return np.array(self.set_offsets)

    @cached_property
    def ids_are_numbers(self) -> bool:
        """Whether ids run from 0 without a gap, which their ends tell since they ascend: then none need be read."""
        return not self.n_sets or (int(self.ids[0]) == 0 and int(self.ids[-1]) == self.n_sets - 1)

    def frequencies(self, tokens: np.ndarray) -> np.ndarray:
        """Return the lengths of posting lists; the groups of the tokens, which are asked for next, are on their way then."""
        self.pages.want("groups", tokens, tokens + 1)
        return super().frequencies(tokens)

    def groups_of(self, tokens: np.ndarray) -> np.ndarray:
        """Return the duplicate groups of tokens whose frequencies were asked for."""
        return self.groups[tokens]

    def ids_of(self, numbers: np.ndarray) -> np.ndarray:
        """Return the ids of sets."""
        return np.asarray(numbers, np.int64) if self.ids_are_numbers else super().ids_of(numbers)

    def numbers_of(self, ids: np.ndarray) -> np.ndarray:
        """Return the numbers of those of these ids that are sets of the index."""
        if not self.ids_are_numbers:
            return super().numbers_of(ids)
        ids = np.unique(np.asarray(ids, dtype=np.int64))
        return ids[(ids >= 0) & (ids < self.n_sets)]

    def _runs(self, name: str, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        # Offsets of sets are held, and those of tokens were read with their frequencies: neither need be asked for.
        offsets = self.held_set_offsets if name == "set_offsets" else self.token_offsets
        begins, ends = offsets[rows], offsets[rows + 1]
        if len(begins) and (begins.min() < 0 or ends.max() > len(self.list_sets) or (begins > ends).any()):
            return super()._runs(name, rows)  # which says what is wrong
        return begins, ends
