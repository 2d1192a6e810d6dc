"""What the page of a join shows, as plain data: samples of rows with their steps, and the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pexeso.transform.joins.sides import Side, file_name
from pexeso.transform.joins.steps import RowSteps, first_rows, first_written
from pexeso.transform.programs.describing import steps_of_row
from pexeso.transform.transformation import KINDS

if TYPE_CHECKING:
    from pexeso.transform.joins.joined import TransformJoin

MAX_STEPS = 10
"""Rows of each program whose steps are shown."""

MAX_LISTED = 100
"""Rows that are nearly equal, that have no partner, and keys without a row."""


def page_report(joined: TransformJoin) -> dict[str, Any]:
    """Return what `pexeso.results.pages.transform.transform_page` shows of a join."""
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
    """Return the first rows that are joined in a way and differ in the columns that are read."""
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
