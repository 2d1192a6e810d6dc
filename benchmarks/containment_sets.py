"""Lakes, queries, truth by a linear scan, and scores for the benchmark of containment search.

``planted``: vocabularies with sizes of a Pareto distribution with shape 0.8, 30 to 20,000 tokens;
each set a random share of one of them. For half of the queries supersets of 2, 5 and 20 times their
size are planted. ``power``: the lake of power laws of `benchmarks.token_sets`, with held-out
queries. The real lakes: every column, asked with columns of their own, which are then not to be
found.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.datasets.tables import WEB_LAKES
from benchmarks.token_sets import lake_sets, power_law_sets
from pexeso.sets.containment.hashing import hash_tokens

RATIOS = (2, 5, 20)
DATA = ("planted", "power", *WEB_LAKES)
SMALLEST, LARGEST, SETS_A_VOCABULARY = 30, 20_000, 50
MIN_QUERY, MAX_QUERY = 10, 1000


@dataclass(frozen=True, eq=False)
class ContainmentLake:
    """Sets and queries of hashed tokens, distinct within each.

    Attributes
    ----------
    tokens : uint64 (t,)
    offsets : int64 (n + 1,)
    queries : list of uint64 arrays, ascending
    own : list[int]
        The set that each query is, which is not to be found; -1: none.
    n_planted : int
        The first queries, for each of which the first ``len(RATIOS)`` sets that are left are
        planted.
    """

    tokens: np.ndarray
    offsets: np.ndarray
    queries: list[np.ndarray]
    own: list[int]
    n_planted: int = 0

    def __len__(self) -> int:
        return len(self.offsets) - 1


def draw_lake(data: str, n_sets: int, n_queries: int, seed: int) -> ContainmentLake:
    """Draw or read one of `DATA`; a real lake has the sets that it has."""
    if data == "planted":
        return _planted(n_sets, n_queries, seed)
    if data == "power":
        drawn = power_law_sets(n_sets, n_queries, seed=seed)
        return ContainmentLake(
            _mixed(drawn.tokens),
            drawn.offsets,
            [np.sort(_mixed(one)) for one in drawn.queries],
            [-1] * n_queries,
        )
    lake, rng = lake_sets(data), np.random.default_rng(seed)
    hashed, offsets, sizes = hash_tokens(lake.tokens), lake.offsets, np.diff(lake.offsets)
    able = np.flatnonzero((sizes >= MIN_QUERY) & (sizes <= MAX_QUERY))
    set_numbers = rng.choice(able, min(n_queries, len(able)), replace=False).tolist()
    queries = [np.sort(hashed[offsets[one] : offsets[one + 1]]) for one in set_numbers]
    return ContainmentLake(hashed, offsets, queries, set_numbers)


def _planted(n_sets: int, n_queries: int, seed: int) -> ContainmentLake:
    rng = np.random.default_rng(seed)
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
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in sets])]).astype(np.int64)
    while len(queries) < n_queries:
        query = draw()
        if MIN_QUERY <= len(query) <= MAX_QUERY:
            queries.append(query)
    return ContainmentLake(
        np.concatenate(sets),
        offsets,
        [np.unique(query) for query in queries],
        [-1] * n_queries,
        n_planted,
    )


def _mixed(numbers: np.ndarray) -> np.ndarray:
    """Hash numbers to 64 bits, one to one (the finaliser of splitmix64)."""
    mixed = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def scan(lake: ContainmentLake, query: np.ndarray) -> np.ndarray:
    """Count the tokens of a query in every set by a linear scan, int64 (n,).

    The scan uses none of the measured code.
    """
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
    """Return mean recall and precision, and the share of planted supersets found, by ratio.

    Recall is a mean over queries that have an answer, precision over queries that got one.
    """
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
