"""The index in a folder: arrays as ``.npy`` files, texts as an Arrow file.

All files are opened memory-mapped.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import numpy as np

from pexeso.errors import IndexCorruptError
from pexeso.sets.overlap.index.dictionary import STRIDE, Dictionary, Heads, heads_of
from pexeso.sets.overlap.index.paging import MappedRuns
from pexeso.sets.overlap.index.sets import OverlapIndex
from pexeso.store.arrays import open_array, write_arrays
from pexeso.store.manifest import FileEntry
from pexeso.store.texts import open_mapped_texts, open_texts, write_texts


class MappedIndex(OverlapIndex):
    """An `OverlapIndex` over mapped files; `pexeso.sets.overlap.index.saving.open_index` makes it.

    Notes
    -----
    Memory that stays: 8 bytes a set once a set was read, beside what the system keeps of the files
    for as long as it likes.
    """

    @cached_property
    def held_set_offsets(self) -> np.ndarray:
        """The offsets of sets, in memory: int64 (n + 1,)."""
        self.pages.want("set_offsets", np.zeros(1, np.int64), np.full(1, self.n_sets + 1))
        return np.array(self.set_offsets, np.int64)

    @cached_property
    def ids_are_numbers(self) -> bool:
        """Return whether ids run from 0 without a gap, so that they need not be read.

        Ids ascend, so the first and the last id show this.
        """
        return not self.n_sets or (int(self.ids[0]) == 0 and int(self.ids[-1]) == self.n_sets - 1)

    def frequencies(self, tokens: np.ndarray) -> np.ndarray:
        """Return the lengths of posting lists, and prefetch the groups of the tokens.

        The groups are what a search reads next.
        """
        self.pages.want("groups", tokens, tokens + 1)
        return super().frequencies(tokens)

    def groups_of(self, tokens: np.ndarray) -> np.ndarray:
        """Return the duplicate groups of tokens whose frequencies were asked for."""
        return self.groups[tokens].astype(np.int64, copy=False)

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
        # Offsets of sets are held, and those of tokens were read with their frequencies: neither
        # need be asked for.
        offsets = self.held_set_offsets if name == "set_offsets" else self.token_offsets
        begins, ends = (
            offsets[row_numbers].astype(np.int64, copy=False)
            for row_numbers in (rows, np.asarray(rows) + 1)
        )
        if len(begins) and (
            begins.min() < 0 or ends.max() > len(self.list_sets) or (begins > ends).any()
        ):
            return super()._runs(name, rows)  # which says what is wrong
        return begins, ends


ARRAYS = ("groups", "token_offsets", "list_sets", "list_places", "set_offsets", "set_tokens", "ids")
_NUMBERS, _TEXTS = "text_numbers", "texts.arrow"
_HEADS, _PLACES = "heads.arrow", "head_places"


def save_index(index: OverlapIndex, folder: Path) -> list[FileEntry]:
    """Write an index into an existing folder that has none.

    Returns
    -------
    list[FileEntry]
        Name, size and checksum of each file.
    """
    heads = heads_of(index.dictionary.texts)
    texts = [
        write_texts(folder / _TEXTS, index.dictionary.texts),
        write_texts(folder / _HEADS, heads.texts),
    ]
    arrays = {name: getattr(index, name) for name in ARRAYS}
    return [
        *texts,
        *write_arrays(
            folder, {_NUMBERS: index.dictionary.numbers, _PLACES: heads.positions, **arrays}
        ),
    ]


def open_index(folder: Path) -> OverlapIndex:
    """Open what `save_index` wrote; nothing but headers is read."""
    arrays = {name: open_array(folder / f"{name}.npy") for name in ARRAYS}
    dictionary = _open_dictionary(folder)
    # Plain views of the maps: a memmap takes microseconds longer for each look.
    plain = {name: np.asarray(array) for name, array in arrays.items()}
    index = MappedIndex(dictionary, **plain, pages=MappedRuns(arrays))
    n_pairs, n_tokens, n_sets = len(index.list_sets), len(dictionary), len(index.ids)
    shapes = {
        "groups": (n_tokens,),
        "token_offsets": (n_tokens + 1,),
        "list_places": (n_pairs, 2),
        "set_offsets": (n_sets + 1,),
        "set_tokens": (n_pairs,),
    }
    wrong = [
        name
        for name, shape in shapes.items()
        if arrays[name].shape != shape or arrays[name].dtype.kind != "i"
    ]
    n_heads = -(-n_tokens // STRIDE)
    wrong += [] if dictionary.numbers.shape == (n_tokens,) else [_NUMBERS]
    wrong += (
        []
        if dictionary.heads.positions.shape == (n_heads + 1,)
        and len(dictionary.heads.texts) == n_heads
        else [_HEADS]
    )
    if wrong:
        raise IndexCorruptError(
            f"The files of the overlap index '{folder}' do not belong together, as "
            f"{', '.join(wrong)} tells: "
            "restore it from a copy, or build it again."
        )
    return index


def _open_dictionary(folder: Path) -> Dictionary:
    texts, mapped = open_mapped_texts(folder / _TEXTS)
    numbers = open_array(folder / f"{_NUMBERS}.npy")
    _, offsets, letters = texts.buffers()
    first = mapped.ctypes.data
    heads = Heads(
        open_texts(folder / _HEADS),
        open_array(folder / f"{_PLACES}.npy"),
        MappedRuns({"texts": mapped, "numbers": numbers}),
        offsets.address - first if offsets else 0,
        letters.address - first if letters else 0,
    )
    return Dictionary(texts, np.asarray(numbers), heads)
