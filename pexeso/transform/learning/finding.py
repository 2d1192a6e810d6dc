"""The program that joins most keys of a target column, learned from the two tables alone.

Source: E. Zhu, Search and Join Algorithms for Tables in Data Lakes, PhD thesis, University of
Toronto, 2019, sections 4.2 and 4.3 (``LearnTransform``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.transform.learning.chance import bound_on_luck, hits_by_chance
from pexeso.transform.learning.example_sets import (
    ExampleGroup,
    Pairs,
    example_sets,
    example_sets_by_starts,
    example_sets_by_words,
)
from pexeso.transform.learning.examples_to_program import (
    Effort,
    Row,
    learn_program,
)
from pexeso.transform.learning.generalising import generalised, unfolded
from pexeso.transform.learning.options import FindingOptions
from pexeso.transform.learning.row_pairs import MIN_LENGTHS
from pexeso.transform.programs.applying import apply_program
from pexeso.transform.programs.program import Constant, Extract, Program
from pexeso.transform.texts import TextColumn, TextTable

# A program with another constant: what one text of a program may be for the keys that it left.
#
# An extension of the source: "001" behind a name in one program is "002" and "101" for other rows.
# To learn each from examples would take examples that agree in it by chance.

MAX_LENGTH = 32
"""Characters of a constant that is looked for."""

_NOTHING = pa.scalar("", pa.large_string())

_FEW_KEYS = 10_000
"""Of more keys than these only constants as long as the program's are looked for."""

_MAX_STARTS = 64
"""Places in the keys that are looked at for a constant between two pieces of rows."""


def with_other_constants(
    program: Program,
    columns: Sequence[pa.Array],
    keys: pa.Array,
    *,
    min_keys: int = 2,
    limit: int = 4,
) -> list[Program]:
    """Return a program with each of its constants changed into those that write most keys.

    Examples
    --------
    >>> from pexeso.transform.programs.program import Extract
    >>> program = Program((Extract(0), Constant("001")))
    >>> cells = [pa.array(["ann", "bob", "eve"], pa.large_string())]
    >>> keys = pa.array(["ann101", "bob101", "eve7"], pa.large_string())
    >>> [each.operators[1] for each in with_other_constants(program, cells, keys)]
    [Constant(text='101')]
    """
    counts: dict[tuple[int, str], int] = {}
    for at, operator in enumerate(program.operators):
        if isinstance(operator, Constant) and len(program.operators) > 1:
            for text, count in _counted(program, at, columns, keys):
                if count >= min_keys and text != operator.text:
                    counts[at, text] = counts.get((at, text), 0) + count
    best = sorted(counts, key=lambda change: (-counts[change], change))[:limit]
    return [_changed(program, at, text) for at, text in best]


def _changed(program: Program, at: int, text: str) -> Program:
    operators = list(program.operators)
    operators[at] = Constant(text)
    return replace(program, operators=tuple(operators))


def _counted(
    program: Program, at: int, columns: Sequence[pa.Array], keys: pa.Array
) -> Iterator[tuple[str, int]]:
    """Yield the texts that stand in keys in place of a constant, and how many keys have each."""
    left = _written(program.operators[:at], columns)
    right = _written(program.operators[at + 1 :], columns)
    both = pc.binary_join_element_wise(left, right, _NOTHING)
    starts = pc.utf8_length(left)
    sizes = range(1, MAX_LENGTH + 1)
    if len(keys) > _FEW_KEYS:
        sizes = range(len(program.operators[at].text), len(program.operators[at].text) + 1)
    lengths = pc.utf8_length(keys).to_numpy(zero_copy_only=False)
    for size in sizes:
        longer = keys.filter(pa.array(lengths > size))
        if not len(longer):
            return
        if at == 0:
            yield from _hits(longer, None, 0, size, both)
        elif at == len(program.operators) - 1:
            yield from _hits(longer, None, -size, None, both)
        else:
            for start in _most_frequent(starts):
                usable = longer.filter(pc.greater_equal(pc.utf8_length(longer), start + size))
                some = both.filter(pc.equal(starts, start))
                yield from _hits(usable, start, start, start + size, some)


