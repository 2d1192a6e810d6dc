"""Whether likely pairs of two columns are written by one program, found out with little effort."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pexeso.transform.learning.examples_to_program import Effort, LearningOptions, learn_program
from pexeso.transform.programs.program import Program

Direction = Literal["source to target", "target to source"]

MAX_LETTERS = 200
"""Of a text of a pair; longer ones cost more than they tell."""

MAX_CHECKED = 200
"""Pairs by which a program is checked, a sample of all."""

_LEARNING = LearningOptions(max_steps=6, width=3)


@dataclass(frozen=True, slots=True)
class ScreeningOptions:
    """How much is spent on the pairs of two columns.

    Attributes
    ----------
    n_examples : int
        Of a set, from which a program is learned.
    n_sets : int
        Sets of examples for each direction.
    max_effort : int
        For each direction: see `pexeso.transform.learning.examples_to_program.Effort`.
    min_agreeing : int
        Pairs, at least, that a program must write.
    min_share : float
        Of the pairs that it must write, inclusive.
    seed : int
        Of sets and samples.
    """

    n_examples: int = 3
    n_sets: int = 16
    max_effort: int = 1_000_000
    min_agreeing: int = 3
    min_share: float = 0.05
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Screened:
    """What seems to join two columns."""

    direction: Direction
    share: float


def screen(
    source: Sequence[str], target: Sequence[str], options: ScreeningOptions | None = None
) -> Screened | None:
    """Return the direction in which some program writes enough of the likely pairs.

    Examples
    --------
    >>> names = ["Suhela Chowdhury", "Maureen Paluzzi", "Carolyn Craddock", "Kelly Moore"]
    >>> mails = ["schowdhury@a.us", "mpaluzzi@a.us", "ccraddock@a.us", "kmoore@a.us"]
    >>> screen(names, mails)
    Screened(direction='source to target', share=1.0)
    """
    options = options or ScreeningOptions()
    pairs = [
        (one, other)
        for one, other in zip(source, target, strict=True)
        if len(one) <= MAX_LETTERS and len(other) <= MAX_LETTERS
    ]
    turned = [(other, one) for one, other in pairs]
    forth, back = _agreeing(pairs, options), _agreeing(turned, options)
    n_checked = min(len(pairs), MAX_CHECKED)
    if max(forth, back) < max(options.min_agreeing, options.min_share * n_checked, 1):
        return None
    if forth >= back:
        return Screened("source to target", forth / n_checked)
    return Screened("target to source", back / n_checked)


def _agreeing(pairs: Sequence[tuple[str, str]], options: ScreeningOptions) -> int:
    """Return how many pairs the best program writes, of those by which it is checked."""
    drawn = random.Random(f"{options.seed} {len(pairs)}")
    checked = pairs if len(pairs) <= MAX_CHECKED else drawn.sample(pairs, MAX_CHECKED)
    effort, tried, best = Effort(options.max_effort), set[Program](), 0
    for number in range(options.n_sets):
        # The first sets are of the surest pairs.
        among = min(len(pairs), 2 * options.n_examples + 4 * number)
        examples = _examples(drawn.sample(pairs[:among], among), options.n_examples)
        if len(examples) < options.n_examples or effort.left <= 0:
            break
        rows, keys = [[one] for one, _ in examples], [other for _, other in examples]
        program = learn_program(rows, keys, _LEARNING, effort, [False])
        if program is None or program in tried:
            continue
        tried.add(program)
        agreeing = sum(program.of([one]) == other for one, other in checked)
        # Each operator could be fitted to an example of its own.
        if agreeing > len(program.operators):
            best = max(best, agreeing)
    return best


def _examples(pairs: Sequence[tuple[str, str]], size: int) -> list[tuple[str, str]]:
    """Return pairs without a text twice."""
    chosen: list[tuple[str, str]] = []
    for one, other in pairs:
        if all(one != pair[0] and other != pair[1] for pair in chosen):
            chosen.append((one, other))
            if len(chosen) == size:
                break
    return chosen
