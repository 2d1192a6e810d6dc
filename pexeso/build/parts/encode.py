"""From values to the vectors of an index's space."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from embed.checking import require_unit_or_zero

if TYPE_CHECKING:
    import pyarrow as pa

    from embed.protocol import Embedder
    from pexeso.engine.sparse.vectors import SparseVectors
    from pexeso.engine.vector_space import Vectors


def encode_values(embedder: Embedder, values: pa.Array) -> Vectors:
    """Return the vectors of normalised values, each on its own."""
    if getattr(embedder, "kind", None) == "lexical":
        return sparse_vectors(embedder, values)
    import torch

    vectors = np.ascontiguousarray(embedder.embed(values), dtype=np.float32)
    require_unit_or_zero(values, vectors)
    return torch.from_numpy(vectors)


def sparse_vectors(embedder: Embedder, values: pa.Array) -> SparseVectors:
    """Return the vectors of values under a lexical model."""
    from pexeso.engine.sparse.space import LetterSpace
    from pexeso.engine.sparse.vectors import SparseVectors

    words = embedder.encode(values)
    return SparseVectors.from_words(
        LetterSpace(**embedder.space),
        words.text,
        words.starts,
        words.weights,
        words.offsets,
        words.members,
    )


def known_vectors(vectors: Vectors) -> np.ndarray:
    """Return which values the model knows anything about, bool (n,)."""
    if hasattr(vectors, "is_known"):
        return vectors.is_known
    return (vectors != 0).any(1).numpy()
