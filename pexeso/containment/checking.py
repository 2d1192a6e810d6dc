"""Every number of an index for containment search looked at: what searches take for granted, and what would spoil their answers in silence."""

from __future__ import annotations

import numpy as np

from pexeso.containment.ensemble import Ensemble


def check_ensemble(index: Ensemble) -> list[str]:
    """Look through an index; O(s m log s) time, and memory for a few numbers a set or a token.

    Parameters
    ----------
    index : Ensemble
        Opened or built. Posting lists are checked where they come from, here only the sizes that they give.

    Returns
    -------
    list[str]
        A sentence for each thing that is wrong; none for a sound index.
    """
    found = _rows(index)
    if not found:
        found = [*_tables(index), *_sizes(index)]
    return [f"The index for containment search: {sentence}" for sentence in found]


def _rows(index: Ensemble) -> list[str]:
    sets, sizes = np.asarray(index.sets), np.asarray(index.sizes)
    found = []
    if len(sizes) and (sizes[0] < 1 or (np.diff(sizes) < 0).any()):
        found.append("sizes of sets must be at least 1 and never sink.")
    if len(sets) and (sets.min() < 0 or len(np.unique(sets)) < len(sets)):
        found.append("ids of sets must be at least 0, and each stand there once.")
    if not found and len(index.starts) > 1:
        lasts = sizes[index.starts[1:-1] - 1]
        if (lasts >= sizes[index.starts[1:-1]]).any():
            found.append("partitions must be ranges of sizes that lie apart.")
    return found


def _tables(index: Ensemble) -> list[str]:
    rows = np.arange(len(index))
    for place in range(index.options.permutations):
        values, sets = np.asarray(index.tables.values[place]), np.asarray(index.tables.sets[place])
        if not np.array_equal(np.sort(sets), rows):
            return [f"table {place} must name each row once."]
        keys = (values.astype(np.uint64) << np.uint64(32)) | sets.astype(np.uint64)
        if (keys[1:] <= keys[:-1]).any() or not np.array_equal(index.signatures[sets, place], values):
            return [f"table {place} does not hold the values of signatures in their order."]
    return []


def _sizes(index: Ensemble) -> list[str]:
    if len(index) and index.sets.max() >= index.lists.n_sets:
        return ["it has ids of sets that its posting lists do not have."]
    same = np.array_equal(index.lists.sizes_of(np.asarray(index.sets)), index.sizes)
    return [] if same else ["its sizes of sets are not those of its posting lists."]
