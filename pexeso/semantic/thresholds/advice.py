"""Advice: thresholds, the reason in a sentence, and the numbers behind it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pexeso.runtime.checks import require_share
from pexeso.runtime.formatting import Shown, facts_table

DEFAULT_MIN_PRECISION = 0.9
HALF = 0.5
"""The share of values that makes two columns joinable, where chance does not ask for more."""


WIDEST = 0.1
"""How far beyond the usual distance of the model others are tried. Farther out the unrelated
neighbours within columns say too little of those between columns: short columns then seem to join
as a whole."""

ADVICE_OPTIONS = ("auto", "min_precision")
"""The arguments of a search that ask for advice; the second asks too where it is given alone."""


@dataclass(frozen=True, repr=False)
class Advice(Shown):
    """Thresholds for an index, and why these.

    Attributes
    ----------
    max_distance : float
        In [0, 1], a fraction of the largest distance: the scale of `SearchOptions.max_distance`.
    min_joinability : float or None
        In (0, 1]; None where the advice is about two given columns, whose share of matches is not
        in question.
    why : str
        One or two sentences with the figures that decided.
    evidence : dict
        These figures and more, as plain JSON.

    Examples
    --------
    >>> Advice(0.31, 0.5, "because").to_dict()
    {'max_distance': 0.31, 'min_joinability': 0.5, 'why': 'because', 'evidence': {}}
    """

    max_distance: float
    min_joinability: float | None
    why: str
    evidence: dict[str, Any] = field(default_factory=dict, hash=False)

    def _summary(self) -> str:
        share = "" if self.min_joinability is None else f", min_joinability={self.min_joinability}"
        return f"max_distance={self.max_distance}{share}"

    def _shown(self) -> tuple[list[str], list[list[Any]]]:
        return facts_table({"why": self.why, **self.evidence})

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form."""
        return dict(vars(self))


def kind_advice(kind: str) -> Advice:
    """Advise to match equal values alone, near ones being others: see `exact_kind`."""
    why = f"the values are {kind}s, and near {kind}s are other {kind}s."
    return Advice(0.0, None, why, {"kind": kind})


def gain_of_wider(added: np.ndarray, wrong: np.ndarray) -> np.ndarray:
    """Return by how much more than half of what a wider distance adds is right, doubt deducted."""
    return added / 2 - 2 * wrong - np.sqrt(2 * wrong + 0.25)


def require_min_precision(min_precision: Any) -> float:
    """Return `min_precision`, or refuse it."""
    meaning = "It is the share of what is found that must be right:"
    require_share("min_precision", min_precision, f"{meaning} {DEFAULT_MIN_PRECISION} is usual.")
    return float(min_precision)


def percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share < 0.9995 else "100 %"
