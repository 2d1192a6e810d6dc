"""The regions of the vector space that a column's histogram counts.

A region belongs to the nearest centroid of a small codebook.

A codebook of B centroids cuts the space into B regions, and one more holds what has no meaning
(zero vectors, and values without a vector), so that such columns end up together instead of being
spread over all partitions.
"""

from __future__ import annotations

import numpy as np

from partition.clustering import row_chunks
from pexeso.errors import InputError
from pexeso.runtime.extras import require

MAX_CODES = 256  # largest number of centroids of a codebook

FIT_BATCH = 4096

# Vectors and centroids are compared as whole multiples of 1 / STEPS_OF_ONE. Products of two of at
# most unit length and sums of such products are then exact in float64, so that neither the order of
# summing nor a fused instruction changes a region.
STEPS_OF_ONE = float(1 << 18)


def fit_codebook(sample: np.ndarray, *, n_codes: int = MAX_CODES, seed: int = 0) -> np.ndarray:
    """Fit a codebook by k-means on a sample of vectors: float32 (b, dimensions), its centroids.

    The result depends on the set of vectors in the sample and on the seed, not on their order:
    vectors are made distinct and sorted first, and k-means runs in one thread, because the order in
    which threads add up is not repeatable. It runs in float64 and the centroids are rounded, so
    that the kernels of a processor do not show. Zero vectors are left out; there are as many
    centroids as distinct vectors where these are fewer than `n_codes`: none where nothing in the
    sample had a meaning.
    """
    if not 1 <= n_codes <= MAX_CODES:
        raise InputError(f"n_codes must be a whole number from 1 to {MAX_CODES}. Got {n_codes!r}.")
    sample = _checked(sample)
    distinct = np.unique(sample[sample.any(axis=1)], axis=0)
    if len(distinct) <= n_codes:
        return distinct
    # scikit-learn is imported here, because importing this package must stay cheap.
    require("sklearn", "Clustering columns into partitions")
    from sklearn.cluster import MiniBatchKMeans
    from threadpoolctl import threadpool_limits

    model = MiniBatchKMeans(
        n_clusters=n_codes, random_state=seed, batch_size=FIT_BATCH, n_init=1, max_iter=50
    )
    with threadpool_limits(limits=1):
        model.fit(distinct.astype(np.float64))
    return _in_steps(model.cluster_centers_).astype(np.float32) / np.float32(STEPS_OF_ONE)


def assign(vectors: np.ndarray, centroids: np.ndarray) -> np.ndarray:
    """Region of every vector: its nearest centroid, the lowest number where two are equally near.

    Zero vectors get the region behind those of the centroids. Memory beside the input and the
    result is that of one chunk of about a million products.
    """
    vectors, no_meaning = _checked(vectors), len(centroids)
    codes = np.full(len(vectors), no_meaning, dtype=np.int32)
    if not len(centroids):
        return codes
    if vectors.shape[1] != centroids.shape[1]:
        raise InputError(
            f"Vectors must have the {centroids.shape[1]} dimensions of the codebook. Got "
            f"{vectors.shape[1]}."
        )
    # |v - c|^2 = |v|^2 - 2 (v c - |c|^2 / 2): the nearest centroid is the one of the largest
    # bracket.
    steps = _in_steps(centroids)
    half_norms = 0.5 * np.square(steps).sum(axis=1)
    for rows in row_chunks(len(vectors), max(centroids.shape)):
        chunk = vectors[rows]
        nearest = np.argmax(_in_steps(chunk) @ steps.T - half_norms, axis=1)
        codes[rows] = np.where(chunk.any(axis=1), nearest, no_meaning)
    return codes


def _in_steps(vectors: np.ndarray) -> np.ndarray:
    return np.rint(vectors.astype(np.float64) * STEPS_OF_ONE)


def _checked(vectors: np.ndarray) -> np.ndarray:
    vectors = np.ascontiguousarray(vectors, dtype=np.float32)
    if vectors.ndim != 2 or not vectors.shape[1]:
        raise InputError(
            f"Vectors must be a matrix of shape (n, dimensions). Got shape {vectors.shape}."
        )
    if not np.isfinite(vectors).all():
        row = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
        raise InputError(f"Every vector must be finite. Row {row} of {len(vectors)} is not.")
    return vectors
