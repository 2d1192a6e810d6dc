"""The part ``cases``: pexeso and its rivals on the shared cases."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from benchmarks.transform.best_fuzzy import best_fuzzy_join
from benchmarks.transform.cases import Case, shared_cases
from benchmarks.transform.learned import learned, warm_up
from benchmarks.transform.rivals import RIVALS, Joined
from benchmarks.transform.scores import means, score

WAYS = ("named", "found")
"""pexeso with the key columns named, and with columns left out."""

BEST_FUZZY = "best fuzzy"
METHODS = (*WAYS, *RIVALS, BEST_FUZZY)
GROUPS = ("string rules", "entities")


def measured_cases(
    *, seed: int = 0, only: str = "", methods: Sequence[str] = METHODS
) -> dict[str, Any]:
    """Join every shared case by every method."""
    warm_up()
    for method in set(methods) & set(RIVALS):
        RIVALS[method](["Ann Bo", "Cid Efe"], ["bo, ann", "efe, cid"])
    with shared_cases() as cases:
        rows = [_row(case, seed, methods) for case in cases if only in case.name]
    return {"cases": rows, "means": means_of(rows, methods)}


def means_of(rows: Sequence[dict[str, Any]], methods: Sequence[str]) -> dict[str, Any]:
    """Return mean scores of each group by method, and the seconds of all its cases."""
    group_means: dict[str, Any] = {}
    for group in GROUPS:
        group_rows = [row for row in rows if row["group"] == group]
        group_means[group] = {
            method: {
                **means(row["methods"][method] for row in group_rows),
                "seconds": sum(row["methods"][method]["seconds"] for row in group_rows),
            }
            for method in methods
            if group_rows
        }
    return group_means


def _row(case: Case, seed: int, methods: Sequence[str]) -> dict[str, Any]:
    return {
        "case": case.name,
        "kind": case.kind,
        "group": GROUPS[0] if case.by_rule else GROUPS[1],
        "relations": case.relations,
        "true_pairs": len(case.truth),
        "methods": {method: _scored(case, method, seed) for method in methods},
    }


def _scored(case: Case, method: str, seed: int) -> dict[str, Any]:
    if method in WAYS:
        return learned(case, named=method == "named", seed=seed)
    started = time.process_time()
    if method == BEST_FUZZY:
        return {**_best_fuzzy(case), "seconds": time.process_time() - started}
    joined = RIVALS[method](case.source_texts, case.target_values)
    seconds = time.process_time() - started
    pairs = {(case.source_keys[at], case.target_values[target]) for at, target in joined}
    return {**score(pairs, case.truth), "seconds": seconds}


def _best_fuzzy(case: Case) -> dict[str, Any]:
    sources = {key: at for at, key in enumerate(case.source_keys)}
    targets = {value: at for at, value in enumerate(case.target_values)}
    truth: Joined = {
        (sources[key], targets[value])
        for key, value in case.truth
        if key in sources and value in targets
    }
    return best_fuzzy_join(case.source_texts, case.target_values, truth, len(case.truth))
