"""What an index of pexeso finds: every judged column asked with its own values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from benchmarks.effectiveness.found import LEAST_JOINABILITY, Found, found_pairs
from benchmarks.effectiveness.judged import Judged
from pexeso.index import Index, build_index

BATCH = 200
"""Query columns that share one pass over the index."""


def index_for(lake: Path, path: Path, model: str) -> Index:
    """Index a lake with the default options and a model."""
    return build_index(lake, path, model=model)


def searched(judged: Judged, index: Index, thresholds: Iterable[float]) -> Iterator[Found]:
    """Search with every judged column at each largest distance.

    Columns that the index leaves out are found by nobody, as a user of it would see.
    """
    number_of = _numbers(judged, index)
    for threshold in thresholds:
        query, candidate, matched, joinability = [], [], [], []
        for start in range(0, judged.n_columns, BATCH):
            some = range(start, min(start + BATCH, judged.n_columns))
            results = index.search_batch(
                [judged.texts[number] for number in some],
                max_distance=threshold,
                min_joinability=LEAST_JOINABILITY,
                rerank=False,
                fold_copies=False,
                k="all",
            )
            for number, result in zip(some, results, strict=True):
                matches = [match for match in result if match.column_id in number_of]
                query += [number] * len(matches)
                candidate += [number_of[match.column_id] for match in matches]
                matched += [match.matched for match in matches]
                joinability += [match.joinability for match in matches]
        arrays = (np.array(each) for each in (query, candidate, matched, joinability))
        yield found_pairs(judged, threshold, *arrays)


def _numbers(judged: Judged, index: Index) -> dict[int, int]:
    """Map the columns of the index to the judged ones."""
    columns = index.catalog.columns(["table", "position", "column_id"])
    columns = columns.filter(columns["column_id"].is_valid())
    number = {key: place for place, key in enumerate(judged.keys)}
    rows = zip(
        *(columns[name].to_pylist() for name in ("table", "position", "column_id")), strict=True
    )
    return {
        column_id: number[table, position]
        for table, position, column_id in rows
        if (table, position) in number
    }
