"""Check of every number of an overlap index.

It covers what searches assume, and errors that would make answers wrong without notice.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow.compute as pc

from pexeso.sets.overlap.index.dictionary import STRIDE, heads_of
from pexeso.sets.overlap.index.order import like_the_one_before
from pexeso.sets.overlap.index.sets import OverlapIndex

_TEXTS_AT_ONCE = 1 << 20


def check_overlap(index: OverlapIndex) -> list[str]:
    """Look through an index.

    Parameters
    ----------
    index : OverlapIndex
        Opened or built; its texts must be sound (`pexeso.store.texts.require_sound`).

    Returns
    -------
    list[str]
        A sentence for each thing that is wrong; none for a sound index.

    Notes
    -----
    Linear in pairs; some 60 bytes a pair of memory.
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


def _rising(numbers: np.ndarray, offsets: np.ndarray | None, name: str, end: int) -> list[str]:
    """Require numbers from 0 to below `end` that rise within each run."""
    numbers = np.asarray(numbers)
    if not len(numbers):
        return []
    rises = numbers[1:] > numbers[:-1]
    if offsets is not None:
        rises[np.asarray(offsets[1:-1]) - 1] = True
    if numbers.min() < 0 or int(numbers.max()) >= end or not rises.all():
        return [f"{name}: its numbers must be at least 0, below {end:,}, and rise."]
    return []


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
    for start in range(0, len(texts) - 1, _TEXTS_AT_ONCE):
        some = texts.slice(start, _TEXTS_AT_ONCE + 1)
        if not pc.all(pc.less(some[:-1], some[1:])).as_py():
            yield "texts: they must be distinct and sorted."
            return
    heads = index.dictionary.heads
    if heads is not None:
        right = heads_of(texts)
        if not heads.texts.equals(right.texts) or not np.array_equal(
            heads.positions, right.positions
        ):
            yield f"heads: they must be every {STRIDE}th text, and where its letters begin."


def _places(index: OverlapIndex) -> Iterator[str]:
    """Check that the positions and sizes of posting lists agree with the sets.

    With equally many pairs on both sides, each pair on one side is then also on the other.
    """
    sets, offsets = np.asarray(index.list_sets), np.asarray(index.set_offsets)
    positions, sizes = np.asarray(index.list_places).T
    if (
        (sizes != (offsets[1:] - offsets[:-1])[sets]).any()
        or (positions < 0).any()
        or (positions >= sizes).any()
    ):
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
    lengths = np.diff(index.token_offsets)
    same = steps == 0
    same[:1] = False
    alike = np.zeros(len(same), bool)
    alike[1:] = lengths[1:] == lengths[:-1]
    order = np.arange(index.n_tokens)
    if not (
        like_the_one_before(index.token_offsets, index.list_sets, order, same & alike) == same
    ).all():
        yield "groups: tokens of one group must stand in the same sets."
