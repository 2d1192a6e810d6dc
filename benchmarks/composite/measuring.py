"""What is measured: seconds, what filters let pass, entries read, and the time of a probe."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import click
import numpy as np

from benchmarks.composite.queries import Question
from pexeso.composite.filters import filters_of
from pexeso.composite.query import FIRST_COLUMNS
from pexeso.composite.row_keys import RowKeys, row_keys_of
from pexeso.composite.search import KeyMatches, search_keys
from pexeso.registry import DEFAULT_FILTERS

K, REPEATS = 10, 3

FOUR = ("none", "bloom", "xash", "intersection")
"""What the choice is among."""

FILTERS = (
    *(f"{name}-{bits}" for name in ("bloom", "xash") for bits in (128, 256, 512)),
    "xash-128-ref",
)
WAYS = {
    "SCR": ("none", None),
    "MCR": ("intersection", None),
    **{name: (name.partition("-")[0], name) for name in FILTERS},
}
"""The paper's ways by name: how rows are sorted out, and the filter that the index then keeps. SCR
reads the lists of one column, MCR those of all columns."""


def with_filters(rows: RowKeys, names: Sequence[str]) -> RowKeys:
    """Return the same lake with filters of rows."""
    width = len(rows.cells) / rows.n_rows
    tables = rows.table_rows, rows.table_columns
    return row_keys_of(rows.values, rows.cells, *tables, filters_of(names, width))


def choice(rows: RowKeys, questions: Sequence[Question]) -> dict[str, Any]:
    """Search by each of `FOUR` and by the one that is chosen, in turn, and compare all answers."""
    rows = with_filters(rows, DEFAULT_FILTERS)
    names = (*FOUR, "auto")
    seconds = np.full((len(questions), len(names)), np.inf)
    chosen = dict.fromkeys(FOUR, 0)
    for at, question in enumerate(questions):
        answers = []
        for _ in range(REPEATS):
            for column, name in enumerate(names):
                matches, elapsed = _timed(rows, question, name)
                seconds[at, column] = min(seconds[at, column], elapsed)
                answers.append(matches.matches)
        chosen[matches.row_filter] += 1
        if any(answer != answers[0] for answer in answers):
            raise click.ClickException(f"Query {at}: the filters give different answers.")
    fastest = seconds[:, :-1].min(axis=1)
    return {
        "queries": len(questions),
        "chosen": chosen,
        **{
            name: {
                "median_ms": round(1e3 * float(np.median(seconds[:, column])), 3),
                "largest_ms": round(1e3 * float(seconds[:, column].max()), 1),
                "median_over_fastest": round(float(np.median(seconds[:, column] / fastest)), 3),
                "total_over_fastest": round(float(seconds[:, column].sum() / fastest.sum()), 3),
            }
            for column, name in enumerate(names)
        },
    }


def filter_measures(rows: RowKeys, questions: Sequence[Question]) -> dict[str, Any]:
    """Return the paper's measures of each of `WAYS`."""
    result = {}
    for name, (way, filter_name) in WAYS.items():
        lake = with_filters(rows, [] if filter_name is None else [filter_name])
        works, seconds = [], 0.0
        for question in questions:
            matches, elapsed = _timed(lake, question, way)
            works.append(matches.work)
            seconds += elapsed
        precision = [work.precision for work in works if work.precision is not None]
        result[name] = {
            "precision": round(float(np.mean(precision)), 3) if precision else None,
            "deviation": round(float(np.std(precision)), 3) if precision else None,
            "undefined": len(works) - len(precision),
            "false_positives": sum(work.passed - work.held for work in works),
            "probes": sum(work.probes for work in works),
            "seconds": round(seconds / len(questions), 6),
        }
    return result


def first_columns(rows: RowKeys, questions: Sequence[Question]) -> dict[str, float]:
    """Return the mean number of entries read by each rule for the first column, and the bounds."""
    entries: dict[str, list[int]] = {name: [] for name in (*FIRST_COLUMNS, "best", "worst")}
    for question in questions:
        every = [_entries(rows, question, column) for column in range(question.query.n_columns)]
        for rule in FIRST_COLUMNS:
            entries[rule].append(_entries(rows, question, rule))
        entries["best"].append(min(every))
        entries["worst"].append(max(every))
    return {name: round(float(np.mean(counts)), 1) for name, counts in entries.items()}


def probing(rows: RowKeys, questions: Sequence[Question], wanted: int) -> Mapping[str, Any]:
    """Time the search that tries about `wanted` pairs of a row and a key, by each super key.

    Of all questions and first columns the one is taken that comes nearest.
    """
    rows = with_filters(rows, DEFAULT_FILTERS)
    tries = [
        (abs(_search(rows, question, "bloom", column, None).work.probes - wanted), at, column)
        for at, question in enumerate(questions)
        for column in range(question.query.n_columns)
    ]
    _, at, column = min(tries)
    result = {}
    for name in ("bloom", "xash"):
        times = []
        for _ in range(REPEATS):
            begin = time.process_time()
            matches = _search(rows, questions[at], name, column, None)
            times.append(time.process_time() - begin)
        probes, seconds = matches.work.probes, min(times)
        result[name] = {
            "probes": probes,
            "passed": matches.work.passed,
            "seconds": round(seconds, 3),
            "seconds_for_10_million": round(1e7 * seconds / max(1, probes), 3),
        }
    return result


def _entries(rows: RowKeys, question: Question, first: str | int) -> int:
    return _search(rows, question, "none", first).work.entries


def _timed(rows: RowKeys, question: Question, way: str) -> tuple[KeyMatches, float]:
    begin = time.process_time()
    matches = _search(rows, question, way)
    return matches, time.process_time() - begin


def _search(
    rows: RowKeys,
    question: Question,
    way: str,
    first: str | int = "postings",
    k: int | None = K,
) -> KeyMatches:
    return search_keys(
        rows, question.query, k, row_filter=way, first=first, excluded=question.excluded
    )
