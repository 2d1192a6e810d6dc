"""Joins of two tables by equal keys, by learned programs, and by what is nearly equal then.

Source: E. Zhu, Search and Join Algorithms for Tables in Data Lakes, PhD thesis, University of
Toronto, 2019, chapter 4. What extends it: several programs, each learned from the rows that the
ones before it left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import InputError
from pexeso.transform.fuzzy.constrained import ALL_CONFIGURATIONS, fuzzy_join
from pexeso.transform.learning.chance import bound_on_luck, hits_by_chance
from pexeso.transform.learning.finding import FindingOptions, ProgramFit, find_program, find_variant
from pexeso.transform.learning.options import MAX_LUCK
from pexeso.transform.programs.applying import apply_program
from pexeso.transform.programs.program import Program
from pexeso.transform.texts import TextColumn, TextTable, key_columns


def by_equality(
    reading: TextTable, keyed: TextTable, candidates: Sequence[int]
) -> tuple[np.ndarray, int, int]:
    """Join rows by the columns that have most values in common.

    Numbers equal each other by chance: of several columns two of numbers count only where they
    have more in common than their digits explain.
    """
    best = np.full(reading.n_rows, -1, np.int32), 0, candidates[0] if candidates else 0
    max_hits = 0
    may_be_chance = len(reading.columns) > 1 or len(keyed.columns) > 1
    for key_column in candidates:
        values = keyed.columns[key_column].values
        for number, column in enumerate(reading.columns):
            numbers = places(column.values, values)
            hits = int((numbers >= 0).sum())
            both_numbers = column.is_number and keyed.columns[key_column].is_number
            if hits > max_hits and not (
                may_be_chance and both_numbers and _is_chance(hits, column.values, values)
            ):
                max_hits = hits
                at = np.where(column.codes >= 0, numbers[column.codes], -1)
                best = at.astype(np.int32), number, key_column
    return best


def _is_chance(hits: int, texts: pa.Array, keys: pa.Array) -> bool:
    """Return whether numbers drawn from either column would hit as many of the other's."""
    expected = (hits_by_chance(*sides) for sides in ((texts, keys), (keys, texts)))
    return all(bound_on_luck(hits, number) > MAX_LUCK for number in expected)


def places(texts: pa.Array, values: pa.Array) -> np.ndarray:
    """Return the number of each text among distinct values, or -1."""
    numbers = pc.index_in(texts.cast(values.type), values)
    return pc.fill_null(numbers, -1).to_numpy(zero_copy_only=False)


Direction = Literal["source to target", "target to source"]
KINDS = ("none", "equal", "program", "fuzzy")
"""How a row was joined, by number."""

DEFAULT_PROGRAMS = 12
"""That are learned at most, each from what the ones before it left."""

_LATER_SHARE = 0.01
"""Of the smaller side's values that a program after the first must hit, inclusive."""

_LATER_SHARE_OF_REST = 0.05
"""Of what is left, the same."""

_VARIANT_SHARE = 0.003
"""The same of a program that differs from one before it in a constant alone."""

_MIN_KEYS_OF_VARIANT = 2

_NEAR = 0.3
"""Largest distance of texts that are nearly equal; the source has none, so that what is left of two
small tables is joined whatever it is."""

_LEAST_OF_LONGER = 0.4
"""Share of the characters of the longer of two texts that are left, that the shorter one has."""

_MANY_TEXTS = 5_000
_QUICK_CONFIGURATIONS = tuple(
    mode for mode in ALL_CONFIGURATIONS if mode.tokeniser in ("word", "3-gram")
)
"""By which more texts than these are compared: the time grows with their square."""

_ENOUGH = 0.9
"""Share of the smaller side's values at which the other direction is not looked at."""

_ONE_TO_ONE = 0.95
"""Share of the joined keys with one text from which on each key has one partner alone."""


@dataclass(frozen=True, slots=True)
class TransformOptions:
    """How two tables are joined.

    Attributes
    ----------
    finding : FindingOptions
    max_programs : int
        At least 1. With 1, and `LearningOptions.extended` false, as published.
    fuzzy : bool
        Join what is nearly equal of the rest.
    max_fuzzy : int
        Distinct values of a side above which nothing is joined that is not equal. Above 5,000
        texts are compared by words and 3-grams alone.
    directions : tuple
        Which table's rows programs read.
    keys_repeat : bool
        Columns that repeat values may be keys too.
    checked : tuple
        Directions in which a lone column of the key table must tell its rows apart too.
    """

    finding: FindingOptions = field(default_factory=FindingOptions)
    max_programs: int = DEFAULT_PROGRAMS
    fuzzy: bool = True
    max_fuzzy: int = 20_000
    directions: tuple[Direction, ...] = ("source to target", "target to source")
    keys_repeat: bool = False
    checked: tuple[Direction, ...] = ()


