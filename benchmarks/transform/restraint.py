"""The part ``restraint``: what is joined where no rule, or hardly any, relates two columns.

In ``autofj`` and ``entity-pairs`` names of the same things are spelt in two ways; no rule derives
one from the other. Pairs of columns that are drawn from the shared lakes are not related at all,
but for chance: of those every program that is not refused, as it makes one key of several values,
is listed, with samples, for a reader to judge.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.datasets.tables import folder_tables, unpacked
from benchmarks.effectiveness.tasks import Task, read_tasks
from benchmarks.transform.cases import cleaned_values
from benchmarks.transform.scores import counted
from pexeso.lake.columns import label_columns
from pexeso.lake.containers.reader import read_table
from pexeso.transform.joins.joined import TransformJoin
from pexeso.transform.joins.learned import learn_transformation

TASK_SETS = ("autofj", "entity-pairs")
LAKES = ("wikitables", "fivethirtyeight", "pudding", "baseball", "countries")

MIN_VALUES = 20
"""Distinct values of a column that is drawn, at least."""

N_SAMPLES = 5


def measured_restraint(*, seed: int = 0, n_draws: int = 3, n_pairs: int = 200) -> dict[str, Any]:
    """Join the tasks and the drawn pairs."""
    result: dict[str, Any] = {"tasks": [task_row(*task, seed=seed) for task in _tasks()]}
    with ExitStack() as stack:
        folders = {lake: stack.enter_context(unpacked(lake)) for lake in LAKES}
        columns = list(lake_columns(folders))
        draws = [drawn_pairs(columns, n_pairs, seed + number) for number in range(n_draws)]
        result["random"] = {
            "columns": len(columns),
            "draws": [_draw(pairs, seed + number, seed) for number, pairs in enumerate(draws)],
        }
    return result


def _tasks() -> Iterator[tuple[str, Task]]:
    for name in TASK_SETS:
        with unpacked(name, "datasets") as folder:
            for task in read_tasks(folder):
                yield name, task


def task_row(name: str, task: Task, *, seed: int = 0) -> dict[str, Any]:
    """Join the columns of a task, and score what each kind of join joins."""
    started = time.process_time()
    joined = learn_transformation({"asked": task.queries}, {"other": task.others}, seed=seed)
    pairs = [] if joined.collapse else joined.pairs
    seconds = time.process_time() - started
    values, others = cleaned_values(task.queries), cleaned_values(task.others)
    matrix = task.partners.tocoo()
    truth = {
        (values[row], others[column]) for row, column in zip(matrix.row, matrix.col, strict=True)
    }
    kinds: dict[str, dict[str, int]] = {}
    for left, right, kind in pairs:
        counts = kinds.setdefault(kind, {"pairs": 0, "right": 0})
        counts["pairs"] += 1
        counts["right"] += (cleaned_values([left])[0], right) in truth
    n_right = sum(counts["right"] for counts in kinds.values())
    return {
        "set": name,
        "task": task.name,
        "values": [len(set(values)), len(set(others))],
        "true_pairs": len(truth),
        **counted(n_right, len(pairs), len(truth)),
        "kinds": kinds,
        "cardinality": joined.cardinality,
        "program": joined.program,
        "refused": joined.collapse,
        "seconds": seconds,
    }


@dataclass(frozen=True)
class LakeColumn:
    """A column of a lake."""

    lake: str
    table: str
    position: int
    name: str
    path: Path

    @property
    def key(self) -> str:
        return f"{self.lake}/{self.table}#{self.position}"

    def cells(self) -> pa.Array:
        return read_table(str(self.path)).columns[self.position]


def lake_columns(folders: dict[str, Path], min_values: int = MIN_VALUES) -> Iterator[LakeColumn]:
    """Yield the columns of lakes that have at least so many distinct values, also of numbers."""
    for lake, folder in folders.items():
        for file, table in folder_tables(folder):
            for position, (name, cells) in enumerate(
                zip(label_columns(table.names), table.columns, strict=True)
            ):
                # Cleaning makes none that are different.
                if len(cells) < min_values or len(cells.unique()) < min_values:
                    continue
                if len({*cleaned_values(cells)} - {None}) >= min_values:
                    yield LakeColumn(lake, file.table, position, name, Path(file.path))


def drawn_pairs(
    columns: Iterable[LakeColumn], n_pairs: int, seed: int
) -> list[tuple[LakeColumn, LakeColumn]]:
    """Draw pairs of columns of different tables; a column stands once on either side at most."""
    candidates = list(columns)
    sources, targets = (
        sorted(candidates, key=partial(_rank, seed, side)) for side in ("source", "target")
    )
    pairs = [
        (source, target)
        for source, target in zip(sources, targets, strict=True)
        if (source.lake, source.table) != (target.lake, target.table)
    ]
    return pairs[:n_pairs]


def _rank(seed: int, side: str, column: LakeColumn) -> bytes:
    return hashlib.blake2b(f"{seed} {side} {column.key}".encode(), digest_size=16).digest()


def _draw(
    pairs: Sequence[tuple[LakeColumn, LakeColumn]], drawn_by: int, seed: int
) -> dict[str, Any]:
    programs, seconds, n_equal = [], [], 0
    for source, target in pairs:
        cells = source.cells(), target.cells()
        started = time.process_time()
        joined = learn_transformation({"source": cells[0]}, {"target": cells[1]}, seed=seed)
        seconds.append(time.process_time() - started)
        n_equal += any(kind == "equal" for *_, kind in joined.pairs)
        if joined.program is not None and joined.collapse is None:
            programs.append(program_row(source, target, joined))
    return {
        "seed": drawn_by,
        "pairs": len(pairs),
        "with_programs": len(programs),
        "with_equal_values": n_equal,
        "seconds": sum(seconds),
        "largest_seconds": max(seconds, default=0.0),
        "programs": programs,
    }


def program_row(source: LakeColumn, target: LakeColumn, joined: TransformJoin) -> dict[str, Any]:
    """Return what was learned of two drawn columns, with pairs that it joins."""
    kinds: dict[str, list[tuple[Any, str]]] = {}
    for left, right, kind in joined.pairs:
        kinds.setdefault(kind, []).append((left, right))
    return {
        "source": f"{source.key}: {source.name}",
        "target": f"{target.key}: {target.name}",
        "program": joined.program,
        "direction": joined.rule.direction,
        "coverage": joined.coverage,
        "cardinality": joined.cardinality,
        "kinds": {kind: len(pairs) for kind, pairs in kinds.items()},
        "samples": kinds.get("program", [])[:N_SAMPLES],
        "values": [
            len({*cleaned_values(side.cells[0])} - {None})
            for side in (joined.source, joined.target)
        ],
    }
