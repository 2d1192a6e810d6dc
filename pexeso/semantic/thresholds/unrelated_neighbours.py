"""Distances between unrelated values.

Values of one column are nearly always different things, so their distances are a sample of false
matches.
"""

from __future__ import annotations

import numpy as np

from pexeso.engine.vector_space import Vectors, VectorSpace
from pexeso.semantic.thresholds.sample import ROWS_AT_ONCE, SampledColumns

STEPS = 64
"""Distances that are tried, from 0 to the largest at which unrelated neighbours are few enough."""

EQUAL = 1e-3
"""Vectors no farther apart than this are those of one text in two forms; the rounding of the
vectors keeps them from 0."""


def unrelated_distances(
    space: VectorSpace, vectors: Vectors, n_asked: int | None = None
) -> np.ndarray:
    """Return for values of a column the distance of the nearest other thing in it.

    Returns
    -------
    numpy.ndarray, float32 (n,) or (n_asked,)
        Fractions of the largest distance; infinite where there is no other thing. What lies within
        `EQUAL` is the same thing.
    """
    queries = space.comparable(vectors[:n_asked])
    nearest = np.full(len(queries), np.inf, np.float32)
    for other_start in range(0, len(vectors), 1 << 15):
        others = space.comparable(vectors[other_start : other_start + (1 << 15)])
        for query_start in range(0, len(queries), ROWS_AT_ONCE):
            some = slice(query_start, query_start + ROWS_AT_ONCE)
            apart = space.distances(queries[some], others)
            apart[apart <= EQUAL] = np.inf
            nearest[some] = np.minimum(nearest[some], apart.min(1))
    return nearest


def unrelated_distances_of(sample: SampledColumns) -> list[np.ndarray]:
    """Return `unrelated_distances` of every sampled column.

    They are those of the first `ROWS_AT_ONCE` of its values, each sorted.
    """
    columns = (sample.column(position) for position in range(len(sample)))
    return [np.sort(unrelated_distances(sample.space, column, ROWS_AT_ONCE)) for column in columns]


def shares_within(unrelated: list[np.ndarray], limits: np.ndarray) -> np.ndarray:
    """Return the share of each column's values with an unrelated value within each distance.

    The result is float64 (columns, limits).
    """
    return np.stack(
        [
            np.searchsorted(distances, limits, side="right") / len(distances)
            for distances in unrelated
        ]
    )


def tried_distances(largest: float) -> np.ndarray:
    """Return the distances that are tried, from 0 to the largest, with three decimals."""
    return np.floor(np.linspace(0.0, largest, STEPS + 1) * 1000 + 1e-6) / 1000


def distance_reaching(unrelated: list[np.ndarray], share: float) -> float:
    """Return the largest distance within which at most `share` of values have a false match.

    A false match is an unrelated value within the distance. The share is the mean over columns.
    """
    apart = np.concatenate(unrelated)
    order = np.argsort(apart, kind="stable")
    weights = np.concatenate(
        [np.full(len(distances), 1 / len(distances) / len(unrelated)) for distances in unrelated]
    )[order]
    position = int(np.searchsorted(np.cumsum(weights), share + 1e-9, side="right"))
    # Just below the first distance at which the share is passed.
    return (
        1.0
        if position == len(apart) or not np.isfinite(apart[order[position]])
        else float(apart[order[position]]) - 1e-6
    )
