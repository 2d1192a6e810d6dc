"""Programs in files: written whole, and read with suspicion."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pexeso.errors import InputError
from pexeso.runtime.formatting import shown
from pexeso.store.io.whole_files import written_whole
from pexeso.transform.joins.sides import Side
from pexeso.transform.programs.program import Extract, Program
from pexeso.transform.programs.storing import (
    MAX_DOCUMENT,
    StoredProgram,
    program_from_text,
    program_to_json,
)
from pexeso.transform.transformation import Direction

DIRECTIONS: tuple[Direction, ...] = ("source to target", "target to source")

_MAX_NAMED = 20


def write_program(stored: StoredProgram, path: str | Path, *, overwrite: bool) -> None:
    """Write programs to a file, completely or not at all."""
    text = json.dumps(program_to_json(stored), ensure_ascii=False, indent=2) + "\n"
    with written_whole(path, overwrite=overwrite) as draft:
        draft.write_text(text, encoding="utf-8")


def read_program(path: str | Path) -> StoredProgram:
    """Read the programs of a file, of which no more is read than programs can have."""
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
    """Return whose rows saved programs read."""
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
) -> tuple[Side, Side, tuple[Program, ...]]:
    """Find the columns of saved programs in two tables, by their names.

    Parameters
    ----------
    stored : StoredProgram
    reading, keyed : Side
        The table whose rows the programs read, and the one whose keys they write. The key is the
        column that is named, or else the one that was there when the programs were saved.
    path : str or Path
        Of the file, for messages.

    Returns
    -------
    reading, keyed : Side
        With the columns that the programs read, then one whose cells are joined with equal keys
        where it is another one; and with the key alone.
    programs : tuple of Program
        With columns numbered as in `reading`.

    Raises
    ------
    InputError
        A column is not there, or the programs read none, or several keys are named.
    """
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
    return replace(reading, columns=positions), _with_key(stored, keyed, path), programs


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


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MAX_NAMED
    listed = ", ".join(shown(name) for name in names[:_MAX_NAMED])
    return f"{listed} and {more} more" if more > 0 else listed
