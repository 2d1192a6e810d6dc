"""Precision, recall and F of joined pairs, and their means over cases."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

Pair = tuple[Any, Any]
Score = dict[str, float | int | None]

SOLVED = 0.95
"""F from which on a case counts as solved, inclusive."""


def score(joined: Collection[Pair], truth: Collection[Pair]) -> Score:
    """Return the scores of a join.

    Examples
    --------
    >>> score({("a", 1), ("b", 2)}, {("a", 1), ("c", 3)})
    {'precision': 0.5, 'recall': 0.5, 'f': 0.5, 'joined': 2}
    >>> score(set(), {("a", 1)})
    {'precision': None, 'recall': 0.0, 'f': 0.0, 'joined': 0}
    """
    return counted(len(set(joined) & set(truth)), len(joined), len(truth))


def counted(n_right: int, n_joined: int, n_true: int) -> Score:
    """Return the scores of so many right pairs among those joined and those true.

    Examples
    --------
    >>> counted(3, 4, 6)["f"]
    0.6
    """
    return {
        "precision": n_right / n_joined if n_joined else None,
        "recall": n_right / n_true,
        "f": 2 * n_right / (n_joined + n_true),
        "joined": n_joined,
    }


def means(scores: Iterable[Mapping[str, Any]]) -> dict[str, float | int | None]:
    """Return mean scores; a join of nothing is left out of precision, and 0 in recall and F.

    Examples
    --------
    >>> means([counted(1, 1, 1), counted(0, 0, 1)])
    {'precision': 1.0, 'recall': 0.5, 'f': 0.5, 'solved': 1, 'cases': 2}
    """
    rows = list(scores)
    joined = [row["precision"] for row in rows if row["precision"] is not None]
    return {
        "precision": sum(joined) / len(joined) if joined else None,
        "recall": sum(row["recall"] for row in rows) / len(rows) if rows else None,
        "f": sum(row["f"] for row in rows) / len(rows) if rows else None,
        "solved": sum(row["f"] >= SOLVED for row in rows),
        "cases": len(rows),
    }
