"""Sets drawn from vocabularies of very different sizes, as the specification of the method draws them."""

import numpy as np

LEAST, MOST = 30, 20_000


def vocabularies(n: int, rng: np.random.Generator, most: int = MOST) -> list[np.ndarray]:
    """Draw vocabularies with sizes of a Pareto distribution with shape 0.8, 30 to `most` tokens each."""
    sizes = np.minimum(most, LEAST * (1 + rng.pareto(0.8, n))).astype(int)
    return [np.unique(rng.integers(0, 2**63, size, dtype=np.uint64)) for size in sizes]


def some_of(vocabulary: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw a random share of a vocabulary, one token at least."""
    kept = vocabulary[rng.random(len(vocabulary)) < rng.random()]
    return kept if len(kept) else vocabulary[:1]


def ragged(sets: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in sets])]).astype(np.int64)
    return (np.concatenate(sets) if sets else np.empty(0, np.uint64)).astype(np.uint64), offsets


def containments(sets: list[np.ndarray], query: np.ndarray) -> np.ndarray:
    """Give the exact containment of a query in each set, by NumPy's own sets."""
    return np.array([len(np.intersect1d(one, query)) / len(np.unique(query)) for one in sets])
