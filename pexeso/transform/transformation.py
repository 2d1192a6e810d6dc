"""Joins of two tables by equal keys, by learned programs, and by what is nearly equal then.

Source: E. Zhu, Search and Join Algorithms for Tables in Data Lakes, PhD thesis, University of
Toronto, 2019, chapter 4. What extends it: several programs, each learned from the rows that the
ones before it left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.engine.lists import offsets_of
from pexeso.errors import InputError
from pexeso.transform.fuzzy import ALL_CONFIGURATIONS, fuzzy_join
from pexeso.transform.learning.chance import bound_on_luck, hits_by_chance
from pexeso.transform.learning.example_sets import MAX_LUCK
from pexeso.transform.learning.finding import (
    MAX_COLLAPSED,
    FindingOptions,
    ProgramFit,
    find_program,
    find_variant,
)
from pexeso.transform.programs.applying import apply_program
from pexeso.transform.programs.patterns import Pattern, allowed
from pexeso.transform.programs.program import Program
from pexeso.transform.texts import TextColumn, TextTable, key_columns


def by_equality(
    reading: TextTable, keyed: TextTable, candidates: Sequence[int], *, as_read: bool = False
) -> tuple[np.ndarray, int, int]:
    """Join rows by the columns that have most values in common.

    With `as_read` cells are read first, so that more of them are equal (`pexeso.lake.readings`).
    Numbers equal each other by chance: of several columns two of numbers count only where they
    have more in common than their digits explain.
    """
    best = np.full(reading.n_rows, -1, np.int32), 0, candidates[0] if candidates else 0
    may_be_chance = len(reading.columns) > 1 or len(keyed.columns) > 1
    texts, key_texts = (
        [column.forms if as_read else column.values for column in columns]
        for columns in (reading.columns, [keyed.columns[number] for number in candidates])
    )
    max_hits = 0
    for place, n_hits in enumerate(_in_common(texts, key_texts)):
        keys = keyed.columns[candidates[place]]
        for number in np.flatnonzero(n_hits > max_hits).tolist():
            column, hits = reading.columns[number], int(n_hits[number])
            both_numbers = column.is_number and keys.is_number
            if hits > max_hits and not (
                may_be_chance and both_numbers and _is_chance(hits, column.values, keys.values)
            ):
                max_hits = hits
                numbers = places(texts[number], key_texts[place])
                at = np.where(column.codes >= 0, numbers[column.codes], -1)
                best = at.astype(np.int32), number, candidates[place]
    return best


def _in_common(columns: Sequence[pa.Array], keys: Sequence[pa.Array]) -> Iterator[np.ndarray]:
    """Yield, for each column of keys, how many texts of each of the others are keys."""
    parts = [part.cast(pa.large_string()) for part in (*keys, *columns)]
    encoded = pa.chunked_array(parts, pa.large_string()).combine_chunks().dictionary_encode()
    codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
    starts = offsets_of(np.array(list(map(len, parts)), np.int64))
    others, starts_of_others = codes[starts[len(keys)] :], starts[len(keys) :] - starts[len(keys)]
    is_key = np.zeros(len(encoded.dictionary) + 1, bool)  # the last is that of nulls
    for place in range(len(keys)):
        own = codes[starts[place] : starts[place + 1]]
        is_key[own] = True
        is_key[-1] = False
        yield np.diff(offsets_of(is_key[others])[starts_of_others])
        is_key[own] = False


def _is_chance(hits: int, texts: pa.Array, keys: pa.Array) -> bool:
    expected = (hits_by_chance(*sides) for sides in ((texts, keys), (keys, texts)))
    return all(bound_on_luck(hits, number) > MAX_LUCK for number in expected)


def places(texts: pa.Array, values: pa.Array) -> np.ndarray:
    numbers = pc.index_in(texts.cast(values.type), values, skip_nulls=True)
    return pc.fill_null(numbers, -1).to_numpy(zero_copy_only=False)


Direction = Literal["source to target", "target to source"]

# What the cells of each column that a program reads must look like.
Patterns = Mapping[int, Pattern]

# How a row was joined, by number.
KINDS = ("none", "equal", "program", "fuzzy")

# Programs that are learned at most, each from the rows that the ones before it left.
DEFAULT_PROGRAMS = 12

# Share of the smaller side's values that a program after the first must hit, inclusive.
_LATER_SHARE = 0.01

# Share of the values that are left that it must hit, inclusive.
_LATER_SHARE_OF_REST = 0.05

# Share of the smaller side's values that a program must hit that differs from one before it in a
# constant alone, and the least number.
_VARIANT_SHARE = 0.003
_MIN_KEYS_OF_VARIANT = 2

# Rows that are equal to keys by chance.
_MIN_FREED = 3

# Luck that is allowed to a program after the first, by the rows that are joined already.
_LUCK_OF_LATER = 0.01

# Largest distance of texts that are nearly equal; the source has none, so that what is left of two
# small tables is joined whatever it is.
_NEAR = 0.3

_SHARED_LENGTH = 3  # characters that all keys begin or end with

# Largest distance of such texts by the default model, a little above that of searches.
_SIMILAR = 0.45

# Share of the characters of the longer of two texts that are left, that the shorter one has.
_LEAST_OF_LONGER = 0.4

# Distinct values of a side above which nothing is joined that is not equal.
_MAX_SIMILAR = 20_000

# Texts of a side, and pairs of texts, above which words and 3-grams alone are compared: the time
# grows with the pairs.
_MANY_TEXTS, _MANY_PAIRS = 5_000, 10_000_000
_QUICK_CONFIGURATIONS = tuple(
    mode for mode in ALL_CONFIGURATIONS if mode.tokeniser in ("word", "3-gram")
)

# Share of the smaller side's values at which the other direction is not looked at.
_ENOUGH = 0.9

# Share of the keys by which one direction may join more than the other and be no better.
_HARDLY_MORE = 0.05

# Characters of its keys, as a share of those of the other direction, up to which they are parts.
_PART_OF_KEY = 0.6

# Share of the joined keys with one text from which on each key has one partner alone.
_ONE_TO_ONE = 0.95


@dataclass(frozen=True, slots=True)
class TransformOptions:
    """How two tables are joined."""

    finding: FindingOptions = field(default_factory=FindingOptions)
    max_programs: int = DEFAULT_PROGRAMS  # At least 1
    fuzzy: bool = True  # Join what is nearly equal of the rest
    # Which table's rows programs read
    directions: tuple[Direction, ...] = ("source to target", "target to source")
    keys_repeat: bool = False  # Columns that repeat values may be keys too
    # Accept the best rule although it may be chance, and cells unlike those it was learned from
    accept: bool = False
    # Directions in which a lone column of the key table must identify its rows too
    checked: tuple[Direction, ...] = ()


@dataclass(frozen=True, slots=True)
class Transformation:
    """What joins two tables: one whose rows programs read, and one that has keys."""

    direction: Direction  # Whose rows the programs read
    programs: tuple[Program, ...]  # Each for the rows that found no partner by those before it
    columns: tuple[int, ...]  # Of the reading table, whose values are joined
    key_column: int  # Of the key table
    # int32 (r,): for each row that is read the number of its key among the distinct ones, or -1
    partners: np.ndarray
    kinds: np.ndarray  # int8 (r,): how each row was joined, by its place in `KINDS`
    # float64 (r,): of a row joined as nearly equal, from what a program writes for it to its key
    distances: np.ndarray
    best: ProgramFit | None  # What was learned first, also where it was not accepted
    n_joinable: int  # The smaller number: of the reading table's rows, and of distinct keys
    # What the cells must look like that each saved program is applied to, by column
    patterns: tuple[Patterns, ...] = ()
    refused: np.ndarray | None = None  # int64: rows that a saved program leaves for that reason

    @property
    def n_keys(self) -> int:
        return len(np.unique(self.partners[(self.kinds > 0) & (self.kinds < KINDS.index("fuzzy"))]))


def learn_transformation(
    source: TextTable, target: TextTable, options: TransformOptions | None = None
) -> Transformation:
    options = options or TransformOptions()
    sides = {"source to target": (source, target), "target to source": (target, source)}
    best: _Join | None = None
    for way in options.directions:
        join = _one_way(way, *sides[way], options, best)
        if best is None or join.is_better_than(best):
            best = join
        # One rule of the other direction may do what takes several of this one.
        is_one = len(best.programs) <= 1
        if best.n_keys >= _ENOUGH * best.n_joinable and is_one and not best.collapses:
            break
    if best is None:
        raise InputError("directions must name one direction or both. Got none.")
    if options.fuzzy and best.programs:
        best.add_similar()
    return best.result()


def apply_programs(
    reading: TextTable,
    keyed: TextTable,
    direction: Direction,
    programs: Sequence[Program],
    options: TransformOptions,
    *,
    equal_column: int | None = None,
    patterns: Sequence[Patterns] = (),
) -> Transformation:
    """Join two tables by programs that were saved; the first column of `keyed` is the key."""
    partners = np.full(reading.n_rows, -1, np.int32)
    if equal_column is not None:
        equal = TextTable((reading.columns[equal_column],))
        partners = by_equality(equal, keyed, [0])[0]
    join = _Join(direction, reading, keyed, 0, partners, 0)
    join.patterns = tuple(patterns)
    for program in programs:
        join.apply(program)
    join.add_read([0])
    if options.fuzzy:
        join.add_similar()
    return join.result()


def _one_way(
    direction: Direction,
    reading: TextTable,
    keyed: TextTable,
    options: TransformOptions,
    other: _Join | None,
) -> _Join:
    """Join by equality, then by programs: one, where the other direction's first joins more."""
    is_named = len(keyed.columns) == 1 and direction not in options.checked
    if is_named or options.keys_repeat:
        candidates = list(range(len(keyed.columns)))
    else:
        candidates = key_columns(keyed)
    finding = replace(options.finding, named=options.finding.named and not options.checked)
    partners, column, key_column = by_equality(reading, keyed, candidates)
    rest = _free_rows(reading, partners)
    best: ProgramFit | None = None
    if rest.n_rows:
        targets = [
            _free_keys(keyed.columns[number], partners)
            if number == key_column
            else keyed.columns[number]
            for number in candidates
        ]
        thorough = other is None or not other.programs
        best = find_program(rest, targets, finding, thorough=thorough)
        if best is not None and options.accept:
            best = replace(best, accepted=True)
    # Where columns are to be found, equal values of some others may be chance.
    if best is not None and best.accepted and candidates[best.target] != key_column:
        key_column = candidates[best.target]
        partners, column, _ = by_equality(reading, keyed, [key_column])
    join = _Join(direction, reading, keyed, key_column, partners, column, best)
    if not candidates:
        join.n_joinable = 0
    latest = best
    while latest is not None and latest.accepted:
        join.apply(latest.program)
        if len(join.programs) == options.max_programs:
            break
        if len(join.programs) == 1 and other is not None and other.joins_by_first(latest.n_keys):
            break
        latest = join.next_program(finding)
    join.add_read(candidates)
    return join


