"""A second look at columns found: how likely each can be joined, from all that the two columns say together.

A search orders columns by how many rows match at one distance. Whether a column can be joined shows in more: how many values match at
smaller and at larger distances, how much of the lake column matches back, whether values match one to one, how rare the matching values
are in the lake, what the columns are called. These numbers (module `pexeso.column_features`) are taken from all pairs of values of each
column found, and boosted trees turn them into a probability. What can be found is still what the exact search finds; only its order
changes.

The trees (``reranker.json``) were learned by ``python -m benchmarks.effectiveness.reranker`` from pairs of columns of Wikipedia tables
that were judged by the links in their cells. Distances are taken as shares of the usual one of the index's model, so that models of other
scales can be asked too.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from pexeso.boosted_trees import BoostedTrees
from pexeso.column_features import FEATURES, count
from pexeso.engine.stats import SearchStats
from pexeso.prepared import PreparedQuery
from pexeso.ranking import Hit
from pexeso.reasons import Reason, in_words
from pexeso.scanning import PartitionScan

MOST_HITS, N_REASONS = 200, 3
"""Columns found that are looked at, and reasons that are told of each."""


@cache
def reranker() -> BoostedTrees:
    """Read the trees that come with the package."""
    return BoostedTrees.from_json(Path(str(files("pexeso").joinpath("reranker.json"))))


@dataclass(frozen=True)
class Opinion:
    """How likely a column found can be joined.

    Attributes
    ----------
    score : float
        In (0, 1).
    reasons : tuple of Reason
        What speaks most for it or against it, the weightiest first: a feature, what it adds to the logarithm of the odds, and its value.
    usual_distance : float
        Of the index's model: what the numbers in names of features are shares of.
    """

    score: float
    reasons: tuple[Reason, ...]
    usual_distance: float

    def in_words(self) -> list[tuple[str, list[str]]]:
        """Give the reasons for people: ``speaks for it`` and ``speaks against it``, each with its phrases, as far as there are any."""
        sides = {
            "speaks for it": [reason for reason in self.reasons if reason.added > 0],
            "speaks against it": [reason for reason in self.reasons if reason.added < 0],
        }
        return [(name, in_words(some, self.usual_distance)) for name, some in sides.items() if some]

    def to_dict(self) -> dict[str, Any]:
        """Give the plain JSON form: each reason as ``[feature, added, value]``."""
        return {"score": self.score, "reasons": [list(each) for each in self.reasons]}


def reranked(
    scan: PartitionScan, query: PreparedQuery, hits: Sequence[Hit], usual_distance: float, stats: SearchStats
) -> tuple[list[Hit], list[Opinion | None]]:
    """Order columns found by how likely they can be joined, to two digits; equal ones stay in their order.

    Parameters
    ----------
    scan : PartitionScan
    query : PreparedQuery
    hits : sequence of Hit
        n of them, best first, with their labels looked up. The first `MOST_HITS` are looked at; the others keep their places behind them.
    usual_distance : float
        Of the index's model, as a fraction of the largest.
    stats : SearchStats

    Returns
    -------
    hits : list of Hit
    opinions : list of (Opinion or None)
        None for those that were not looked at.
    """
    started = time.perf_counter()
    looked, others = list(hits[:MOST_HITS]), list(hits[MOST_HITS:])
    features = count(scan, query, looked, usual_distance, stats).features()
    scores, added = reranker().explained(features)
    # As it is shown: a difference that nobody sees must not turn over the order by rows that match.
    order = np.argsort(-scores.round(2), kind="stable")
    stats.add_seconds("rerank", time.perf_counter() - started)
    opinions: list[Opinion | None] = [
        Opinion(float(scores[place]), _reasons(added[place], features[place]), usual_distance) for place in order
    ]
    return [looked[place] for place in order] + others, opinions + [None] * len(others)


def _reasons(added: np.ndarray, features: np.ndarray) -> tuple[Reason, ...]:
    most = np.argsort(-np.abs(added), kind="stable")[:N_REASONS]
    return tuple(
        Reason(FEATURES[place], round(float(added[place]), 3), round(float(features[place]), 6)) for place in most
    )
