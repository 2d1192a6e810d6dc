"""How a program is looked for."""

from __future__ import annotations

from dataclasses import dataclass, field

from pexeso.transform.learning.examples_to_program import LearningOptions

MAX_LUCK = 1e-6
"""Bound on the probability that chance explains what is joined."""


@dataclass(frozen=True, slots=True)
class FindingOptions:
    """How a program is looked for, and what it must join.

    Attributes
    ----------
    learning : LearningOptions
    n_examples : int
        Of a set, from which a program is learned (b of the source).
    n_pairs : int
        Of two columns, the most telling ones, of which examples are drawn (k). Where columns are
        sampled, no more than joining pairs are expected, and at most 40.
    n_sets : int
        Sets of examples that are drawn for two columns at least (r).
    max_sets : int
        For all columns together (L), unless that is less than one for two columns each.
    max_pieces : int
        Pieces of which the keys of a set consist at least (`least_pieces`), above which it is not
        learned from: no program of fewer operators writes them. Of 1,891 sets of the shared cases
        that a program was learned from, all had at most 5, and of 23,000 others a tenth.
    max_effort : int
        What learning may take: see `pexeso.transform.learning.examples_to_program.Effort`.
    min_keys : int
        That a program must hit, inclusive.
    min_share : float
        Of the smaller side's distinct values that it must hit, inclusive, 0 to 1.
    max_luck : float
        Bound on the probability that letters drawn at random hit as many keys, inclusive: see
        `pexeso.transform.learning.chance`. With 1, as published, chance is not considered.
    participation : float
        Share of the target rows that join at least (r), for the size of samples. Over 0, to 1.
    seed : int
        Of samples and sets.
    """

    learning: LearningOptions = field(default_factory=LearningOptions)
    n_examples: int = 3
    n_pairs: int = 400
    n_sets: int = 16
    max_sets: int = 256
    max_pieces: int = 6
    max_effort: int = 50_000_000
    min_keys: int = 3
    min_share: float = 0.15
    max_luck: float = MAX_LUCK
    participation: float = 0.01
    seed: int = 0
