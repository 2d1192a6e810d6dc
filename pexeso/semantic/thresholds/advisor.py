"""Advice on thresholds for an open index, and its use in search options.

What was learned is kept while the index is open. It is put into the options of searches that ask
for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from pexeso.build.parts.encode import known_vectors
from pexeso.engine.vector_space import Vectors
from pexeso.errors import InputError
from pexeso.options import ALL, SearchOptions
from pexeso.results.ranking import Hit
from pexeso.semantic.encoded_query import EncodedQuery
from pexeso.semantic.partition_loader import PartitionLoader
from pexeso.semantic.thresholds.advice import (
    ADVICE_OPTIONS,
    DEFAULT_MIN_PRECISION,
    HALF,
    Advice,
    require_min_precision,
)
from pexeso.semantic.thresholds.columns import (
    ENOUGH_COLUMNS,
    Learnt,
    advise_columns,
    joinability_beyond_chance,
    learn,
)
from pexeso.semantic.thresholds.pair import advise_pair
from pexeso.semantic.thresholds.sample import value_order, vectors_by_hash


class Advisor:
    """Gives advice about one index. What it has learnt is kept in memory, not on disk.

    Parameters
    ----------
    usual : float
        The `max_distance` that suits the model of the index, for an index that is too small to
        learn from.
    """

    def __init__(self, scan: PartitionLoader, usual: float) -> None:
        self._scan, self._usual = scan, usual
        self._given: dict[tuple[float, float | None], Advice] = {}

    @cached_property
    def learnt(self) -> Learnt | None:
        """Return what was learned from a sample of the index, drawn with a fixed seed.

        The result is None if the index has fewer than two columns of five values. Advice on
        searches wants `ENOUGH_COLUMNS`.
        """
        return learn(self._scan)

    def columns(
        self, min_precision: float | None = None, min_joinability: float | None = None
    ) -> Advice:
        """Advise on a search; see `pexeso.semantic.thresholds.columns.advise_columns`."""
        precision = (
            DEFAULT_MIN_PRECISION if min_precision is None else require_min_precision(min_precision)
        )
        SearchOptions(min_joinability=min_joinability)  # refuses a share that is none
        key = (precision, min_joinability)
        if key not in self._given:
            self._given[key] = (
                self._too_small("columns", HALF if min_joinability is None else None)
                if self.learnt is None or len(self.learnt.sample) < ENOUGH_COLUMNS
                else advise_columns(self._scan, self.learnt, self._usual, *key)
            )
        return self._given[key]

    def pair(self, query: EncodedQuery, hit: Hit, min_precision: float | None = None) -> Advice:
        """Return advice on joining a query column with a column of the index.

        See `pexeso.semantic.thresholds.pair.advise_pair`.
        """
        if min_precision is not None:
            require_min_precision(min_precision)
        others = column_vectors(self._scan, hit)
        vectors = query.vectors[value_order(query.values)]
        vectors = vectors[known_vectors(vectors)]
        advice = advise_pair(
            self._scan.space, vectors, others, self.learnt, self._usual, min_precision
        )
        return self._too_small("values") if advice is None else advice

    def column_options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Replace `ADVICE_OPTIONS` among the arguments of a search by the thresholds advised.

        Raises
        ------
        InputError
            A threshold is given too, or `min_precision` is none.
        """
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
        """Do as `column_options` where the column of the index is known."""
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


def for_query(options: SearchOptions, query: EncodedQuery) -> SearchOptions:
    """Raise an advised share where the query column is so short that chance reaches it."""
    if (
        options.advice is None
        or options.min_joinability is None
        or options.advice.min_joinability is None
    ):
        return options
    n_values = effective_values(query, options.joinability_of)
    return replace(options, min_joinability=joinability_beyond_chance(options.advice, n_values))


def effective_values(query: EncodedQuery, joinability_of: str) -> int:
    """Return the effective number of distinct values of a query column.

    Where rows count and some values fill most of them, the result is smaller than the number of
    distinct values.
    """
    counts = query.counted(joinability_of).astype(np.float64)
    return round(float(counts.sum() ** 2 / (counts**2).sum())) if len(counts) else 0


def column_vectors(scan: PartitionLoader, hit: Hit) -> Vectors:
    """Return the vectors of an indexed column in the order of value hashes.

    Values of which the model knows nothing are left out.
    """
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
