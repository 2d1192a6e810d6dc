"""One task by one method: tables are found and joined, and a model is scored.

Wrong joined pairs are counted where the truth is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

import pexeso
from enrichment.methods import (
    EQUAL,
    FUZZY_THRESHOLDS,
    MIN_JOINABILITY,
    WORDS,
    LakeTexts,
    at_least,
    equal,
    first_of_each_table,
    fuzzy,
    read_columns,
)
from enrichment.tasks import Task
from pexeso.joins.enrichment.feature_selection import (
    ModelOptions,
    Target,
    predict_unseen,
    read_features,
    read_target,
    scores_of,
)

METHODS = ("none", "equi", "fuzzy", "pexeso")
MAX_TEXTS = 20
_EXAMPLES = 5


@dataclass
class Workshop:
    """A lake that tasks are asked of: its index, and its texts, read when they are first needed."""

    index: pexeso.Index
    _alike: dict[str, Any] = field(default_factory=dict)
    _scores: dict[tuple[Any, ...], dict[str, list[float]]] = field(default_factory=dict)

    @cached_property
    def _columns(self) -> tuple[Any, ...]:
        return read_columns(self.index)

    @cached_property
    def equal_texts(self) -> LakeTexts:
        """Return the lake for joins by equal values."""
        return LakeTexts(*self._columns, EQUAL)

    @cached_property
    def similar_texts(self) -> LakeTexts:
        """Return the lake for joins by similar text."""
        return LakeTexts(*self._columns, WORDS)

    def fuzzy_matches(self, task: Task, threshold: int) -> list[Any]:
        """Find columns by similar text.

        The comparison made for one threshold is used again for higher ones.
        """

        def similar(ours: Any, lake_values: Any) -> Any:
            if task.name not in self._alike:
                self._alike = {task.name: fuzzy(min(FUZZY_THRESHOLDS))(ours, lake_values)}
            return at_least(self._alike[task.name], threshold / 100)

        return self.similar_texts.matches(task.table[task.on], similar)

    def scores(
        self, task: Task, matrix: np.ndarray, target: Target, seeds: Sequence[int], trees: int
    ) -> dict[str, list[float]]:
        """Score the model of each seed; methods that add the same columns share the work."""
        key = (task.name, matrix.shape, hash(matrix.tobytes()), *seeds)
        if key not in self._scores:
            runs = []
            for seed in seeds:
                options = ModelOptions(trees=trees, seed=seed)
                predicted = predict_unseen(matrix, target.values, target.task, options)
                runs.append(scores_of(target.values, predicted, target.task))
            self._scores[key] = {name: [score[name] for score in runs] for name in runs[0]}
        return self._scores[key]


def variants_of(method: str) -> tuple[int | None, ...]:
    """Return the thresholds that a method is tried with."""
    return FUZZY_THRESHOLDS if method == "fuzzy" else (None,)


def find(shop: Workshop, task: Task, method: str, threshold: int | None) -> list[Any]:
    """Find tables to join with, by the best column of each.

    There are at most `MAX_TABLES` of them. A column must match at least `MIN_JOINABILITY` of the
    rows.
    """
    key = task.table[task.on]
    if method == "none":
        return []
    if method == "equi":
        matches: Sequence[Any] = shop.equal_texts.matches(key, equal)
    elif method == "fuzzy":
        matches = shop.fuzzy_matches(task, threshold or min(FUZZY_THRESHOLDS))
    else:
        matches = shop.index.search(
            key, min_joinability=MIN_JOINABILITY, k="all", rerank=False, fold_copies=False
        )
    return first_of_each_table(matches, task.left_out)


def run_task(
    shop: Workshop, task: Task, method: str, threshold: int | None, seeds: Sequence[int], trees: int
) -> dict[str, Any]:
    """Run one task by one method; return the tables found and the scores of each seed.

    The result is plain JSON.
    """
    matches = find(shop, task, method, threshold)
    enriched = pexeso.enrich_from(matches, task.table, task.on, target=task.target)
    table = enriched.table
    names = table.column_names if isinstance(table, pa.Table) else table.columns
    columns = {str(name): table[name] for name in names}
    share = enriched.rules.min_number_fraction
    target = read_target(columns.pop(task.target), "auto", folds=4, min_number_fraction=share)
    del columns[task.on]
    features = read_features(columns, target.rows, max_texts=MAX_TEXTS, min_number_fraction=share)
    return {
        "task": task.name,
        "about": task.about,
        "kind": target.task,
        "rows": len(target.rows),
        "method": method,
        "threshold": threshold,
        "tables": [
            {
                "table": joined_table.table,
                "key": joined_table.key,
                "joinability": round(joined_table.joinability, 3),
                "added": joined_table.added,
                "reason": joined_table.reason,
            }
            for joined_table in enriched.tables
        ],
        "columns": len(enriched.columns),
        "features": features.matrix.shape[1],
        "gave_target_away": [
            f"{omission.table}:{omission.column}"
            for omission in enriched.left_out
            if omission.rule == "target"
        ],
        "joined": None if task.entity_of is None else judge_pairs(matches, task.entity_of),
        "scores": shop.scores(task, features.matrix, target, seeds, trees),
    }


def judge_pairs(matches: Sequence[Any], entity_of: pd.Series) -> dict[str, Any]:
    """Count the right and wrong joined pairs among those whose two names are known.

    Each value is paired with its nearest one. A pair is wrong where its names stand for different
    things.
    """
    right, wrong = 0, []
    known = entity_of.to_dict()
    for match in matches:
        nearest: dict[str, Any] = {}
        for pair in match.pairs():
            held = nearest.get(pair.query)
            if held is None or pair.distance < held.distance:
                nearest[pair.query] = pair
        for pair in nearest.values():
            query_entity, lake_entity = (
                known.get(name.lower().strip()) for name in (pair.query, pair.value)
            )
            if query_entity is None or lake_entity is None:
                continue
            right += query_entity == lake_entity
            if query_entity != lake_entity:
                wrong.append((round(pair.distance, 3), pair.query, pair.value))
    examples = list(dict.fromkeys(sorted(wrong)))[:_EXAMPLES]
    return {"right": right, "wrong": len(wrong), "examples": [list(triple) for triple in examples]}


def summarise(scores: Sequence[float]) -> tuple[float, float]:
    """Return mean and standard deviation over seeds."""
    return float(np.mean(scores)), float(np.std(scores))
