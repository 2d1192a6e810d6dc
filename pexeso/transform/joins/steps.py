"""What the operators of a program wrote for a row, one step after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.transform.programs.applying import apply_program
from pexeso.transform.programs.describing import steps_of_row
from pexeso.transform.programs.program import Program
from pexeso.transform.texts import TextTable


@dataclass(frozen=True, slots=True)
class RowSteps:
    """How a program wrote the key of a row.

    Attributes
    ----------
    program : int
        Its number, from 1.
    row : int
        Of the table that the programs read, from 0.
    cells : tuple of (str, str)
        Name and cell of each column that the program reads; cells as programs read them, without
        spaces around them.
    steps : tuple of (str, str)
        Each operator in words, and what it wrote.
    key : str
        What they wrote together, which is the key that the row is joined with.
    """

    program: int
    row: int
    cells: tuple[tuple[str, str], ...]
    steps: tuple[tuple[str, str], ...]
    key: str


def program_numbers(
    programs: Sequence[Program], reading: TextTable, rows: np.ndarray, keys: pa.Array
) -> np.ndarray:
    """Return which program joined each row: the first that writes its key, from 1.

    Parameters
    ----------
    rows : int64 (n,)
        Those that a program joined.
    keys : Arrow array of text (n,)
        What they are joined with.

    Returns
    -------
    numpy.ndarray
        int8 (n,); 0 where no program writes the key.
    """
    numbers = np.zeros(len(rows), np.int8)
    cells = [column.cells.take(pa.array(rows)) for column in reading.columns]
    for number, program in enumerate(programs, 1):
        same = pc.fill_null(pc.equal(apply_program(program, cells), keys), False)
        numbers[(numbers == 0) & same.to_numpy(zero_copy_only=False)] = number
    return numbers


def row_steps(programs: Sequence[Program], reading: TextTable, number: int, row: int) -> RowSteps:
    """Return the steps of the program with a number, from 1, for a row that it applies to."""
    program, names, cells = programs[number - 1], reading.names, reading.row(row)
    steps = tuple((words, text or "") for words, text in steps_of_row(program, cells, names))
    return RowSteps(
        number,
        row,
        tuple((names[at], cells[at] or "") for at in program.columns),
        steps,
        "".join(text for _, text in steps),
    )


def first_rows(reading: TextTable, columns: Sequence[int], chosen: np.ndarray) -> np.ndarray:
    """Return the chosen rows that differ in some columns, the first of each: int64, ascending."""
    rows = np.flatnonzero(chosen)
    codes = np.stack([reading.columns[at].codes[rows] for at in columns], axis=1)
    _, first = np.unique(codes, axis=0, return_index=True)
    return rows[np.sort(first)]


def first_written(
    programs: Sequence[Program], reading: TextTable, rows: np.ndarray
) -> list[str | None]:
    """Return what the first program that applies writes for each row, or None."""
    cells = [column.cells.take(pa.array(rows)) for column in reading.columns]
    texts = [apply_program(program, cells) for program in programs]
    return pc.coalesce(*texts).to_pylist() if texts else [None] * len(rows)
