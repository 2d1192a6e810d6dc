"""The program that joins most keys of a target column, learned from the two tables alone.

Source: E. Zhu, Search and Join Algorithms for Tables in Data Lakes, PhD thesis, University of
Toronto, 2019, sections 4.2 and 4.3 (``LearnTransform``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.transform.learning.chance import bits_of_few, bound_on_luck, hits_by_chance
from pexeso.transform.learning.example_parts import CASINGS, examples_of
from pexeso.transform.learning.example_sets import (
    MIN_LENGTHS,
    ExampleGroup,
    FindingOptions,
    Pairs,
    example_sets,
    example_sets_by_starts,
    example_sets_by_words,
)
from pexeso.transform.learning.examples_to_program import Effort, learn_program
from pexeso.transform.programs.applying import apply_program
from pexeso.transform.programs.program import (
    MAX_OPERATORS,
    Constant,
    Extract,
    Operator,
    Program,
    cased,
)
from pexeso.transform.texts import TextColumn, TextTable

_RUN = re.compile(r"[^\W\d_]+|\d+|[\W_]+")
# Characters of a run of letters or digits that is looked for anywhere in a cell; a shorter one only
# next to the piece next to it.
_MIN_LETTERS, _MIN_DIGITS = 3, 2

# Rows in which a run is looked for before it is in all.
_MAX_ROWS = 8


# Places of a cell at which the text of a constant is looked for.
_MAX_START = 32


def generalised(program: Program, columns: Sequence[pa.Array], keys: pa.Array) -> Program:
    """Return a program that writes the same keys with fewer letters of its own."""
    written = apply_program(program, columns)
    is_key = pc.is_in(written, value_set=pc.cast(keys, written.type), skip_nulls=True)
    rows = pc.indices_nonzero(is_key)
    read = program.columns
    if not len(rows) or not read:
        return program
    cells = {column: columns[column].take(rows) for column in read}
    some = np.unique(np.linspace(0, len(rows) - 1, _MAX_ROWS).astype(int))
    examples = [
        [
            columns[at][rows[row].as_py()].as_py() if at in read else None
            for at in range(len(columns))
        ]
        for row in some.tolist()
    ]
    operators: list[Operator] = []
    for position, operator in enumerate(program.operators):
        if not isinstance(operator, Constant):
            operators.append(_without_words(operator, examples))
            continue
        runs = _RUN.findall(operator.text)
        for number, run in enumerate(runs):
            before = operators[-1] if operators else None
            is_last = number == len(runs) - 1 and position + 1 < len(program.operators)
            after = program.operators[position + 1] if is_last else None
            pieces = None
            if run[0].isalnum():
                piece = _piece_of(run, cells, before, after)
                pieces = [piece] if piece else _copies(run, examples)
            operators += pieces or [Constant(run)]
    changed = Program(_merged(operators))
    if len(changed.operators) > MAX_OPERATORS:
        return program
    same = pc.equal(apply_program(changed, columns).take(rows), written.take(rows))
    return changed if pc.all(pc.fill_null(same, False)).as_py() else program


def unfolded(
    program: Program, variants: Iterable[Program], columns: Sequence[pa.Array]
) -> Iterator[Program]:
    """Yield programs that write in the place of a constant what makes it different in each row."""
    texts: dict[int, list[str]] = {}
    for variant in variants:
        pairs = zip(program.operators, variant.operators, strict=False)
        differing = [at for at, (one, other) in enumerate(pairs) if one != other]
        if len(differing) == 1 and len(variant.operators) == len(program.operators):
            other = variant.operators[differing[0]]
            if isinstance(other, Constant):
                texts.setdefault(differing[0], []).append(other.text)
    for at, others in texts.items():
        own = program.operators[at]
        if not isinstance(own, Constant):
            continue
        every = [own.text, *others]
        head = _n_common(every)
        tail = _n_common([text[head:][::-1] for text in every])
        middles = {text[head : len(text) - tail] for text in every}
        if len({len(middle) for middle in middles}) != 1:
            continue
        n = len(next(iter(middles)))
        ends = Constant(own.text[:head]), Constant(own.text[len(own.text) - tail :])
        for column in program.columns:
            for start in range(_MAX_START):
                pieces = pc.unique(pc.utf8_slice_codeunits(columns[column], start, start + n))
                if middles <= set(pieces.to_pylist()):
                    middle = [ends[0], Extract(column, (), start, n), ends[1]]
                    kept = [one for one in middle if not isinstance(one, Constant) or one.text]
                    operators = [*program.operators[:at], *kept, *program.operators[at + 1 :]]
                    if len(operators) <= MAX_OPERATORS:
                        yield Program(_merged(operators))


def _n_common(texts: Sequence[str]) -> int:
    alike = (len(set(letters)) == 1 for letters in zip(*texts, strict=False))
    return sum(1 for _ in takewhile(bool, alike))


def _copies(run: str, rows: Sequence[Sequence[str | None]]) -> list[Operator] | None:
    """Return the fewest pieces of the rows that are always the run, also by a conversion."""
    least = _MIN_DIGITS if run.isdigit() else _MIN_LETTERS
    for end in range(len(run), least - 1, -1):
        piece = _copy(run[:end], rows)
        rest = [] if end == len(run) else _copies(run[end:], rows)
        if piece is not None and rest is not None:
            return [piece, *rest]
    return None


def _copy(run: str, rows: Sequence[Sequence[str | None]]) -> Extract | None:
    examples = examples_of(rows, [run] * len(rows))
    letters = "".join(map(chr, examples.plain.tolist()))
    parts = []
    for number, steps in enumerate(examples.extractors):
        places = zip(examples.at[number].tolist(), examples.size[number].tolist(), strict=True)
        parts.append((steps, [letters[at : at + size] for at, size in places]))
    for casing in CASINGS:
        for (column, splits, replacements, converted), texts in parts:
            whole = all(cased(text, casing) == run for text in texts)
            starts = [
                match.start() for match in re.finditer(re.escape(run), cased(texts[0], casing))
            ]
            for start in [0] if whole else [*starts, *(at - len(texts[0]) for at in starts)]:
                length = None if whole else len(run)
                piece = Extract(
                    column, splits, start, length, casing, replacements, False, converted
                )
                if all(piece.of(row) == run for row in rows):
                    return piece
    return None


def _without_words(piece: Extract, rows: Sequence[Sequence[str | None]]) -> Extract:
    """Return a piece that is split at a sign where it was split at a word between signs."""
    for number, split in enumerate(piece.splits):
        sign = split.separator[:1] if split.part == 0 else split.separator[-1:]
        if any(map(str.isalnum, split.separator)) and not sign.isalnum() and split.span == "one":
            other = replace(split, separator=sign, part=0 if split.part == 0 else -1)
            splits = (*piece.splits[:number], other, *piece.splits[number + 1 :])
            changed = replace(piece, splits=splits)
            if all(changed.of(row) == piece.of(row) for row in rows):
                return changed
    return piece


def _piece_of(
    run: str, cells: dict[int, pa.Array], before: Operator | None, after: Operator | None
) -> Extract | None:
    """Return the piece of the rows that is always the run, next to its neighbours if it can be."""
    n = len(run)
    places = [
        (piece.column, piece.start - n if is_after else piece.start + (piece.length or 0))
        for piece, is_after in ((after, True), (before, False))
        if isinstance(piece, Extract)
        and not (piece.splits or piece.conversion)
        and all(len(old) == len(new) for old, new in piece.replacements)
        and (is_after or piece.length)
    ]
    for column, start in places:
        if start < 0:
            continue
        pieces = pc.utf8_slice_codeunits(cells[column], start, start + n)
        if pc.all(pc.equal(pieces, run)).as_py():
            return Extract(column, (), start, n)
    return None


def _is_plain(operator: Operator | None) -> bool:
    return (
        isinstance(operator, Extract)
        and not operator.splits
        and not operator.replacements
        and not operator.conversion
        and operator.casing == "none"
        and operator.start >= 0
    )


def _merged(operators: Sequence[Operator]) -> tuple[Operator, ...]:
    """Return the operators with constants, and pieces that follow each other, made one."""
    merged: list[Operator] = []
    for operator in operators:
        last = merged[-1] if merged else None
        if isinstance(operator, Constant) and isinstance(last, Constant):
            merged[-1] = Constant(last.text + operator.text)
        elif (
            isinstance(operator, Extract)
            and isinstance(last, Extract)
            and _is_plain(operator)
            and _is_plain(last)
            and operator.column == last.column
            and last.length is not None
            and operator.start == last.start + last.length
        ):
            length = None if operator.length is None else last.length + operator.length
            merged[-1] = Extract(last.column, (), last.start, length)
        else:
            merged.append(operator)
    return tuple(merged)


# A program with another constant: what one text of a program may be for the keys that it left.
#
# An extension of the source: "001" behind a name in one program is "002" and "101" for other rows.
# To learn each from examples would take examples that agree in it by chance.

# Characters of a constant that is looked for.
MAX_LENGTH = 32

_NOTHING = pa.scalar("", pa.large_string())

# Where there are more keys, only constants as long as the program's are looked for.
_FEW_KEYS = 10_000

# Places in the keys that are looked at for a constant between two pieces of rows.
_MAX_STARTS = 64


def with_other_constants(
    program: Program,
    columns: Sequence[pa.Array],
    keys: pa.Array,
    *,
    min_keys: int = 2,
    limit: int = 4,
) -> list[Program]:
    """Return a program with each of its constants changed into those that write most keys."""
    counts: dict[tuple[int, str], int] = {}
    for at, operator in enumerate(program.operators):
        if isinstance(operator, Constant) and len(program.operators) > 1:
            for text, count in _counted(program, at, columns, keys):
                if count >= min_keys and text != operator.text:
                    counts[at, text] = counts.get((at, text), 0) + count
    best = sorted(counts, key=lambda change: (-counts[change], change))[:limit]
    operators = program.operators
    return [Program((*operators[:at], Constant(text), *operators[at + 1 :])) for at, text in best]


def _counted(
    program: Program, at: int, columns: Sequence[pa.Array], keys: pa.Array
) -> Iterator[tuple[str, int]]:
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
    """Count by the text between two places the keys that are a text without it."""
    inside = pc.utf8_slice_codeunits(keys, start, stop)
    before = pc.utf8_slice_codeunits(keys, 0, start) if left is not None or start < 0 else None
    after = pc.utf8_slice_codeunits(keys, stop, None) if stop is not None else None
    rest = before if after is None else after
    if before is not None and after is not None:
        rest = pc.binary_join_element_wise(before, after, _NOTHING)
    hit = inside.filter(pc.is_in(rest, pc.unique(texts).drop_null()))
    for entry in pc.value_counts(hit).to_pylist():
        yield entry["values"], entry["counts"]


# Share of them from which on an accepted program is the one that was looked for.
_NEARLY_SURE = 0.9

# Share of the texts that a program joins that may become the key of another text (inclusive).
MAX_COLLAPSED = 0.05

# Hits, their share of the smaller side, and luck that are enough whatever share is asked for.
_MIN_HITS, _MIN_SHARE, _HARDLY_LUCK = 10, 0.02, 1e-12

# Of so few texts or keys letters are judged one by one: bits that each operator of a program costs,
# and what must be left.
_FEW_TEXTS, _BITS_OF_OPERATOR, _BITS_OF_LUCK = 20, 10, 13.3

_PADDING = "0"
# Share of the texts that a program of zeros in front writes that must be keys: numbers that fill a
# range hit each other by chance, and so chance says nothing of them.
_MIN_PADDED = 0.9

_MIN_AGREEING = 0.2
# A program is applied to more rows than these if it writes the keys of a share of some pairs.
_FEW_ROWS = 10_000

# Share of the smaller side's values at which no better program is looked for.
_ENOUGH = 0.95

# Share of it below which pairs of rows by words are looked at too.
_HALF = 0.5

# The least keys, and their share of both sides, that a program without letters or digits of its own
# must write, as it is a key in another form then; numbers must be longer.
_MIN_COPIES, _MIN_COPIED, _MIN_NUMBER = 5, 0.9, 5

_NEARLY_ALL = 0.8
# As many times the luck is allowed to a program that joins nearly all texts to nearly all keys.
_MORE_LUCK = 100

# As many times that of such a program of one operator: there are few of them to choose from.
_MORE_LUCK_OF_ONE = 10

# The luck allowed to a program that writes every key and nothing else.
_LUCK_OF_ALL = 1e-2

# Sets of examples in a row that may bring no better program than one that is good enough.
_MAX_FRUITLESS = 24

# The same number where none is good enough yet.
_MAX_FRUITLESS_AT_FIRST = 64


# Sets of examples, with more pairs to check a program by.
Sets = Iterable[tuple[ExampleGroup, Pairs, Pairs]]


@dataclass(frozen=True, slots=True)
class ProgramFit:
    """A program and what it joins."""

    program: Program  # Of the source's row
    target: int  # Number of the target column
    n_keys: int  # Distinct values of it that the program writes
    n_written: int  # Distinct texts that the program writes
    expected: float  # Keys that letters drawn at random would hit (`hits_by_chance`)
    accepted: bool  # Whether it joins what the options ask for
    agreeing: float = 0.0  # Share of the likeliest pairs of rows that it joins, in [0, 1]
    # Distinct source rows, of the columns that it reads, for which it writes a key
    n_texts: int = 0

    @property
    def collapses(self) -> bool:
        return collapses(self.n_texts, self.n_keys)

    @property
    def sure(self) -> bool:
        return self.accepted and self.agreeing >= _NEARLY_SURE


def collapses(n_texts: int, n_keys: int) -> bool:
    """Return whether so many texts that become so few keys are several for one of them."""
    return n_texts - n_keys > max(1, MAX_COLLAPSED * n_texts)


def find_program(
    source: TextTable,
    targets: Sequence[TextColumn],
    options: FindingOptions | None = None,
    *,
    thorough: bool = True,
) -> ProgramFit | None:
    """Learn programs from likely pairs of rows, and return the one that hits most target values."""
    options = options or FindingOptions()
    best: ProgramFit | None = None
    effort = Effort(options.max_effort)
    first, *shorter = MIN_LENGTHS

    def likely(min_length: int) -> Sets:
        return example_sets(source, targets, min_length, options)

    # Nothing is computed before it is asked for.
    ways: list[tuple[Sets, bool]] = [(likely(first), False)]
    if thorough:
        ways.append((example_sets_by_words(source, targets, options), False))
        ways.append((example_sets_by_starts(source, targets, first, options), False))
        ways += [(likely(first), True), *((likely(length), False) for length in shorter)]
    for number, (sets, any_separator) in enumerate(ways):
        later = number > 0
        for candidate in _programs(source, targets, sets, any_separator, later, options, effort):
            if best is None or _rank(candidate) < _rank(best):
                best = candidate
        if best is not None and best.accepted and not best.collapses:
            fewer = min(source.n_rows, len(targets[best.target].values))
            if number or best.n_keys >= _HALF * fewer:
                break
    if best is None:
        return None
    cells = [column.cells for column in source.columns]
    keys = targets[best.target].values
    if best.collapses:
        variants = with_other_constants(best.program, cells, keys)
        for program in unfolded(best.program, variants, cells):
            candidate = judged(program, source, targets, best.target, options)
            if candidate.accepted and _rank(candidate) < _rank(best):
                best = candidate
    general = generalised(best.program, cells, keys)
    if best.accepted:
        return replace(best, program=general)
    again = judged(general, source, targets, best.target, options)
    return again if again.accepted else best


def _rank(candidate: ProgramFit) -> tuple[bool, int, int, int]:
    operators = candidate.program.operators
    letters = sum(len(operator.text) for operator in operators if isinstance(operator, Constant))
    return not candidate.accepted, -candidate.n_keys, letters, len(operators)


def _programs(
    source: TextTable,
    targets: Sequence[TextColumn],
    sets: Sets,
    any_separator: bool,
    later: bool,
    options: FindingOptions,
    effort: Effort,
) -> Iterator[ProgramFit]:
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
        pairs = zip(*checks, strict=True)
        agreeing = sum(program.of(row) == key for row, key in pairs) / len(checks[0])
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
        if hits >= max(_MIN_COPIES, _MIN_COPIED * max(len(written), len(column.values))):
            short = column.is_number and (
                pc.mean(pc.utf8_length(column.values)).as_py() < _MIN_NUMBER
            )
            accepted = accepted or not (short or _has_letters(program))
        is_padded = _is_padding(program) and hits >= max(_MIN_HITS, _MIN_PADDED * len(written))
        accepted = accepted or is_padded
        if not accepted and hits >= enough and hits > fitted and smaller <= _FEW_TEXTS:
            bits = _bits_of_few(program, source, of_rows, written, column.values)
            accepted = bits >= _BITS_OF_OPERATOR * fitted + _BITS_OF_LUCK
    is_joined = pc.is_in(of_rows, value_set=column.values.cast(of_rows.type), skip_nulls=True)
    rows = np.flatnonzero(is_joined.to_numpy(zero_copy_only=False))
    # Distinct texts of the columns that the program reads, of the rows that it joins.
    codes = [source.columns[at].codes[rows] for at in program.columns or (0,)]
    n_texts = len(np.unique(np.stack(codes, axis=1), axis=0))
    return ProgramFit(program, target, hits, len(written), expected, accepted, n_texts=n_texts)


def _bits_of_few(
    program: Program, source: TextTable, of_rows: pa.Array, written: pa.Array, keys: pa.Array
) -> float:
    """Return what `bits_of_few` says of what a program copies into the keys that it hits."""
    copying = tuple(one for one in program.operators if isinstance(one, Extract))
    copied = apply_program(Program(copying), [column.cells for column in source.columns])
    rows = pc.index_in(keys, of_rows.cast(keys.type)).drop_null()
    texts = [*written.to_pylist(), *keys.to_pylist()]
    return bits_of_few(copied.take(rows).to_pylist(), texts, len(written), len(keys))


def _has_letters(program: Program) -> bool:
    constants = (one.text for one in program.operators if isinstance(one, Constant))
    return any(map(str.isalnum, "".join(constants)))


def _is_padding(program: Program) -> bool:
    zeros, cell = program.operators if len(program.operators) == 2 else (None, None)
    return (
        isinstance(zeros, Constant)
        and not zeros.text.strip(_PADDING)
        and isinstance(cell, Extract)
        and cell == Extract(cell.column)
    )