def _written(operators: Sequence, columns: Sequence[pa.Array]) -> pa.Array:
    if not operators:
        return pa.repeat(pa.scalar("", pa.large_string()), len(columns[0]))
    return apply_program(Program(tuple(operators)), columns).cast(pa.large_string())


def _most_frequent(starts: pa.Array) -> list[int]:
    counts = np.bincount(starts.drop_null().to_numpy(zero_copy_only=False), minlength=1)
    order = np.argsort(-counts, kind="stable")[:_MAX_STARTS]
    return [int(start) for start in order if counts[start]]


def _hits(
    keys: pa.Array, left: int | None, start: int, stop: int | None, texts: pa.Array
) -> Iterator[tuple[str, int]]:
    """Count by what stands between two places the keys that are a text without it."""
    inside = pc.utf8_slice_codeunits(keys, start, stop)
    before = pc.utf8_slice_codeunits(keys, 0, start) if left is not None or start < 0 else None
    after = pc.utf8_slice_codeunits(keys, stop, None) if stop is not None else None
    rest = before if after is None else after
    if before is not None and after is not None:
        rest = pc.binary_join_element_wise(before, after, _NOTHING)
    hit = inside.filter(pc.is_in(rest, pc.unique(texts).drop_null()))
    for entry in pc.value_counts(hit).to_pylist():
        yield entry["values"], entry["counts"]


_NEARLY_SURE = 0.9
"""Share of them from which on an accepted program is the one that was looked for."""

_MAX_COLLAPSED = 0.05
"""Share of the texts that a program joins that may become the key of another text (inclusive)."""

_MIN_HITS, _MIN_SHARE, _HARDLY_LUCK = 10, 0.02, 1e-12
"""Hits, their share of the smaller side, and luck that are enough whatever share is asked for."""

_PADDING = "0"
_MIN_PADDED = 0.9
"""Share of the texts that a program of zeros in front writes that must be keys: numbers that fill a
range hit each other by chance, and so chance tells nothing of them."""

_MIN_AGREEING = 0.2
_FEW_ROWS = 10_000
"""A program is applied to more rows than these if it writes the keys of a share of some pairs."""

_ENOUGH = 0.95
"""Share of the smaller side's values at which no better program is looked for."""

_NEARLY_ALL = 0.8
_MORE_LUCK = 100
"""As many times the luck is allowed to a program that joins nearly all texts to nearly all keys."""

_MORE_LUCK_OF_ONE = 10
"""As many times that of such a program of one operator: there are few of them to choose from."""

_LUCK_OF_ALL = 1e-2
"""The luck allowed to a program that writes every key and nothing else."""

_MAX_FRUITLESS = 24
"""Sets of examples in a row that may bring no better program than one that is good enough."""

_MAX_FRUITLESS_AT_FIRST = 64
"""The same where none is good enough yet."""


Sets = Iterable[tuple[ExampleGroup, Pairs, Pairs]]
"""Of examples, with more pairs to check a program by."""


@dataclass(frozen=True, slots=True)
class ProgramFit:
    """A program and what it joins.

    Attributes
    ----------
    program : Program
        Of the source's row.
    target : int
        Number of the target column.
    n_keys : int
        Distinct values of it that the program writes.
    n_written : int
        Distinct texts that the program writes.
    expected : float
        Keys that letters drawn at random would hit (`hits_by_chance`).
    accepted : bool
        Whether it joins what the options ask for.
    agreeing : float
        Share of the likeliest pairs of rows that it joins, in [0, 1].
    n_texts : int
        Distinct source rows, of the columns that it reads, for which it writes a key.
    """

    program: Program
    target: int
    n_keys: int
    n_written: int
    expected: float
    accepted: bool
    agreeing: float = 0.0
    n_texts: int = 0

    @property
    def collapses(self) -> bool:
        """Whether it makes one key of several source rows that differ."""
        return collapses(self.n_texts, self.n_keys)

    @property
    def sure(self) -> bool:
        """Whether it joins nearly all of the likeliest pairs of rows."""
        return self.accepted and self.agreeing >= _NEARLY_SURE


