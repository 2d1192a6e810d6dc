"""How many keys a program would hit if it wrote letters at random."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence


def hits_by_chance(written: Sequence[str], keys: Sequence[str]) -> float:
    """Return how many keys would be hit by texts whose letters come by chance.

    A text of chance has the length of one that was written, and each of its letters is drawn from
    those that stand at its place in texts of that length, all by themselves. Short codes and
    numbers hit each other that way and words do not. An upper bound: the sum over the keys of the
    expected number of texts that equal them, at most 1 each.

    Parameters
    ----------
    written, keys : sequences of distinct str

    Examples
    --------
    >>> hits_by_chance(["1", "2"], ["1", "2", "3"])
    2.0
    >>> hits_by_chance(["anna", "otto"], ["anna", "hans"])
    0.125
    """
    by_length: dict[int, list[str]] = defaultdict(list)
    for text in written:
        by_length[len(text)].append(text)
    letters: dict[int, list[Counter[str]]] = {
        length: [Counter(place) for place in zip(*texts, strict=True)]
        for length, texts in by_length.items()
    }
    expected = 0.0
    for key in keys:
        one = float(len(by_length.get(len(key), ())))
        n_texts = one
        for letter, counts in zip(key, letters.get(len(key), ()), strict=False):
            one = one * counts[letter] / n_texts
        expected += min(1.0, one)
    return expected
