"""Lakes for the tests of overlap search, and brute force over them.

They are the first worked example, random lakes, and a skewed one.
"""

import numpy as np
import pyarrow as pa

from pexeso.sets.overlap.index import build_index, prepare_query


def pairs_of(sets):
    ids = np.array([set_id for set_id, tokens in sets.items() for _ in tokens], dtype=np.int64)
    return ids, pa.array([token for tokens in sets.values() for token in tokens], pa.large_string())


def index_of(sets, **options):
    return build_index(*pairs_of(sets), **options)


def query_of(index, texts):
    """Return the query of distinct texts."""
    return prepare_query(index, pa.array(list(dict.fromkeys(texts)), pa.large_string()))


def by_text(offsets, members):
    return np.arange(len(offsets) - 1)


def number(n):
    return f"t{n:03}"


def first_lake():
    sets = {1: {1, 100, 200}, 2: {2, 5}, 3: {2}, 4: set(range(2, 102))}
    return {set_id: [number(n) for n in sorted(tokens)] for set_id, tokens in sets.items()}


def brute_force(sets, query, k, exclude=()):
    overlaps = [
        (-len(set(tokens) & set(query)), set_id)
        for set_id, tokens in sets.items()
        if set_id not in exclude
    ]
    return [(set_id, -negative) for negative, set_id in sorted(overlaps)[:k] if negative < 0]


def random_lake(rng):
    universe, n_sets = int(rng.integers(5, 200)), int(rng.integers(1, 120))
    weights = 1 / np.arange(1, universe + 1) if rng.random() < 0.5 else np.ones(universe)
    sets = {}
    for set_id in rng.permutation(3 * n_sets)[:n_sets].tolist():
        if sets and rng.random() < 0.2:
            sets[set_id] = sets[list(sets)[int(rng.integers(len(sets)))]]
            continue
        size = int(rng.integers(1, min(60, universe) + 1))
        tokens = rng.choice(universe, size, replace=False, p=weights / weights.sum())
        sets[set_id] = [f"v{token}" for token in tokens]
        if rng.random() < 0.3:
            sets[set_id] = [
                *sets[set_id],
                *(f"own{set_id}.{n}" for n in range(int(rng.integers(1, 10)))),
            ]
    return sets


def random_query(rng, sets):
    tokens = sorted({token for some in sets.values() for token in some})
    if rng.random() < 0.5:
        tokens = sets[list(sets)[int(rng.integers(len(sets)))]]
    picked = rng.choice(
        tokens, int(rng.integers(0, min(40, len(tokens)) + 1)), replace=False
    ).tolist()
    return picked + ["nowhere"] * int(rng.integers(0, 2))


def skewed_lake(rng, n_sets=3000, largest=3000):
    """Return the token numbers of the sets of a skewed lake."""
    sizes = np.minimum(10 * (1 + rng.pareto(0.9, n_sets)), largest).astype(int)
    sets, private = [], 10**9
    for size in sizes.tolist():
        n_private = int(0.3 * size)
        own = np.arange(private, private + n_private)
        private += n_private
        shared = np.unique((50 * rng.pareto(0.7, 2 * size)).astype(np.int64) % 10**8)
        shared = rng.permutation(shared)[: size - n_private]
        if sets and rng.random() < 0.5:
            other = sets[int(rng.integers(len(sets)))]
            part = other[: int(rng.integers(0, len(other) + 1))][: size - n_private]
            shared = np.concatenate([part, shared[: size - n_private - len(part)]])
        sets.append(rng.permutation(np.unique(np.concatenate([shared, own]))))
    return sets
