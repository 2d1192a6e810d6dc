"""Distances chosen on other data sets: each set is scored at the distance that suits the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.effectiveness.lexical.scores import DISTANCES, ColumnScores
from benchmarks.effectiveness.scoring import JOINABILITIES

MIN_JOINABILITY = 0.5
"""At which columns are scored: by the truth two columns join from a half on."""

PRECISIONS = (0.9, 0.95)


@dataclass(frozen=True)
class SetScores:
    """What a model does on one data set at each distance.

    Attributes
    ----------
    columns : numpy.ndarray of shape (distances, joinabilities)
        F1 of judged pairs of columns.
    values : numpy.ndarray of shape (distances,)
        Mean F1 of joined values over tasks.
    semantic : dict of float to float
        Recall of semantic-only pairs of columns, by the precision they are chosen for.
    distances : sequence of float
    """

    columns: np.ndarray
    values: np.ndarray
    semantic: dict[float, float]
    distances: Sequence[float] = DISTANCES

    @classmethod
    def of(
        cls, columns: ColumnScores, values: np.ndarray, distances: Sequence[float] = DISTANCES
    ) -> SetScores:
        """Gather what `column_scores` and `value_scores` gave."""
        semantic = {precision: columns.semantic_recall(precision) for precision in PRECISIONS}
        return cls(columns.f1(), values[:, :, 2].mean(0), semantic, distances)

    def at(self, distance: float, joinability: float = MIN_JOINABILITY) -> tuple[float, float]:
        """Return the F1 of columns and of values."""
        row = nearest_position(self.distances, distance)
        column = nearest_position(JOINABILITIES, joinability)
        return float(self.columns[row, column]), float(self.values[row])


def nearest_position(grid: Sequence[float] | np.ndarray, wanted: float) -> int:
    """Return the position of the number of a grid that is nearest to another."""
    return int(np.argmin(np.abs(np.asarray(grid) - wanted)))


def best_distance(scores: Sequence[SetScores]) -> float:
    """Return the distance with the highest mean of all F1s, of columns and of values."""
    column = nearest_position(JOINABILITIES, MIN_JOINABILITY)
    means = np.mean([score.columns[:, column] + score.values for score in scores], axis=0)
    return scores[0].distances[int(np.argmax(means.round(9)))]


def held_out(scores: Mapping[str, SetScores]) -> dict[str, Any]:
    """Score each data set at the distance chosen on the others.

    Returns
    -------
    dict
        ``sets``: name -> ``distance``, ``columns`` and ``values``; ``columns``, ``values`` and
        ``mean``, the means over the sets; ``distance``, the one chosen on all.
    """
    sets = {}
    for name, set_scores in scores.items():
        distance = best_distance([other for key, other in scores.items() if key != name])
        columns, values = set_scores.at(distance)
        sets[name] = {"distance": distance, "columns": columns, "values": values}
    columns, values = (
        float(np.mean([score[what] for score in sets.values()])) for what in ("columns", "values")
    )
    return {
        "sets": sets,
        "columns": columns,
        "values": values,
        "mean": (columns + values) / 2,
        "distance": best_distance(list(scores.values())),
    }
