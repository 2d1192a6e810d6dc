"""Gradient-boosted trees as plain numbers.

They are trained elsewhere, read from JSON, applied and explained.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pexeso.errors import IndexCorruptError


@dataclass(frozen=True)
class BoostedTrees:
    """An ensemble of binary trees whose leaves are added up.

    Attributes
    ----------
    features : tuple of str
        Names, m of them.
    base : float
        Added to the sum.
    feature, left, right : int64 (t, nodes)
        Of each tree and node: what is asked, and where the answer leads. A leaf leads to itself.
    threshold, value : float64 (t, nodes)
        At most this goes left; what a node is worth: the mean of the leaves below it, for a leaf
        its own.
    depth : int
        Most steps from a root to a leaf.
    """

    features: tuple[str, ...]
    base: float
    feature: np.ndarray
    left: np.ndarray
    right: np.ndarray
    threshold: np.ndarray
    value: np.ndarray
    depth: int

    @classmethod
    def from_json(cls, path: Path) -> BoostedTrees:
        """Read what `to_dict` gave."""
        try:
            given = json.loads(path.read_text("utf-8"))
            arrays = {
                name: np.array(
                    given[name], np.int64 if name in ("feature", "left", "right") else np.float64
                )
                for name in ("feature", "left", "right", "threshold", "value")
            }
            made = cls(
                tuple(given["features"]), float(given["base"]), depth=int(given["depth"]), **arrays
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise IndexCorruptError(f"'{path}' is damaged: install pexeso again.") from error
        return made

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form."""
        arrays: Mapping[str, np.ndarray] = {
            "feature": self.feature,
            "left": self.left,
            "right": self.right,
            "threshold": self.threshold,
            "value": self.value.round(7),
        }
        plain = {name: array.tolist() for name, array in arrays.items()}
        return {"features": list(self.features), "base": self.base, "depth": self.depth, **plain}

    def scores(self, rows: np.ndarray) -> np.ndarray:
        """Return a probability for each row."""
        return self.explained(rows)[0]

    def explained(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return `scores`, and what each feature adds to the sum (Saabas, 2014): float64 (n, m).

        That is by how much the value of a node changes where the feature was asked. With `base` and
        the values of the roots they add up to what the score is the logistic function of.
        """
        added = self._contributions(rows)
        return _logistic(self.base + added.sum(1)), added[:, :-1]

    def _contributions(self, rows: np.ndarray) -> np.ndarray:
        """Walk all trees at once, a level at a time; the last column holds the roots."""
        n, trees = len(rows), np.arange(len(self.feature))
        node = np.zeros((n, len(trees)), np.int64)
        added = np.zeros((n, len(self.features) + 1))
        added[:, -1] = self.value[:, 0].sum()
        row = np.arange(n)[:, np.newaxis]
        for _ in range(self.depth):
            asked = self.feature[trees, node]
            goes_left = rows[row, asked] <= self.threshold[trees, node]
            below = np.where(goes_left, self.left[trees, node], self.right[trees, node])
            change = self.value[trees, below] - self.value[trees, node]
            np.add.at(added, (np.broadcast_to(row, asked.shape), asked), change)
            node = below
        return added


def _logistic(sums: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-sums))
