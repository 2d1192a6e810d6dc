"""The program that joins most keys of a target column, learned from the two tables alone.

Source: E. Zhu, Search and Join Algorithms for Tables in Data Lakes, PhD thesis, University of
Toronto, 2019, sections 4.2 and 4.3 (``LearnTransform``).
"""

from __future__ import annotations

import random
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.transform.learning.chance import bound_on_luck, hits_by_chance
from pexeso.transform.learning.examples_to_program import (
    Effort,
    LearningOptions,
    Row,
    learn_program,
)
from pexeso.transform.learning.least_pieces import least_pieces
from pexeso.transform.learning.other_constants import with_other_constants
from pexeso.transform.learning.row_pairs import MIN_LENGTHS, RowPairs, find_row_pairs
from pexeso.transform.learning.sampling import sample_sizes, sample_texts
from pexeso.transform.learning.suffixes import shared_prefixes, sorted_suffixes
from pexeso.transform.programs.applying import apply_program
from pexeso.transform.programs.program import Constant, Program, lower
from pexeso.transform.texts import MAX_LEARNED, TextColumn, TextTable

MAX_MEDIAN_LENGTH = 200
"""Characters of the median value of a column above which it is free text, and not a key."""

_CHECKED = 100
"""Likely pairs of rows by which a program is checked."""

