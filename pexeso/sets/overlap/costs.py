"""What reads cost: linear in what is read (thesis, chapter 3; J3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pexeso.errors import InputError


@dataclass(frozen=True)
class ReadCosts:
    """The cost of a read, in any one unit."""

    set_fixed: float
    set_per_token: float
    list_fixed: float
    list_per_entry: float
    min_cost: float = 0.0
    step: float = 0.0

    def __post_init__(self) -> None:
        for name, cost in vars(self).items():
            if not np.isfinite(cost):
                raise InputError(
                    f"The cost {name} of a read must be a finite number. Got {cost!r}."
                )

    def of_sets(self, tokens: np.ndarray) -> np.ndarray:
        """Return the costs of reading so many tokens of a set: float64."""
        costs = np.maximum(
            self.min_cost, self.set_fixed + self.set_per_token * np.asarray(tokens, np.float64)
        )
        return np.where(np.asarray(tokens) > 0, costs, 0.0)

    def of_lists(self, entries: np.ndarray) -> np.ndarray:
        """Return the costs of reading posting lists of these lengths: float64."""
        return np.maximum(
            self.min_cost, self.list_fixed + self.list_per_entry * np.asarray(entries, np.float64)
        )


MAPPED = ReadCosts(10, 0.03, 10, 0.045, step=600)
"""Microseconds of this code for mapped files on an SSD, asked for together: an order of magnitude
where nothing was measured."""
