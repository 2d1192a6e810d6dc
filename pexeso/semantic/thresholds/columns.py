"""Thresholds for finding columns, without labels.

They depend on how many of the columns found at a distance join by more than matches of unrelated
values.

Columns of the index are drawn, and some of them ask the others. A pair of columns is *found* at a
distance where at least the wanted share of the asked values have a match. Some matches are
unrelated neighbours: values that are near and not the same. How often a value meets one is known
from within columns, whose values are nearly always different things: the share of them that have
another value that near. A pair with m matches of n values, e of them of equal text, truly has the
count needed c with the probability that at most m - c of n - e values met an unrelated neighbour, a
binomial one. The mean of these over all pairs found is the estimated precision at that distance;
what equal texts find counts as right.

The advice is the largest distance at which the precision holds, and at which no more values have an
unrelated neighbour within reach than may be wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.special import bdtr, bdtrc

from pexeso.engine.damage import damage_made_plain
from pexeso.engine.vector_space import Vectors, count_needed
from pexeso.options import SearchOptions
from pexeso.results.query import QueryColumn
from pexeso.semantic.encoded_query import EncodedQuery
from pexeso.semantic.executor import search_store
from pexeso.semantic.partition_loader import PartitionLoader
from pexeso.semantic.thresholds.advice import HALF, Advice, percent
from pexeso.semantic.thresholds.sample import (
    ROWS_AT_ONCE,
    SampledColumns,
    sample_columns,
)
from pexeso.semantic.thresholds.unrelated_neighbours import (
    EQUAL,
    distance_reaching,
    shares_within,
    tried_distances,
    unrelated_distances_of,
)

QUERY_COLUMNS = 100
QUERY_VALUES = 64
"""So many columns ask, each with at most so many of its values."""

CLOSE = 1e-9
"""A precision that is short of the one asked for by no more has it: probabilities are right to some
1e-14, on one machine otherwise than on another."""

PRIOR_VALUES = 20
"""The unrelated neighbours of a column are mixed with the mean of all columns as if that came from
so many more values of it."""

MIN_FOUND = 3
"""Where fewer pairs of columns are found, no precision is estimated."""

ENOUGH_COLUMNS = 30
"""From fewer columns nothing is learnt about searches: pairs of columns that join are then too few
to tell which share of them is right. Measured on lakes of 15 and 17 columns, where such advice had
an F1 of .50 and .51 and the usual distance .80 and .98."""


@dataclass(frozen=True)
class Learnt:
    """What a sample of an index has taught; advice for any precision follows from it."""

    sample: SampledColumns
    unrelated: list[np.ndarray]

    @property
    def median(self) -> float:
        """Return the distance within which half of the values have an unrelated value.

        The share is the mean over columns.
        """
        return distance_reaching(self.unrelated, HALF)


@dataclass
class _Tally:
    """Column pairs found at each distance."""

    n_pairs: np.ndarray
    right: np.ndarray
    chance: np.ndarray
    equal: float = 0.0
    n_queries: int = 0


@damage_made_plain("the index")
def learn(scan: PartitionLoader) -> Learnt | None:
    """Draw a sample of an index and measure the distances between unrelated values.

    The result is None if fewer than two columns can be used.

    Takes about 200 MiB at 256 dimensions, whatever the size of the index.
    """
    sample = sample_columns(scan)
    if len(sample) < 2:
        return None
    return Learnt(sample, unrelated_distances_of(sample))


@damage_made_plain("the index")
def advise_columns(
    scan: PartitionLoader,
    learnt: Learnt,
    usual: float,
    min_precision: float,
    min_joinability: float | None = None,
) -> Advice:
    """Choose the thresholds of a search.

    Parameters
    ----------
    usual : float
        The distance that is usual for the model: the least one where fewer than `MIN_FOUND` columns
        are found, so that nothing can be estimated.
    min_precision : float
        In (0, 1]: the share of columns found that must be right, as estimated.
    min_joinability : float, optional
        In (0, 1]: the share of values that makes a column joinable, where that is settled; one half
        by default.

    Notes
    -----
    Takes 20 MiB beside the sample, and what a search with 6,400 values for equal ones takes where
    the sample is not the whole index.
    """
    share = HALF if min_joinability is None else min_joinability
    limits = tried_distances(distance_reaching(learnt.unrelated, 1 - min_precision))
    within = shares_within(learnt.unrelated, limits)
    tally = _search_sample(scan, learnt.sample, within, limits, share)
    n_found, right = (tally.equal + counts for counts in (tally.n_pairs, tally.right))
    precision = np.where(n_found > 0, right / np.maximum(n_found, 1e-9), 1.0)
    position = int(np.flatnonzero(precision >= min_precision - CLOSE)[-1])
    is_estimated = bool(n_found[position] >= MIN_FOUND)
    chance = float(tally.chance[position] / max(tally.n_queries, 1))
    evidence = {
        "min_precision": min_precision,
        "estimated_precision": round(float(precision[position]), 4) if is_estimated else None,
        "within_columns": round(float(within[:, position].mean()), 4),
        "columns_found": round(float(n_found[position]), 1),
        "columns_found_by_equal_text": round(tally.equal, 1),
        "chance_match": round(chance, 6),
        "columns": learnt.sample.n_usable,
        "sampled_columns": len(learnt.sample),
        "sampled_values": len(learnt.sample.vectors),
        "columns_cut": learnt.sample.n_cut,
        "asked_columns": min(QUERY_COLUMNS, len(learnt.sample)),
        "asked_joinability": share,
    }
    # Where hardly a column is found, there is no evidence for a small distance.
    distance = float(limits[position]) if is_estimated else max(float(limits[position]), usual)
    return Advice(distance, HALF if min_joinability is None else None, _why(evidence), evidence)


def joinability_beyond_chance(advice: Advice, n_values: int) -> float:
    """Return the smallest share of query values that chance does not reach in any column."""
    min_joinability = advice.min_joinability or HALF
    evidence = advice.evidence
    if n_values < 1 or "chance_match" not in evidence:
        return min_joinability
    counts = np.arange(count_needed(min_joinability, n_values), n_values + 1)
    expected = evidence["columns"] * bdtrc(counts - 1, n_values, evidence["chance_match"])
    enough = counts[expected <= 1 - evidence["min_precision"] + 1e-9]
    if not len(enough):
        return 1.0
    return min_joinability if enough[0] == counts[0] else float(enough[0]) / n_values


def _search_sample(
    scan: PartitionLoader,
    sample: SampledColumns,
    within: np.ndarray,
    limits: np.ndarray,
    share: float,
) -> _Tally:
    """Search the sample with its first columns as queries, and count the columns found.

    The first values of each query column are used. Columns and values are both in the order of
    hashes.
    """
    weight = np.minimum(sample.sizes, ROWS_AT_ONCE)[:, None]
    unrelated = (within * weight + PRIOR_VALUES * within.mean(0)) / (weight + PRIOR_VALUES)
    tally = _Tally(*np.zeros((3, len(limits))))
    queries, equal_in_sample = [], 0
    for position in range(min(QUERY_COLUMNS, len(sample))):
        queries.append(_query_of(sample.column(position)[:QUERY_VALUES], position))
        equal_in_sample += _ask(
            sample, position, queries[-1].vectors, unrelated, limits, share, tally
        )
    # What is found by equal values can be counted in the whole index; the rest is known for the
    # sample alone.
    whole = sample.share == 1.0
    tally.equal = float(equal_in_sample if whole else _equal_columns(scan, sample, queries, share))
    tally.n_pairs /= sample.share
    tally.right /= sample.share
    return tally


def _ask(
    sample: SampledColumns,
    position: int,
    vectors: Vectors,
    unrelated: np.ndarray,
    limits: np.ndarray,
    share: float,
    tally: _Tally,
) -> int:
    """Add what one query column finds; return how many columns equal texts alone find."""
    n, needed = len(vectors), count_needed(share, len(vectors))
    apart = sample.space.distances(sample.space.comparable(vectors), sample.comparable)
    nearest = np.minimum.reduceat(apart, sample.offsets[:-1], axis=1)  # query values by columns
    nearest[:, position] = np.inf
    equal = (nearest <= EQUAL).sum(0)
    by_equal = equal >= needed
    strange = equal == 0
    strange[position] = False
    if strange.any():
        counts = np.searchsorted(np.sort(nearest[:, strange], axis=None), limits, side="right")
        tally.chance += counts / (n * strange.sum())
        tally.n_queries += 1
    last = np.partition(nearest, needed - 1, axis=0)[needed - 1]
    pairs = np.flatnonzero((last <= limits[-1]) & ~by_equal)
    for step, limit in enumerate(limits):
        some = pairs[last[pairs] <= limit]
        matches = (nearest[:, some] <= limit).sum(0)
        right = bdtr(matches - needed, n - equal[some], unrelated[some, step])
        tally.n_pairs[step] += len(some)
        tally.right[step] += right.sum()
    return int(by_equal.sum())


def _query_of(vectors: Vectors, number: int) -> EncodedQuery:
    """Return a query column made of vectors.

    The index does not need the texts of the vectors, but equal texts must have equal vectors, so
    that each gets one of its own.
    """
    texts = pa.array([f"{number} {row}" for row in range(len(vectors))], pa.string())
    ones = np.ones(len(vectors), np.int64)
    return EncodedQuery(
        QueryColumn(texts), texts, pa.array(range(len(texts)), pa.int64()), vectors, ones
    )


def _equal_columns(
    scan: PartitionLoader, sample: SampledColumns, queries: list[EncodedQuery], share: float
) -> int:
    """Return the number of columns of the whole index found by exact values.

    A query column does not count itself.
    """
    options = SearchOptions(max_distance=0.0, min_joinability=share)
    results = search_store(scan, queries, [options] * len(queries))
    ids = sample.ids[: len(queries)].tolist()
    return sum(
        hit.column_id != column_id
        for column_id, (hits, _) in zip(ids, results, strict=True)
        for hit in hits
    )


def _why(evidence: dict[str, Any]) -> str:
    estimate = evidence["estimated_precision"]
    beginning = (
        "too few columns of the lake join others to estimate a precision"
        if estimate is None
        else f"estimated precision {percent(estimate)}"
    )
    return (
        f"{beginning} (target {percent(evidence['min_precision'])}) over "
        f"{evidence['asked_columns']:,} columns of the lake; at this distance "
        f"{percent(evidence['within_columns'])} of values "
        "have an unrelated neighbour in their own column."
    )
