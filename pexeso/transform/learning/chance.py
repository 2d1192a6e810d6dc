"""How many keys a program would hit if it wrote letters at random."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

_E = 2.718281828459045


def hits_by_chance(written: Sequence[str], keys: Sequence[str]) -> float:
    """Return how many keys would be hit by texts whose letters come by chance.

    A text of chance has the length of one that was written, and each of its letters is drawn from
    those that stand at its place in texts of that length, all by themselves. So short codes and
    numbers hit each other, and words do not. To judge a key, the text that equals it is left out,
    and where letters vary each that was ever written counts once more. The result is an upper
    bound: the sum over the keys of the expected number of texts that equal them, at most 1 each.

    Parameters
    ----------
    written, keys : sequences of distinct str

    Examples
    --------
    >>> hits_by_chance(["10", "11", "12", "20"], ["10", "11", "12"])
    1.3333333333333333
    >>> round(hits_by_chance(["anna", "otto"], ["anna", "hans"]), 4)
    0.08
    """
    by_length: dict[int, list[str]] = defaultdict(list)
    for text in written:
        by_length[len(text)].append(text)
    places = {length: _Places(texts) for length, texts in by_length.items()}
    known = set(written)
    n_letters = len(set().union(*(each.varied for each in places.values())))
    expected = 0.0
    for key in keys:
        if len(key) in places:
            expected += min(1.0, places[len(key)].expected(key, key in known, n_letters))
    return expected


class _Places:
    """The letters at each place of texts of one length."""

    def __init__(self, texts: list[str]) -> None:
        self.n_texts = len(texts)
        columns = list(zip(*texts, strict=True))
        # Places that always hold the same letter, as of a piece that is written twice, count once.
        first = {column: place for place, column in reversed(list(enumerate(columns)))}
        self.first = [first[column] for column in columns]
        self.counts = [Counter(column) for column in columns]
        # Of a single text nothing is known to vary, so everything may.
        self.varied = {
            each for counts in self.counts if len(counts) > 1 or len(texts) == 1 for each in counts
        }

    def expected(self, key: str, own: bool, n_letters: int) -> float:
        """Return how many texts of chance would equal a key."""
        one = float(self.n_texts)
        for place, letter in enumerate(key):
            counts, first = self.counts[place], self.first[place]
            if first != place:
                one = one if key[first] == letter else 0.0
            elif len(counts) > 1 or self.n_texts == 1:
                one = one * (counts[letter] - own + 1) / (self.n_texts - own + n_letters)
            elif letter not in counts:
                one = 0.0
        return one


def bound_on_luck(hits: int, expected: float) -> float:
    """Return an upper bound on the probability of so many hits where fewer are expected.

    Chernoff's for a sum of independent events: ``(expected / hits) ** hits * e ** (hits -
    expected)``. Of multiplications alone, so that every processor gives the same.

    Examples
    --------
    >>> bound_on_luck(3, 4.0)
    1.0
    >>> f"{bound_on_luck(10, 1.0):.0e}"
    '8e-07'
    """
    if hits <= expected:
        return 1.0
    luck = 1.0
    whole = int(expected)
    for number in range(hits):
        luck *= expected * _E / hits
        if number < whole:
            luck /= _E
    return min(1.0, luck)
