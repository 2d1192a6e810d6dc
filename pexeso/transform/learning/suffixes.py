"""All suffixes of the values of some columns in order, and what prefixes of them are shared.

Source: E. Zhu, Search and Join Algorithms for Tables in Data Lakes, PhD thesis, University of
Toronto, 2019, section 4.2. The suffix arrays of the two columns there are one order of all suffixes
here, by which a single pass finds, for each suffix of a source value, its longest prefix that some
target value holds (the best q of the source) and the numbers of values on either side that hold it
(n and m there).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pexeso.runtime.jit import loop

MAX_PREFIX = 64
"""Characters of a suffix that are compared; what follows orders by place."""

_STEP = 64
"""Suffixes that are passed over at once, where none of them belongs to the columns looked at."""


@dataclass(frozen=True, slots=True)
class SuffixOrder:
    """Suffixes of texts, sorted.

    Attributes
    ----------
    values : int32 (s,)
        Number of the text that each suffix belongs to, in the order of the suffixes.
    shared : int32 (s,)
        Characters that a suffix shares with the one before it, at most `MAX_PREFIX`; 0 for the
        first.
    """

    values: np.ndarray
    shared: np.ndarray


def sorted_suffixes(texts: Sequence[str]) -> SuffixOrder:
    """Sort all suffixes of texts by their first `MAX_PREFIX` characters, then by place.

    Takes about 60 bytes a character.

    Examples
    --------
    >>> order = sorted_suffixes(["aba", "ab"])
    >>> order.values.tolist(), order.shared.tolist()  # a, ab, aba, b, ba
    ([0, 1, 0, 1, 0], [0, 1, 2, 0, 1])
    """
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    letters = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)
    size = len(letters)
    if not size:
        return SuffixOrder(np.empty(0, np.int32), np.empty(0, np.int32))
    ends = np.repeat(np.cumsum(lengths), lengths)
    left = np.minimum(ends - np.arange(size), MAX_PREFIX)
    known, codes = np.unique(letters, return_inverse=True)
    codes = codes + 1  # 0 stands behind the end
    width = len(known).bit_length()
    together = min(63 // width, MAX_PREFIX)
    keys = np.zeros(size, np.int64)
    for step in range(min(together, size)):
        keys <<= width
        keys[: size - step] |= np.where(left[: size - step] > step, codes[step:], 0)
    order, ranks = _ranked(keys)
    while together < MAX_PREFIX and ranks[order[-1]] < size - 1:
        following = np.zeros(size, np.int64)
        following[: max(size - together, 0)] = ranks[together:] + 1
        following[left <= together] = 0
        order, ranks = _ranked(ranks * (size + 1) + following)
        together *= 2
    values = np.repeat(np.arange(len(texts), dtype=np.int32), lengths)
    return SuffixOrder(values[order], _shared(codes, left, order))


def _ranked(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the order of keys, equal ones by place, and the rank of each among the distinct."""
    order = np.argsort(keys, kind="stable")
    ranks = np.empty(len(keys), np.int64)
    inside = keys[order]
    ranks[order] = np.cumsum(np.concatenate([[0], inside[1:] != inside[:-1]]))
    return order, ranks


@loop
def _shared(codes: Any, left: Any, order: Any) -> Any:
    lengths = np.zeros(len(order), np.int32)
    for position in range(1, len(order)):
        one, other = order[position - 1], order[position]
        limit = min(left[one], left[other])
        count = 0
        while count < limit and codes[one + count] == codes[other + count]:
            count += 1
        lengths[position] = count
    return lengths