@dataclass(frozen=True, slots=True)
class Transformation:
    """What joins two tables.

    Attributes
    ----------
    direction : {"source to target", "target to source"}
        Whose rows the programs read: the reading table; the other is the key table.
    programs : tuple of Program
        Each for the rows that found no partner by the ones before it. None where nothing was
        learned.
    columns : tuple of int
        Of the reading table, whose values are joined.
    key_column : int
        Of the key table.
    partners : int32 (r,)
        For each row of the reading table the number of its key among the distinct values of the
        key column, or -1.
    kinds : int8 (r,)
        How each row was joined: place in `KINDS`.
    distances : float64 (r,)
        Of a row joined as nearly equal, from what a program writes for it to its key; else 0.
    best : ProgramFit, optional
        What was learned first, also where it was not accepted.
    n_joinable : int
        The smaller number: of the reading table's rows, and of distinct keys.
    """

    direction: Direction
    programs: tuple[Program, ...]
    columns: tuple[int, ...]
    key_column: int
    partners: np.ndarray
    kinds: np.ndarray
    distances: np.ndarray
    best: ProgramFit | None
    n_joinable: int

    def joins_by_first(self, n_keys: int) -> bool:
        """Return whether the first program joins at least so many keys."""
        return bool(self.programs) and self.best is not None and self.best.n_keys >= n_keys

    @property
    def collapses(self) -> bool:
        """Whether the first program makes one key of several values."""
        return bool(self.programs) and self.best is not None and self.best.collapses

    @property
    def n_keys(self) -> int:
        """Distinct keys that have a partner by equality or by a program."""
        return len(np.unique(self.partners[(self.kinds > 0) & (self.kinds < KINDS.index("fuzzy"))]))


def learn_transformation(
    source: TextTable, target: TextTable, options: TransformOptions | None = None
) -> Transformation:
    """Learn how to join two tables.

    Parameters
    ----------
    source, target : TextTable
        With a single column in one of them, it is taken to hold the key, whether its values are
        distinct or not; of more columns, those are found that join best.
    options : TransformOptions, optional

    Examples
    --------
    >>> names = ["Suhela Chowdhury", "Maureen Paluzzi", "Carolyn Craddock", "Kelly Moore"]
    >>> mails = ["kmoore@a.us", "ccraddock@a.us", "schowdhury@a.us", "mpaluzzi@a.us"]
    >>> found = learn_transformation(TextTable.of({"Name": names}), TextTable.of({"Mail": mails}))
    >>> [mails[found.partners[row]] for row in range(4)]
    ['schowdhury@a.us', 'mpaluzzi@a.us', 'ccraddock@a.us', 'kmoore@a.us']
    """
    options = options or TransformOptions()
    sides = {"source to target": (source, target), "target to source": (target, source)}
    best: Transformation | None = None
    for way in options.directions:
        candidate = _one_way(*sides[way], way, options, best)
        if best is None or _rank(candidate) > _rank(best):
            best = candidate
        if not best.collapses and best.n_keys >= _ENOUGH * best.n_joinable:
            break
    if best is None:
        raise InputError("A transformation needs a direction. Got none.")
    if options.fuzzy and best.programs:
        best = _with_fuzzy(best, *sides[best.direction], options)
    return best


def apply_programs(
    reading: TextTable,
    keyed: TextTable,
    direction: Direction,
    programs: Sequence[Program],
    options: TransformOptions | None = None,
    *,
    equal_column: int | None = None,
) -> Transformation:
    """Join two tables by programs that are there already."""
    options = options or TransformOptions()
    columns = tuple(sorted({position for program in programs for position in program.columns}))
    partners = np.full(reading.n_rows, -1, np.int32)
    if equal_column is not None:
        equal = TextTable((reading.columns[equal_column],))
        partners = by_equality(equal, keyed, [0])[0]
    kinds = np.where(partners >= 0, KINDS.index("equal"), 0).astype(np.int8)
    for number in range(len(programs)):
        used = programs[: number + 1]
        partners = _joined(reading, keyed.columns[0], programs[number], partners, used)
    kinds[(kinds == 0) & (partners >= 0)] = KINDS.index("program")
    n_joinable = min(reading.n_rows, len(keyed.columns[0].values))
    zeros = np.zeros(reading.n_rows)
    transformation = Transformation(
        direction, tuple(programs), columns, 0, partners, kinds, zeros, None, n_joinable
    )
    return _with_fuzzy(transformation, reading, keyed, options) if options.fuzzy else transformation


