"""Lakes, queries, truth by a linear scan, and scores for the benchmark of containment search.

``planted``: vocabularies with sizes of a Pareto distribution with shape 0.8, 30 to 20,000 tokens;
each set a random share of one of them. For half of the queries supersets of 2, 5 and 20 times their
size are planted. ``power``: the power-law lake of `benchmarks.token_sets`. All others, and the real
lakes, are asked with sets of their own, which are then not to be found.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from benchmarks.datasets.tables import WEB_LAKES
from benchmarks.token_sets import TokenSets, texts_of, token_sets
from pexeso.sets.containment.hashing import hash_tokens

RATIOS = (2, 5, 20)
DATA = ("planted", "power", *WEB_LAKES)
SMALLEST, LARGEST, SETS_A_VOCABULARY = 30, 20_000, 50
MIN_QUERY, MAX_QUERY = 10, 1000


@dataclass(frozen=True, eq=False)
class ContainmentLake:
    """Sets and queries of tokens, distinct within each."""

    texts: pa.LargeStringArray
    offsets: np.ndarray
    queries: list[pa.LargeStringArray]
    own: list[int]
    n_planted: int = 0

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
    rng = np.random.default_rng(seed)
    if data == "planted":
        return _planted(n_sets, n_queries, rng)
    sets = token_sets(str(n_sets) if data == "power" else data, seed)
    return _with_own_queries(sets, n_queries, rng)


def _with_own_queries(sets: TokenSets, n_queries: int, rng: np.random.Generator) -> ContainmentLake:
    """Return a lake that is asked with some of its own sets."""
    offsets, sizes = sets.offsets, np.diff(sets.offsets)
    able = np.flatnonzero((sizes >= MIN_QUERY) & (sizes <= MAX_QUERY))
    own = rng.choice(able, min(n_queries, len(able)), replace=False).tolist()
    queries = [sets.tokens[offsets[one] : offsets[one + 1]] for one in own]
    return ContainmentLake(sets.tokens, offsets, queries, own)


def _planted(n_sets: int, n_queries: int, rng: np.random.Generator) -> ContainmentLake:
    sizes = np.minimum(
        LARGEST, SMALLEST * (1 + rng.pareto(0.8, max(1, n_sets // SETS_A_VOCABULARY)))
    ).astype(int)
    words = [rng.integers(0, 1 << 63, size, dtype=np.uint64) for size in sizes]

    def draw() -> np.ndarray:
        one = words[rng.integers(len(words))]
        subset = one[rng.random(len(one)) < rng.random()]
        return subset if len(subset) else one[:1]

    n_planted = n_queries // 2
    queries = [
        rng.integers(0, 1 << 63, rng.integers(10, 300), dtype=np.uint64) for _ in range(n_planted)
    ]
    sets = [
        np.concatenate([query, rng.integers(0, 1 << 63, (ratio - 1) * len(query), dtype=np.uint64)])
        for query in queries
        for ratio in RATIOS
    ]
    sets += [draw() for _ in range(n_sets - len(sets))]
    while len(queries) < n_queries:
        query = draw()
        if MIN_QUERY <= len(query) <= MAX_QUERY:
            queries.append(query)
    return ContainmentLake(
        texts_of(np.concatenate(sets)),
        np.concatenate([[0], np.cumsum([len(one) for one in sets])]).astype(np.int64),
        [texts_of(np.unique(query)) for query in queries],
        [-1] * n_queries,
        n_planted,
    )


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
    """Return mean recall and precision, and the share of planted supersets found, by ratio."""
    recalls, precisions = [], []
    for answer, right in zip(answers, truth, strict=True):
        hits = len(np.intersect1d(answer, right))
        recalls += [hits / len(right)] if len(right) else []
        precisions += [hits / len(answer)] if len(answer) else []
    planted = {
        f"recall_{ratio}x": float(
            np.mean([n * len(RATIOS) + position in answers[n] for n in range(lake.n_planted)])
        )
        for position, ratio in enumerate(RATIOS)
        if lake.n_planted
    }
    return {
        "recall": float(np.mean(recalls)) if recalls else None,
        "precision": float(np.mean(precisions)) if precisions else None,
        "answered": len(precisions) / max(len(answers), 1),
        **planted,
    }
