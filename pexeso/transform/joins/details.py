"""Details of a join by programs: steps of rows, and what its page shows, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import InputError
from pexeso.joins.options import JoinOptions
from pexeso.joins.report import require_moderate_growth
from pexeso.runtime.checks import require_flag
from pexeso.runtime.formatting import listed_names, shown
from pexeso.transform.joins.sides import Side, file_name
from pexeso.transform.programs.applying import apply_program
from pexeso.transform.programs.program import Program
from pexeso.transform.programs.renderings import in_words, steps_of_row
from pexeso.transform.texts import TextTable
from pexeso.transform.transformation import KINDS

if TYPE_CHECKING:
    from pexeso.transform.joins.joined import TransformJoin


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


def first_rows(reading: TextTable, columns: Sequence[int], chosen: np.ndarray) -> np.ndarray:
    """Return the chosen rows that differ in some columns, the first of each: int64, ascending."""
    rows = np.flatnonzero(chosen)
    codes = np.stack([reading.columns[at].codes[rows] for at in columns], axis=1)
    _, first = np.unique(codes, axis=0, return_index=True)
    return rows[np.sort(first)]


def first_written(
    programs: Sequence[Program], reading: TextTable, rows: np.ndarray
) -> list[str | None]:
    cells = [column.cells.take(pa.array(rows)) for column in reading.columns]
    texts = [apply_program(program, cells) for program in programs]
    return pc.coalesce(*texts).to_pylist() if texts else [None] * len(rows)


# Columns that are named; of more their number.
MAX_NAMED = 5


def why_no_program(joined: TransformJoin) -> str:
    if joined.n_rows["none"] == 0 and joined.n_rows["fuzzy"] == 0:
        return "all rows are joined by equal values, so that no row is left to learn from"
    several = [len(side.columns) > 1 and side.named for side in (joined.source, joined.target)]
    looked_at = (
        f"{_columns(joined.source, 'the first table')} and "
        f"{_columns(joined.target, 'the second')} were compared"
        f"{'' if any(several) else ' in both directions'}"
    )
    best = joined.rule.best
    if best is None:
        reason = f"{looked_at}, and no rows that share pieces of text are written by one rule"
    else:
        words = in_words(best.program, joined.reading.texts.names)
        reason = (
            f"{looked_at}; the best rule found, {words}, writes {best.n_keys} of the other "
            f"column's values, but {best.why}; if it is right, accept it by accept_rule "
            "(--accept-rule)"
        )
    if joined.proposed is not None:
        reason = f"{reason}; {joined.proposed}"
    if joined.max_compared is None:
        return reason
    return (
        f"{reason}; similar values were not joined either, as a column has more than "
        f"{joined.max_compared:,} distinct ones: index one table and use 'pexeso join', or give "
        "fewer rows"
    )


def repeated_key(joined: TransformJoin) -> str:
    """Return the key that has most rows in both tables, and their numbers."""
    n_source, n_target = joined.key_counts
    position = int(np.argmax(np.minimum(n_source, n_target)))
    key = joined.keyed.texts.columns[joined.rule.key_column].values[position].as_py()
    return f"{shown(key)} with {n_source[position]:,} and {n_target[position]:,}"


def require_distinct(joined: TransformJoin, *, many_to_one: bool) -> None:
    """Raise InputError where programs make one key of several values, unless that is asked for."""
    require_flag("many_to_one", many_to_one)
    if joined.collapse is not None and not many_to_one:
        raise InputError(
            f"{joined.collapse}: the rule makes one key of several values, so that rows may be "
            "joined with another's. Name other columns, or allow it by many_to_one "
            "(--many-to-one)."
        )


def require_moderate(joined: TransformJoin, how: str, *, many_to_many: bool) -> None:
    """Raise InputError where rows multiply, or become ten times as many, unless that is allowed."""
    if joined.multiplies and not many_to_many:
        raise InputError(
            f"Keys have several rows in both tables (N:M), such as {repeated_key(joined)}, so "
            "that rows would multiply. Name other columns, remove duplicates of one table, or "
            "pass many_to_many (--many-to-many)."
        )
    keys = joined.keyed.texts.columns[joined.rule.key_column].values
    options = JoinOptions(how=how, many_to_many=many_to_many)
    name = file_name(joined.target.file) or "target"
    require_moderate_growth(keys, joined.key_codes[0], joined.key_counts[1], name, options)


def _columns(side: Side, table: str) -> str:
    return f"{listed_names(side.texts.names, MAX_NAMED)} of {table}"


# Rows of each program whose steps are shown.
MAX_STEPS = 10

# Rows that are nearly equal, that have no partner, and keys without a row.
MAX_LISTED = 100


def page_report(joined: TransformJoin) -> dict[str, Any]:
    columns, key = joined.rule.columns, (joined.rule.key_column,)
    reading, keyed = _side(joined.reading, columns), _side(joined.keyed, key)
    return {
        "source": reading if joined.forward else keyed,
        "target": keyed if joined.forward else reading,
        "reading": reading,
        "keyed": keyed,
        "rows": joined.n_rows,
        "coverage": joined.coverage,
        "cardinality": joined.cardinality,
        "collapse": joined.collapse,
        "shared_keys": joined.shared_keys,
        "tried": joined.tried,
        "programs": _programs(joined),
        "fuzzy": _rows(joined, "fuzzy"),
        "unjoined": _rows(joined, "none"),
        "unused": _unused(joined),
        "sql": joined.sql(),
        "sql_spark": joined.sql("spark"),
        "python": joined.python,
    }


def _side(side: Side, columns: Sequence[int]) -> dict[str, Any]:
    return {"file": file_name(side.file), "columns": [side.texts.names[at] for at in columns]}


def _programs(joined: TransformJoin) -> list[dict[str, Any]]:
    steps: dict[int, list[RowSteps]] = {}
    for row_steps in joined.steps(MAX_STEPS):
        steps.setdefault(row_steps.program, []).append(row_steps)
    texts = joined.reading.texts
    nothing = [None] * len(texts.names)
    counts = np.bincount(joined.program_numbers, minlength=len(joined.rule.programs) + 1)
    return [
        {
            "number": number,
            "n_rows": int(counts[number]),
            "columns": [texts.names[at] for at in program.columns],
            "operators": [words for words, _ in steps_of_row(program, nothing, texts.names)],
            "rows": [
                {
                    "number": row_steps.row + 1,
                    "cells": [cell for _, cell in row_steps.cells],
                    "pieces": [text for _, text in row_steps.steps],
                    "key": row_steps.key,
                }
                for row_steps in steps.get(number, [])
            ],
        }
        for number, program in enumerate(joined.rule.programs, 1)
    ]


def _rows(joined: TransformJoin, kind: str) -> dict[str, Any]:
    texts, columns = joined.reading.texts, joined.rule.columns
    chosen = first_rows(texts, columns, joined.rule.kinds == KINDS.index(kind))
    rows = chosen[:MAX_LISTED]
    keys = joined.keyed.texts.columns[joined.rule.key_column].values
    cells = [texts.columns[at].cells.take(pa.array(rows)).to_pylist() for at in columns]
    written = first_written(joined.rule.programs, texts, rows)
    partners = joined.rule.partners[rows].tolist()
    distances = joined.rule.distances[rows].tolist()
    known = set(keys.to_pylist()) & set(written)
    return {
        "total": len(chosen),
        "columns": [texts.names[at] for at in columns],
        "rows": [
            {
                "cells": list(row),
                "written": text,
                "is_key": text in known,
                "key": keys[partner].as_py() if partner >= 0 else None,
                "distance": distance,
            }
            for row, text, partner, distance in zip(
                zip(*cells, strict=True), written, partners, distances, strict=True
            )
        ],
    }


def _unused(joined: TransformJoin) -> dict[str, Any]:
    keys = joined.keyed.texts.columns[joined.rule.key_column].values
    used = np.zeros(len(keys), bool)
    used[joined.rule.partners[joined.rule.partners >= 0]] = True
    unused = np.flatnonzero(~used)
    rows = keys.take(pa.array(unused[:MAX_LISTED])).to_pylist()
    return {"total": len(unused), "rows": rows}