def _rank(transformation: Transformation) -> tuple[int, int]:
    """Return what the better of two directions has more of."""
    n_operators = sum(len(program.operators) for program in transformation.programs)
    return transformation.n_keys, -n_operators


def _one_way(
    reading: TextTable,
    keyed: TextTable,
    direction: Direction,
    options: TransformOptions,
    other: Transformation | None = None,
) -> Transformation:
    """Join by equality, then by one program after the other.

    No second program is learned where the first joins less than that of the other direction.
    """
    is_named = len(keyed.columns) == 1 and direction not in options.checked
    if is_named or options.keys_repeat:
        candidates = list(range(len(keyed.columns)))
    else:
        candidates = key_columns(keyed)
    equal = by_equality(reading, keyed, candidates)
    # Where columns are to be found, equal values of some others may be chance.
    partners, column, key_column = equal
    thorough = other is None or not other.programs
    first = _learned(reading, keyed, candidates, partners, key_column, options, thorough=thorough)
    if first is not None and first[1].accepted and first[0] != key_column:
        key_column = first[0]
        partners, column, _ = by_equality(reading, keyed, [key_column])
    kinds = np.where(partners >= 0, KINDS.index("equal"), 0).astype(np.int8)
    programs: list[Program] = []
    best = first[1] if first is not None else None
    latest = best
    while latest is not None and latest.accepted:
        programs.append(latest.program)
        partners = _joined(reading, keyed.columns[key_column], latest.program, partners, programs)
        kinds[(kinds == 0) & (partners >= 0)] = KINDS.index("program")
        if len(programs) == options.max_programs:
            break
        if len(programs) == 1 and other is not None and other.joins_by_first(latest.n_keys):
            break
        latest = _later(reading, keyed, partners, key_column, programs, options)
    columns = tuple(sorted({position for program in programs for position in program.columns}))
    n_joinable = min(reading.n_rows, len(keyed.columns[key_column].values)) if candidates else 0
    return Transformation(
        direction,
        tuple(programs),
        columns or (column,),
        key_column,
        partners,
        kinds,
        np.zeros(reading.n_rows),
        best,
        n_joinable,
    )


def _learned(
    reading: TextTable,
    keyed: TextTable,
    candidates: Sequence[int],
    partners: np.ndarray,
    key_column: int,
    options: TransformOptions,
    *,
    thorough: bool,
) -> tuple[int, ProgramFit] | None:
    """Learn a program from the rows and keys that have no partner; None where there is none."""
    rest = _free_rows(reading, partners)
    if not rest.n_rows:
        return None
    targets = [
        _free_keys(keyed.columns[number], partners)
        if number == key_column
        else keyed.columns[number]
        for number in candidates
    ]
    best = find_program(rest, targets, options.finding, thorough=thorough)
    return None if best is None else (candidates[best.target], best)


def _later(
    reading: TextTable,
    keyed: TextTable,
    partners: np.ndarray,
    key_column: int,
    programs: Sequence[Program],
    options: TransformOptions,
) -> ProgramFit | None:
    """Return one more program for what is left: one before with another constant, or a new one."""
    rest = _free_rows(reading, partners)
    if not rest.n_rows:
        return None
    keys = keyed.columns[key_column]
    free = _free_keys(keys, partners)
    fewer = min(reading.n_rows, len(keys.values))
    finding = options.finding
    floor = max(_MIN_KEYS_OF_VARIANT, int(np.ceil(_VARIANT_SHARE * fewer)))
    variant = find_variant(programs, rest, free, replace(finding, min_keys=floor, min_share=0.0))
    if variant is not None:
        return variant
    floor = max(finding.min_keys, int(np.ceil(_LATER_SHARE * fewer)))
    later = replace(finding, min_keys=floor, min_share=min(finding.min_share, _LATER_SHARE_OF_REST))
    return find_program(rest, [free], later, thorough=False)


def _free_rows(table: TextTable, partners: np.ndarray) -> TextTable:
    free = pa.array(np.flatnonzero(partners < 0))
    return TextTable(tuple(TextColumn(part.name, part.cells.take(free)) for part in table.columns))


def _free_keys(keys: TextColumn, partners: np.ndarray) -> TextColumn:
    is_used = np.zeros(len(keys.values), bool)
    is_used[partners[partners >= 0]] = True
    return TextColumn(keys.name, keys.values.take(pa.array(np.flatnonzero(~is_used))))


