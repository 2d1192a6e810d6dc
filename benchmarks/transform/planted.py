"""The part ``planted``: seconds, memory and F where the rule is known, by the number of rows."""

from __future__ import annotations

import gc
import statistics
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow.compute as pc
import torch

from benchmarks.memory import peak_memory
from benchmarks.transform.generated import RULES, SYNTHETIC, PlantedPair, Rule, planted_pair
from benchmarks.transform.learned import warm_up
from benchmarks.transform.scores import counted
from pexeso.transform.joins.joined import TransformJoin
from pexeso.transform.joins.learned import learn_transformation
from pexeso.transform.transformation import KINDS

SIZES = tuple(10**power for power in range(2, 7))
MAX_ROWS = 10_000
SYNTHETIC_ROWS = 1_000


def measured_planted(
    *, seed: int = 0, max_rows: int = MAX_ROWS, share: float = 0.5, repeats: int = 3
) -> dict[str, Any]:
    """Learn all rules, at all of `SIZES` up to one."""
    warm_up()
    sizes = [size for size in SIZES if size <= max_rows]
    rows = [
        measured_pair(name, rule, size, share=share, seed=seed, repeats=repeats)
        for name, rule in RULES.items()
        for size in sizes
    ]
    synthetic = [
        measured_pair(name, rule, min(SYNTHETIC_ROWS, max_rows), share=1, seed=seed, repeats=1)
        for name, rule in SYNTHETIC.items()
    ]
    return {"share": share, "planted": rows, "synthetic": synthetic}


def measured_pair(
    name: str, rule: Rule, n_rows: int, *, share: float = 0.5, seed: int = 0, repeats: int = 1
) -> dict[str, Any]:
    """Learn one rule from two tables, and join them by it."""
    pair = planted_pair(rule, n_rows, share=share, seed=seed)
    runs = [_learned(pair, seed) for _ in range(repeats if n_rows < MAX_ROWS else 1)]
    joined, _, peak_bytes = runs[0]
    counts = np.bincount(joined.rule.kinds, minlength=len(KINDS)).tolist()
    return {
        "rule": name,
        "rows": n_rows,
        **scores_of(joined, pair),
        "kinds": dict(zip(KINDS, counts, strict=True)),
        "program": joined.program,
        "seconds": statistics.median(seconds for _, seconds, _ in runs),
        "join_seconds": _join_seconds(joined, pair),
        "peak_bytes": peak_bytes,
    }


def _learned(pair: PlantedPair, seed: int) -> tuple[TransformJoin, float, int | None]:
    gc.collect()
    with peak_memory(torch.device("cpu")) as peak:
        started = time.process_time()
        joined = learn_transformation(
            pair.source, pair.target, columns=pair.columns, target_columns=["key"], seed=seed
        )
        seconds = time.process_time() - started
    return joined, seconds, peak.n_bytes


def scores_of(joined: TransformJoin, pair: PlantedPair) -> dict[str, Any]:
    """Return the scores of the joined rows, and F without what is joined as nearly equal."""
    table = joined.table(how="inner", many_to_many=True)
    right = pc.equal(table["id"], table["id 2"])
    exact = pc.not_equal(table["match_kind"], "fuzzy")
    n_right, n_exact = pc.sum(right).as_py() or 0, pc.sum(exact).as_py() or 0
    n_both = pc.sum(pc.and_(right, exact)).as_py() or 0
    return {
        **counted(n_right, table.num_rows, pair.n_true),
        "f_without_fuzzy": counted(n_both, n_exact, pair.n_true)["f"],
    }


def _join_seconds(joined: TransformJoin, pair: PlantedPair) -> float | None:
    """Return the seconds that a stored program takes, to the joined table."""
    if joined.program is None:
        return None
    with TemporaryDirectory(prefix="pexeso-transform-") as folder:
        path = Path(folder) / "program.json"
        joined.save(path)
        started = time.process_time()
        learn_transformation(
            pair.source,
            pair.target,
            columns=pair.columns,
            target_columns=["key"],
            program=path,
            fuzzy=False,
        ).table(how="inner", many_to_many=True)
        return time.process_time() - started
