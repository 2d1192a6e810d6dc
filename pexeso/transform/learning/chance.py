"""How many keys a program would hit if it wrote letters at random."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence


def hits_by_chance(written: Sequence[str], keys: Sequence[str]) -> float:
    """Return how many keys would be hit by texts whose letters come by chance.

    A text of chance has the length of one that was written, and each of its letters is drawn from
    those that stand at its place in texts of that length, all by themselves. So short codes and
    numbers hit each other, and words do not. To judge a key, the text that equals it is left out,
    and each letter that was ever written counts once more. The result is an upper bound: the sum
    over the keys of the expected number of texts that equal them, at most 1 each.

    Parameters
    ----------
    written, keys : sequences of distinct str

    Examples
    --------
    >>> round(hits_by_chance(["10", "11", "12", "20"], ["10", "11", "12"]), 2)
    1.33
    >>> round(hits_by_chance(["anna", "otto"], ["anna", "hans"]), 4)
    0.0063
    """
    by_length: dict[int, list[str]] = defaultdict(list)
    for text in written:
        by_length[len(text)].append(text)
    letters: dict[int, list[Counter[str]]] = {
        length: [Counter(place) for place in zip(*texts, strict=True)]
        for length, texts in by_length.items()
    }
    known = set(written)
    n_letters = len(set().union(*known)) if known else 0
    expected = 0.0
    for key in keys:
        n_texts = len(by_length.get(len(key), ()))
        if not n_texts:
            continue
        own = key in known
        one = float(n_texts)
        for letter, counts in zip(key, letters[len(key)], strict=True):
            one = one * (counts[letter] - own + 1) / (n_texts - own + n_letters)
        expected += min(1.0, one)
    return expected
