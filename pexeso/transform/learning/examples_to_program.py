"""A program of few operators that writes the key of every example.

Source: E. Zhu, Search and Join Algorithms for Tables in Data Lakes, PhD thesis, University of
Toronto, 2019, section 4.3 (``TryLearnTransform``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pexeso.transform.learning.candidates import Candidate, candidates
from pexeso.transform.learning.example_parts import Examples, examples_of
from pexeso.transform.learning.least_pieces import least_pieces
from pexeso.transform.programs.program import MAX_OPERATORS, Constant, Operator, Program

Row = Sequence[str | None]
"""Cells of a source row; None where one is missing."""

_Range = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class LearningOptions:
    """How far a program is looked for.

    Attributes
    ----------
    max_operators : int
        Of a program, inclusive (tau of the source). 1 to `MAX_OPERATORS`.
    width : int
        Operators that are tried for a piece of the keys, the best first (beta). At least 1.
    max_steps : int
        Pieces of the keys that are looked at before the examples are given up. At least 1. Of 422
        programs learned from the shared cases, one needed 13, and 98 % at most 5.
    extended : bool
        Use what extends the published operators (see `pexeso.transform.programs.program`).
    """

    max_operators: int = 10
    width: int = 6
    max_steps: int = 16
    extended: bool = True


@dataclass(slots=True)
class Effort:
    """What may still be spent on learning: some 100 million a second, counted, not measured.

    A letter of a part of a cell counts as often as the longest key has letters when operators are
    looked for; each line of operators counts once.
    """

    left: int = 10**12


def learn_program(
    rows: Sequence[Row],
    keys: Sequence[str],
    options: LearningOptions | None = None,
    effort: Effort | None = None,
    separators: Sequence[bool] = (False, True),
) -> Program | None:
    """Learn a program that writes the key of every row.

    The search is greedy: the operator that explains most letters of all keys comes first, then what
    is left before and behind it. So the program is short, but a shorter one may exist.

    Returns
    -------
    Program or None
        None where no program was found.

    Examples
    --------
    >>> program = learn_program(
    ...     [["Suhela Chowdhury"], ["Maureen Paluzzi"]], ["schowdhury@a.us", "mpaluzzi@a.us"]
    ... )
    >>> program.of(["Carolyn Craddock"])
    'ccraddock@a.us'
    """
    options = options or LearningOptions()
    if max(least_pieces(rows, keys)) > options.max_operators:
        return None
    for any_separator in separators:
        examples = examples_of(rows, keys, any_separator=any_separator, extended=options.extended)
        operators = _Search(examples, options, effort or Effort()).operators()
        if operators is not None:
            return Program(_joined(operators))
    return None


@dataclass(slots=True)
class _Search:
    """The search over one set of examples."""

    examples: Examples
    options: LearningOptions
    effort: Effort
    steps: int = 0
    known: dict[_Range, list[Candidate]] = field(default_factory=dict)
    failed: dict[_Range, int] = field(default_factory=dict)

    def operators(self) -> list[Operator] | None:
        low = (0,) * len(self.examples.keys)
        high = tuple(map(len, self.examples.keys))
        return self._learn(low, high, min(self.options.max_operators, MAX_OPERATORS))

    def _learn(
        self, low: tuple[int, ...], high: tuple[int, ...], budget: int
    ) -> list[Operator] | None:
        """Return operators for a range of every key, at most ``budget``, or None."""
        empty = [one == other for one, other in zip(low, high, strict=True)]
        if all(empty):
            return []
        if budget <= 0 or any(empty) or self.failed.get((low, high), 0) >= budget:
            return None
        for candidate in self._candidates(low, high, budget):
            ends = tuple(
                start + length
                for start, length in zip(candidate.places, candidate.lengths, strict=True)
            )
            left = self._learn(low, candidate.places, budget - 1)
            if left is None:
                continue
            right = self._learn(ends, high, budget - 1 - len(left))
            if right is not None:
                return [*left, candidate.operator, *right]
        self.failed[low, high] = budget
        return None

    def _candidates(
        self, low: tuple[int, ...], high: tuple[int, ...], budget: int
    ) -> list[Candidate]:
        if (low, high) not in self.known:
            if self.steps == self.options.max_steps or self.effort.left <= 0:
                return []
            self.steps += 1
            longest = max(one - other for one, other in zip(high, low, strict=True))
            self.effort.left -= len(self.examples.plain) * longest + len(self.examples.lines)
            self.known[low, high] = candidates(self.examples, low, high, self.options.width)
        choices = self.known[low, high]
        # No operator writes more letters than the first: so many of them cannot write all.
        if choices and sum(choices[0].lengths) * budget < sum(high) - sum(low):
            return []
        return choices


def _joined(operators: list[Operator]) -> tuple[Operator, ...]:
    """Make one constant of those that follow each other."""
    joined: list[Operator] = []
    for operator in operators:
        last = joined[-1] if joined else None
        if isinstance(operator, Constant) and isinstance(last, Constant):
            joined[-1] = Constant(last.text + operator.text)
        else:
            joined.append(operator)
    return tuple(joined)
