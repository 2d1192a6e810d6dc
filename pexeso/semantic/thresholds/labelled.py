"""Thresholds chosen from labelled pairs, and from advice where these are too few to tell."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from pexeso.errors import InputError
from pexeso.lake.readers.options import ReadingOptions
from pexeso.lake.rows import require_reading
from pexeso.runtime.checks import require_flag
from pexeso.runtime.formatting import shown
from pexeso.semantic.explain.explanation import locate_column
from pexeso.semantic.thresholds.advice import Advice, require_min_precision
from pexeso.semantic.thresholds.advisor import Advisor, column_vectors
from pexeso.semantic.thresholds.labels import ColumnLabel, ValueLabel, read_labels, require_labels
from pexeso.semantic.thresholds.sample import nearest_distances
from pexeso.semantic.thresholds.tuning import joinability_curve, tune_columns, tune_values

if TYPE_CHECKING:
    from pexeso.semantic.open_index import OpenIndex


def tune(
    opened: OpenIndex,
    advisor: Advisor,
    labels: str | os.PathLike[str] | Iterable[ValueLabel] | Iterable[ColumnLabel],
    min_precision: float | None,
    reading: ReadingOptions,
) -> Advice:
    """Choose thresholds from labelled pairs; see `pexeso.Index.tune`."""
    if min_precision is not None:
        require_min_precision(min_precision)
    require_reading(reading)
    if isinstance(labels, str | os.PathLike):
        read = read_labels(labels, reading=reading)
    else:
        reading.require_none("labels")
        read = _rows(labels)
    every = require_labels(read)
    prior = advisor.columns(min_precision)
    if isinstance(every[0], ValueLabel):
        return tune_values(every, _label_distances(opened, every), prior, min_precision)
    return tune_columns(
        every, np.stack([label_curve(opened, label) for label in every]), prior, min_precision
    )


def _rows(labels: Any) -> list[Any]:
    """Return labels that are no file, each with a truth value."""
    if not isinstance(labels, Iterable):
        raise InputError(
            "labels must be the path of a table, or rows: all ValueLabel or all ColumnLabel. Got "
            f"{shown(labels)} instead."
        )
    rows = list(labels)
    for label in rows:
        if isinstance(label, ValueLabel | ColumnLabel):
            require_flag("same", label.same)
    return rows


def _label_distances(opened: OpenIndex, labels: Sequence[ValueLabel]) -> np.ndarray:
    """Return the distances of labelled values, float64.

    The values of either side are normalised as those of a column: what is written out in a column
    of codes is found so by a search. A distance is infinite if one of the two has no vector.
    """
    texts = [label.query for label in labels], [label.value for label in labels]
    sides = [opened.encode(side) for side in texts]
    rows = [pc.fill_null(side.value_of_row, -1).to_numpy(zero_copy_only=False) for side in sides]
    known = [np.append(side.known, False)[at] for side, at in zip(sides, rows, strict=True)]
    both = np.flatnonzero(known[0] & known[1])
    vectors = [side.vectors[at[both]] for side, at in zip(sides, rows, strict=True)]
    distances = np.full(len(labels), np.inf)
    distances[both] = opened.loader.space.pair_distances(*vectors)
    return distances


def label_curve(opened: OpenIndex, label: ColumnLabel) -> np.ndarray:
    """Return the joinability of labelled columns at each of the distances that are tried.

    It is that of a search within each of `pexeso.semantic.thresholds.tuning.COLUMN_DISTANCES`:
    float64 (101,), in [0, 1].
    """
    hit = locate_column(opened.store, label.table, label.column)
    query = opened.encode(label.query)
    others = column_vectors(opened.loader, hit)
    nearest = nearest_distances(opened.loader.space, query.vectors[query.known], others)
    return joinability_curve(nearest, len(query.values))
