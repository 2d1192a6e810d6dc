"""Options of the published search."""

from __future__ import annotations

from dataclasses import dataclass

from pexeso.acquisition.search.published.covers import MAX_COVERS
from pexeso.errors import InputError

MODES = ("repaired", "literal")
"""The walk with its repairs, or word for word as it is printed."""


@dataclass(frozen=True)
class PublishedOptions:
    """Options of the published search; the paper leaves all of them open but the mode.

    Attributes
    ----------
    n_landmarks : int, optional
        See `landmarks_of`.
    max_covers : int
        See `minimal_graphs`.
    prune : bool
        See `minimal_graphs`.
    max_graphs : int
        The minimal graphs that are walked on, those of least weight. The paper has one.
    mode : {"repaired", "literal"}
        See `pexeso.acquisition.search.published.walk`.
    n_steps : int
        Steps of a walk, l in the paper.
    n_walks : int
        Walks on a minimal graph, the first from the joins of least weight, the others from drawn
        ones: the plans within the bounds need not be connected by single steps.
    auto_exhaustive : bool
        Try all plans on a minimal graph instead, where there are `n_steps` at most. Neither this
        nor `n_walks` counts in the literal mode.
    strict_lattice : bool
        Refuse plans that have a single column of a table, which is no vertex of the lattice.
    first_rate : float
        The rate of the first samples, above 0 to 1.
    growth : float
        By what the rate grows where nothing was found, above 1.
    max_rounds : int, optional
        The most rates that are tried; up to rate 1 if not given.
    seed : int
        Of all that is drawn.

    Raises
    ------
    InputError
        If a value is out of its range.
    """

    n_landmarks: int | None = None
    max_covers: int = MAX_COVERS
    prune: bool = True
    max_graphs: int = 1
    mode: str = "repaired"
    n_steps: int = 1000
    n_walks: int = 4
    auto_exhaustive: bool = True
    strict_lattice: bool = False
    first_rate: float = 0.1
    growth: float = 2.0
    max_rounds: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise InputError(f"mode must be one of {MODES}, got {self.mode!r}.")
        for name in ("max_graphs", "n_steps", "n_walks"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be 1 or more, got {getattr(self, name)}.")
        for name in ("n_landmarks", "max_rounds"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} must be 1 or more, got {value}.")
        if self.max_covers < 0:
            raise InputError(f"max_covers must be 0 or more, got {self.max_covers}.")
        if not 0 < self.first_rate <= 1:
            raise InputError(f"first_rate must be above 0 and at most 1, got {self.first_rate}.")
        if not self.growth > 1:
            raise InputError(f"growth must be above 1, got {self.growth}.")
