"""Every number of an index for containment search looked at: what searches take for granted, and what would spoil their answers in silence."""

from __future__ import annotations

import numpy as np

from pexeso.containment.ensemble import Ensemble
from pexeso.containment.hashed_lists import HashedLists
from pexeso.containment.lists import CsrLists
from pexeso.containment.minhash import seeds_of, signatures

_SIGNED_ANEW = 256


def check_ensemble(index: Ensemble) -> list[str]:
    """Look through an index; O(s m log s) time, and memory for a few numbers a set or a token.

    Parameters
    ----------
    index : Ensemble
        Opened or built. Posting lists that are not hashed ones are checked where they come from, here only the sizes that they give.

    Returns
    -------
    list[str]
        A sentence for each thing that is wrong; none for a sound index.

    Examples
    --------
    >>> check_ensemble(Ensemble.build(np.array([4, 5], np.uint64), np.array([0, 2])))
    []
    """
    found = _rows(index)
    if not found and index.tables is not None:
        found += _tables(index)
    if isinstance(index.lists, HashedLists):
        wrong = _hashed(index.lists)
        found += wrong or (_against_lists(index) if not found else [])
    elif index.lists is not None and not found:
        found += _sizes(index)
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


def _hashed(lists: HashedLists) -> list[str]:
    hashes, numbers, csr = np.asarray(lists.hashes), np.asarray(lists.numbers), lists.lists
    if (hashes[1:] <= hashes[:-1]).any():
        return ["hashes of tokens must rise."]
    if not np.array_equal(np.sort(numbers), np.arange(len(numbers))):
        return ["numbers of tokens must each stand there once, from 0."]
    return _csr(csr)


def _csr(csr: CsrLists) -> list[str]:
    """Check that lists and sets are each other's transpose."""
    n_pairs = len(csr.list_sets)
    for name, offsets in (("posting lists", csr.token_offsets), ("sets", csr.set_offsets)):
        if offsets[0] != 0 or offsets[-1] != n_pairs or (np.diff(offsets) < 0).any():
            return [f"offsets of {name} must begin with 0, never sink and end with {n_pairs:,}."]
    n_tokens = len(csr.token_offsets) - 1
    tokens, sets = np.asarray(csr.set_tokens), np.asarray(csr.list_sets)
    if n_pairs and (min(tokens.min(), sets.min()) < 0 or tokens.max() >= n_tokens or sets.max() >= csr.n_sets):
        return ["a posting list or a set names what is not there."]
    by_set = np.repeat(np.arange(csr.n_sets), np.diff(csr.set_offsets)) * max(n_tokens, 1) + tokens
    by_list = sets.astype(np.int64) * max(n_tokens, 1) + np.repeat(np.arange(n_tokens), np.diff(csr.token_offsets))
    if (np.diff(by_set) <= 0).any():
        return ["tokens must rise within each set."]
    by_list.sort()
    return [] if np.array_equal(by_set, by_list) else ["posting lists and sets do not hold the same pairs."]


def _sizes(index: Ensemble) -> list[str]:
    if len(index) and index.sets.max() >= index.lists.n_sets:
        return ["it has ids of sets that its posting lists do not have."]
    same = np.array_equal(index.lists.sizes_of(np.asarray(index.sets)), index.sizes)
    return [] if same else ["its sizes of sets are not those of its posting lists."]


def _against_lists(index: Ensemble) -> list[str]:
    """Compare sizes, and sign some sets anew, spread over all."""
    if wrong := _sizes(index):
        return wrong
    csr, hash_of = index.lists.lists, np.empty(len(index.lists.hashes), np.uint64)
    hash_of[index.lists.numbers] = index.lists.hashes
    seeds = seeds_of(index.options.permutations, index.options.seed)
    for row in np.unique(np.linspace(0, max(len(index) - 1, 0), _SIGNED_ANEW).astype(int))[: len(index)].tolist():
        number = int(index.sets[row])
        tokens = hash_of[csr.set_tokens[csr.set_offsets[number] : csr.set_offsets[number + 1]]]
        if not np.array_equal(signatures(tokens, np.array([0, len(tokens)]), seeds)[0], index.signatures[row]):
            return [f"the signature of set {number} is not that of its tokens."]
    return []
