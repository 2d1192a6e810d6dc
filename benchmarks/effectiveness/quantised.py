"""Vectors as codes of product quantisation, and the cut-offs of their similarities.

This is the approximate method of table IV.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

PQ_RECALL = 0.85
"""Share of the pairs that truly match which are found at each threshold."""

LEAST_CUT = 0.3
"""Similarities with codes are never cut below this: far down nearly all pairs would pass."""

SAMPLE_PAIRS = 40_000_000
"""Pairs that are compared to learn the cuts; 8 bytes each."""

_LEAST_LEARNT = 0.2
"""Pairs of vectors with a lower cosine are matched at no threshold."""

_PARTS = (1, 2, 4, 5, 8, 10, 16, 20, 25)
_BITS, _FEW_BITS = 8, 4
_MANY_VECTORS = 1024
"""From so many vectors on codes have 8 bits a part, else 4."""


class Quantised:
    """Product quantisation trained on the vectors of a lake.

    Similar are asked vectors and coded ones by 1 - d**2 / 2, d the Euclidean distance of a vector
    and what a code says: the cosine, if codes said all. Plain products would favour codes of long
    vectors.

    Parameters
    ----------
    vectors : numpy.ndarray, float32 (values, d)
        Of length 1 or 0, at least 16 of them.
    seed : int
        Of the sample from which cuts are learnt.
    """

    def __init__(self, vectors: np.ndarray, seed: int = 0) -> None:
        import faiss

        n_values, dimensions = vectors.shape
        parts = max(part for part in _PARTS if dimensions % part == 0)
        self._quantiser = faiss.ProductQuantizer(
            dimensions, parts, _BITS if n_values >= _MANY_VECTORS else _FEW_BITS
        )
        self._quantiser.cp.min_points_per_centroid = (
            1  # else the library warns where a lake is small
        )
        self._quantiser.train(vectors)
        n_sample = max(1, min(2000, SAMPLE_PAIRS // n_values))
        sample = np.random.default_rng(seed).permutation(n_values)[:n_sample]
        exact = vectors[sample] @ vectors.T
        exact[np.arange(len(sample)), sample] = 0  # that a value is like itself is no find
        near = exact >= _LEAST_LEARNT
        self._exact = exact[near]
        self._approximate = (self.as_queries(vectors[sample]) @ self.coded(vectors).T)[near]

    def as_queries(self, vectors: np.ndarray) -> np.ndarray:
        """Return vectors whose products with `coded` ones are similarities.

        The result is float32 (values, d + 1).
        """
        return np.hstack([vectors, vectors.any(1, keepdims=True)]).astype(np.float32)

    def coded(self, vectors: np.ndarray) -> np.ndarray:
        """Return vectors as decoded from their codes, float32 (values, d + 1).

        A vector of zeros is similar to nothing.
        """
        decoded = self._quantiser.decode(self._quantiser.compute_codes(vectors))
        added = (1 - np.square(decoded).sum(1, keepdims=True)) / 2
        known = vectors.any(1, keepdims=True)
        return np.hstack([decoded * known, np.where(known, added, -1)]).astype(np.float32)

    def cuts(self, cosines: Sequence[float]) -> list[float]:
        """Return the code similarity at which to cut for each cosine, from the highest.

        `PQ_RECALL` of the pairs of at least this cosine reach it.

        A lower cosine never has a higher cut: where pairs are few, chance would say so.
        """
        cuts = []
        for cosine in cosines:
            matching = self._approximate[self._exact >= cosine]
            cuts.append(
                max(
                    float(np.quantile(matching, 1 - PQ_RECALL)) if len(matching) else cosine,
                    LEAST_CUT,
                )
            )
        return np.minimum.accumulate(cuts).tolist()
