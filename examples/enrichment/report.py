"""The results as tables: for a terminal, and for the page about them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from enrichment.running import METHODS, summarise

START, END = "<!-- results: written by examples/enrich.py --write -->", "<!-- end of results -->"
MAIN_SCORE = {"regression": "r2", "classification": "accuracy"}
_HEAD = (
    "task",
    "rows",
    "method",
    "tables",
    "columns added",
    "wrong pairs",
    "score",
    "relative error",
)


def best_runs(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Return one run for each task and method.

    Of several thresholds it is the one with the best score, which is hindsight in that method's
    favour.
    """
    best: dict[tuple[str, str], dict[str, Any]] = {}
    for run in result["runs"]:
        key = run["task"], run["method"]
        if key not in best or main_score(run)[0] > main_score(best[key])[0]:
            best[key] = run
    return list(best.values())


def main_score(run: dict[str, Any]) -> tuple[float, float]:
    """Return mean and standard deviation over seeds of the score that a task is judged by."""
    return summarise(run["scores"][MAIN_SCORE[run["kind"]]])


def rows_of(result: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return a row of texts for each task and method."""
    runs = best_runs(result)
    none = {run["task"]: _error(run) for run in runs if run["method"] == METHODS[0]}
    rows = []
    for run in runs:
        mean, spread = main_score(run)
        name = "R²" if run["kind"] == "regression" else "accuracy"
        method = (
            run["method"]
            if run["threshold"] is None
            else f"{run['method']} (at {run['threshold']})"
        )
        relative = f"{_error(run) / none[run['task']]:.2f}" if none.get(run["task"]) else ""
        used = sum(1 for table in run["tables"] if table["added"])
        rows.append(
            (
                run["task"],
                f"{run['rows']:,}",
                method,
                str(used),
                str(run["columns"]),
                _wrong(run),
                f"{name} {mean:.3f} ± {spread:.3f}",
                relative,
            )
        )
    return rows


def as_text(result: dict[str, Any]) -> str:
    """Write the table for a terminal."""
    lines = [_HEAD, *rows_of(result)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEAD))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def as_markdown(result: dict[str, Any]) -> str:
    """Write the tables for the page: scores, and pairs that are wrong."""
    lake, index = result["lake"], result["index"]
    setup = (
        f"{lake['tables']:,} tables, {lake['columns']:,} columns, {lake['values']:,} values; "
        f"model {index['model']}, max distance {index['max_distance']:g}; "
        f"{result['seeds']} seeds, {result['trees']} trees."
    )
    parts = [setup, _markdown(_HEAD, rows_of(result)), *_tasks(result), *_wrong_pairs(result)]
    return "\n\n".join(parts)


def renew(page: str, result: dict[str, Any]) -> str:
    """Put the tables between the marks of the page."""
    before, _, rest = page.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}\n\n{as_markdown(result)}\n\n{END}{after}"


def _error(run: dict[str, Any]) -> float:
    """Return the mean squared error, or the share of rows that are told wrongly."""
    scores = run["scores"]
    if run["kind"] == "regression":
        return summarise(scores["mean_squared_error"])[0]
    return 1 - summarise(scores["accuracy"])[0]


def _wrong(run: dict[str, Any]) -> str:
    joined = run["joined"]
    if joined is None or not run["tables"]:
        return ""
    return f"{joined['wrong']} of {joined['wrong'] + joined['right']}"


def _tasks(result: dict[str, Any]) -> Iterable[str]:
    about = [
        f"- **{run['task']}**: {run['about']}."
        for run in best_runs(result)
        if run["method"] == METHODS[0]
    ]
    return ["\n".join(["The tasks:", "", *about])]


def _wrong_pairs(result: dict[str, Any]) -> Iterable[str]:
    rows = []
    for run in best_runs(result):
        for distance, own_value, lake_value in (run["joined"] or {"examples": []})["examples"][:3]:
            rows.append((run["task"], run["method"], own_value, lake_value, f"{distance:.3f}"))
    return (
        [
            "Pairs that were joined and are wrong, the nearest of each:",
            _markdown(("task", "method", "yours", "the lake's", "distance"), rows),
        ]
        if rows
        else []
    )


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines
    )
