"""What an index of pexeso finds: every judged column asked with its own values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.effectiveness.found_pairs import LEAST_JOINABILITY, FoundPairs, found_pairs
from benchmarks.effectiveness.judged import Judged
from pexeso.index import Index, build_index, open_index
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.lake.normalise.rules import DEFAULT_RULES
from pexeso.semantic.similarity import REACH

BATCH = 200
"""Query columns that share one pass over the index."""


def index_for(lake: Path, path: Path, model: str, rules: Sequence[str] = DEFAULT_RULES) -> Index:
    """Open the index of a lake, or build it with a model and rules of the normaliser."""
    if path.is_dir():
        return open_index(path)
    return build_index(lake, path, model=model, normaliser=Normaliser(rules))


def searched(judged: Judged, index: Index, thresholds: Iterable[float]) -> Iterator[FoundPairs]:
    """Search with every judged column at each largest distance."""
    for threshold in thresholds:
        query, candidate, matched, joinability, _ = _search_all(judged, index, threshold)
        yield found_pairs(judged, threshold, query, candidate, matched, joinability)


def ranked_pairs(judged: Judged, index: Index) -> FoundPairs:
    """Search widely with every judged column, and rank what is found by similarity."""
    query, candidate, matched, _, similarity = _search_all(
        judged, index, REACH * index.usual_max_distance, rerank=True
    )
    spread = LEAST_JOINABILITY + (1 - LEAST_JOINABILITY) * similarity
    return found_pairs(judged, float("nan"), query, candidate, matched, spread)


def _search_all(
    judged: Judged, index: Index, max_distance: float, *, rerank: bool = False
) -> list[np.ndarray]:
    """Return queries, candidates, rows that match, joinabilities and similarities (0: none)."""
    number_of = numbers_of(judged.keys, index)
    rows: list[tuple[int, int, int, float, float]] = []
    for start in range(0, judged.n_columns, BATCH):
        some = range(start, min(start + BATCH, judged.n_columns))
        results = index.search_batch(
            [judged.texts[number] for number in some],
            max_distance=max_distance,
            min_joinability=LEAST_JOINABILITY,
            rerank=rerank,
            fold_copies=False,
            k="all",
        )
        rows += [
            (
                number,
                number_of[match.column_id],
                match.matched,
                match.joinability,
                match.similarity or 0.0,
            )
            for number, result in zip(some, results, strict=True)
            for match in result
            if match.column_id in number_of
        ]
    kinds = (np.int64, np.int64, np.int64, float, float)
    columns = zip(*rows, strict=True) if rows else [()] * len(kinds)
    return [np.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]


def numbers_of(keys: Sequence[tuple[str, int]], index: Index) -> dict[int, int]:
    """Map the columns of the index to the judged ones."""
    columns = index.catalog.columns(["table", "position", "column_id"])
    columns = columns.filter(columns["column_id"].is_valid())
    number = {key: column for column, key in enumerate(keys)}
    rows = zip(
        *(columns[name].to_pylist() for name in ("table", "position", "column_id")), strict=True
    )
    return {
        column_id: number[table, position]
        for table, position, column_id in rows
        if (table, position) in number
    }
