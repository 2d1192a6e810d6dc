"""Fuzzy joins of two tables by other tools, on data with truth, each with what it needs.

Tasks are pairs of columns of several data sets (`benchmarks.effectiveness.sets`). A tool joins each
row of one column with its nearest of the other, in a process of its own
(`benchmarks.comparison_tools`), once with the texts as written and once as pexeso normalises them.
From which score on rows are joined is chosen for the highest F1 on the other data sets.
"""

from __future__ import annotations

import csv
import json
import logging
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks import comparison_tools
from benchmarks.commands import Result, benchmark, setting
from benchmarks.comparison_tools import TOOLS, write_rows
from benchmarks.effectiveness.command import ALL, members
from benchmarks.effectiveness.joining import best_threshold, f1_at_thresholds, scores_at
from benchmarks.effectiveness.nearest import Joined, nearest_of
from benchmarks.effectiveness.sets import shared_set
from benchmarks.effectiveness.tasks import Task
from benchmarks.origin import environment_with_this_code
from benchmarks.report import markdown_table, rate
from pexeso.errors import InputError
from pexeso.lake.normalise.normaliser import Normaliser

DATA = ("autofj", "entity-pairs", "countries")
WRITTEN, NORMALISED = "as written", "normalised"
OWN = "pexeso"
"""It normalises by itself, and runs with the Python of this process."""

SEED = 0
_RATES = ("precision", "recall", "f1")
_log = logging.getLogger(__name__)

Sets = Mapping[str, Sequence[Task]]


@dataclass(frozen=True)
class Comparison:
    """Tools, and how many tasks of each data set."""

    tools: str = setting(ALL, f"Some of {', '.join(TOOLS)}, with commas.")
    tasks: int = setting(8, "Tasks that are drawn of each data set.")
    python: str = setting(sys.executable, "The Python of an environment with the other tools.")


@benchmark("comparison", Comparison, lambda result: table_of(result))
def comparison_command(settings: Comparison) -> Iterator[tuple[str, Result]]:
    """Join two tables by similar values, with pexeso and with other tools."""
    tools = members(settings.tools, list(TOOLS), "Tools")
    with tempfile.TemporaryDirectory(prefix="pexeso-comparison-") as work:
        sets = {
            name: drawn(shared_set(name, Path(work, name)).tasks, settings.tasks) for name in DATA
        }
        yield "comparison/two-tables", measure(sets, tools, settings.python, Path(work))


def drawn(tasks: Sequence[Task], n_tasks: int) -> list[Task]:
    """Draw some of the tasks, in their order."""
    chosen = np.random.default_rng(SEED).permutation(len(tasks))[:n_tasks]
    return [tasks[position] for position in sorted(chosen)]


def measure(sets: Sets, tools: Sequence[str], python: str, work: Path) -> dict[str, Any]:
    """Run tools, one after the other, and score them."""
    tasks = [task for one_set in sets.values() for task in one_set]
    folders = {WRITTEN: work / "written", NORMALISED: work / "normalised"}
    for form, folder in folders.items():
        _write_tasks(folder, tasks, is_normalised=form == NORMALISED)
    results: dict[str, Any] = {}
    skipped = {}
    for tool in tools:
        forms = [WRITTEN] if tool == OWN else list(folders)
        for form in forms:
            _log.info("%s, %s", tool, form)
            program = sys.executable if tool == OWN else python
            if (reason := _run(program, tool, folders[form])) is not None:
                skipped[tool] = reason
                results.pop(tool, None)
                break
            joined = [
                joined_of(task, folders[form] / f"{number:03}" / "pairs.csv")
                for number, task in enumerate(tasks)
            ]
            scores = scores_of(joined, sets, TOOLS[tool].default)
            if form == WRITTEN:
                run = json.loads((folders[form] / "run.json").read_text(encoding="utf-8"))
                run["seconds"] = round(sum(run["seconds"]), 2)
                results[tool] = {**run, "scores": {}}
            results[tool]["scores"][form] = scores
    return {
        "data": {name: [task.name for task in one_set] for name, one_set in sets.items()},
        "pairs": sum(len(task.queries) * len(task.others) for task in tasks),
        "seed": SEED,
        "tools": results,
        "skipped": skipped,
    }


