"""Small lakes of vectors with strangers and partners at known distances."""

import numpy as np
from searching_stores import SmallLake, scan_of

from pexeso.engine.options import PartitionLayoutOptions
from pexeso.semantic.partition_loader import PartitionLoader

OPTIONS = PartitionLayoutOptions(map="projection", n_axes=7)
DIMENSIONS = 32


def directions(n: int, seed: int) -> np.ndarray:
    """Unit vectors, float32: at 32 dimensions nearly all of them more than 0.4 apart."""
    drawn = np.random.default_rng(seed).normal(size=(n, DIMENSIONS))
    return unit(drawn)


def unit(vectors: np.ndarray) -> np.ndarray:
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def moved(vectors: np.ndarray, distance: float, seed: int) -> np.ndarray:
    """Unit vectors at a distance, a fraction of 2, from others."""
    random = np.random.default_rng(seed).normal(size=vectors.shape)
    across = random - (random * vectors).sum(1, keepdims=True) * vectors
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    cosine = 1 - 2 * distance**2
    return unit(cosine * vectors + np.sqrt(1 - cosine**2) * across)


def scan_of_columns(
    columns: list[np.ndarray], partitions: list[int] | None = None, deleted: tuple[int, ...] = ()
) -> PartitionLoader:
    """Index columns of vectors; equal rows are one value."""
    vectors, place = np.unique(np.concatenate(columns), axis=0, return_inverse=True)
    members = np.split(place.ravel(), np.cumsum([len(column) for column in columns])[:-1])
    names = [(f"t{number:03}.csv", "c") for number in range(len(columns))]
    lake = SmallLake(
        vectors,
        [sorted(set(numbers.tolist())) for numbers in members],
        names,
        partitions or [0] * len(columns),
    )
    return scan_of(lake.store(OPTIONS, deleted), OPTIONS)
