"""What makes two values match: that they are equal, near in letters, or near in meaning alone.

The kind of a pair is decided on the two values as the index holds them, normalised (see `pexeso.lake.normalise`):

- ``exact``: they are the same text. In the tables they differ at most in case, accents, punctuation, the way of writing a
  date or an abbreviation.
- ``spelling``: their letters are nearly the same: the normalised Indel similarity (twice the length of the longest common
  subsequence by the sum of the two lengths) is at least `LEAST_LIKENESS` of 100, as they stand or with their words sorted.
- ``meaning``: all other pairs. The model alone brought them together.

`LEAST_LIKENESS` of 75 is one wrong letter in a word of four. Measured on the linked cells of 2,108 tables of Wikipedia: all of 4,837
values of four letters or more with one letter added, left out, changed or swapped with the next reach it, and 3 of 20,000 pairs
of values drawn at random.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from rapidfuzz import fuzz, process

if TYPE_CHECKING:
    from pexeso.results import Pair

EXACT, SPELLING, MEANING = "exact", "spelling", "meaning"

KINDS = (EXACT, SPELLING, MEANING)
"""Closest first."""

LEAST_LIKENESS = 75.0
"""Smallest similarity of letters, of 100, that is a spelling."""

MAX_LETTERS = 1000
"""So many letters of a value are compared, the first ones: comparing takes time in proportion to the product of two lengths."""


def kinds_of(values: Sequence[str], others: Sequence[str]) -> list[str]:
    """Tell the kind of each pair of normalised values.

    Parameters
    ----------
    values, others : sequences of n str
        Normalised; pair i is ``(values[i], others[i])``.

    Returns
    -------
    list of n str
        Out of `KINDS`. Some 100,000 pairs of names take a tenth of a second.

    Examples
    --------
    >>> kinds_of(["oslo", "marie curie", "curie marie", "uk"], ["oslo", "mary curie", "marie curie", "britain"])
    ['exact', 'spelling', 'spelling', 'meaning']
    """
    kinds = np.full(len(values), EXACT, dtype=object)
    differ = [place for place, (one, other) in enumerate(zip(values, others, strict=True)) if one != other]
    for scorer in (fuzz.ratio, fuzz.token_sort_ratio):
        if not differ:
            break
        alike = process.cpdist(
            [values[place][:MAX_LETTERS] for place in differ],
            [others[place][:MAX_LETTERS] for place in differ],
            scorer=scorer,
            score_cutoff=LEAST_LIKENESS,
        )
        near = alike >= LEAST_LIKENESS
        kinds[differ] = np.where(near, SPELLING, MEANING)
        differ = [place for place, is_near in zip(differ, near.tolist(), strict=True) if not is_near]
    return kinds.tolist()


@dataclass(frozen=True)
class KindCounts:
    """How many pairs and rows are of each kind.

    Attributes
    ----------
    pairs : dict of str to int
        Pairs of values of each kind, for all of `KINDS`.
    rows : dict of str to int
        Rows of the query column; a row whose value is in several pairs has the closest of their kinds, so that these add up to the
        rows that match.

    Examples
    --------
    >>> KindCounts({"exact": 1, "spelling": 1, "meaning": 0}, {"exact": 3, "spelling": 1, "meaning": 0}).shares
    {'exact': 0.75, 'spelling': 0.25, 'meaning': 0.0}
    """

    pairs: dict[str, int]
    rows: dict[str, int]

    @property
    def shares(self) -> dict[str, float]:
        """The share of each kind in the rows that match, in [0, 1]; zeros where none does."""
        total = sum(self.rows.values())
        return {kind: number / total if total else 0.0 for kind, number in self.rows.items()}

    def to_dict(self) -> dict[str, Any]:
        """Give the plain JSON form: ``{kind: {"pairs": ..., "rows": ..., "share": ...}}``."""
        shares = self.shares
        return {
            kind: {"pairs": self.pairs[kind], "rows": self.rows[kind], "share": round(shares[kind], 6)}
            for kind in KINDS
        }


def count_kinds(pairs: Iterable[Pair], rows_of_text: dict[str, int]) -> KindCounts:
    """Count pairs, and rows of the query column, by kind.

    Parameters
    ----------
    pairs : iterable of Pair
    rows_of_text : dict of str to int
        How many rows of the query column have each text.
    """
    rank = {kind: place for place, kind in enumerate(KINDS)}
    of_pairs = dict.fromkeys(KINDS, 0)
    closest: dict[str, str] = {}
    for pair in pairs:
        of_pairs[pair.kind] += 1
        if pair.query not in closest or rank[pair.kind] < rank[closest[pair.query]]:
            closest[pair.query] = pair.kind
    of_rows = dict.fromkeys(KINDS, 0)
    for text, kind in closest.items():
        of_rows[kind] += rows_of_text[text]
    return KindCounts(of_pairs, of_rows)
