"""The filters of the paper by name, so that any of them can be switched off.

Switching filters off never changes an answer, only the work: that is tested, and it is how an
ablation is measured.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from pexeso.errors import InputError


class Lemma(StrEnum):
    """One filter of the paper (section 3)."""

    PIVOT_FILTERING = "L1"
    PIVOT_MATCHING = "L2"
    VECTOR_CELL_FILTERING = "L3"
    CELL_CELL_FILTERING = "L4"
    VECTOR_CELL_MATCHING = "L5"
    CELL_CELL_MATCHING = "L6"
    COLUMN_PRUNING = "L7"
    QUICK_BROWSING = "QB"


ALL_LEMMAS = frozenset(Lemma)


def lemma_set(names: Iterable[str]) -> frozenset[Lemma]:
    """Turn names such as ``"L1"`` into a set of filters."""
    allowed = [lemma.value for lemma in Lemma]
    chosen = list(names)
    unknown = [name for name in chosen if name not in allowed]
    if unknown:
        raise InputError(
            f"lemmas must be among {', '.join(allowed)}. Got {', '.join(map(repr, unknown))} "
            "instead."
        )
    return frozenset(Lemma(name) for name in chosen)
