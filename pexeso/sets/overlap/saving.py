"""The index in a folder: arrays as ``.npy`` files, texts as an Arrow file; its check.

All files are opened memory-mapped.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from pexeso.errors import IndexCorruptError
from pexeso.sets.overlap.dictionary import STRIDE, Dictionary, Heads, MappedRuns, heads_of
from pexeso.sets.overlap.index import OverlapIndex, like_the_one_before
from pexeso.store.arrays import open_array, write_arrays
from pexeso.store.manifest import FileEntry
from pexeso.store.texts import open_mapped_texts, open_texts, write_texts

ARRAYS = ("groups", "token_offsets", "list_sets", "list_places", "set_offsets", "set_tokens", "ids")
_NUMBERS, _TEXTS = "text_numbers", "texts.arrow"
_HEADS, _PLACES = "heads.arrow", "head_places"
_CHUNK_TEXTS = 1 << 20
_ANY = (np.int32, np.int64)
_DTYPES = {"list_sets": (np.int32,), "list_places": (np.int32,), "ids": (np.int64,)}


def save_index(index: OverlapIndex, folder: Path) -> list[FileEntry]:
    """Write an index into an existing folder that has none."""
    dictionary = index.dictionary
    heads = heads_of(dictionary.texts)
    arrays = {_NUMBERS: dictionary.numbers, _PLACES: heads.positions}
    arrays |= {name: getattr(index, name) for name in ARRAYS}
    return [
        write_texts(folder / _TEXTS, dictionary.texts),
        write_texts(folder / _HEADS, heads.texts),
        *write_arrays(folder, arrays),
    ]


def open_index(folder: Path) -> OverlapIndex:
    """Open what `save_index` wrote; nothing but headers is read."""
    arrays = {name: open_array(folder / f"{name}.npy") for name in ARRAYS}
    dictionary, heads = _open_dictionary(folder)
    # Plain views of the maps: a memmap takes microseconds longer for each access.
    plain = {name: np.asarray(array) for name, array in arrays.items()}
    index = OverlapIndex(dictionary, **plain, pages=MappedRuns(arrays))
    n_pairs, n_tokens, n_sets = len(index.list_sets), len(dictionary), len(index.ids)
    shapes = {
        "groups": (n_tokens,),
        "token_offsets": (n_tokens + 1,),
        "list_places": (n_pairs, 2),
        "set_offsets": (n_sets + 1,),
        "set_tokens": (n_pairs,),
    }
    wrong = [name for name, shape in shapes.items() if arrays[name].shape != shape]
    # What loops are compiled for.
    wrong += [name for name, array in arrays.items() if array.dtype not in _DTYPES.get(name, _ANY)]
    if arrays["token_offsets"].dtype != arrays["set_offsets"].dtype:
        wrong.append("token_offsets")
    n_heads = -(-n_tokens // STRIDE)
    if dictionary.numbers.shape != (n_tokens,):
        wrong.append(_NUMBERS)
    if heads.positions.shape != (n_heads + 1,) or len(heads.texts) != n_heads:
        wrong.append(_HEADS)
    if wrong:
        raise IndexCorruptError(
            f"The files of the overlap index '{folder}' do not belong together, as "
            f"{', '.join(wrong)} tells: "
            "restore it from a copy, or build it again."
        )
    return index


def _open_dictionary(folder: Path) -> tuple[Dictionary, Heads]:
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
    return Dictionary(texts, np.asarray(numbers), heads), heads


def check_overlap(index: OverlapIndex) -> list[str]:
    """Return a sentence for each thing that is wrong with an index whose texts are sound.

    It covers what searches assume, and errors that would make answers wrong without notice: O(p)
    time, and some 60 bytes a pair of memory.
    """
    n_pairs, faults = len(index.list_sets), []
    for name, what in (("token_offsets", "posting lists"), ("set_offsets", "sets")):
        offsets = np.asarray(getattr(index, name))
        if offsets[0] != 0 or offsets[-1] != n_pairs or (np.diff(offsets) < 1).any():
            faults.append(f"{name}: {what} must run from 0 to {n_pairs:,}, and none may be empty.")
    faults += _rising(index.ids, None, "ids", np.iinfo(np.int64).max)
    faults += list(_dictionary(index))
    if not faults:
        faults += _rising(index.set_tokens, index.set_offsets, "set_tokens", index.n_tokens)
        faults += _rising(index.list_sets, index.token_offsets, "list_sets", index.n_sets)
    if not faults:
        faults += [*_places(index), *_groups(index)]
    return [f"The token sets: {sentence}" for sentence in faults]


def _rising(numbers: np.ndarray, offsets: np.ndarray | None, name: str, end: int) -> Iterator[str]:
    """Require numbers from 0 to below `end` that rise within each run."""
    numbers = np.asarray(numbers)
    rises = numbers[1:] > numbers[:-1]
    if offsets is not None and len(numbers):
        rises[np.asarray(offsets[1:-1]) - 1] = True
    if len(numbers) and (numbers.min() < 0 or int(numbers.max()) >= end or not rises.all()):
        yield f"{name}: its numbers must be at least 0, below {end:,}, and rise."


def _dictionary(index: OverlapIndex) -> Iterator[str]:
    numbers, texts = np.asarray(index.dictionary.numbers), index.dictionary.texts
    is_named = np.zeros(index.n_tokens, bool)
    inside = (numbers >= 0) & (numbers < index.n_tokens)
    is_named[numbers[inside]] = True
    if not is_named.all() or not inside.all():
        yield "text_numbers: each token must be named once."
    if texts.null_count:
        yield f"texts: {texts.null_count:,} of its texts are missing."
        return
    for start in range(0, len(texts) - 1, _CHUNK_TEXTS):
        some = texts.slice(start, _CHUNK_TEXTS + 1)
        if not pc.all(pc.less(some[:-1], some[1:])).as_py():
            yield "texts: they must be distinct and sorted."
            return
    heads, right = index.dictionary.heads, heads_of(texts)
    if heads is not None and not (
        heads.texts.equals(right.texts) and np.array_equal(heads.positions, right.positions)
    ):
        yield f"heads: they must be every {STRIDE}th text, and where its letters begin."


def _places(index: OverlapIndex) -> Iterator[str]:
    """Check that the positions and sizes of posting lists agree with the sets.

    With equally many pairs on both sides, each pair on one side is then also on the other.
    """
    sets, offsets = np.asarray(index.list_sets), np.asarray(index.set_offsets)
    positions, sizes = np.asarray(index.list_places).T
    outside = (positions < 0) | (positions >= sizes) | (sizes != np.diff(offsets)[sets])
    if outside.any():
        yield "list_places: it does not give the sizes of the sets, or positions within them."
        return
    token = np.repeat(np.arange(index.n_tokens), np.diff(index.token_offsets))
    if (np.asarray(index.set_tokens)[offsets[sets] + positions] != token).any():
        yield "list_places: a set does not hold the token where its posting list says."


def _groups(index: OverlapIndex) -> Iterator[str]:
    steps = np.diff(np.asarray(index.groups), prepend=0)
    if len(steps) and (index.groups[0] != 0 or (steps < 0).any() or (steps > 1).any()):
        yield "groups: their numbers must begin with 0, and go on by one."
        return
    same = steps == 0
    same[:1] = False
    alike = same & (np.diff(np.diff(index.token_offsets), prepend=-1) == 0)
    order = np.arange(index.n_tokens)
    if (like_the_one_before(index.token_offsets, index.list_sets, order, alike) != same).any():
        yield "groups: tokens of one group must stand in the same sets."