@dataclass(frozen=True, slots=True)
class SharedPrefixes:
    """The longest prefix of each source suffix that a target value holds.

    Attributes
    ----------
    sources : int32 (p,)
        Numbers of the texts that the suffixes belong to, in the order of the suffixes.
    lengths : int32 (p,)
        Characters of the prefix, at least 1.
    n_sources, n_targets : int32 (p,)
        Source texts and target texts that hold it.
    first, last : int64 (p,)
        Range of places in `members`, both inside, of all suffixes that begin with it.
    members : int32 (k,)
        Texts of the suffixes of both sides, in order.
    """

    sources: np.ndarray
    lengths: np.ndarray
    n_sources: np.ndarray
    n_targets: np.ndarray
    first: np.ndarray
    last: np.ndarray
    members: np.ndarray


class SuffixesOfColumns:
    """The suffixes of the texts of columns, of which those of any two are found without the others.

    Parameters
    ----------
    starts : int64 (c + 1,)
        Number of the first text of each column, and of all texts.
    """

    def __init__(self, order: SuffixOrder, starts: np.ndarray) -> None:
        self._order, self._starts = order, starts
        columns = np.repeat(np.arange(len(starts) - 1, dtype=np.int32), np.diff(starts))
        of_suffix = columns[order.values]
        positions = np.argsort(of_suffix, kind="stable")
        ends = np.cumsum(np.bincount(of_suffix, minlength=len(starts) - 1))
        self._places = np.split(positions, ends[:-1])
        self._minima = order.shared
        if len(order.shared):
            steps = np.arange(0, len(order.shared), _STEP)
            self._minima = np.minimum.reduceat(order.shared, steps)

    def shared_prefixes(self, source: int, target: int) -> tuple[SharedPrefixes, np.ndarray]:
        """Find what `shared_prefixes` finds of the texts of two columns.

        Returns
        -------
        sides : int8 (v,)
            1 for each text of the source column, then 2 for each of the target column.
        """
        sizes = [
            int(self._starts[column + 1] - self._starts[column]) for column in (source, target)
        ]
        sides = np.repeat(np.array([1, 2], np.int8), sizes)
        both = (self._places[source], self._places[target])
        first = np.array([self._starts[source], self._starts[target] - sizes[0]])
        positions = np.concatenate(both)
        order = np.argsort(positions, kind="stable")  # two ascending runs
        members = self._order.values[positions] - np.repeat(first, list(map(len, both)))
        members = members[order].astype(np.int32)
        shared = _least_between(self._order.shared, self._minima, positions[order])
        return SharedPrefixes(*_longest_shared(members, shared, sides), members), sides


