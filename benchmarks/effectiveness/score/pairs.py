"""Pairs of columns that a wide search finds, and measures of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import pyarrow as pa

from benchmarks.effectiveness.judged import BY_MEANING, BY_TEXT, NOT_JUDGED
from benchmarks.effectiveness.score.asked_lake import AskedLake, Normalise, without_doubtful
from benchmarks.effectiveness.searched import numbers_of
from pexeso.answers.similarity import REACH
from pexeso.engine.stats import SearchStats
from pexeso.index import Index
from pexeso.search.encoded_query import EncodedQuery
from pexeso.search.executor import search_store
from pexeso.search.query import query_from_values
from pexeso.search.ranking import Hit

MIN_JOINABILITY = 0.2
"""Of a wide search, at the distance from which values count nothing for the similarity."""

BATCH, COLUMNS_AT_ONCE = 64, 64

Item = TypeVar("Item")


@dataclass(frozen=True)
class Pairs:
    """Judged pairs of a query column and a column found, n of them, by query.

    Attributes
    ----------
    query : int64 (n,)
    right : bool (n,)
        Whether the two can be joined.
    n_right : int64 (queries,)
        The columns that each query column can be joined with, found or not; 0 where none.
    usual_distance : float
        Of the model.
    offsets, back_offsets : int64 (n + 1,)
        Where the distinct values of each pair start: those of the query column, and those of the
        column found.
    nearest : float64 (values,)
        The distance of each value to the nearest one of the other column; infinite beyond the
        widest distance.
    mutual : bool (values,)
        Whether no other query value is nearer to that one.
    rarity : float64 (values,)
        How rare the nearest value is among the columns of the lake, from 0 to 1; 1 without one.
    nearest_back : float64 (back values,)
    """

    query: np.ndarray
    right: np.ndarray
    n_right: np.ndarray
    usual_distance: float
    offsets: np.ndarray
    back_offsets: np.ndarray
    nearest: np.ndarray
    mutual: np.ndarray
    rarity: np.ndarray
    nearest_back: np.ndarray

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sum over the query values of each pair."""
        return np.add.reduceat(values.astype(float), self.offsets[:-1])

    def means(self, values: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        """Average over the query values of each pair."""
        weights = np.ones(len(values)) if weights is None else weights
        return self.sums(values * weights) / np.maximum(self.sums(weights), 1e-9)


def found_pairs(lake: AskedLake, index: Index) -> Pairs:
    """Search widely with all query columns, and compare all values of what is found."""
    number_of = numbers_of(lake.keys, index)
    loader, labels = index._opened.loader, lake.labels.copy()
    reach = REACH * index.usual_max_distance
    options = replace(
        index.search_options({"max_distance": reach, "min_joinability": MIN_JOINABILITY}), k=None
    )
    frequencies = _frequencies(index)
    query, candidate, parts = [], [], []
    for some in _chunks(range(len(lake.queries)), BATCH):
        encoded = [index.encode(query_from_values(lake.queries[number])) for number in some]
        answers = search_store(loader, encoded, [options] * len(encoded))
        for number, column, (hits, _) in zip(some, encoded, answers, strict=True):
            hits = [hit for hit in hits if hit.column_id in number_of]
            others = [number_of[hit.column_id] for hit in hits]
            judged = [at for at, other in enumerate(others) if labels[number, other] != NOT_JUDGED]
            query += [number] * len(judged)
            candidate += [others[at] for at in judged]
            for chunk in _chunks([hits[at] for at in judged], COLUMNS_AT_ONCE):
                parts += _compared(index, column, chunk, reach, frequencies)
    pairs = np.array(query, np.int64), np.array(candidate, np.int64)
    classes = without_doubtful(lake, *pairs, labels[pairs], _normalise(index))
    labels[pairs] = classes
    judged = np.flatnonzero(classes != NOT_JUDGED)
    columns = [[parts[at][name] for at in judged] for name in range(4)]
    return Pairs(
        pairs[0][judged],
        np.isin(classes[judged], (BY_TEXT, BY_MEANING)),
        np.isin(labels, (BY_TEXT, BY_MEANING)).sum(1),
        index.usual_max_distance,
        *(np.cumsum([0, *map(len, columns[name])]) for name in (0, 3)),
        *map(np.concatenate, columns),
    )


def _chunks(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _normalise(index: Index) -> Normalise:
    def normalise(columns: Sequence[pa.StringArray]) -> list[list[str]]:
        return [
            sorted({text for text in column.to_pylist() if text})
            for column in index.normaliser.normalise_columns(list(columns))
        ]

    return normalise


def _frequencies(index: Index) -> np.ndarray:
    """Return how rare each value of the lake is among its columns, from 0 to 1."""
    partition = index._opened.loader.open(0)
    sizes = np.diff(partition.value_lists.offsets)
    n_columns = max(partition.n_columns, 2)
    return np.log(n_columns / np.clip(sizes, 1, n_columns)) / np.log(n_columns)


def _compared(
    index: Index,
    column: EncodedQuery,
    hits: Sequence[Hit],
    reach: float,
    rarities: np.ndarray,
) -> list[tuple[np.ndarray, ...]]:
    """Return, for each column found: nearest, mutual, rarity, and nearest the other way."""
    loader, comparisons = index._opened.loader, []
    partition = loader.open(0)
    positions = np.array([hit.position for hit in hits], np.int64)
    owner, value, posting, distance = loader.space.column_pairs(
        partition, column.vectors, positions, reach, SearchStats()
    )
    lists = partition.column_lists
    starts = lists.offsets[positions]
    sizes = lists.offsets[positions + 1] - starts
    bounds = np.searchsorted(owner, np.arange(len(hits) + 1))
    for at in range(len(hits)):
        part = slice(bounds[at], bounds[at + 1])
        row, other, near = value[part], posting[part] - starts[at], distance[part]
        nearest, back = np.full(len(column.values), np.inf), np.full(sizes[at], np.inf)
        np.minimum.at(nearest, row, near)
        np.minimum.at(back, other, near)
        mutual, rarity = np.zeros(len(nearest), bool), np.ones(len(nearest))
        mutual[row[(near <= nearest[row]) & (near <= back[other])]] = True
        best = near <= nearest[row]
        rarity[row[best]] = rarities[lists.members[starts[at] + other[best]]]
        comparisons.append((nearest, mutual, rarity, back))
    return comparisons


def measures(pairs: Pairs) -> dict[str, np.ndarray]:
    """Compute single measures of pairs of columns, each float64 (n,); more is more alike.

    ``similarity`` is what searches order by. All are means over distinct query values unless their
    name says something else; shares are of values with a match.
    """
    usual, reach = pairs.usual_distance, REACH * pairs.usual_distance
    n, nearest = pairs.sums(np.ones(len(pairs.nearest))), pairs.nearest
    n_back = np.diff(pairs.back_offsets)

    def back(distance: float) -> np.ndarray:
        return np.add.reduceat(_within(pairs.nearest_back, distance), pairs.back_offsets[:-1])

    matched = pairs.sums(_within(nearest, usual))
    graded = 1 - (np.minimum(nearest, reach) / reach) ** 2
    cosines = np.where(np.isfinite(nearest), 1 - 2 * np.minimum(nearest, 1) ** 2, 0.0)
    similarity = pairs.means(graded)
    common = np.minimum(matched, back(usual))
    return {
        "similarity": similarity,
        "share": matched / n,
        "share at .75 of the usual distance": pairs.means(_within(nearest, 0.75 * usual)),
        "share at .5 of the usual distance": pairs.means(_within(nearest, 0.5 * usual)),
        "share at 1.25 of the usual distance": pairs.means(_within(nearest, reach)),
        "share of equal values": pairs.means(_within(nearest, 0.0)),
        "share, mutually nearest": pairs.means(_within(nearest, usual) * pairs.mutual),
        "share, by rarity": pairs.means(_within(nearest, usual), pairs.rarity),
        "share of the other column": back(usual) / n_back,
        "Jaccard": common / np.maximum(n + n_back - common, 1),
        "number of matching values": matched,
        "mean cosine": pairs.means(cosines),
        "mean nearness": pairs.means(1 - np.minimum(nearest, reach) / reach),
        "similarity, mutually nearest": pairs.means(graded * pairs.mutual),
        "similarity, by rarity": pairs.means(graded, pairs.rarity),
        "similarity, lower bound": _wilson(similarity, n),
    }


def _within(distances: np.ndarray, max_distance: float) -> np.ndarray:
    return (distances <= max_distance + 1e-6).astype(float)


def _wilson(share: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Return the lower end of Wilson's interval of a share, one standard error wide."""
    spread = np.sqrt(share * (1 - share) / n + 1 / (4 * n * n))
    return np.maximum((share + 1 / (2 * n) - spread) / (1 + 1 / n), 0)
