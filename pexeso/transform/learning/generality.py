"""Programs made more general: pieces of the rows instead of letters of their own, and lists.

What a program writes for the rows that it joins stays the same; for later rows it matters.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice
from math import ceil

import pyarrow as pa
import pyarrow.compute as pc

from pexeso.transform.learning.example_parts import CASINGS, parts_of
from pexeso.transform.learning.examples_to_program import learn_program
from pexeso.transform.programs.applying import apply_program, converted
from pexeso.transform.programs.conversions import (
    GROUP_SIGNS,
    MAX_WIDTH,
    MEASURES,
    UNITS,
    conversion,
    list_order,
    lists,
)
from pexeso.transform.programs.program import (
    MAX_OPERATORS,
    Constant,
    Extract,
    Operator,
    Program,
    Split,
    cased,
)
from pexeso.transform.texts import TextColumn, TextTable, n_common, sample_texts, spread

_RUN = re.compile(r"[^\W\d_]+|\d+|[\W_]+")
# Characters of a run of letters or digits that is looked for anywhere in a cell; a shorter one only
# next to the piece next to it.
_MIN_LETTERS, _MIN_DIGITS = 3, 2

# Rows in which a run is looked for before it is in all.
_MAX_ROWS = 8


# Places of a cell at which the text of a constant is looked for.
_MAX_START = 32

# Parts of a cell, between signs, of which a list may make such texts.
_MAX_PARTS = 4


# Rows up to which whole parts of cells are preferred to pieces cut by place: so few may have equal
# lengths by chance.
FEW_ROWS = 30

# Values by which conversions of whole cells are chosen, the first of them, and their share that a
# conversion must change.
_CONVERTED, _TRIED, _MIN_SHARE = 500, 20, 0.8

# Of those a conversion must make so many keys, and such a share.
_MIN_MADE, _MIN_SHARE_MADE = 5, 0.02


def generalised(program: Program, columns: Sequence[pa.Array], keys: pa.Array) -> Program:
    """Return a program that writes the same keys with fewer letters of its own."""
    written = apply_program(program, columns)
    is_key = pc.is_in(written, value_set=pc.cast(keys, written.type), skip_nulls=True)
    rows = pc.indices_nonzero(is_key)
    read = program.columns
    if not len(rows) or not read:
        return program
    cells = {column: columns[column].take(rows) for column in read}
    examples = [
        [
            columns[at][rows[row].as_py()].as_py() if at in read else None
            for at in range(len(columns))
        ]
        for row in spread(len(rows), FEW_ROWS)
    ]
    some = [examples[at] for at in spread(len(examples), _MAX_ROWS)]
    operators: list[Operator] = []
    for position, operator in enumerate(program.operators):
        if not isinstance(operator, Constant):
            operators.append(operator)
            continue
        runs = _RUN.findall(operator.text)
        for number, run in enumerate(runs):
            before = operators[-1] if operators else None
            is_last = number == len(runs) - 1 and position + 1 < len(program.operators)
            after = program.operators[position + 1] if is_last else None
            pieces = None
            if run[0].isalnum():
                piece = _piece_of(run, cells, before, after)
                pieces = [piece] if piece else _copies(run, some)
            operators += pieces or [Constant(run)]
    operators = _with_parts(operators, examples, cuts=len(rows) <= FEW_ROWS)
    changed = Program(_merged([_without_words(operator, some) for operator in operators]))
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
        head = n_common(every)
        tail = n_common([text[head:][::-1] for text in every])
        middles = {text[head : len(text) - tail] for text in every}
        ends = Constant(own.text[:head]), Constant(own.text[len(own.text) - tail :])
        for piece in _varying(middles, program, columns):
            kept = [one for one in (ends[0], piece, ends[1]) if one != Constant("")]
            operators = [*program.operators[:at], *kept, *program.operators[at + 1 :]]
            if len(operators) <= MAX_OPERATORS:
                yield Program(_merged(operators))


def _varying(texts: set[str], program: Program, columns: Sequence[pa.Array]) -> Iterator[Extract]:
    """Yield the pieces of some columns that are all of some texts, and others, in some rows."""
    sizes = set(map(len, texts))
    names = [
        f"{kind} to {form}" for (kind, form), new in lists().items() if texts <= set(new.values())
    ]
    for column in program.columns:
        values = pc.unique(columns[column])
        if len(sizes) == 1:
            for start in range(_MAX_START):
                pieces = pc.unique(pc.utf8_slice_codeunits(values, start, start + max(sizes)))
                if texts <= set(pieces.to_pylist()):
                    yield Extract(column, (), start, max(sizes))
        signs = dict.fromkeys(one for one in values[0].as_py() or "" if not one.isalnum())
        for sign in signs if names else ():
            for part in range(_MAX_PARTS):
                split = Extract(column, (Split(sign, part),))
                pieces = apply_program(Program((split,)), [values] * len(columns)).unique()
                for name in names:
                    if texts <= set(converted(pieces, name).to_pylist()):
                        yield replace(split, conversion=name)


def _with_parts(
    operators: Sequence[Operator], rows: Sequence[Sequence[str | None]], *, cuts: bool
) -> list[Operator]:
    """Return operators with parts of cells in the place of letters, or of pieces cut by place."""
    changed: list[Operator] = []
    begin = 0
    while begin < len(operators):
        for end in range(len(operators), begin, -1):
            part = _part_for(operators[begin:end], rows, cuts)
            if part is not None:
                break
        changed.append(part or operators[begin])
        begin = end
    return changed


def _part_for(
    operators: Sequence[Operator], rows: Sequence[Sequence[str | None]], cuts: bool
) -> Extract | None:
    """Return the part of cells that is always what some operators write, if one is."""
    copying = [one for one in operators if isinstance(one, Extract)]
    own = "".join(one.text for one in operators if isinstance(one, Constant))
    if not copying or not (
        any(map(str.isalnum, own)) or (cuts and any(one.cuts for one in copying))
    ):
        return None
    texts = [Program(tuple(operators)).of(row) or "" for row in rows]
    some = spread(len(rows), _MAX_ROWS)
    few = [texts[at] for at in some]
    if not all(few):
        return None
    # To the end of a part rather than so many characters of a cell.
    is_cut = not own and copying[-1].length is not None
    # A year with a zero behind it is ten times that year, and means something else.
    parts = [one for one in parts_of([rows[at] for at in some], few) if one[1][3] not in UNITS]
    for is_whole in (True, False)[: 1 + is_cut]:
        for part, (column, splits, replacements, name) in parts:
            start = 0 if is_whole else len(part[0]) - len(few[0])
            if start < 0 or not (is_whole or splits):
                continue
            for casing in CASINGS:
                piece = Extract(column, splits, start, None, casing, replacements, False, name)
                if [cased(one[start:], casing) for one in part] == few and all(
                    piece.of(row) == text for row, text in zip(rows, texts, strict=True)
                ):
                    return piece
    return None


def _copies(run: str, rows: Sequence[Sequence[str | None]]) -> list[Operator] | None:
    """Return the fewest pieces of the rows that are always the run, also by a conversion."""
    min_length = _MIN_DIGITS if run.isdigit() else _MIN_LETTERS
    begun: list[Operator] | None = None
    for end in range(len(run), min_length - 1, -1):
        piece = _copy(run[:end], rows)
        rest = [] if end == len(run) else _copies(run[end:], rows)
        if piece is not None and rest is not None:
            return [piece, *rest]
        if piece is not None and begun is None:
            begun = [piece, Constant(run[end:])]
    return begun


def _copy(run: str, rows: Sequence[Sequence[str | None]]) -> Extract | None:
    parts = parts_of(rows, [run] * len(rows))
    for casing in CASINGS:
        for texts, (column, splits, replacements, name) in parts:
            whole = all(cased(text, casing) == run for text in texts)
            starts = [
                match.start() for match in re.finditer(re.escape(run), cased(texts[0], casing))
            ]
            for start in [0] if whole else [*starts, *(at - len(texts[0]) for at in starts)]:
                length = None if whole else len(run)
                piece = Extract(column, splits, start, length, casing, replacements, False, name)
                if all(piece.of(row) == run for row in rows):
                    return piece
    return None


def _without_words(piece: Operator, rows: Sequence[Sequence[str | None]]) -> Operator:
    """Return a piece that is split at a sign where it was split at a word between signs."""
    if isinstance(piece, Constant):
        return piece
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


def by_lists(program: Program) -> Iterator[Program]:
    """Yield a program with each list that could stand for one of its own: of another language."""
    for at, operator in enumerate(program.operators):
        if isinstance(operator, Extract) and operator.conversion in list_order():
            kind, form = operator.conversion.split(" to ")
            for other_kind, other_form in lists():
                if other_form == form if kind != "numbers" else other_kind == kind:
                    other = replace(operator, conversion=f"{other_kind} to {other_form}")
                    yield Program((*program.operators[:at], other, *program.operators[at + 1 :]))


def whole_conversions(
    source: TextTable, targets: Sequence[TextColumn], seed: int
) -> Iterator[tuple[Program, int]]:
    """Yield the conversions of whole cells that make keys of some of a sample."""
    samples = [
        column.values.take(pa.array(sample_texts(column.values, _CONVERTED, seed))).to_pylist()
        for column in source.columns
    ]

    @cache
    def converted_sample(column: int, name: str) -> list[list[str]]:
        """Return what a conversion makes of a sample in each casing, nothing if of few of it."""
        convert, some = conversion(name).of, samples[column][:_TRIED]
        n_others = len(some) - ceil(_MIN_SHARE * len(some))
        others = (text for text in some if convert(text) in (None, text))
        if next(islice(others, n_others, None), None) is not None:
            return []
        made = [new for new in map(convert, samples[column]) if new is not None]
        return [[cased(new, casing) for new in made] for casing in CASINGS]

    for number, target in enumerate(targets):
        keys = set(target.values.to_pylist())
        for column, texts in enumerate(samples):
            for name in _conversion_names(target):
                for casing, made in zip(CASINGS, converted_sample(column, name), strict=False):
                    hits = sum(map(keys.__contains__, made))
                    if hits >= max(_MIN_MADE, _MIN_SHARE_MADE * len(texts)):
                        yield Program((Extract(column, casing=casing, conversion=name),)), number


def _conversion_names(target: TextColumn) -> Iterator[str]:
    """Yield the names of conversions that may make a column's values of other whole cells."""
    yield from ("strip zeros", "unaccented", "with EAN digit", "with Luhn digit")
    yield from ("to ISBN-13", "to ISBN-10", "initials")
    lengths = pc.utf8_length(target.values)
    for entry in pc.mode(lengths, 2).to_pylist():
        if entry["mode"] <= MAX_WIDTH:
            yield f"pad {max(1, entry['mode'])}"
    yield from (f"group {sign}" for sign in GROUP_SIGNS)
    starts = Counter(pc.utf8_slice_codeunits(target.values, 0, 2).to_pylist()).most_common(1)
    yield from (f"IBAN {start}" for start, _ in starts if re.fullmatch("[A-Z]{2}", start))
    yield from UNITS
    yield from (f"times {factor} to {n}" for factor in MEASURES for n in range(3))
    yield from list_order()


# Rows that are held out together, of so many groups; and examples of those that are left.
_FOLDS, _EXAMPLES = 5, 6


def held_out(rows: Sequence[Sequence[str | None]], keys: Sequence[str]) -> int:
    """Return for how many rows a program that is learned from the other rows writes the key."""
    right = 0
    for fold in range(_FOLDS if len(rows) > 1 else 0):
        rest = [at for at in range(len(rows)) if at % _FOLDS != fold]
        some = [rest[at] for at in spread(len(rest), _EXAMPLES)]
        program = learn_program([rows[at] for at in some], [keys[at] for at in some])
        if program is not None:
            cells = [pa.array(cells, pa.large_string()) for cells in zip(*rows, strict=True)]
            kept = pa.array(rest)
            program = generalised(
                program, [one.take(kept) for one in cells], pa.array(keys).take(kept)
            )
            right += sum(program.of(rows[at]) == keys[at] for at in range(fold, len(rows), _FOLDS))
    return right