_NEARLY_SURE = 0.9
"""Share of them from which on an accepted program is the one that was looked for."""

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
    max_luck: float = 1e-6
    participation: float = 0.01
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Found:
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
    """

    program: Program
    target: int
    n_keys: int
    n_written: int
    expected: float
    accepted: bool
    agreeing: float = 0.0

    @property
    def sure(self) -> bool:
        """Whether it joins nearly all of the likeliest pairs of rows."""
        return self.accepted and self.agreeing >= _NEARLY_SURE


@dataclass(frozen=True, slots=True)
class _Group:
    """Pairs of rows of two columns."""

    source: int
    target: int
    pairs: RowPairs
    limit: int

    @property
    def rank(self) -> tuple[float, float]:
        """Mean score and mean length, the best first."""
        return (
            -float(np.mean(1 / self.pairs.holders)),
            -float(np.mean(self.pairs.lengths)),
        )


_Pairs = tuple[list[Row], list[str]]


def find_program(
    source: TextTable,
    targets: Sequence[TextColumn],
    options: FindingOptions | None = None,
    *,
    thorough: bool = True,
) -> Found | None:
    """Learn programs from likely pairs of rows, and return the one that hits most target values.

    Parameters
    ----------
    source : TextTable
    targets : sequence of TextColumn
        In which keys are looked for.
    options : FindingOptions, optional
    thorough : bool
        Where no program is accepted, look on with any text as a separator, and with pairs of rows
        that share shorter pieces.

    Returns
    -------
    Found or None
        The best program, also where it is not accepted; None where none was learned.
    """
    options = options or FindingOptions()
    best: Found | None = None
    effort = Effort(options.max_effort)
    first, *shorter = MIN_LENGTHS
    ways = [(first, False)]
    if thorough:
        ways += [(first, True), *((length, False) for length in shorter)]
    for min_length, any_separator in ways:
        sets = _example_sets(source, targets, min_length, options)
        later = (min_length, any_separator) != ways[0]
        for found in _programs(source, targets, sets, any_separator, later, options, effort):
            if best is None or _rank(found) < _rank(best):
                best = found
        if best is not None and best.accepted:
            return best
    return best


def _rank(found: Found) -> tuple[bool, int, int, int]:
    operators = found.program.operators
    letters = sum(len(each.text) for each in operators if isinstance(each, Constant))
    return not found.accepted, -found.n_keys, len(operators), letters


def _programs(
    source: TextTable,
    targets: Sequence[TextColumn],
    sets: Iterable[tuple[_Group, _Pairs, _Pairs]],
    any_separator: bool,
    later: bool,
    options: FindingOptions,
    effort: Effort,
) -> Iterator[Found]:
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
        found = judged(program, source, targets, group.target, options)
        found = replace(found, agreeing=agreeing)
        yield found
        if found.sure:
            return
        if found.accepted and found.n_keys > best:
            best, fruitless = found.n_keys, 0
            fewer = min(source.n_rows, len(targets[group.target].values))
            if found.n_keys >= _ENOUGH * fewer:
                return


def find_variant(
    programs: Sequence[Program], source: TextTable, target: TextColumn, options: FindingOptions
) -> Found | None:
    """Return the accepted program, one of some with another constant, that hits most values.

    Parameters
    ----------
    programs : sequence of Program
        That were accepted for other rows.
    source : TextTable
    target : TextColumn
    options : FindingOptions
    """
    cells = [column.cells for column in source.columns]
    best: Found | None = None
    tried: set[Program] = set(programs)
    for program in programs:
        for variant in with_other_constants(program, cells, target.values):
            if variant not in tried:
                tried.add(variant)
                found = judged(variant, source, [target], 0, options, n_fitted=1)
                if found.accepted and (best is None or _rank(found) < _rank(best)):
                    best = found
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
) -> Found:
    """Apply a program to all rows of the source, and count the target values that it writes.

    ``n_fitted`` of its operators were chosen by these rows, by default all.
    """
    column = targets[target]
    written = pc.unique(apply_program(program, [each.cells for each in source.columns]))
    written = written.drop_null()
    hit = pc.unique(pc.index_in(column.values, written).drop_null())
    hits = len(hit)
    enough = max(options.min_keys, options.min_share * min(len(written), len(column.values)))
    expected = 0.0
    if hits >= enough:
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
        accepted = accepted and hits > fitted and bound_on_luck(hits, expected) <= max_luck
    return Found(program, target, hits, len(written), expected, accepted)


def _example_sets(
    source: TextTable, targets: Sequence[TextColumn], min_length: int, options: FindingOptions
) -> Iterator[tuple[_Group, _Pairs, _Pairs]]:
    """Yield sets of examples of the best groups first, with more pairs to check a program by.

    Of a group first those whose keys consist of few pieces of the rows.
    """
    groups, left, right = _groups(source, targets, min_length, options)
    n_sets = max(options.n_sets, options.max_sets // max(1, len(groups)))
    for group in sorted(groups, key=lambda each: (*each.rank, each.source, each.target)):
        column = source.columns[group.source]
        rows = [
            source.row(int(column.first_rows[left[group.source][number]]))
            for number in group.pairs.sources.tolist()
        ]
        keys = [right[group.target][number] for number in group.pairs.targets.tolist()]
        order = _fewest_pieces_first(group.pairs, rows, keys)[: group.limit]
        group = replace(group, pairs=_at(group.pairs, order))
        rows, keys = [rows[each] for each in order], [keys[each] for each in order]
        checks = rows[:_CHECKED], keys[:_CHECKED]
        drawn = _drawn_sets(group, [_form(key) for key in keys], n_sets, options)
        sets = [([rows[each] for each in one], [keys[each] for each in one]) for one in drawn]
        n_pieces = [max(least_pieces(*examples)) for examples in sets]
        for number in np.argsort(n_pieces, kind="stable").tolist():
            if n_pieces[number] <= options.max_pieces:
                yield group, sets[number], checks


def _drawn_sets(
    group: _Group, forms: Sequence[str], n_sets: int, options: FindingOptions
) -> Iterator[tuple[int, ...]]:
    """Yield sets of pairs without a value twice, of the best and then of as many as allowed.

    Every other set is of keys that have one form, as few formats of a column are alike by chance.
    """
    drawn = random.Random(f"{options.seed} {group.source} {group.target}")
    alike: dict[str, list[int]] = defaultdict(list)
    for place, form in enumerate(forms):
        alike[form].append(place)
    seen: set[tuple[int, ...]] = set()
    for size in (options.n_examples, 2):
        for number in range(n_sets):
            # The first sets are of the most telling pairs, which a sample has few of.
            among: Sequence[int] = range(min(len(group.pairs), 2 * size + 4 * number))
            if number % 2:
                same = alike[forms[drawn.choice(among)]]
                among = same[: bisect_left(same, len(among))]
            # More than needed, since some share a value.
            places = drawn.sample(among, min(len(among), 4 * size))
            chosen = _chosen(group.pairs, places, size)
            if len(chosen) == size and chosen not in seen:
                seen.add(chosen)
                yield chosen


def _form(text: str) -> str:
    """Return a text with one letter for each run of letters, and one digit for one of digits."""
    return re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "0", text))


def _chosen(pairs: RowPairs, places: list[int], size: int) -> tuple[int, ...]:
    chosen: list[int] = []
    sources: set[int] = set()
    targets: set[int] = set()
    for place in places:
        source, target = int(pairs.sources[place]), int(pairs.targets[place])
        if source not in sources and target not in targets:
            chosen.append(place)
            sources.add(source)
            targets.add(target)
            if len(chosen) == size:
                break
    return tuple(sorted(chosen))


def _groups(
    source: TextTable, targets: Sequence[TextColumn], min_length: int, options: FindingOptions
) -> tuple[list[_Group], list[list[int]], list[list[str]]]:
    """Find the most telling pairs of each two columns.

    Returns
    -------
    groups : list of _Group
        Whose numbers are places in the lists that follow.
    left : list of lists of int
        For each source column, numbers of the values that were looked at.
    right : list of lists of str
        For each target column, the values that were looked at.
    """
    n_targets = max((len(column.values) for column in targets), default=0)
    n_sources = max((len(column.values) for column in source.columns), default=0)
    sizes = sample_sizes(n_sources, n_targets, participation=options.participation)
    limit = options.n_pairs
    if sizes.n_source < n_sources or sizes.n_target < n_targets:
        limit = max(2 * options.n_examples, min(40, int(sizes.expected_pairs)))
    left = [_looked_at(column, sizes.n_source, 2 * options.seed) for column in source.columns]
    numbers = [_looked_at(column, sizes.n_target, 2 * options.seed + 1) for column in targets]
    columns = [*source.columns, *targets]
    texts = [
        column.values.take(pa.array(chosen, pa.int64())).to_pylist()
        for column, chosen in zip(columns, [*left, *numbers], strict=True)
    ]
    at = np.concatenate([[0], np.cumsum([len(each) for each in texts])])
    order = sorted_suffixes([lower(text) for each in texts for text in each])
    groups = []
    for one in range(len(source.columns)):
        for number in range(len(targets)):
            other = len(source.columns) + number
            sides = np.zeros(at[-1], np.int8)
            sides[at[one] : at[one + 1]] = 1
            sides[at[other] : at[other + 1]] = 2
            pairs = find_row_pairs(shared_prefixes(order, sides), sides, min_length=min_length)
            if len(pairs):
                pairs = replace(
                    pairs, sources=pairs.sources - at[one], targets=pairs.targets - at[other]
                )
                groups.append(_Group(one, number, _at(pairs, slice(options.n_pairs)), limit))
    return groups, left, texts[len(source.columns) :]


def _at(pairs: RowPairs, places: Any) -> RowPairs:
    return RowPairs(
        pairs.sources[places], pairs.targets[places], pairs.holders[places], pairs.lengths[places]
    )


def _fewest_pieces_first(pairs: RowPairs, rows: Sequence[Row], keys: Sequence[str]) -> list[int]:
    """Order pairs of as few holders by how long the pieces are that their keys consist of.

    A rare piece alone tells less: with many rows some share a long one by chance.
    """
    lengths = [
        len(key) / (1 + least_pieces([row], [key], constants=False)[0])
        for row, key in zip(rows, keys, strict=True)
    ]
    holders = pairs.holders.tolist()
    return sorted(range(len(keys)), key=lambda each: (holders[each], -lengths[each]))


def _looked_at(column: TextColumn, size: int, seed: int) -> list[int]:
    """Return numbers of values: of all that can be learned from, or of a sample."""
    lengths = pc.utf8_length(column.values).to_numpy(zero_copy_only=False)
    if not len(lengths) or np.median(lengths) > MAX_MEDIAN_LENGTH:
        return []
    usable = np.flatnonzero(lengths <= MAX_LEARNED)
    if len(usable) <= size:
        return usable.tolist()
    texts = column.values.take(pa.array(usable))
    return usable[sample_texts(texts, size, seed)].tolist()
