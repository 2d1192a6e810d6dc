"""The program that joins most keys of a target column, learned from the two tables alone.

Source: E. Zhu, Search and Join Algorithms for Tables in Data Lakes, PhD thesis, University of
Toronto, 2019, sections 4.2 and 4.3 (``LearnTransform``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.transform.learning.chance import bits_of_few, bound_on_luck, hits_by_chance
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
from pexeso.transform.learning.generality import by_lists, generalised, unfolded, whole_conversions
from pexeso.transform.programs.applying import apply_program
from pexeso.transform.programs.conversions import list_order
from pexeso.transform.programs.program import Constant, Extract, Operator, Program
from pexeso.transform.texts import TextColumn, TextTable

# A program with another constant: what one text of a program may be for the keys that it left.
#
# An extension of the source: "001" behind a name in one program is "002" and "101" for other rows.
# To learn each from examples would take examples that agree in it by chance.

# Characters of a constant that is looked for.
MAX_LENGTH = 32

_NOTHING = pa.scalar("", pa.large_string())

# Where there are more keys, only constants as long as the program's are looked for.
_FEW_KEYS = 10_000

# Keys that must hold another constant.
_MIN_KEYS = 2

# Places in the keys that are looked at for a constant between two pieces of rows.
_MAX_STARTS = 64


def with_other_constants(
    program: Program, columns: Sequence[pa.Array], keys: pa.Array, *, limit: int = 4
) -> list[Program]:
    """Return a program with each of its constants changed into those that write most keys."""
    counts: dict[tuple[int, str], int] = {}
    for at, operator in enumerate(program.operators):
        if isinstance(operator, Constant) and len(program.operators) > 1:
            for text, count in _counted(program, at, columns, keys):
                if count >= _MIN_KEYS and text != operator.text:
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

# As many times as likely as by itself is a letter of a piece, since one follows from another: names
# have few syllables, and years begin with few digits. It matters where a program chose its pieces
# and joins less than half; whole cells are not chosen from many.
_FOLLOWING = 2.0

# Share of the smaller side that a list must join where columns are found: codes of states are those
# of countries too.
_MIN_LISTED = 1 / 3

_NEARLY_ALL = 0.8
# As many times the luck is allowed to a program that joins nearly all texts to nearly all keys, or
# that puts zeros in front of texts and writes nothing but keys.
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
    accepted: bool  # Whether it joins what the options ask for
    agreeing: float = 0.0  # Share of the likeliest pairs of rows that it joins, in [0, 1]
    # Distinct source rows, of the columns that it reads, for which it writes a key
    n_texts: int = 0
    why: str = ""  # Why it is not accepted

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

    for program, number in whole_conversions(source, targets, options.seed):
        candidate = judged(program, source, targets, number, options)
        if best is None or _rank(candidate) < _rank(best):
            best = candidate
    # Nothing is computed before it is asked for.
    ways: list[tuple[Sets, bool]] = [(likely(first), False)]
    if thorough:
        ways.append((example_sets_by_words(source, targets, options), False))
        ways.append((example_sets_by_starts(source, targets, first, options), False))
        ways += [(likely(first), True), *((likely(length), False) for length in shorter)]
    for number, (sets, any_separator) in enumerate(ways):
        if best is not None and best.accepted and _joins_most(best, source, targets):
            break
        later = number > 0
        for candidate in _programs(source, targets, sets, any_separator, later, options, effort):
            if best is None or _rank(candidate) < _rank(best):
                best = candidate
        if (
            best is not None
            and best.accepted
            and not best.collapses
            and (number or best.n_keys >= _HALF * _fewer(best, source, targets))
        ):
            break
    if best is None:
        return None
    cells = [column.cells for column in source.columns]
    keys = targets[best.target].values
    if best.collapses:
        variants = with_other_constants(best.program, cells, keys)
        for program in unfolded(best.program, variants, cells):
            candidate = judged(program, source, targets, best.target, options)
            if _rank(candidate) < _rank(best):
                best = candidate
    general = generalised(best.program, cells, keys)
    fits = [
        judged(program, source, targets, best.target, options)
        for program in dict.fromkeys([general, *by_lists(general)])
    ]
    strongest = max(fits, key=lambda fit: fit.n_keys)
    if best.accepted:
        return replace(strongest, accepted=True) if strongest.n_keys >= best.n_keys else best
    return strongest if strongest.accepted else best


def _fewer(fit: ProgramFit, source: TextTable, targets: Sequence[TextColumn]) -> int:
    return min(source.n_rows, len(targets[fit.target].values))


def _joins_most(fit: ProgramFit, source: TextTable, targets: Sequence[TextColumn]) -> bool:
    return not fit.collapses and fit.n_keys >= _ENOUGH * _fewer(fit, source, targets)


def _rank(candidate: ProgramFit) -> tuple[bool, float, int, int]:
    """Return what is the smaller the better: first that more keys are joined, with a text each."""
    operators = candidate.program.operators
    letters = sum(len(operator.text) for operator in operators if isinstance(operator, Constant))
    n_keys: float = candidate.n_keys
    if candidate.collapses:
        n_keys = max(2 * n_keys - candidate.n_texts, n_keys / 2)
    return not candidate.accepted, -n_keys, letters, len(operators)


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
        program = learn_program(*examples, None, effort, [any_separator])
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
            if _joins_most(candidate, source, targets):
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
    """Count the target values that a program writes, `n_fitted` of whose operators were fitted."""
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
        chosen = n_fitted is None and not all(map(_is_whole, program.operators))
        following = _FOLLOWING if chosen and hits < _HALF * smaller else 1.0
        expected = hits_by_chance(written, column.values, following)
    both = hits >= _NEARLY_ALL * max(len(written), len(column.values))
    max_luck = options.max_luck
    if hits == len(written) == len(column.values):
        max_luck = max(max_luck, _LUCK_OF_ALL)
    elif both:
        max_luck *= _MORE_LUCK * (_MORE_LUCK_OF_ONE if len(program.operators) == 1 else 1)
    elif hits == len(written) and _is_padding(program):
        max_luck *= _MORE_LUCK
    # Each operator could be fitted to an example of its own.
    fitted = len(program.operators) if n_fitted is None else n_fitted
    luck = bound_on_luck(hits, expected)
    accepted = hits >= enough and hits > fitted and luck <= max_luck
    accepted = accepted or (hits >= few and hits > 2 * fitted and luck <= _HARDLY_LUCK)
    short = column.is_number and (pc.mean(pc.utf8_length(column.values)).as_py() < _MIN_NUMBER)
    if hits >= max(_MIN_COPIES, _MIN_COPIED * max(len(written), len(column.values))):
        accepted = accepted or not (short or _has_letters(program))
    is_padded = _is_padding(program) and hits >= max(_MIN_HITS, _MIN_PADDED * len(written))
    accepted = accepted or is_padded
    if not (accepted or short) and hits >= enough and hits > fitted and smaller <= _FEW_TEXTS:
        bits = _bits_of_few(program, source, of_rows, written, column.values)
        accepted = bits >= _BITS_OF_OPERATOR * fitted + _BITS_OF_LUCK
    is_joined = pc.is_in(of_rows, value_set=column.values.cast(of_rows.type), skip_nulls=True)
    rows = np.flatnonzero(is_joined.to_numpy(zero_copy_only=False))
    # Distinct texts of the columns that the program reads, of the rows that it joins.
    codes = [source.columns[at].codes[rows] for at in program.columns or (0,)]
    n_texts = len(np.unique(np.stack(codes, axis=1), axis=0))
    if not options.named and _is_other_date(program, source, column):
        accepted, why = False, "dates and numbers with digits of its own join whatever they are of"
    elif not options.named and _looks_up(program) and hits < _MIN_LISTED * smaller:
        accepted, why = False, "less than a third, and a list writes the same for whatever it knows"
    elif accepted and _fills_range(program, source):
        accepted, why = (
            False,
            "its numbers fill a range, so that those of any other table would fit",
        )
    elif accepted:
        why = ""
    elif hits < min(enough, few):
        why = f"at least {ceil(min(enough, few))} are needed to trust it"
    elif hits <= fitted:
        why = f"too few to trust a rule of {fitted} steps"
    else:
        why = f"{expected:.1f} would be expected of letters drawn at random, too many to trust it"
    return ProgramFit(program, target, hits, accepted, 0.0, n_texts, why)


def _bits_of_few(
    program: Program, source: TextTable, of_rows: pa.Array, written: pa.Array, keys: pa.Array
) -> float:
    """Return what `bits_of_few` says of what a program copies into the keys that it hits."""
    copying = tuple(one for one in program.operators if isinstance(one, Extract))
    copied = apply_program(Program(copying), [column.cells for column in source.columns])
    hit = copied.take(pc.index_in(keys, of_rows.cast(keys.type)).drop_null())
    every = copied.filter(of_rows.is_valid()).unique()
    return bits_of_few(hit.to_pylist(), every.to_pylist(), keys.to_pylist(), len(written))


def _has_letters(program: Program) -> bool:
    return any(map(str.isalnum, _own_text(program)))


def _fills_range(program: Program, source: TextTable) -> bool:
    """Return whether a program puts letters of its own around the numbers of rows."""
    copying = Program(tuple(one for one in program.operators if isinstance(one, Extract)))
    if not _has_letters(program) or not copying.operators:
        return False
    copied = apply_program(copying, [column.cells for column in source.columns])
    numbers = pc.replace_substring_regex(copied, r"[^\pL\pN]", "")
    return TextColumn("", pc.unique(numbers).drop_null()).is_counter


def _own_text(program: Program) -> str:
    return "".join(one.text for one in program.operators if isinstance(one, Constant))


def _is_other_date(program: Program, source: TextTable, target: TextColumn) -> bool:
    """Return whether a program makes dates or numbers of others by putting in some of its own."""
    own = _own_text(program)
    if not any(map(str.isalnum, own)):
        return False
    kinds = {target.kind, *(source.columns[at].kind for at in program.columns)}
    return ("date" in kinds and any(map(str.isdigit, own))) or kinds <= {"date", "number"}


def _looks_up(program: Program) -> bool:
    """Return whether a program writes whole cells by a list, such as codes of countries."""
    conversions = {one.conversion for one in program.operators if isinstance(one, Extract)}
    return bool(conversions & set(list_order())) and all(map(_is_whole, program.operators))


def _is_padding(program: Program) -> bool:
    """Return whether a program writes whole cells with zeros in front, or without."""
    [first, *others] = program.operators or (None,)
    if others or not isinstance(first, Extract):
        return False
    return _is_whole(first) and first.conversion.startswith(("pad ", "strip zeros"))


def _is_whole(operator: Operator) -> bool:
    """Return whether an operator writes whole cells, if it writes cells."""
    if isinstance(operator, Constant):
        return True
    return not operator.splits and operator.start == 0 and operator.length is None
