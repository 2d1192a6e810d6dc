"""Lakes, queries, truth by a linear scan, and scores for the benchmark of containment search.

``power`` is the power-law lake of `benchmarks.token_sets`. All lakes are asked with sets of their
own, which are then not to be found.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from benchmarks.datasets.tables import WEB_LAKES
from benchmarks.token_sets import token_sets
from pexeso.sets.containment.hashing import hash_tokens

DATA = ("power", *WEB_LAKES)
MIN_QUERY, MAX_QUERY = 10, 1000


@dataclass(frozen=True, eq=False)
class ContainmentLake:
    """Sets and queries of tokens, distinct within each."""

    texts: pa.LargeStringArray
    offsets: np.ndarray
    queries: list[pa.LargeStringArray]
    own: list[int]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def tokens(self) -> np.ndarray:
        return hash_tokens(self.texts)

    @cached_property
    def hashed_queries(self) -> list[np.ndarray]:
        """Hashes of the tokens of each query, ascending."""
        return [np.sort(hash_tokens(query)) for query in self.queries]


def draw_lake(data: str, n_sets: int, n_queries: int, seed: int) -> ContainmentLake:
    """Draw or read one of `DATA`; a real lake has the sets that it has."""
    rng, sets = (
        np.random.default_rng(seed),
        token_sets(str(n_sets) if data == "power" else data, seed),
    )
    offsets, sizes = sets.offsets, np.diff(sets.offsets)
    able = np.flatnonzero((sizes >= MIN_QUERY) & (sizes <= MAX_QUERY))
    own = rng.choice(able, min(n_queries, len(able)), replace=False).tolist()
    queries = [sets.tokens[offsets[one] : offsets[one + 1]] for one in own]
    return ContainmentLake(sets.tokens, offsets, queries, own)


def scan(lake: ContainmentLake, number: int) -> np.ndarray:
    """Count the tokens of a query in every set by a linear scan, int64 (n,)."""
    query = lake.hashed_queries[number]
    positions = np.minimum(np.searchsorted(query, lake.tokens), len(query) - 1)
    before = np.concatenate([[0], np.cumsum(query[positions] == lake.tokens)])
    return np.diff(before[lake.offsets])


def right_answer(
    lake: ContainmentLake, number: int, counts: np.ndarray, threshold: float
) -> np.ndarray:
    """Return the ids of the sets that contain enough of a query, by counts of `scan`."""
    ids = np.flatnonzero(counts >= max(1, np.ceil(threshold * len(lake.queries[number]) - 1e-9)))
    return ids[ids != lake.own[number]]


def scores(
    lake: ContainmentLake, answers: list[np.ndarray], truth: list[np.ndarray]
) -> dict[str, float | None]:
    """Return mean recall and precision."""
    recalls, precisions = [], []
    for answer, right in zip(answers, truth, strict=True):
        hits = len(np.intersect1d(answer, right))
        recalls += [hits / len(right)] if len(right) else []
        precisions += [hits / len(answer)] if len(answer) else []
    return {
        "recall": float(np.mean(recalls)) if recalls else None,
        "precision": float(np.mean(precisions)) if precisions else None,
        "answered": len(precisions) / max(len(answers), 1),
    }
