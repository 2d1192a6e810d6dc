"""What a containment search gives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Asked:
    """What was asked of partitions by bands, those left out that have no set large enough.

    Attributes
    ----------
    lower, upper : int64 (p,)
        The sizes of the sets of each.
    bands, rows : int64 (p,)
        The setting of each.
    recalls : float64 (p,)
        Probability that a set of the largest size is a candidate if it contains just the share asked for; others are found more often.
    """

    lower: np.ndarray
    upper: np.ndarray
    bands: np.ndarray
    rows: np.ndarray
    recalls: np.ndarray

    def __len__(self) -> int:
        return len(self.upper)


@dataclass(frozen=True, eq=False)
class Found:
    """The sets found, that with the largest containment first, equal ones by id.

    Attributes
    ----------
    sets : int64 (c,)
        Ids: positions in what the index was built of.
    sizes : int64 (c,)
        Distinct tokens of each.
    overlaps : int64 (c,)
        Tokens in common with the query; -1 where they were not counted.
    containments : float64 (c,)
        Of the query in each set, in [0, 1]: exact where `exact`, else as signatures tell it.
    hits : int64 (c,)
        Bands in common; 0 where posting lists found it.
    query_size : int
        Distinct tokens of the query.
    needed : int
        The least number of tokens in common.
    n_candidates : int
        Sets that bands found, verified or not; by posting lists, sets found.
    route : {"lists", "bands"}
        Which way was taken. By lists nothing is missed.
    asked : Asked or None
        None by lists.
    """

    sets: np.ndarray
    sizes: np.ndarray
    overlaps: np.ndarray
    containments: np.ndarray
    hits: np.ndarray
    query_size: int
    needed: int
    n_candidates: int
    route: str
    asked: Asked | None

    def __len__(self) -> int:
        return len(self.sets)

    @property
    def exact(self) -> np.ndarray:
        """Whether each containment was counted, bool (c,); the others are estimates, and their sets only candidates."""
        return self.overlaps >= 0
