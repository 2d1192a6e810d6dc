"""Plain-language reasons for and against a found column.

There is a phrase for each feature that the re-ranker uses.

The names of features (`pexeso.rerank.features.FEATURES`) are for programs. A phrase states what was
counted, so that it serves as evidence for a column and against it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pexeso.runtime.formatting import percent


class Reason(NamedTuple):
    """What one feature adds to a score.

    Attributes
    ----------
    feature : str
        One of `pexeso.rerank.features.FEATURES`.
    added : float
        What it adds to the logarithm of the odds: for the column where it is above 0, against it
        where it is below.
    value : float
        The feature itself.
    """

    feature: str
    added: float
    value: float


@dataclass(frozen=True)
class Opinion:
    """How likely a column found can be joined.

    Attributes
    ----------
    score : float
        In (0, 1).
    reasons : tuple of Reason
        What speaks most for it or against it, the weightiest first: a feature, what it adds to the
        logarithm of the odds, and its value.
    usual_distance : float
        Of the index's model: what the numbers in names of features are shares of.
    """

    score: float
    reasons: tuple[Reason, ...]
    usual_distance: float

    def in_words(self) -> list[tuple[str, list[str]]]:
        """Return the reasons for people.

        They are ``evidence for it`` and ``evidence against it``, each with its phrases, as far as
        there are any.
        """
        sides = {
            "evidence for it": [reason for reason in self.reasons if reason.added > 0],
            "evidence against it": [reason for reason in self.reasons if reason.added < 0],
        }
        return [(name, in_words(some, self.usual_distance)) for name, some in sides.items() if some]

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form: each reason as ``[feature, added, value]``."""
        return {"score": self.score, "reasons": [list(each) for each in self.reasons]}


def in_words(reasons: Sequence[Reason], usual_distance: float) -> list[str]:
    """Return the meaning of features with their values, as phrases.

    The same count at several distances is reported as one phrase.
    """
    distances: dict[str, list[float]] = {}
    for feature, _, value in reasons:
        if feature in _PHRASES:
            distances[_PHRASES[feature](value)] = []
        else:
            family, _, ratio = feature.rpartition(" ")
            distances.setdefault(_PHRASES_AT[family](value), []).append(
                float(ratio) * usual_distance
            )
    return [f"{phrase}{_within(sorted(some))}" for phrase, some in distances.items()]


def _within(distances: Sequence[float]) -> str:
    parts = ["exactly"] if 0.0 in distances else []
    others = " and ".join(f"{distance:.2g}" for distance in distances if distance)
    if others:
        parts.append(f"within {'' if parts else 'distance '}{others}")
    return f" {' and '.join(parts)}" if parts else ""


def _share(value: float) -> str:
    return {0.0: "none", 1.0: "all"}.get(value, percent(value))


def _distinct(logarithm: float) -> str:
    number = round(math.exp(logarithm))
    return f"{number:,} distinct value{'' if number == 1 else 's'}"


def _rare(value: float) -> str:
    return "rare" if value >= 2 / 3 else "neither rare nor common" if value >= 1 / 3 else "common"


def _one_to_one(value: float) -> str:
    if value == 0:
        return "no values match"
    many = "just" if value == 1 else percent(value)
    return f"{many} as many values match on one side as on the other"


def _equal_values(rarity: float) -> str:
    if rarity == 0:
        return "no rare value matches exactly"
    return f"the values that match exactly are {_rare(rarity)} in the lake"


def _names(value: float) -> str:
    shared = {0.0: "no word", 1.0: "all words"}.get(value, f"{percent(value)} of their words")
    return f"the names of the two columns have {shared} in common"


_PHRASES: dict[str, Callable[[float], str]] = {
    "query values": lambda value: f"your column has {_distinct(value)}",
    "lake values": lambda value: f"it has {_distinct(value)}",
    "rarity": _equal_values,
    "rarity of query values": lambda value: f"your values are {_rare(value)} in the lake",
    "rarity of lake values": lambda value: f"its values are {_rare(value)} in the lake",
    "same name": lambda value: (
        f"the two columns have {'the same name' if value else 'different names'}"
    ),
    "words in names": _names,
}

_PHRASES_AT: dict[str, Callable[[float], str]] = {
    "matched": lambda value: f"{_share(value)} of your distinct values match",
    "matched back": lambda value: f"{_share(value)} of its distinct values match back",
    "one to one": _one_to_one,
    "rarity matched": lambda value: f"weighted by rarity, {_share(value)} of your values match",
    "rarity matched back": lambda value: (
        f"weighted by rarity, {_share(value)} of its values match back"
    ),
}
"""Those that are counted at several distances."""
