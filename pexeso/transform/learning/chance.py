"""How many keys a program would hit if it wrote letters at random."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

_E = 2.718281828459045


def hits_by_chance(written: Sequence[str], keys: Sequence[str]) -> float:
    """Return how many keys would be hit by texts whose letters come by chance.

    A text of chance has the form of one that was written, letters, digits and signs where that has
    them, and each letter and each digit is drawn from those that stand at its place in texts of
    that form, all by themselves. So short codes and numbers hit each other, and words do not. To
    judge a key, the text that equals it is left out, and where letters vary each that was ever
    written counts once more. The result is an upper bound: the sum over the keys of the expected
    number of texts that equal them, at most 1 each.

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
    by_form: dict[str, list[str]] = defaultdict(list)
    for text in written:
        by_form[_form(text)].append(text)
    places = {form: _Places(texts) for form, texts in by_form.items()}
    known = set(written)
    varied = set().union(*(each.varied for each in places.values()))
    n_digits = sum(map(str.isdigit, varied))
    n_letters = {"0": n_digits, "a": len(varied) - n_digits}
    expected = 0.0
    for key in keys:
        form = _form(key)
        if form in places:
            expected += min(1.0, places[form].expected(key, form, key in known, n_letters))
    return expected


def _form(text: str) -> str:
    """Return a text with ``a`` for each letter and ``0`` for each digit."""
    return "".join(
        "0" if letter.isdigit() else "a" if letter.isalpha() else letter for letter in text
    )


class _Places:
    """The letters at each place of texts of one form."""

    def __init__(self, texts: list[str]) -> None:
        self.n_texts = len(texts)
        columns = list(zip(*texts, strict=True))
        # Places that always hold the same letter, as of a piece that is written twice, count once.
        first = {column: place for place, column in reversed(list(enumerate(columns)))}
        self.first = [first[column] for column in columns]
        self.counts = [Counter(column) for column in columns]
        # Of a single text nothing is known to vary, so everything may.
        self.varied = {
            each
            for counts in self.counts
            if len(counts) > 1 or len(texts) == 1
            for each in counts
            if each.isalnum()
        }

    def expected(self, key: str, form: str, own: bool, n_letters: dict[str, int]) -> float:
        """Return how many texts of chance would equal a key."""
        one = float(self.n_texts)
        for place, letter in enumerate(key):
            counts, first = self.counts[place], self.first[place]
            if first != place:
                one = one if key[first] == letter else 0.0
            elif form[place] in n_letters and (len(counts) > 1 or self.n_texts == 1):
                others = self.n_texts - own + n_letters[form[place]]
                one = one * (counts[letter] - own + 1) / others
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
