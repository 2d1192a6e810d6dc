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

The advice is the distance that is usual for the model. Where even a standard error fewer of wrong
pairs are too many for the precision there, it is the largest below at which the precision holds;
and where most of what a wider one adds is right, that one (`gain_of_wider`). Where a lower
precision is asked for, it is the largest distance at which that holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from pexeso.engine.lists import damage_made_plain
from pexeso.engine.vector_space import Vectors, count_needed
from pexeso.errors import InputError
from pexeso.options import ALL, VALUES, SearchOptions
from pexeso.results.query import Hit, QueryColumn
from pexeso.runtime.compiled import compiled
from pexeso.semantic.encoded_query import EncodedQuery
from pexeso.semantic.executor import search_store
from pexeso.semantic.explanation import locate_column
from pexeso.semantic.open_index import OpenIndex
from pexeso.semantic.partition_loader import PartitionLoader
from pexeso.semantic.thresholds.advice import (
    ADVICE_OPTIONS,
    DEFAULT_MIN_PRECISION,
    HALF,
    WIDEST,
    Advice,
    gain_of_wider,
    kind_advice,
    percent,
    require_min_precision,
)
from pexeso.semantic.thresholds.pair import advise_pair
from pexeso.semantic.thresholds.sample import (
    CHUNK_SIZE,
    EQUAL,
    Learnt,
    SampledColumns,
    effective_size,
    learn,
    shares_within,
    tried_distances,
    value_order,
    vectors_by_hash,
)

loops = compiled("pexeso.runtime.loops")

QUERY_COLUMNS, QUERY_VALUES = 100, 64
"""Columns of the sample that are query columns, and the values of each."""

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
to show which share of them is right. Measured on lakes of 15 and 17 columns, where such advice had
an F1 of .50 and .51 and the usual distance .80 and .98."""


@dataclass
class _Tally:
    n_pairs: np.ndarray
    right: np.ndarray
    chance: np.ndarray
    equal: float = 0.0
    n_queries: int = 0
    share: float = 1.0

    def precision(self, standard_errors: float = 0.0) -> np.ndarray:
        """Estimate the share of found pairs that are right, or with so many errors fewer wrong."""
        seen = np.maximum(self.n_pairs - self.right, 0) * self.share
        wrong = np.maximum(seen - standard_errors * np.sqrt(seen), 0) / self.share
        return 1 - wrong / np.maximum(self.equal + self.n_pairs, 1e-9)

    def gains(self, usual_at: int) -> np.ndarray:
        """Return by how many pairs a wider distance than the usual one is better."""
        wrong = np.maximum(self.n_pairs - self.right, 0)
        added, wrong = (self.share * (n - n[usual_at]) for n in (self.n_pairs, wrong))
        return gain_of_wider(added, np.maximum(wrong, 0))


@damage_made_plain("the index")
def advise_columns(
    scan: PartitionLoader,
    learnt: Learnt,
    usual: float,
    min_precision: float | None,
    min_joinability: float | None = None,
) -> Advice:
    """Choose the thresholds of a search that has the precision `min_precision`, as estimated.

    Without one that is `DEFAULT_MIN_PRECISION`, and the distance is the `usual` one of the model
    unless there is evidence for another one. Where fewer than `MIN_FOUND` columns are found, so
    that nothing can be estimated, the distance is at least the usual one. `min_joinability` is
    given where the share of values that makes a column joinable is settled.

    Takes 20 MiB more than the sample, and where that is not the whole index, what a search with
    6,400 values for equal ones takes.
    """
    share = HALF if min_joinability is None else min_joinability
    target = DEFAULT_MIN_PRECISION if min_precision is None else min_precision
    limits = np.unique(np.append(tried_distances(learnt.median), usual))
    within = shares_within(learnt.unrelated, limits)
    tally = _search_sample(scan, learnt.sample, within, limits, share)
    n_found, precision = tally.equal + tally.n_pairs, tally.precision()
    holds = precision >= target - CLOSE
    usual_at = int(np.searchsorted(limits, usual))
    if min_precision is None:
        holds[usual_at] = tally.precision(1.0)[usual_at] >= target - CLOSE
    if target >= DEFAULT_MIN_PRECISION:
        holds[usual_at + 1 :] &= tally.gains(usual_at)[usual_at + 1 :] > 0
        holds &= limits <= usual + WIDEST
    position = int(np.flatnonzero(holds)[-1])
    is_estimated = bool(n_found[position] >= MIN_FOUND)
    chance = float(tally.chance[position] / max(tally.n_queries, 1))
    evidence = {
        "min_precision": target,
        "estimated_precision": round(float(precision[position]), 4) if is_estimated else None,
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
    why = _why(evidence, is_usual=distance == usual)
    return Advice(distance, HALF if min_joinability is None else None, why, evidence)


def joinability_beyond_chance(advice: Advice, n_values: int) -> float:
    """Return the smallest share of query values that chance does not reach in any column."""
    min_joinability = advice.min_joinability or HALF
    evidence = advice.evidence
    if n_values < 1 or "chance_match" not in evidence:
        return min_joinability
    counts = np.arange(count_needed(min_joinability, n_values), n_values + 1)
    chances = np.full(len(counts), evidence["chance_match"])
    expected = evidence["columns"] * loops.binomial_tails(
        counts - 1, np.full(len(counts), n_values), chances, True
    )
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
    """Search the sample with the first values of its first columns, and count the columns found."""
    weight = np.minimum(sample.sizes, CHUNK_SIZE)[:, None]
    unrelated = (within * weight + PRIOR_VALUES * within.mean(0)) / (weight + PRIOR_VALUES)
    tally = _Tally(*np.zeros((3, len(limits))), share=sample.share)
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
        right = loops.binomial_tails(
            matches - needed, n - equal[some], np.ascontiguousarray(unrelated[some, step]), False
        )
        tally.n_pairs[step] += len(some)
        tally.right[step] += right.sum()
    return int(by_equal.sum())


def _query_of(vectors: Vectors, number: int) -> EncodedQuery:
    texts = pa.array([f"{number} {row}" for row in range(len(vectors))], pa.string())
    ones = np.ones(len(vectors), np.int64)
    return EncodedQuery(
        QueryColumn(texts), texts, pa.array(range(len(texts)), pa.int64()), vectors, ones
    )


def _equal_columns(
    scan: PartitionLoader, sample: SampledColumns, queries: list[EncodedQuery], share: float
) -> int:
    """Count the columns of the whole index found by equal values, but for a query's own column."""
    options = SearchOptions(max_distance=0.0, min_joinability=share)
    results = search_store(scan, queries, [options] * len(queries))
    ids = sample.ids[: len(queries)].tolist()
    return sum(
        hit.column_id != column_id
        for column_id, (hits, _) in zip(ids, results, strict=True)
        for hit in hits
    )


