"""Constants of a program that stand in the rows it was learned from, made pieces of these rows.

Rows of one year alone are written by a program with that year as a constant as well as by one that
cuts it out; the second holds for rows of other years too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

import pyarrow as pa
import pyarrow.compute as pc

from pexeso.transform.programs.applying import apply_program
from pexeso.transform.programs.program import MAX_OPERATORS, Constant, Extract, Operator, Program

_RUN = re.compile(r"[^\W_]+|[\W_]+")
_MIN_LENGTH = 3
"""Characters of a run that is looked for anywhere in a cell; a shorter one only next to the piece
that it stands beside."""


_MAX_START = 32
"""Places of a cell at which the text of a constant is looked for."""


def generalised(program: Program, columns: Sequence[pa.Array], keys: pa.Array) -> Program:
    """Return a program that writes the same keys with fewer letters of its own.

    Examples
    --------
    >>> days = pa.array(["20240105", "20240217"])
    >>> operators = Constant("2024-0"), Extract(0, (), 5, 1), Constant("-"), Extract(0, (), 6)
    >>> found = generalised(Program(operators), [days], pa.array(["2024-01-05", "2024-02-17"]))
    >>> found.of(["20251231"])
    '2025-12-31'
    """
    written = apply_program(program, columns)
    is_key = pc.is_in(written, value_set=pc.cast(keys, written.type), skip_nulls=True)
    rows = pc.indices_nonzero(is_key)
    read = program.columns
    if not len(rows) or not read:
        return program
    cells = {column: columns[column].take(rows) for column in read}
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
            piece = _piece_of(run, cells, before, after) if run[0].isalnum() else None
            operators.append(Constant(run) if piece is None else piece)
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
    """Return how many first characters all texts share."""
    alike = (len(set(letters)) == 1 for letters in zip(*texts, strict=False))
    return sum(1 for _ in takewhile(bool, alike))


def _piece_of(
    run: str, cells: dict[int, pa.Array], before: Operator | None, after: Operator | None
) -> Extract | None:
    """Return the piece of the rows that is always the run, next to its neighbours if it can be."""
    n = len(run)
    places = [
        (piece.column, piece.start - n if is_after else piece.start + (piece.length or 0))
        for piece, is_after in ((after, True), (before, False))
        if _is_plain(piece) and isinstance(piece, Extract) and (is_after or piece.length)
    ]
    if n >= _MIN_LENGTH:
        for column, texts in cells.items():
            first = texts[0].as_py()
            places += [(column, match.start()) for match in re.finditer(re.escape(run), first)]
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