def _write_tasks(folder: Path, tasks: Sequence[Task], *, is_normalised: bool) -> None:
    for number, task in enumerate(tasks):
        columns = [task.queries, task.others]
        if is_normalised:
            columns = Normaliser().normalise_columns(columns)
        place = folder / f"{number:03}"
        place.mkdir(parents=True)
        for name, column in zip(("left", "right"), columns, strict=True):
            write_rows(place / f"{name}.csv", ([text or ""] for text in column.to_pylist()))


def _run(python: str, tool: str, folder: Path) -> str | None:
    """Run a tool over a folder; return why it did not."""
    program = Path(comparison_tools.__file__).resolve()
    try:
        done = subprocess.run(
            [python, str(program), tool, str(folder)],
            capture_output=True,
            text=True,
            env=environment_with_this_code() if tool == OWN else None,
            check=False,
        )
    except OSError as error:
        raise InputError(f"--python {python!r} does not start: {error.strerror}.") from error
    if done.returncode == 0:
        return None
    return (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1]


def joined_of(task: Task, path: Path) -> Joined:
    """Read what a tool joined in one task."""
    with path.open(encoding="utf-8", newline="") as stream:
        rows = np.array([list(map(float, row)) for row in csv.reader(stream)], float).reshape(-1, 3)
    rows = rows[np.isfinite(rows[:, 2])]
    left, right = rows[:, :2].astype(np.int64).T
    scores = sp.csr_matrix(
        (rows[:, 2].astype(np.float32), (left, right)), shape=task.partners.shape
    )
    similarity, credit, nearest = nearest_of([scores], task.partners)
    known = task.has_partner(), task.has_equal_partner()
    return Joined(task.name, task.group, similarity, credit, nearest, *known, [])


def scores_of(joined: Sequence[Joined], sets: Sets, default: float | None) -> dict[str, Any]:
    """Score a tool with thresholds chosen on the other data sets, and with its own."""
    similarities = np.concatenate([join.similarity for join in joined])
    reached = similarities[np.isfinite(similarities)]
    grid = np.unique(np.quantile(reached, np.linspace(0, 1, 201))) if len(reached) else np.zeros(1)
    names = [name for name, tasks in sets.items() for _ in tasks]
    by_set: dict[str, list[np.ndarray]] = {name: [] for name in sets}
    for name, join in zip(names, joined, strict=True):
        by_set[name].append(f1_at_thresholds(replace(join, similarities=grid.tolist())))
    means = {name: np.mean(f1s, axis=0) for name, f1s in by_set.items()}
    chosen = {
        name: float(grid[best_threshold(np.array([means[o] for o in means if o != name]))])
        for name in means
    }
    thresholds = [chosen[name] for name in names]
    scores = _means(scores_at(joined, thresholds, thresholds)["tasks"], sets)
    scores["thresholds"] = chosen
    if default is not None:
        own = [default] * len(joined)
        scores["default"] = _means(scores_at(joined, own, own)["tasks"], sets)
    return scores


def _means(scores: Mapping[str, Mapping[str, float]], sets: Sets) -> dict[str, Any]:
    """Return the mean rates of each data set, and of the data sets."""
    by_set = {
        name: {rate: float(np.mean([scores[task.name][rate] for task in tasks])) for rate in _RATES}
        for name, tasks in sets.items()
    }
    overall = {rate: float(np.mean([one[rate] for one in by_set.values()])) for rate in _RATES}
    return {**overall, "sets": by_set}


def table_of(result: Mapping[str, Any]) -> str:
    """Return the scores and costs of the tools, and which were not measured."""
    rows = []
    for tool, run in result["tools"].items():
        versions = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
        written = run["scores"][WRITTEN]
        for form, scores in run["scores"].items():
            label, cost = f"{versions}: {TOOLS[tool].by}", [run["seconds"], run["peak_bytes"] / 1e6]
            if form == NORMALISED:
                if scores == written:
                    continue
                label, cost = f"{tool}, {NORMALISED}", []
            f1s = [rate(one["f1"]) for one in scores["sets"].values()]
            rates = [rate(scores[name]) if scores["recall"] else "" for name in _RATES]
            own = rate(scores["default"]["f1"]) if "default" in scores else ""
            shown = [f"{number:,.0f}" for number in cost] or ["", ""]
            rows.append([label, *f1s, *rates, own, *shown])
    head = ["tool", *(f"F1, {name}" for name in result["data"]), "precision", "recall", "F1"]
    table = markdown_table([*head, "F1, its own threshold", "seconds", "MB"], rows)
    lines = [f"Not measured: {tool}. {reason}" for tool, reason in result["skipped"].items()]
    return "\n\n".join([table, *lines])
