"""What could join a case instead, given its true columns. A pair is of positions of two values.

All but equality look at lower-cased text. A source key of several columns is their values with a
space between them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from pexeso.transform.fuzzy.constrained import fuzzy_join
from pexeso.transform.joins.similar import nearest_values
from pexeso.transform.learning.row_pairs import find_row_pairs
from pexeso.transform.learning.suffixes import shared_prefixes, sorted_suffixes

Joined = set[tuple[int, int]]
Rival = Callable[[Sequence[str], Sequence[str]], Joined]
"""From distinct source texts and distinct target values."""


def by_equality(sources: Sequence[str], targets: Sequence[str]) -> Joined:
    """Join equal texts.

    Examples
    --------
    >>> by_equality(["a", "b"], ["b", "c"])
    {(1, 0)}
    """
    positions = {value: position for position, value in enumerate(targets)}
    return {(at, positions[text]) for at, text in enumerate(sources) if text in positions}


def by_substring(sources: Sequence[str], targets: Sequence[str]) -> Joined:
    """Join each source text with the longest target in it, or that it is in (SM).

    The length is that of the shorter of the two; if several are as long, nothing is joined.

    Examples
    --------
    >>> sorted(by_substring(["Song by Abba", "Eva"], ["abba", "by", "Evans", "Eva X"]))
    [(0, 0)]
    """
    left, right = ([text.lower() for text in texts] for texts in (sources, targets))
    pairs: Joined = set()
    for at, text in enumerate(left):
        inside = [
            (min(len(text), len(value)), position)
            for position, value in enumerate(right)
            if value in text or text in value
        ]
        longest = max((length for length, _ in inside), default=0)
        best = [position for length, position in inside if length == longest]
        if len(best) == 1:
            pairs.add((at, best[0]))
    return pairs


def by_rare_pieces(sources: Sequence[str], targets: Sequence[str]) -> Joined:
    """Join texts that alone on both sides share a piece of three characters or more (DQ-P)."""
    texts = [text.lower() for text in (*sources, *targets)]
    sides = np.full(len(texts), 2, np.int8)
    sides[: len(sources)] = 1
    pairs = find_row_pairs(shared_prefixes(sorted_suffixes(texts), sides), sides)
    alone = pairs.holders == 1
    row_pairs = zip(pairs.sources[alone].tolist(), pairs.targets[alone].tolist(), strict=True)
    return {(source, target - len(sources)) for source, target in row_pairs}


def by_constrained_fuzzy(sources: Sequence[str], targets: Sequence[str]) -> Joined:
    """Join by the constrained fuzzy join, which is told nothing but the columns (FJ-C)."""
    matches = fuzzy_join(sources, targets)
    return set(zip(matches.derived.tolist(), matches.keys.tolist(), strict=True))


def by_default_model(sources: Sequence[str], targets: Sequence[str]) -> Joined:
    """Join each source text with the nearest target by the default model of an index.

    That is the lexical model, at its usual largest distance, with the words of the targets and the
    default normalisation. Of equally near targets the first is taken.
    """
    positions, _ = nearest_values(pa.array(sources, pa.string()), pa.array(targets, pa.string()))
    return {(at, int(position)) for at, position in enumerate(positions) if position >= 0}


RIVALS: dict[str, Rival] = {
    "equality": by_equality,
    "substring": by_substring,
    "rare pieces": by_rare_pieces,
    "constrained fuzzy": by_constrained_fuzzy,
    "semantic": by_default_model,
}
