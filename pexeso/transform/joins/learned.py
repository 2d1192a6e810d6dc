"""Tables joined by programs that are learned from them, or were saved before."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from operator import is_not
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import InputError
from pexeso.lake.readers.options import AS_FOUND, ReadingOptions
from pexeso.options import whole_number
from pexeso.runtime.checks import require_flag
from pexeso.runtime.formatting import listed_names, shown
from pexeso.transform import MAX_PROGRAMS
from pexeso.transform.joins.joined import TransformJoin
from pexeso.transform.joins.sides import Side, side_of, with_all_columns, without_names
from pexeso.transform.learning.finding import FindingOptions
from pexeso.transform.programs.program import Extract, Program
from pexeso.transform.programs.storing import MAX_DOCUMENT, StoredProgram, program_from_text
from pexeso.transform.transformation import (
    DEFAULT_PROGRAMS,
    KINDS,
    Direction,
    Patterns,
    TransformOptions,
    apply_programs,
)
from pexeso.transform.transformation import learn_transformation as learn

# Distinct values of a side that are compared at most. All pairs of so many e-mail addresses take 3
# seconds of one core, and of titles of four words 17: the time grows with the number of pairs.
MAX_VALUES = 15_000


def learn_transformation(
    source: Any,
    target: Any,
    *,
    columns: str | Iterable[str] | None = None,
    target_columns: str | Iterable[str] | None = None,
    program: str | Path | None = None,
    fuzzy: bool = True,
    accept_rule: bool = False,
    max_programs: int = DEFAULT_PROGRAMS,
    seed: int = 0,
    reading: ReadingOptions = AS_FOUND,
    target_reading: ReadingOptions = AS_FOUND,
) -> TransformJoin:
    """Learn a program that writes the keys of one table in the form of the other's, and join.

    Source: E. Zhu, Search and Join Algorithms for Tables in Data Lakes, PhD thesis, University of
    Toronto, 2019, chapter 4 (Auto-Join).

    Parameters
    ----------
    source, target : path, or table in memory
        A text may name columns: ``FILE:COLUMN``, ``FILE:COLUMN,COLUMN``, ``INDEX.pexeso:TABLE`` or
        ``INDEX.pexeso:TABLE:COLUMN``.
    columns, target_columns : str or iterable of str, optional
        That hold the key; without them those are found.
    program : path, optional
        Use programs that were saved instead of learning.
    fuzzy : bool
        Join what is nearly equal of what programs leave; and the most similar keys where columns
        of both tables are named and no program is found, among at most 15,000 distinct values of
        either.
    accept_rule : bool
        Accept the best rule even if chance may explain it, and apply a saved one also to rows that
        are unlike those that it was learned from.
    max_programs : int
        At least 1; each is learned from the rows that the ones before it left.
    seed : int
        Of samples and sets of examples, at least 0.
    reading, target_reading : ReadingOptions
        How to read files of delimited text; what is not set is found.

    Raises
    ------
    InputError
        A table, a column or an option is not as it must be.

    Examples
    --------
    >>> names = {"name": ["Suhela Chowdhury", "Maureen Paluzzi", "Carolyn Craddock", "Kelly Moore"]}
    >>> mails = {"mail": ["kmoore@a.us", "ccraddock@a.us", "schowdhury@a.us", "mpaluzzi@a.us"]}
    >>> joined = learn_transformation(names, mails)
    >>> joined.pairs[0], joined.coverage
    (('Suhela Chowdhury', 'schowdhury@a.us', 'program'), 1.0)
    """
    max_programs = whole_number("max_programs", max_programs, 1, MAX_PROGRAMS)
    seed = whole_number("seed", seed, 0)
    require_flag("fuzzy", fuzzy)
    require_flag("accept_rule", accept_rule)
    if program is not None and not isinstance(program, str | os.PathLike):
        raise InputError(f"program must be the path of saved programs. Got {shown(program)}.")
    options = TransformOptions(
        finding=FindingOptions(seed=seed),
        max_programs=max_programs,
        fuzzy=fuzzy,
        accept=accept_rule,
    )
    sides = (
        side_of(source, columns, reading=reading),
        side_of(target, target_columns, reading=target_reading),
    )
    return join_learned(*sides, program=program, options=options)


def join_learned(
    source: Side,
    target: Side,
    *,
    program: str | Path | None = None,
    options: TransformOptions | None = None,
) -> TransformJoin:
    """Do as `learn_transformation` with tables that are read already."""
    options = options or TransformOptions()
    if len(source.columns) > 1 and source.named:
        options = replace(options, directions=("source to target",))
    elif len(target.columns) > 1 and target.named:
        options = replace(options, directions=("target to source",))
    if program is not None:
        return _with_saved(source, target, program, options)
    unnamed: tuple[Direction, ...] = (
        *(("source to target",) if not target.named else ()),
        *(("target to source",) if not source.named else ()),
    )
    options = replace(options, checked=unnamed)
    joined = TransformJoin(source, target, learn(source.texts, target.texts, options))
    if not (source.named and target.named):
        return joined if _identifies_rows(joined) else _otherwise(joined, options)
    if joined.rule.programs:
        return joined
    joined = replace(joined, proposal=partial(_proposed, source, target, options))
    return _with_similar(joined) if options.fuzzy else joined


def _with_similar(joined: TransformJoin) -> TransformJoin:
    """Join the rows that have no partner with the most similar key, as a search would.

    Keys may have several rows. Where more than `MAX_VALUES` distinct values have no partner, or
    there are more keys, nothing is compared.
    """
    base = joined.rule
    free = np.flatnonzero(base.partners < 0)
    cells = joined.reading.texts.columns[base.columns[0]].cells.take(pa.array(free))
    texts = pc.unique(cells).drop_null()
    keys = joined.keyed.texts.columns[base.key_column].values
    if not len(texts) or not len(keys):
        return joined
    if max(len(texts), len(keys)) > MAX_VALUES:
        return replace(joined, max_compared=MAX_VALUES)
    from pexeso.transform.nearest import nearest_values  # brings the model

    positions, distances = nearest_values(texts, keys)
    at = pc.fill_null(pc.index_in(cells, texts), -1).to_numpy(zero_copy_only=False)
    # The last entry is what an empty cell is joined with: nothing.
    positions, distances = np.append(positions, -1)[at], np.append(distances, 0.0)[at]
    partners, kinds, far = base.partners.copy(), base.kinds.copy(), base.distances.copy()
    partners[free], far[free] = positions, distances
    kinds[free[positions >= 0]] = KINDS.index("fuzzy")
    rule = replace(base, partners=partners, kinds=kinds, distances=far)
    return replace(joined, rule=rule)


def _proposed(source: Side, target: Side, options: TransformOptions) -> str | None:
    """Return which columns a program joins, where those that were named have none."""
    named = source.columns, target.columns
    source, target = without_names(source), without_names(target)
    if (source.columns, target.columns) == named:
        return None
    options = replace(options, accept=False, fuzzy=False)
    learnt = learn(source.texts, target.texts, options)
    if not learnt.programs:
        return None
    joined = TransformJoin(source, target, learnt)
    ours = _listed([source.texts.names[at] for at in joined.source_columns])
    theirs = _listed([target.texts.names[at] for at in joined.target_columns])
    return f"but a rule joins {ours} of the first table with {theirs} of the second: name these"


def _otherwise(joined: TransformJoin, options: TransformOptions) -> TransformJoin:
    """Learn from other columns, or from keys that repeat, where a join does not identify rows."""
    sides = joined.source, joined.target
    wider = with_all_columns(joined.source), with_all_columns(joined.target)
    ways = [(wider, False)] if any(map(is_not, wider, sides)) else []
    for (source, target), keys_repeat in (*ways, (sides, True)):
        learnt = learn(source.texts, target.texts, replace(options, keys_repeat=keys_repeat))
        other = TransformJoin(source, target, learnt)
        if _identifies_rows(other) or not joined.rule.kinds.any():
            joined = other
        if _identifies_rows(joined):
            break
    return joined


def _identifies_rows(joined: TransformJoin) -> bool:
    """Return whether rows are joined, none of them with many and no keys made one."""
    return bool(joined.rule.kinds.any()) and not joined.multiplies and joined.collapse is None


def _with_saved(
    source: Side, target: Side, path: str | Path, options: TransformOptions
) -> TransformJoin:
    stored = read_program(path)
    direction = saved_direction(stored, path)
    forward = direction == "source to target"
    sides = (source, target) if forward else (target, source)
    reading, keyed, programs, patterns = fitted(stored, *sides, path)
    names, equal = reading.texts.names, stored.metadata.get("equal_column")
    transformation = apply_programs(
        reading.texts,
        keyed.texts,
        direction,
        programs,
        options,
        equal_column=names.index(str(equal)) if equal in names else None,
        patterns=() if options.accept else patterns,
    )
    return TransformJoin(*((reading, keyed) if forward else (keyed, reading)), transformation)


DIRECTIONS: tuple[Direction, ...] = ("source to target", "target to source")

_listed = partial(listed_names, write=shown)


def read_program(path: str | Path) -> StoredProgram:
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(MAX_DOCUMENT + 1)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"The program '{path}' cannot be read: {reason}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"The program '{path}' cannot be read: it is not UTF-8.") from error
    try:
        return program_from_text(text)
    except InputError as error:
        raise InputError(f"The program '{path}' cannot be used: {error}.") from error


def saved_direction(stored: StoredProgram, path: str | Path) -> Direction:
    direction = stored.metadata.get("direction")
    for allowed in DIRECTIONS:
        if direction == allowed:
            return allowed
    raise InputError(
        f"The program '{path}' does not say whose rows it reads: direction in its metadata is "
        f"{shown(direction)}, not {' or '.join(map(repr, DIRECTIONS))}."
    )


def fitted(
    stored: StoredProgram, reading: Side, keyed: Side, path: str | Path
) -> tuple[Side, Side, tuple[Program, ...], tuple[Patterns, ...]]:
    used = sorted({at for program in stored.programs for at in program.columns})
    names = [stored.columns[at] for at in used]
    missing = [name for name in names if name not in reading.names]
    if missing or not names:
        reads = f"columns that {reading.shown} does not have: {_listed(missing)}"
        raise InputError(
            f"The program '{path}' reads {reads if missing else 'no column'}. The columns are "
            f"{_listed(reading.names)}."
        )
    number_of = {at: number for number, at in enumerate(used)}
    programs = tuple(
        Program(
            tuple(
                replace(operator, column=number_of[operator.column])
                if isinstance(operator, Extract)
                else operator
                for operator in program.operators
            )
        )
        for program in stored.programs
    )
    equal = stored.metadata.get("equal_column")
    more = [str(equal)] if equal in reading.names and equal not in names else []
    positions = tuple(reading.names.index(name) for name in [*names, *more])
    patterns = tuple(
        {number_of[at]: pattern for at, pattern in by_column.items() if at in number_of}
        for by_column in stored.patterns
    )
    return replace(reading, columns=positions), _with_key(stored, keyed, path), programs, patterns


def _with_key(stored: StoredProgram, keyed: Side, path: str | Path) -> Side:
    if keyed.named:
        if len(keyed.columns) > 1:
            raise InputError(
                f"The program '{path}' writes one column of {keyed.shown}. Name one, not "
                f"{len(keyed.columns)}."
            )
        return keyed
    key = stored.metadata.get("key_column")
    if key not in keyed.names:
        raise InputError(
            f"The program '{path}' writes a column that {keyed.shown} does not have: {shown(key)}. "
            f"Name the column that it is to be joined with: {_listed(keyed.names)}."
        )
    return replace(keyed, columns=(keyed.names.index(str(key)),))
