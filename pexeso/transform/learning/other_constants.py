"""A program with another constant: what one text of a program may be for the keys that it left.

An extension of the source: "001" behind a name in one program is "002" and "101" for other rows. To
learn each from examples would take examples that agree in it by chance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.transform.programs.applying import apply_program
from pexeso.transform.programs.program import Constant, Program

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