def collapses(n_texts: int, n_keys: int) -> bool:
    """Return whether so many texts that become so few keys are several for one of them."""
    return n_texts - n_keys > max(1, _MAX_COLLAPSED * n_texts)


def find_program(
    source: TextTable,
    targets: Sequence[TextColumn],
    options: FindingOptions | None = None,
    *,
    thorough: bool = True,
) -> ProgramFit | None:
    """Learn programs from likely pairs of rows, and return the one that hits most target values.

    Returns
    -------
    ProgramFit or None
        The best program, also where it is not accepted; None where none was learned.
    """
    options = options or FindingOptions()
    best: ProgramFit | None = None
    effort = Effort(options.max_effort)
    first, *shorter = MIN_LENGTHS

    def likely(min_length: int) -> Sets:
        return example_sets(source, targets, min_length, options)

    # Nothing is computed before it is asked for.
    ways: list[tuple[Sets, bool]] = [(likely(first), False)]
    if thorough:
        ways.append((example_sets_by_starts(source, targets, first, options), False))
        ways += [(likely(first), True), *((likely(length), False) for length in shorter)]
        ways.append((example_sets_by_words(source, targets, options), False))
    for number, (sets, any_separator) in enumerate(ways):
        later = number > 0
        for candidate in _programs(source, targets, sets, any_separator, later, options, effort):
            if best is None or _rank(candidate) < _rank(best):
                best = candidate
        if best is not None and best.accepted and not best.collapses:
            break
    if best is None or not best.accepted:
        return best
    cells = [column.cells for column in source.columns]
    keys = targets[best.target].values
    if best.collapses:
        variants = with_other_constants(best.program, cells, keys)
        for program in unfolded(best.program, variants, cells):
            candidate = judged(program, source, targets, best.target, options)
            if candidate.accepted and _rank(candidate) < _rank(best):
                best = candidate
    return replace(best, program=generalised(best.program, cells, keys))


def _rank(candidate: ProgramFit) -> tuple[bool, int, int, int]:
    operators = candidate.program.operators
    letters = sum(len(operator.text) for operator in operators if isinstance(operator, Constant))
    return not candidate.accepted, -candidate.n_keys, len(operators), letters


def _programs(
    source: TextTable,
    targets: Sequence[TextColumn],
    sets: Sets,
    any_separator: bool,
    later: bool,
    options: FindingOptions,
    effort: Effort,
) -> Iterator[ProgramFit]:
    """Yield programs until one joins nearly all, or sets of examples bring nothing better."""
    tried: set[tuple[Program, int]] = set()
    best = 0
    fruitless = 0
    for group, examples, checks in sets:
        fruitless += 1
        if effort.left <= 0:
            return
        if fruitless > (_MAX_FRUITLESS if best or later else _MAX_FRUITLESS_AT_FIRST):
            return
        program = learn_program(*examples, options.learning, effort, [any_separator])
        if program is None or (program, group.target) in tried:
            continue
        tried.add((program, group.target))
        agreeing = _agreeing(program, *checks)
        if source.n_rows > _FEW_ROWS and agreeing < _MIN_AGREEING:
            continue
        candidate = judged(program, source, targets, group.target, options)
        candidate = replace(candidate, agreeing=agreeing)
        yield candidate
        if candidate.collapses:
            continue
        if candidate.sure:
            return
        if candidate.accepted and candidate.n_keys > best:
            best, fruitless = candidate.n_keys, 0
            fewer = min(source.n_rows, len(targets[group.target].values))
            if candidate.n_keys >= _ENOUGH * fewer:
                return