def _joined(
    reading: TextTable,
    keys: TextColumn,
    program: Program,
    partners: np.ndarray,
    programs: Sequence[Program],
) -> np.ndarray:
    """Add the partners that a program finds for rows that have none."""
    free = np.flatnonzero(partners < 0)
    cells = [column.cells.take(pa.array(free)) for column in reading.columns]
    numbers = places(apply_program(program, cells), keys.values)
    if len(programs) > 1 and _is_one_to_one(reading, partners, programs):
        is_used = np.zeros(len(keys.values) + 1, bool)
        is_used[partners] = True
        numbers = np.where(is_used[numbers], -1, numbers)
    partners = partners.copy()
    partners[free] = numbers
    return partners


def _is_one_to_one(reading: TextTable, partners: np.ndarray, programs: Sequence[Program]) -> bool:
    """Return whether nearly all joined keys have one text, of the columns that programs read."""
    joined = np.flatnonzero(partners >= 0)
    columns = {position for program in programs for position in program.columns}
    codes = [reading.columns[at].codes[joined] for at in columns]
    pairs = np.unique(np.column_stack([partners[joined], *codes]), axis=0)
    counts = np.unique(pairs[:, 0], return_counts=True)[1]
    return int((counts == 1).sum()) >= _ONE_TO_ONE * len(counts)


def _with_fuzzy(
    transformation: Transformation, reading: TextTable, keyed: TextTable, options: TransformOptions
) -> Transformation:
    """Join rows without a partner to keys that are nearly what a program writes for them.

    First among all texts and all keys, as published: none may have a second partner as near. Then
    among those that are left, where no digit differs and neither is much shorter.
    """
    keys = keyed.columns[transformation.key_column]
    written = _written(transformation, reading)
    if max(len(pc.unique(written)), len(keys.values)) > options.max_fuzzy:
        return transformation
    transformation = _nearly_equal(transformation, written, written, keys, keys)
    left = written.filter(pa.array(transformation.partners < 0))
    one_to_one = _is_one_to_one(reading, transformation.partners, transformation.programs)
    free = _free_keys(keys, transformation.partners) if one_to_one else keys
    return _nearly_equal(transformation, written, left, keys, free, alike=True)


def _nearly_equal(
    base: Transformation,
    written: pa.Array,
    texts: pa.Array,
    keys: TextColumn,
    among: TextColumn,
    *,
    alike: bool = False,
) -> Transformation:
    """Join rows without a partner by the constrained fuzzy join of some texts and some keys."""
    texts = pc.unique(texts).drop_null()
    if not len(texts) or not len(among.values):
        return base
    many = max(len(texts), len(among.values)) > _MANY_TEXTS
    joined = fuzzy_join(
        texts.to_pylist(),
        among.values.to_pylist(),
        max_distance=_NEAR,
        configurations=_QUICK_CONFIGURATIONS if many else ALL_CONFIGURATIONS,
    )
    ours, others = texts.take(pa.array(joined.derived)), among.values.take(pa.array(joined.keys))
    distances = joined.distances
    if alike:
        lengths = pc.utf8_length(ours), pc.utf8_length(others)
        min_lengths = pc.multiply(pc.max_element_wise(*lengths), _LEAST_OF_LONGER)
        same = pc.and_(
            pc.equal(_digits(ours), _digits(others)),
            pc.greater_equal(pc.min_element_wise(*lengths), min_lengths),
        )
        ours, others = ours.filter(same), others.filter(same)
        distances = distances[same.to_numpy(zero_copy_only=False)]
    free = np.flatnonzero(base.partners < 0)
    numbers = places(written.take(pa.array(free)), ours) if len(ours) else np.full(len(free), -1)
    free, numbers = free[numbers >= 0], numbers[numbers >= 0]
    partners, kinds, far = base.partners.copy(), base.kinds.copy(), base.distances.copy()
    partners[free] = places(others, keys.values)[numbers]
    kinds[free] = KINDS.index("fuzzy")
    far[free] = distances[numbers]
    return replace(base, partners=partners, kinds=kinds, distances=far)


def _digits(texts: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(texts, r"\D+", "")


def _written(transformation: Transformation, reading: TextTable) -> pa.Array:
    """Return the text of each row: of the program that joined it, else of the first that applies.

    Where there are no programs, it is the cell.
    """
    if not transformation.programs:
        return reading.columns[transformation.columns[0]].cells
    cells = [column.cells for column in reading.columns]
    values: pa.Array | None = None
    for program in transformation.programs:
        text = apply_program(program, cells)
        values = text if values is None else pc.coalesce(values, text)
    return values
