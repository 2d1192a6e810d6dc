"""Tasks as a lake, in which each query column ranks all columns of other tables.

The partner of the query column should come first.

Some columns are as right as the partner: one task's things may all be among another's, as national
leagues are among all leagues. A column that holds at least half of the asked values, or of their
partners, by folded text is such a *twin*; ranks are told with and without twins.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.effectiveness.judged import MIN_JOINABILITY, distinct_cells, fold, incidence
from benchmarks.effectiveness.methods import Method
from benchmarks.effectiveness.scoring import RESAMPLES, drawn_folds
from benchmarks.effectiveness.similar import Similar
from benchmarks.effectiveness.tasks import Task


@dataclass(frozen=True)
class PartnerLake:
    """The columns of a lake, and for some of them the one that belongs to them."""

    tables: list[str]
    texts: list[pa.StringArray]
    pair_by_task: dict[str, tuple[int, int]]
    twins: np.ndarray


def partner_lake(
    columns: Iterable[tuple[str, str, pa.Array]], keys: Sequence[str], tasks: Sequence[Task]
) -> PartnerLake:
    """Gather the columns of a lake of tasks, (table, name, cells)."""
    tables, texts, number = [], [], {}
    for table, name, cells in columns:
        task, _, side = table.partition("/")
        if name in keys:
            number[task, side.partition(".")[0]] = len(tables)
        tables.append(table)
        texts.append(distinct_cells(cells))
    queries = {task.name: (number[task.name, "right"], number[task.name, "left"]) for task in tasks}
    twins = true_shares(texts, tasks) >= MIN_JOINABILITY
    twins[np.arange(len(queries)), [partner for _, partner in queries.values()]] = False
    return PartnerLake(tables, texts, queries, twins)


def true_shares(texts: Sequence[pa.StringArray], tasks: Sequence[Task]) -> np.ndarray:
    """Return the share of the query cells of each task that each column holds."""
    sides = [side.to_pylist() for task in tasks for side in (task.queries, task.others)]
    folded = [[[fold(text)] for text in side] for side in sides]
    held = [sorted({fold(text) for text in column.to_pylist()}) for column in texts]
    _, words = incidence([*held, *(text for side in folded for text in side)])
    columns, start, shares = words[: len(texts)].T.tocsr(), len(texts), []
    for task in tasks:
        n, m = task.partners.shape
        cells, others = words[start : start + n], words[start + n : start + n + m]
        start += n + m
        shares.append(
            np.asarray((((cells + task.partners @ others) @ columns) > 0).mean(0)).ravel()
        )
    return np.array(shares)


def joinabilities(method: Method, lake: PartnerLake) -> np.ndarray:
    """Return the share of values of each query column with a similar one in each column."""
    prepared = [sorted({text for text in column if text}) for column in method.prepare(lake.texts)]
    column_of = np.repeat(np.arange(len(prepared)), [len(column) for column in prepared])
    others = [text for column in prepared for text in column]
    similarities = np.array(method.similarities(method.thresholds))
    joinability = np.full((len(lake.pair_by_task), len(prepared), len(similarities)), -1.0)
    tables = np.array(lake.tables)
    values = [text for number, _ in lake.pair_by_task.values() for text in prepared[number]]
    best = best_by_column(
        method.compare(values, others, float(similarities.min())),
        column_of,
        (len(values), len(prepared)),
    )
    stops = np.cumsum([len(prepared[number]) for number, _ in lake.pair_by_task.values()])
    for row, ((number, _), stop) in enumerate(zip(lake.pair_by_task.values(), stops, strict=True)):
        highest = best[stop - len(prepared[number]) : stop]
        shares = np.stack([(highest >= similarity).mean(0) for similarity in similarities], axis=1)
        elsewhere = tables != tables[number]
        joinability[row, elsewhere] = shares[elsewhere]
    return joinability


def best_by_column(
    pieces: Iterable[Similar], column_of: np.ndarray, shape: tuple[int, int]
) -> np.ndarray:
    """Return the highest similarity of each row with the values of each column, float32."""
    best = np.full(shape, -np.inf, np.float32)
    start = 0
    for piece in pieces:
        pairs = piece.tocoo()
        np.maximum.at(
            best[start : start + piece.shape[0]], (pairs.row, column_of[pairs.col]), pairs.data
        )
        start += piece.shape[0]
    return best


def ranks_of_partners(lake: PartnerLake, shares: np.ndarray, *, twins: bool) -> np.ndarray:
    """Return the rank of each partner at each threshold, int (tasks, thresholds), from 1."""
    partners = np.array([partner for _, partner in lake.pair_by_task.values()])
    partner_shares = shares[np.arange(len(partners)), partners]
    before = shares >= partner_shares[:, None] - 1e-12
    if not twins:
        before &= ~lake.twins[:, :, None]
    return before.sum(1)


def scores_of_partners(method: Method, lake: PartnerLake) -> dict[str, Any]:
    """Rank partners at thresholds with the highest mean reciprocal rank on other columns."""
    shares = joinabilities(method, lake)
    ranks, with_twins = (ranks_of_partners(lake, shares, twins=twins) for twins in (False, True))
    order = np.argsort(
        -np.array(method.similarities(method.thresholds)), kind="stable"
    )  # from the strictest
    members = np.arange(len(ranks))
    chosen, thresholds = np.zeros(len(ranks), np.int64), []
    for fold_ in drawn_folds(members):
        means = (1 / ranks[np.setdiff1d(members, fold_)][:, order]).mean(0).round(9)
        chosen[fold_] = order[np.argmax(means)]
        thresholds.append(method.thresholds[chosen[fold_[0]]])
    ranking, own_with_twins = ranks[members, chosen], with_twins[members, chosen]
    drawn = np.random.default_rng(0).choice(1 / ranking, size=(RESAMPLES, len(ranking))).mean(1)
    return {
        "asked": len(ranking),
        "first": int((ranking == 1).sum()),
        "first_with_twins": int((own_with_twins == 1).sum()),
        "mean_reciprocal_rank": round(float((1 / ranking).mean()), 4),
        "interval": np.quantile(drawn, [0.025, 0.975]).round(4).tolist(),
        "ranks": dict(zip(lake.pair_by_task, ranking.tolist(), strict=True)),
        "ranks_with_twins": dict(zip(lake.pair_by_task, own_with_twins.tolist(), strict=True)),
        "thresholds": thresholds,
    }