class _Join:
    """Rows of the reading table, which get a partner among the keys one way after the other."""

    def __init__(
        self,
        direction: Direction,
        reading: TextTable,
        keyed: TextTable,
        key_column: int,
        partners: np.ndarray,
        column: int,
        best: ProgramFit | None = None,
    ) -> None:
        self.direction, self.reading, self.keyed = direction, reading, keyed
        self.key_column, self.keys = key_column, keyed.columns[key_column]
        self.partners, self.column, self.best = partners, column, best
        self.kinds = np.where(partners >= 0, KINDS.index("equal"), 0).astype(np.int8)
        self.distances = np.zeros(reading.n_rows)
        self.programs: list[Program] = []
        self.n_joinable = min(reading.n_rows, len(self.keys.values))
        self.patterns: tuple[Patterns, ...] = ()
        self.refused = np.zeros(reading.n_rows, bool)

    @property
    def columns(self) -> tuple[int, ...]:
        return tuple(sorted({at for program in self.programs for at in program.columns}))

    @property
    def n_keys(self) -> int:
        return len(np.unique(self.partners[self.partners >= 0]))

    def is_better_than(self, other: _Join) -> bool:
        """Return whether this direction joins more keys, or nearly as many and whole ones.

        A rule that writes a part of the other's keys, such as the surname, hits those of other rows
        by chance.
        """
        one, two = (self.n_keys, -self.n_operators), (other.n_keys, -other.n_operators)
        nearly_as_many = abs(one[0] - two[0]) <= _HARDLY_MORE * max(one[0], two[0])
        lengths = self.key_length, other.key_length
        is_part = min(lengths) <= _PART_OF_KEY * max(lengths)
        if nearly_as_many and is_part and not (self.collapses or other.collapses):
            return lengths[0] > lengths[1]
        return one > two

    @property
    def key_length(self) -> float:
        joined = pa.array(np.unique(self.partners[self.partners >= 0]))
        return pc.mean(pc.utf8_length(self.keys.values.take(joined))).as_py() or 0.0

    @property
    def n_operators(self) -> int:
        return sum(len(program.operators) for program in self.programs)

    @property
    def collapses(self) -> bool:
        """Whether the first program makes one key of several values."""
        return bool(self.programs) and self.best is not None and self.best.collapses

    def joins_by_first(self, n_keys: int) -> bool:
        return bool(self.programs) and self.best is not None and self.best.n_keys >= n_keys

    def apply(self, program: Program) -> None:
        self.programs.append(program)
        if len(self.programs) == 1:
            self._free_equal_by_chance()
        free = np.flatnonzero(self.partners < 0)
        numbers = places(self._written(len(self.programs) - 1, free), self.keys.values)
        if len(self.programs) > 1 and self._is_one_to_one():
            is_used = np.zeros(len(self.keys.values) + 1, bool)
            is_used[self.partners] = True
            numbers = np.where(is_used[numbers], -1, numbers)
        self.partners[free] = numbers
        self.kinds[free[numbers >= 0]] = KINDS.index("program")

    def _free_equal_by_chance(self) -> None:
        """Free rows that are equal to a key, where most have another by the first program.

        So it is with dates, the day first in one table and the month in the other.
        """
        rows = np.flatnonzero(self.partners >= 0)
        numbers = places(self._written(0, rows), self.keys.values)
        others = rows[(numbers >= 0) & (numbers != self.partners[rows])]
        if len(others) >= _MIN_FREED and 2 * len(others) > (numbers >= 0).sum():
            self.partners[others], self.kinds[others] = -1, 0

    def add_read(self, candidates: Sequence[int]) -> None:
        """Join rows without a partner to keys that are equal to them as cells are read."""
        numbers = self.columns or (self.column,)
        if len(numbers) > 1 or (self.partners >= 0).all():
            return
        if (self.partners >= 0).any():
            candidates = [self.key_column]
        else:
            numbers = tuple(range(len(self.reading.columns)))
        columns = TextTable(tuple(self.reading.columns[number] for number in numbers))
        partners, place, key_column = by_equality(columns, self.keyed, candidates, as_read=True)
        free = np.flatnonzero((self.partners < 0) & (partners >= 0))
        if not len(free):
            return
        self.column, self.key_column = numbers[place], key_column
        self.keys = self.keyed.columns[key_column]
        self.partners[free] = partners[free]
        self.kinds[free] = KINDS.index("equal")

    def _written(self, number: int, rows: np.ndarray) -> pa.Array:
        """Return what a program writes for rows, null for those that its patterns refuse."""
        cells = [column.cells.take(pa.array(rows)) for column in self.reading.columns]
        written = apply_program(self.programs[number], cells)
        usable = np.ones(len(rows), bool)
        for column, pattern in (self.patterns[number] if self.patterns else {}).items():
            usable &= allowed(pattern, cells[column])
        self.refused[rows[~usable]] = True
        return pc.if_else(pa.array(usable), written, pa.scalar(None, written.type))

    def next_program(self, finding: FindingOptions) -> ProgramFit | None:
        """Return one more program for what is left: one with another constant, or a new one."""
        rest = _free_rows(self.reading, self.partners)
        if not rest.n_rows:
            return None
        free = _free_keys(self.keys, self.partners)
        fewer = min(self.reading.n_rows, len(self.keys.values))
        floor = max(_MIN_KEYS_OF_VARIANT, int(np.ceil(_VARIANT_SHARE * fewer)))
        options = replace(finding, min_keys=floor, min_share=0.0)
        variant = find_variant(self.programs, rest, free, options)
        if variant is not None and not self._may_be_chance(variant, rest.n_rows):
            return variant
        floor = max(finding.min_keys, int(np.ceil(_LATER_SHARE * fewer)))
        min_share = min(finding.min_share, _LATER_SHARE_OF_REST)
        options = replace(finding, min_keys=floor, min_share=min_share)
        latest = find_program(rest, [free], options, thorough=False)
        return None if latest is None or self._may_be_chance(latest, rest.n_rows) else latest

    def _may_be_chance(self, fit: ProgramFit, n_free: int) -> bool:
        """Return whether a program writes keys of others as often for rows that have their own.

        Keys that no row has may be other names of their own keys, unless it writes some that one
        has, or one for several rows where the programs before write each for one.
        """
        if fit.collapses and self._is_one_to_one():
            return True
        rows = np.flatnonzero(self.partners >= 0)
        cells = [column.cells.take(pa.array(rows)) for column in self.reading.columns]
        numbers = places(apply_program(fit.program, cells), self.keys.values)
        wrong = numbers[(numbers >= 0) & (numbers != self.partners[rows])]
        if not np.isin(wrong, self.partners[rows]).any():
            return False
        expected = len(wrong) * n_free / len(rows)
        return bound_on_luck(fit.n_keys, expected) > _LUCK_OF_LATER

    def _is_one_to_one(self) -> bool:
        """Return whether nearly all joined keys have one text, of the columns that are read."""
        counts = np.unique(
            self._links(np.flatnonzero(self.partners >= 0))[:, 0], return_counts=True
        )[1]
        return int((counts == 1).sum()) >= _ONE_TO_ONE * len(counts)

    def _links(self, rows: np.ndarray) -> np.ndarray:
        """Return the distinct pairs of a key and a text, of the columns that programs read."""
        codes = [self.reading.columns[at].codes[rows] for at in self.columns]
        return np.unique(np.column_stack([self.partners[rows], *codes]), axis=0)

    def add_similar(self) -> None:
        """Join rows without a partner to keys that are nearly what a program writes for them.

        First among all texts and all keys, as published: none may have a second partner as near.
        But numbers that differ tell two texts apart. Then among those that are left, where no digit
        differs and neither is much shorter. Where all keys end alike, the default model has to
        find the same ones.
        """
        rows = np.arange(self.reading.n_rows)
        written = pc.coalesce(*(self._written(at, rows) for at in range(len(self.programs))))
        if max(len(pc.unique(written)), len(self.keys.values)) > _MAX_SIMILAR:
            return
        is_one_to_one = self._is_one_to_one()
        self._add_similar(written, written, self.keys)
        left = written.filter(pa.array(self.partners < 0))
        keys = _free_keys(self.keys, self.partners) if self._is_one_to_one() else self.keys
        self._add_similar(written, left, keys, alike=True)
        self._leave_unlike(written, is_one_to_one=is_one_to_one)

    def _add_similar(
        self, written: pa.Array, texts: pa.Array, among: TextColumn, *, alike: bool = False
    ) -> None:
        """Join rows without a partner by the constrained fuzzy join of some texts and some keys."""
        texts = pc.unique(texts).drop_null()
        if not len(texts) or not len(among.values):
            return
        sizes = len(texts), len(among.values)
        many = max(sizes) > _MANY_TEXTS or sizes[0] * sizes[1] > _MANY_PAIRS
        joined = fuzzy_join(
            texts.to_pylist(),
            among.values.to_pylist(),
            max_distance=_NEAR,
            configurations=_QUICK_CONFIGURATIONS if many else ALL_CONFIGURATIONS,
        )
        own, others = texts.take(pa.array(joined.derived)), among.values.take(pa.array(joined.keys))
        digits = _digits(own), _digits(others)
        same = pc.equal(*digits)
        if alike:
            lengths = pc.utf8_length(own), pc.utf8_length(others)
            min_lengths = pc.multiply(pc.max_element_wise(*lengths), _LEAST_OF_LONGER)
            same = pc.and_(same, pc.greater_equal(pc.min_element_wise(*lengths), min_lengths))
        else:
            same = pc.or_(same, pc.or_(*(pc.equal(side, "") for side in digits)))
        own, others = own.filter(same), others.filter(same)
        distances = joined.distances[same.to_numpy(zero_copy_only=False)]
        if not len(own):
            return
        free = np.flatnonzero(self.partners < 0)
        numbers = places(written.take(pa.array(free)), own)
        free, numbers = free[numbers >= 0], numbers[numbers >= 0]
        self.partners[free] = places(others, self.keys.values)[numbers]
        self.kinds[free] = KINDS.index("fuzzy")
        self.distances[free] = distances[numbers]

    def _leave_unlike(self, written: pa.Array, *, is_one_to_one: bool) -> None:
        """Leave rows alone whose key the default model does not find nearest among all keys.

        That is where all keys begin or end alike, which counts little to it. Where keys have one
        text, none is given to several that it does not take for the same.
        """
        rows = np.flatnonzero(self.kinds == KINDS.index("fuzzy"))
        if not len(rows) or not _share_an_end(self.keys.values):
            return
        from pexeso.transform.nearest import nearest_values  # brings the model

        texts = written.take(pa.array(rows)).dictionary_encode()
        nearest, far = nearest_values(texts.dictionary, self.keys.values, _SIMILAR)
        at = texts.indices.to_numpy()
        self._leave(rows[nearest[at] != self.partners[rows]])
        if is_one_to_one:
            rows, at = rows[self.partners[rows] >= 0], at[self.partners[rows] >= 0]
            self._leave(self._shared(rows[far[at] > 0], self._links(rows)))

    def result(self) -> Transformation:
        self._leave_ambiguous()
        return Transformation(
            self.direction,
            tuple(self.programs),
            self.columns or (self.column,),
            self.key_column,
            self.partners,
            self.kinds,
            self.distances,
            self.best,
            self.n_joinable,
            self.patterns,
            np.flatnonzero(self.refused & (self.partners < 0)),
        )

    def _leave_ambiguous(self) -> None:
        """Leave rows alone whose key is written for other texts too, where these are few.

        One of them was written so by chance, and nothing shows which. Where they are many, keys
        have several texts, some of them perhaps equal to the key; where programs alone make one key
        of several, what they join is refused unless that is asked for. Of a handful of rows nobody
        can say which it is.
        """
        by_program = np.flatnonzero(self.kinds == KINDS.index("program"))
        exact = np.flatnonzero((self.kinds > 0) & (self.kinds < KINDS.index("fuzzy")))
        links = self._links(exact)
        if len(links) - len(np.unique(links[:, 0])) > MAX_COLLAPSED * len(links):
            return
        self._leave(self._shared(by_program, links))

    def _shared(self, rows: np.ndarray, links: np.ndarray) -> np.ndarray:
        """Return those of some rows whose keys have several texts."""
        keys, counts = np.unique(links[:, 0], return_counts=True)
        return rows[np.isin(self.partners[rows], keys[counts > 1])]

    def _leave(self, rows: np.ndarray) -> None:
        self.partners[rows], self.kinds[rows], self.distances[rows] = -1, 0, 0


def _share_an_end(keys: pa.Array) -> bool:
    """Return whether all keys begin alike, or end alike."""
    ends = (
        pc.unique(pc.utf8_slice_codeunits(texts, 0, _SHARED_LENGTH))
        for texts in (keys, pc.utf8_reverse(keys))
    )
    return any(len(end) == 1 for end in ends)


def _free_rows(table: TextTable, partners: np.ndarray) -> TextTable:
    free = pa.array(np.flatnonzero(partners < 0))
    return TextTable(tuple(TextColumn(part.name, part.cells.take(free)) for part in table.columns))


def _free_keys(keys: TextColumn, partners: np.ndarray) -> TextColumn:
    is_used = np.zeros(len(keys.values), bool)
    is_used[partners[partners >= 0]] = True
    return TextColumn(keys.name, keys.values.take(pa.array(np.flatnonzero(~is_used))))


def _digits(texts: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(texts, r"\D+", "")
