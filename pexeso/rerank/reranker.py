"""Re-ranking of found columns by how likely each can be joined.

The estimate uses all features of the two columns together.

A search orders columns by how many values match at one distance. Whether a column can be joined
shows in more: how many values match at smaller and at larger distances, how much of the lake column
matches back, whether values match one to one, how rare the matching values are in the lake, what
the columns are called. These numbers (module `pexeso.rerank.features`) are taken from all pairs of
values of each column found, and boosted trees turn them into a probability. What can be found is
still what the exact search finds; only its order changes.

The trees (``reranker.json``) were learned by ``python -m benchmarks.effectiveness.reranker`` from
pairs of columns of Wikipedia tables that were judged by the links in their cells. Distances are
taken as shares of the usual one of the index's model, so that models of other scales can be asked
too.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np

from pexeso.engine.stats import SearchStats
from pexeso.rerank.attributions import Opinion, Reason
from pexeso.rerank.boosted_trees import BoostedTrees
from pexeso.rerank.features import FEATURES, Lake, count, lake_of
from pexeso.search.encoded_query import EncodedQuery
from pexeso.search.partition_loader import PartitionLoader
from pexeso.search.ranking import Hit

MOST_HITS, N_REASONS = 200, 3
"""Columns found that are looked at, and reasons that are told of each."""

MIN_SCORE = 0.005
"""Columns with a smaller score, which would be shown as 0.00, are no answer."""

SCORE_DECIMALS = 9
"""Libraries differ in the last bits of an exponential; scores do not."""


@cache
def reranker() -> BoostedTrees:
    """Read the trees that come with the package."""
    return BoostedTrees.from_json(Path(str(files("pexeso.rerank").joinpath("reranker.json"))))


def lake_of_hits(scan: PartitionLoader, hits: Sequence[Sequence[Hit]]) -> Lake:
    """Return what `reranked` takes of the lake for several queries, counted once for all of them.

    Parameters
    ----------
    hits : sequence of sequences of Hit
        Of each query, best first.
    """
    return lake_of(scan, [hit for each in hits for hit in each[:MOST_HITS]])


def reranked(
    scan: PartitionLoader,
    query: EncodedQuery,
    hits: Sequence[Hit],
    lake: Lake,
    usual_distance: float,
    stats: SearchStats,
) -> tuple[list[Hit], list[Opinion | None]]:
    """Order found columns by how likely they can be joined.

    The likelihood is rounded to two digits. Ties keep their order.

    Parameters
    ----------
    hits : sequence of Hit
        n of them, best first, with their labels looked up. The first `MOST_HITS` are looked at; the
        others keep their places behind them.
    usual_distance : float
        Of the index's model, as a fraction of the largest.
    """
    started = time.perf_counter()
    probed, others = list(hits[:MOST_HITS]), list(hits[MOST_HITS:])
    features = count(scan, query, probed, lake, usual_distance, stats).features()
    scores, added = reranker().explained(features)
    scores = scores.round(SCORE_DECIMALS)
    # As it is shown: a difference that nobody sees must not turn over the order by joinability.
    order = np.argsort(-scores.round(2), kind="stable")
    stats.add_seconds("rerank", time.perf_counter() - started)
    opinions: list[Opinion | None] = [
        Opinion(
            float(scores[position]), _reasons(added[position], features[position]), usual_distance
        )
        for position in order
    ]
    return [probed[position] for position in order] + others, opinions + [None] * len(others)


def _reasons(added: np.ndarray, features: np.ndarray) -> tuple[Reason, ...]:
    most = np.argsort(-np.abs(added), kind="stable")[:N_REASONS]
    return tuple(
        Reason(
            FEATURES[position],
            round(float(added[position]), 3),
            round(float(features[position]), 6),
        )
        for position in most
    )