def find_variant(
    programs: Sequence[Program], source: TextTable, target: TextColumn, options: FindingOptions
) -> ProgramFit | None:
    """Return the accepted program, one of some with another constant, that hits most values."""
    cells = [column.cells for column in source.columns]
    best: ProgramFit | None = None
    tried: set[Program] = set(programs)
    for program in programs:
        for variant in with_other_constants(program, cells, target.values):
            if variant not in tried:
                tried.add(variant)
                candidate = judged(variant, source, [target], 0, options, n_fitted=1)
                if candidate.accepted and (best is None or _rank(candidate) < _rank(best)):
                    best = candidate
    return best


def _agreeing(program: Program, rows: Sequence[Row], keys: Sequence[str]) -> float:
    return sum(program.of(row) == key for row, key in zip(rows, keys, strict=True)) / len(keys)


def judged(
    program: Program,
    source: TextTable,
    targets: Sequence[TextColumn],
    target: int,
    options: FindingOptions,
    *,
    n_fitted: int | None = None,
) -> ProgramFit:
    """Apply a program to all rows of the source, and count the target values that it writes.

    ``n_fitted`` of its operators were chosen by these rows, by default all.
    """
    column = targets[target]
    of_rows = apply_program(program, [source_column.cells for source_column in source.columns])
    written = pc.unique(of_rows).drop_null()
    hit = pc.unique(pc.index_in(column.values, written).drop_null())
    hits = len(hit)
    enough = max(options.min_keys, options.min_share * min(len(written), len(column.values)))
    expected = 0.0
    smaller = min(len(written), len(column.values))
    few = max(_MIN_HITS, _MIN_SHARE * smaller)
    if hits >= min(enough, few):
        expected = hits_by_chance(written, column.values)
    both = hits >= _NEARLY_ALL * max(len(written), len(column.values))
    max_luck = options.max_luck
    if hits == len(written) == len(column.values):
        max_luck = max(max_luck, _LUCK_OF_ALL)
    elif both:
        max_luck *= _MORE_LUCK * (_MORE_LUCK_OF_ONE if len(program.operators) == 1 else 1)
    # Each operator could be fitted to an example of its own.
    fitted = len(program.operators) if n_fitted is None else n_fitted
    accepted = hits >= enough
    if options.max_luck < 1:
        luck = bound_on_luck(hits, expected)
        accepted = accepted and hits > fitted and luck <= max_luck
        accepted = accepted or (hits >= few and hits > 2 * fitted and luck <= _HARDLY_LUCK)
        is_padded = _is_padding(program) and hits >= max(_MIN_HITS, _MIN_PADDED * len(written))
        accepted = accepted or is_padded
    n_texts = _n_texts(
        source, program, pc.is_in(of_rows, value_set=column.values.cast(of_rows.type))
    )
    return ProgramFit(program, target, hits, len(written), expected, accepted, n_texts=n_texts)


def _n_texts(source: TextTable, program: Program, is_joined: pa.BooleanArray) -> int:
    """Count the distinct texts of the columns that a program reads, of the rows that it joins."""
    rows = np.flatnonzero(pc.fill_null(is_joined, False).to_numpy(zero_copy_only=False))
    columns = program.columns or (0,)
    codes = np.stack([source.columns[column].codes[rows] for column in columns], axis=1)
    return len(np.unique(codes, axis=0))


def _is_padding(program: Program) -> bool:
    """Return whether a program writes zeros in front of a whole cell."""
    if len(program.operators) != 2:
        return False
    zeros, cell = program.operators
    return (
        isinstance(zeros, Constant)
        and not zeros.text.strip(_PADDING)
        and isinstance(cell, Extract)
        and cell == Extract(cell.column)
    )
