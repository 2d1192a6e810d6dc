"""A second look at columns found: how likely each can be joined, from all that the two columns say together.

A search orders columns by how many rows match at one distance. Whether a column can be joined shows in more: how many values match at
smaller and at larger distances, how much of the lake column matches back, whether values match one to one, how common the matching values
are in the lake, what the columns are called. For each column found these numbers are taken from all its pairs of values, and boosted trees
turn them into a probability. What can be found is still what the exact search finds; only its order changes.

The trees (``reranker.json``) were learned by ``python -m benchmarks.effectiveness.reranker`` from pairs of columns of Wikipedia tables
that were judged by the links in their cells. Distances are taken as shares of the usual one of the index's model, so that models of other
scales can be asked too.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pexeso.boosted_trees import BoostedTrees
from pexeso.engine.pairs import column_pairs
from pexeso.engine.partition import Partition
from pexeso.engine.stats import SearchStats
from pexeso.prepared import PreparedQuery
from pexeso.ranking import Hit
from pexeso.scanning import PartitionScan

RATIOS = (0.0, 0.65, 0.8, 0.9, 1.0, 1.1, 1.25, 1.4)
"""Distances that are counted at, as shares of the usual one; 0 stands for equal text."""

ONE_TO_ONE_AT = (0.0, 0.65, 1.0)
EQUAL = 1e-6
"""Distances up to here, as a fraction of the largest, are those of equal texts."""

COLUMNS_AT_ONCE = 64
"""Columns whose pairs are held at a time."""

MOST_HITS, N_REASONS = 200, 3
"""Columns found that are looked at, and reasons that are told of each."""

FEATURES = (
    *(f"matched {ratio:g}" for ratio in RATIOS),
    *(f"matched back {ratio:g}" for ratio in RATIOS),
    *(f"one to one {ratio:g}" for ratio in ONE_TO_ONE_AT),
    "query values",
    "lake values",
    "rarity",
    "same name",
    "words in names",
)
"""What is known of a query column and a lake column: shares of their values that match by distance, how nearly one to one, logarithms of
their numbers of values, how rare the equal values are among columns, whether the columns have one name, and the share of words that the
names have in common."""

_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Counts:
    """What the features of n pairs of columns are made of.

    Attributes
    ----------
    matched, matched_back : float64 (n, len(RATIOS))
        Distinct values of the query column with a match in the other, and the other way round.
    query_values, lake_values : float64 (n,)
        Distinct values of the two.
    rarity : float64 (n,)
        Mean, over the equal values, of ``log(columns / columns with the value) / log(columns)``; 0 where no values are equal.
    names : sequence of (str, str)
        What the columns are called; empty where that is not known.
    """

    matched: np.ndarray
    matched_back: np.ndarray
    query_values: np.ndarray
    lake_values: np.ndarray
    rarity: np.ndarray
    names: Sequence[tuple[str, str]]

    def features(self) -> np.ndarray:
        """Give the features: float64 (n, len(FEATURES))."""
        at = [RATIOS.index(ratio) for ratio in ONE_TO_ONE_AT]
        ours, theirs = self.matched[:, at], self.matched_back[:, at]
        names = np.array([_alike(*each) for each in self.names]).reshape(-1, 2)
        parts = (
            self.matched / np.maximum(self.query_values, 1)[:, None],
            self.matched_back / np.maximum(self.lake_values, 1)[:, None],
            np.minimum(ours, theirs) / np.maximum(np.maximum(ours, theirs), 1),
            np.log(np.maximum(self.query_values, 1))[:, None],
            np.log(np.maximum(self.lake_values, 1))[:, None],
            self.rarity[:, None],
            names,
        )
        return np.hstack(parts)


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
    reasons : tuple of (str, float)
        What speaks most for it or against it: a feature, and what it adds to the logarithm of the odds.
    """

    score: float
    reasons: tuple[tuple[str, float], ...]

    def to_dict(self) -> dict[str, Any]:
        """Give the plain JSON form."""
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

    Notes
    -----
    The values of each column are all compared with those of the query column; pairs are held for `COLUMNS_AT_ONCE` columns at a time.
    """
    started = time.perf_counter()
    looked, others = list(hits[:MOST_HITS]), list(hits[MOST_HITS:])
    features = count(scan, query, looked, usual_distance, stats).features()
    scores, added = reranker().scores(features), reranker().contributions(features)
    # As it is shown: a difference that nobody sees must not turn over the order by rows that match.
    order = np.argsort(-scores.round(2), kind="stable")
    stats.add_seconds("rerank", time.perf_counter() - started)
    opinions: list[Opinion | None] = [Opinion(float(scores[place]), _reasons(added[place])) for place in order]
    return [looked[place] for place in order] + others, opinions + [None] * len(others)


def _reasons(added: np.ndarray) -> tuple[tuple[str, float], ...]:
    most = np.argsort(-np.abs(added), kind="stable")[:N_REASONS]
    return tuple((FEATURES[place], round(float(added[place]), 3)) for place in most)


def count(
    scan: PartitionScan, query: PreparedQuery, hits: Sequence[Hit], usual_distance: float, stats: SearchStats
) -> Counts:
    """Count what matches between a query column and columns found; parameters as in `reranked`."""
    n = len(hits)
    matched, back = np.zeros((n, len(RATIOS))), np.zeros((n, len(RATIOS)))
    lake_values, rarity = np.zeros(n), np.zeros(n)
    for number in sorted({hit.partition for hit in hits}):
        here = np.array([place for place, hit in enumerate(hits) if hit.partition == number])
        partition = scan.open(number)
        for start in range(0, len(here), COLUMNS_AT_ONCE):
            some = here[start : start + COLUMNS_AT_ONCE]
            places = torch.tensor([hits[place].place for place in some])
            found = _counted(partition, query.vectors, places, usual_distance, stats)
            matched[some], back[some], lake_values[some], rarity[some] = found
    name = query.column.column or ""
    return Counts(
        matched,
        back,
        np.full(n, float(len(query.values))),
        lake_values,
        rarity,
        [(name, hit.label or "") for hit in hits],
    )


def _counted(
    partition: Partition, vectors: torch.Tensor, places: torch.Tensor, usual_distance: float, stats: SearchStats
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    reach = min(max(RATIOS) * usual_distance, 1.0)
    found = column_pairs(partition, vectors, places, reach, stats)
    column, value, posting, distance = (each.cpu().numpy() for each in found)
    n, sizes = len(places), partition.column_values.sizes_of(places.to(partition.device)).cpu().numpy()
    bounds = [max(ratio * usual_distance, EQUAL) for ratio in RATIOS]
    ours = _nearest_counts(column * len(vectors) + value, distance, bounds, n, len(vectors))
    theirs = _nearest_counts(posting, distance, bounds, n, None, column)
    equal = distance <= EQUAL
    stored = partition.column_values.members[torch.as_tensor(posting[equal], device=partition.device)].long()
    holders = partition.value_columns.sizes_of(stored).cpu().numpy()
    rare = np.log(partition.n_columns / np.maximum(holders, 1)) / np.log(max(partition.n_columns, 2))
    totals, counts = (np.bincount(column[equal], weights=each, minlength=n) for each in (rare, None))
    return ours, theirs, sizes.astype(float), totals / np.maximum(counts, 1)


def _nearest_counts(
    keys: np.ndarray,
    distance: np.ndarray,
    bounds: Sequence[float],
    n: int,
    per_column: int | None,
    column: np.ndarray | None = None,
) -> np.ndarray:
    """Count, for each column and bound, the keys whose nearest match is within it: float64 (n, bounds)."""
    order = np.lexsort((distance, keys))
    keys = keys[order]
    first = np.append(True, keys[1:] != keys[:-1]) if len(keys) else np.zeros(0, bool)
    nearest = distance[order][first]
    owner = keys[first] // per_column if per_column is not None else column[order][first]
    return np.stack([np.bincount(owner[nearest <= bound], minlength=n) for bound in bounds], 1).astype(float)


def _alike(ours: str, theirs: str) -> tuple[float, float]:
    """Say whether two names are the same, and which share of their words they have in common."""
    one, other = (" ".join(_WORD.findall(name.casefold())) for name in (ours, theirs))
    words, others = set(one.split()), set(other.split())
    return float(bool(one) and one == other), len(words & others) / max(len(words | others), 1)