@loop
def _least_between(shared: Any, minima: Any, positions: Any) -> Any:
    """Return for each place but the first the least that is shared from the one before it on."""
    lengths = np.zeros(len(positions), np.int32)
    for at in range(1, len(positions)):
        position, end = positions[at - 1] + 1, positions[at] + 1
        smallest = shared[end - 1]
        while position < end and smallest > 0:
            if position % _STEP == 0 and position + _STEP <= end:
                smallest = min(smallest, minima[position // _STEP])
                position += _STEP
            else:
                smallest = min(smallest, shared[position])
                position += 1
        lengths[at] = smallest
    return lengths


def shared_prefixes(order: SuffixOrder, sides: np.ndarray) -> SharedPrefixes:
    """Find the longest prefix of each source suffix that a target value holds, and count holders.

    Parameters
    ----------
    sides : int8 (v,)
        For each text 1 (source), 2 (target) or 0 (of no interest).
    """
    members, shared = _of_sides(order.values, order.shared, sides)
    prefixes = _longest_shared(members, shared, sides)
    return SharedPrefixes(*prefixes, members)


@loop
def _of_sides(values: Any, shared: Any, sides: Any) -> Any:
    """Leave out suffixes of other texts, and say what the rest share."""
    size = 0
    for position in range(len(values)):
        size += sides[values[position]] != 0
    members, common = np.empty(size, np.int32), np.zeros(size, np.int32)
    at = 0
    smallest = 0
    for position in range(len(values)):
        smallest = min(smallest, shared[position])
        if sides[values[position]] != 0:
            members[at] = values[position]
            common[at] = smallest
            smallest = 1 << 30
            at += 1
    return members, common


@loop
def _longest_shared(members: Any, shared: Any, sides: Any) -> Any:
    """Walk the tree of common prefixes: a node is a range of suffixes that share its length."""
    size = len(members)
    length = np.zeros(size + 1, np.int32)
    first = np.zeros(size + 1, np.int64)
    last = np.zeros(size + 1, np.int64)
    parent = np.full(size + 1, -1, np.int64)
    twice_source = np.zeros(size + 1, np.int64)  # suffixes of a text that has one before it there
    twice_target = np.zeros(size + 1, np.int64)
    closed = np.empty(size + 1, np.int64)
    n_closed = 0
    deepest = np.zeros(size, np.int64)
    before = np.full(len(sides), -1, np.int64)
    stack = np.empty(size + 1, np.int64)
    stack[0] = 0
    top = 0
    n_nodes = 1
    for position in range(size + 1):
        now = shared[position] if 0 < position < size else (0 if position else -1)
        if position:
            start = position - 1
            below = -1
            while length[stack[top]] > now:
                node = stack[top]
                last[node] = position - 1
                closed[n_closed] = node
                n_closed += 1
                start = first[node]
                top -= 1
                if length[stack[top]] >= now:
                    parent[node] = stack[top]
                else:
                    below = node
            if length[stack[top]] < now:
                node = n_nodes
                n_nodes += 1
                length[node] = now
                first[node] = start
                top += 1
                stack[top] = node
                if below >= 0:
                    parent[below] = node
                    below = -1
            if position == size or now < shared[position - 1]:
                pass  # the node noted when this suffix came is its deepest
            else:
                deepest[position - 1] = stack[top]
        if position < size:
            deepest[position] = stack[top]
            text = members[position]
            previous = before[text]
            if previous >= 0:
                low, high = 0, top  # the deepest node that began at or before the previous one
                while low < high:
                    middle = (low + high + 1) // 2
                    if first[stack[middle]] <= previous:
                        low = middle
                    else:
                        high = middle - 1
                if sides[text] == 1:
                    twice_source[stack[low]] += 1
                else:
                    twice_target[stack[low]] += 1
            before[text] = position
    last[0] = size - 1
    closed[n_closed] = 0
    n_closed += 1

    sources = np.zeros(size + 1, np.int64)
    for position in range(size):
        sources[position + 1] = sources[position] + (sides[members[position]] == 1)
    for index in range(n_closed):
        node = closed[index]
        if parent[node] >= 0:
            twice_source[parent[node]] += twice_source[node]
            twice_target[parent[node]] += twice_target[node]
    holding = np.empty(n_nodes, np.int64)  # the nearest node at or above that a target is in
    for index in range(n_closed - 1, -1, -1):
        node = closed[index]
        count = sources[last[node] + 1] - sources[first[node]]
        if last[node] + 1 - first[node] > count or parent[node] < 0:
            holding[node] = node
        else:
            holding[node] = holding[parent[node]]

    n_found = 0
    for position in range(size):
        if sides[members[position]] == 1 and length[holding[deepest[position]]] > 0:
            n_found += 1
    found_source = np.empty(n_found, np.int32)
    found_length = np.empty(n_found, np.int32)
    n_sources = np.empty(n_found, np.int32)
    n_targets = np.empty(n_found, np.int32)
    found_first = np.empty(n_found, np.int64)
    found_last = np.empty(n_found, np.int64)
    at = 0
    for position in range(size):
        node = holding[deepest[position]]
        if sides[members[position]] == 1 and length[node] > 0:
            count = sources[last[node] + 1] - sources[first[node]]
            found_source[at] = members[position]
            found_length[at] = length[node]
            n_sources[at] = count - twice_source[node]
            n_targets[at] = last[node] + 1 - first[node] - count - twice_target[node]
            found_first[at] = first[node]
            found_last[at] = last[node]
            at += 1
    return found_source, found_length, n_sources, n_targets, found_first, found_last
