"""Targets to predict: planted ones, and those of the enrichment experiment with its lakes."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from benchmarks.acquisition.judging import Problem, against_published, judged
from benchmarks.acquisition.plan_strategy import OURS, STRATEGIES
from pexeso.enrichment.enrich import enrich_from
from pexeso.enrichment.features import CLASSIFICATION, REGRESSION, read_target
from pexeso.errors import LakeError, PexesoError
from pexeso.lake.columns import label_columns
from pexeso.lake.containers.reader import read_table
from pexeso.lake.files import find_tables

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"
DEMO = "demo"
TASKS = ("wine", "football", "hate-crimes", "recent-films", "tattoos")
"""Those of the enrichment experiment whose keys are joined by equal text with anything.

`DEMO` is another, for which no lake need be there.
"""

PLANTED = {f"planted-{task}": task for task in (REGRESSION, CLASSIFICATION)}
TARGETS = (*PLANTED, DEMO, *TASKS)

_SPLITS = 4


def planted(
    seed: int = 0,
    *,
    task: str = REGRESSION,
    n_rows: int = 400,
    n_true: int = 4,
    n_noise: int = 20,
) -> Problem:
    """Draw a table whose target depends on some of the candidates.

    Parameters
    ----------
    seed : int
    task : {"regression", "classification"}
        Numbers, or which third of these.
    n_rows : int
    n_true : int
        Candidates ``true-0`` and so on, that the target depends on, the first one most. Each has an
        imperfect ``copy``, and a tenth of the cells of all is missing.
    n_noise : int
        Candidates ``noise-0`` and so on, that it does not depend on, every fifth of text.
    """
    rng = np.random.default_rng(seed)
    basis = rng.normal(size=n_rows)
    true = rng.normal(size=(n_true, n_rows))
    # Straight and bent: one for linear models, one for trees.
    parts = [
        (values if at % 2 == 0 else np.abs(values) * 1.5) * 2 / (1 + at / 2)
        for at, values in enumerate(true)
    ]
    amount = basis + sum(parts) + rng.normal(scale=0.5, size=n_rows)
    target: Any = amount
    if task == CLASSIFICATION:
        bounds = np.quantile(amount, [1 / 3, 2 / 3])
        target = np.array(["low", "middle", "high"], object)[np.searchsorted(bounds, amount)]
    columns: dict[str, Any] = {}
    for at, values in enumerate(true):
        columns[f"true-{at}"] = values
        columns[f"copy-{at}"] = values + rng.normal(scale=1.0, size=n_rows)
    for at in range(n_noise):
        texts = np.array(["red", "green", "blue"], object)[rng.integers(3, size=n_rows)]
        columns[f"noise-{at}"] = texts if at % 5 == 4 else rng.normal(size=n_rows)
    missing = {name: rng.random(n_rows) < 0.1 for name in columns}
    candidates = {name: pd.Series(columns[name]).mask(missing[name]) for name in sorted(columns)}
    base = pd.DataFrame({"key": [f"k{at}" for at in range(n_rows)], "own": basis, "target": target})
    return Problem(f"planted-{task}", base, "target", task, candidates)


def real_problem(name: str, folder: Path) -> Problem:
    """Return a task of the enrichment experiment, with what joins its key by equal text.

    Tables that the task was made of are left out, and columns that say the target again, as
    enrichment does. Rows without a target are dropped.

    Parameters
    ----------
    name : str
        One of `TASKS`, or `DEMO`.
    folder : Path
        Where the real lakes are unpacked, once.

    Raises
    ------
    LakeError
        There is no such task, or its lake is not on this machine.
    """
    if name not in (*TASKS, DEMO):
        raise LakeError(f"Targets are {', '.join((*TASKS, DEMO))}. Got {name!r}.")
    with _examples():
        from enrichment import lake, methods, tasks

        lake_folder = lake.DEMO if name == DEMO else lake.unpack_lake(folder)
        task = (tasks.demo if name == DEMO else tasks.REAL[name])(lake_folder)
        texts = _texts(lake_folder)
        key = task.table[task.on]
        matches = methods.first_of_each_table(texts.matches(key, methods.equal), task.left_out)
    enriched = enrich_from(matches, task.table, task.on, target=task.target)
    share = enriched.rules.min_number_fraction
    values = task.table[task.target]
    target = read_target(values, "auto", folds=_SPLITS, min_number_fraction=share)
    rows = enriched.table.iloc[target.rows].reset_index(drop=True)
    rows[task.target] = target.values
    added = [column.name for column in enriched.columns]
    return Problem(
        name,
        rows.drop(columns=[*added, task.on]),
        task.target,
        target.task,
        {column: rows[column] for column in added},
    )


@lru_cache(maxsize=1)
def _texts(lake: Path) -> Any:
    """Read the columns of text of a lake, to be joined by equal text; that of the last is kept."""
    from enrichment import methods

    names, cells = [], []
    for file in find_tables(lake)[0]:
        try:
            table = read_table(file.path)
        except PexesoError:
            continue
        for label, column in zip(label_columns(table.names), table.columns, strict=True):
            if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
                names.append((file.table, label))
                cells.append(column.cast(pa.string()).drop_null().unique())
    return methods.LakeTexts(lake, names, cells, methods.EQUAL)


@contextmanager
def _examples() -> Iterator[None]:
    """Let the enrichment experiment be imported: the examples are no part of the packages."""
    sys.path.insert(0, str(EXAMPLES))
    try:
        yield
    finally:
        sys.path.remove(str(EXAMPLES))


def measured_targets(
    names: Sequence[str], *, seed: int = 0, splits: int = 5, folder: Path | None = None
) -> dict[str, Any]:
    """Let the published strategies and ours choose for targets, and judge what they chose.

    Parameters
    ----------
    names : sequence of str
        Some of `TARGETS`.
    seed : int
        Of planted targets.
    splits : int
        Of the rows of each.
    folder : Path, optional
        Where the real lakes are unpacked; else a temporary one.

    Returns
    -------
    dict
        ``targets``, what `judged` returns of each, with ``against``, what `against_published` says
        of each of our strategies, and of each strategy ``gain_per_second`` by model, the mean gain
        over the mean seconds; None where nothing is to be done.
    """
    with tempfile.TemporaryDirectory(prefix="pexeso-benchmark-") as temporary:
        location = Path(temporary) if folder is None else folder
        problems = [
            planted(seed, task=PLANTED[name]) if name in PLANTED else real_problem(name, location)
            for name in names
        ]
    return {
        "targets": [_with_comparisons(judged(one, STRATEGIES, splits=splits)) for one in problems]
    }


def _with_comparisons(result: dict[str, Any]) -> dict[str, Any]:
    for of_strategy in result["strategies"].values():
        seconds = float(np.mean(of_strategy["seconds"]))
        of_strategy["gain_per_second"] = {
            model: gain / seconds if seconds else None
            for model, gain in of_strategy["gain"].items()
        }
    return {**result, "against": {name: against_published(result, name) for name in OURS}}