def _why(evidence: dict[str, Any], *, is_usual: bool) -> str:
    estimate = evidence["estimated_precision"]
    beginning = (
        "too few columns of the lake join others to estimate a precision"
        if estimate is None
        else f"estimated precision {percent(estimate)}"
    )
    usual = ", at the distance that is usual for the model of the index" if is_usual else ""
    return (
        f"{beginning} (target {percent(evidence['min_precision'])}) over "
        f"{evidence['asked_columns']:,} columns of the lake{usual}."
    )


class Advisor:
    """Advice about one index, which keeps what it has learnt; `usual` is the model's distance."""

    def __init__(self, scan: PartitionLoader, usual: float) -> None:
        self._scan, self._usual = scan, usual
        self._given: dict[tuple[float | None, float | None], Advice] = {}

    @cached_property
    def learnt(self) -> Learnt | None:
        """What was learnt from a sample of the index; None if fewer than two columns are usable."""
        return learn(self._scan)

    def columns(
        self, min_precision: float | None = None, min_joinability: float | None = None
    ) -> Advice:
        if min_precision is not None:
            min_precision = require_min_precision(min_precision)
        SearchOptions(min_joinability=min_joinability)  # refuses a share that is none
        key = (min_precision, min_joinability)
        if key not in self._given:
            self._given[key] = (
                self._too_small("columns", HALF if min_joinability is None else None)
                if self.learnt is None or len(self.learnt.sample) < ENOUGH_COLUMNS
                else advise_columns(self._scan, self.learnt, self._usual, *key)
            )
        return self._given[key]

    def pair(self, query: EncodedQuery, hit: Hit, min_precision: float | None = None) -> Advice:
        if min_precision is not None:
            require_min_precision(min_precision)
        if (kind := query.column.exact_kind) is not None:
            return kind_advice(kind)
        others = column_vectors(self._scan, hit)
        order = value_order(query.values)
        order = order[query.known[order]]
        advice = advise_pair(
            self._scan.space,
            query.vectors[order],
            others,
            self.learnt,
            self._usual,
            min_precision,
            np.asarray(query.weights)[order],
        )
        return self._too_small("values") if advice is None else advice

    def column_options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Replace `ADVICE_OPTIONS` among the arguments of a search by the thresholds advised."""
        options, is_auto, min_precision = _split(given)
        if not is_auto:
            return options
        advice = self.columns(min_precision, options.get("min_joinability"))
        if advice.min_joinability is not None and options.get("k") in (None, ALL):
            options["min_joinability"] = advice.min_joinability
        return {**options, "max_distance": advice.max_distance, "advice": advice}

    def pair_options(
        self, given: Mapping[str, Any], query: EncodedQuery, hit: Hit
    ) -> dict[str, Any]:
        options, is_auto, min_precision = _split(given)
        if not is_auto:
            return options
        advice = self.pair(query, hit, min_precision)
        return {**options, "max_distance": advice.max_distance, "advice": advice}

    def _too_small(self, of: str, min_joinability: float | None = None) -> Advice:
        why = (
            f"there are too few {of} to learn from, so this is what usually suits the model "
            "of the index."
        )
        return Advice(self._usual, min_joinability, why)


def advise(
    opened: OpenIndex,
    advisor: Advisor,
    query: QueryColumn | None,
    table: str | None,
    column: str | None,
    min_precision: float | None,
    min_joinability: float | None,
) -> Advice:
    """Advise on thresholds from the distances in the index; see `pexeso.Index.advise`."""
    if (table is None) != (column is None) or (table is not None and query is None):
        raise InputError(
            "Advice on joining needs values, table and column; advice on searching takes "
            "values alone, or nothing."
        )
    if table is not None and column is not None:
        hit = locate_column(opened.store, table, column)
        return advisor.pair(opened.encode(query), hit, min_precision)
    advice = advisor.columns(min_precision, min_joinability)
    if query is None:
        return advice
    if (kind := query.exact_kind) is not None:
        return replace(kind_advice(kind), min_joinability=advice.min_joinability)
    if advice.min_joinability is None:
        return advice
    n_values = effective_values(opened.encode(query), VALUES)
    share = joinability_beyond_chance(advice, n_values)
    if share == advice.min_joinability:
        return advice
    why = (
        f"{advice.why} Of only {n_values:,} values, {percent(share)} must match, since "
        "fewer may match some column by chance."
    )
    return replace(advice, min_joinability=share, why=why)


def for_query(options: SearchOptions, query: EncodedQuery) -> SearchOptions:
    """Raise an advised share where the query column is so short that chance reaches it."""
    advice = options.advice
    if advice is None or None in (options.min_joinability, advice.min_joinability):
        return options
    n_values = effective_values(query, options.joinability_of)
    return replace(options, min_joinability=joinability_beyond_chance(advice, n_values))


def effective_values(query: EncodedQuery, joinability_of: str) -> int:
    """Return how many equally frequent values would say as much as a query column does."""
    return round(effective_size(query.counted(joinability_of).astype(np.float64)))


def column_vectors(scan: PartitionLoader, hit: Hit) -> Vectors:
    """Return the vectors of the known values of an indexed column, in the order of their hashes."""
    rows = scan.mapped(hit.partition).column_lists[hit.position]
    return vectors_by_hash(scan, hit.partition, rows)


def _split(user_options: Mapping[str, Any]) -> tuple[dict[str, Any], bool, float | None]:
    options = {name: value for name, value in user_options.items() if name not in ADVICE_OPTIONS}
    min_precision = user_options.get("min_precision")
    is_auto = bool(user_options.get("auto")) or min_precision is not None
    if is_auto and options.get("max_distance") is not None:
        raise InputError(
            "max_distance is chosen with auto=True or min_precision, and "
            f"max_distance={options['max_distance']!r} was given too. Leave one of them out."
        )
    return options, is_auto, min_precision
