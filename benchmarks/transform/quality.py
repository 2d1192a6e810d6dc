"""The part ``cases``: pexeso and its rivals on the shared cases."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from benchmarks.transform.best_fuzzy import best_fuzzy_join
from benchmarks.transform.cases import Case, shared_cases
from benchmarks.transform.learned import learned
from benchmarks.transform.scores import means, score
from pexeso.transform.fuzzy import fuzzy_join
from pexeso.transform.learning.example_sets import ColumnSuffixes, find_row_pairs
from pexeso.transform.nearest import nearest_values

# What could join a case instead, given its true columns. A pair is of positions of two values.
#
# All but equality look at lower-cased text. A source key of several columns is their values with a
# space between them.

Joined = set[tuple[int, int]]
Rival = Callable[[Sequence[str], Sequence[str]], Joined]
"""From distinct source texts and distinct target values."""


def by_equality(sources: Sequence[str], targets: Sequence[str]) -> Joined:
    positions = {value: position for position, value in enumerate(targets)}
    return {(at, positions[text]) for at, text in enumerate(sources) if text in positions}


def by_substring(sources: Sequence[str], targets: Sequence[str]) -> Joined:
    """Join each source text with the longest target in it, or that it is in (SM)."""
    left, right = ([text.lower() for text in texts] for texts in (sources, targets))
    pairs: Joined = set()
    for at, text in enumerate(left):
        inside = [
            (min(len(text), len(value)), position)
            for position, value in enumerate(right)
            if value in text or text in value
        ]
        longest = max((length for length, _ in inside), default=0)
        best = [position for length, position in inside if length == longest]
        if len(best) == 1:
            pairs.add((at, best[0]))
    return pairs


def by_rare_pieces(sources: Sequence[str], targets: Sequence[str]) -> Joined:
    """Join texts that alone on both sides share a piece of three characters or more (DQ-P)."""
    columns = [[text.lower() for text in texts] for texts in (sources, targets)]
    pairs = find_row_pairs(*ColumnSuffixes(columns).shared_prefixes(0, 1))
    alone = pairs.holders == 1
    row_pairs = zip(pairs.sources[alone].tolist(), pairs.targets[alone].tolist(), strict=True)
    return {(source, target - len(sources)) for source, target in row_pairs}


def by_constrained_fuzzy(sources: Sequence[str], targets: Sequence[str]) -> Joined:
    """Join by the constrained fuzzy join, which is told nothing but the columns (FJ-C)."""
    matches = fuzzy_join(sources, targets)
    return set(zip(matches.derived.tolist(), matches.keys.tolist(), strict=True))


def by_default_model(sources: Sequence[str], targets: Sequence[str]) -> Joined:
    """Join each source text with the nearest target by the default model of an index."""
    positions, _ = nearest_values(pa.array(sources, pa.string()), pa.array(targets, pa.string()))
    return {(at, int(position)) for at, position in enumerate(positions) if position >= 0}


RIVALS: dict[str, Rival] = {
    "equality": by_equality,
    "substring": by_substring,
    "rare pieces": by_rare_pieces,
    "constrained fuzzy": by_constrained_fuzzy,
    "semantic": by_default_model,
}


WAYS = ("named", "found")
"""pexeso with the key columns named, and with columns left out."""

BEST_FUZZY = "best fuzzy"
METHODS = (*WAYS, *RIVALS, BEST_FUZZY)
GROUPS = ("string rules", "entities")


def measured_cases(
    *, seed: int = 0, only: str = "", methods: Sequence[str] = METHODS
) -> dict[str, Any]:
    """Join every shared case by every method."""
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
