"""The methods that are compared: those of table IV of the paper, and sentence vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from benchmarks.effectiveness import similar
from benchmarks.effectiveness.found import Found, found_by_values
from benchmarks.effectiveness.judged import Judged, fold, incidence
from benchmarks.effectiveness.searched import index_for
from embed.protocol import Embedder
from pexeso.errors import InputError
from pexeso.index import Index, open_index

BY_STRINGS: dict[str, tuple[Callable[..., similar.Similar], tuple[float, ...]]] = {
    "equi": (similar.equal, (1.0,)),
    "jaccard": (similar.jaccard_of_tokens, (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)),
    "edit": (similar.edit_similarity, (0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)),
    "fuzzy": (similar.fuzzy_tokens, (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)),
    "tf-idf": (similar.tfidf, (0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)),
}
"""Measures of strings, and the similarities that are tried."""

DISTANCES = tuple(np.round(np.arange(0.0, 0.421, 0.02), 3).tolist())
"""Largest distances that are tried of vectors, as a share of the largest."""

PQ_RECALL = 0.85
SENTENCE = "sentence"
METHODS = (*BY_STRINGS, "pexeso", "pexeso-pq", SENTENCE)


@dataclass
class Workshop:
    """What the methods work on.

    Attributes
    ----------
    judged : Judged
    lake, folder : Path
        The tables, and a place for the index.
    model : str
        Of the index of pexeso; see `pexeso.index.build_index`.
    path : Path or None
        An index of the lake that is there; None: one is built.
    sentence_model : str or None
        A sentence-transformers model, by path or name.
    """

    judged: Judged
    lake: Path
    folder: Path
    model: str = "fasttext"
    path: Path | None = None
    sentence_model: str | None = None
    _index: Index | None = None

    def index(self) -> Index:
        """Open or build the index of pexeso, once."""
        if self._index is None:
            self._index = open_index(self.path) if self.path else index_for(self.lake, self.folder, self.model)
        return self._index

    def folded(self) -> list[list[str]]:
        """Give the folded values of every column."""
        return [sorted({text for each in column.to_pylist() if (text := fold(each))}) for column in self.judged.texts]

    def normalised(self) -> list[list[str]]:
        """Give the values of every column in the form that the index has them."""
        columns = self.index().normaliser.normalise_columns(self.judged.texts)
        return [column.drop_null().unique().to_pylist() for column in columns]

    def vectors(self, embedder: Embedder) -> tuple[sp.csr_matrix, np.ndarray]:
        """Give which column holds which distinct normalised value, and the vectors of these values."""
        values, held = incidence(self.normalised())
        return held, embedder.embed(pa.array(values, pa.string()))


def run_method(name: str, shop: Workshop) -> list[Found]:
    """Return what a method finds at each of its thresholds.

    Raises
    ------
    InputError
        There is no such method, or the sentence model is not given.
    """
    if name in BY_STRINGS:
        measure, thresholds = BY_STRINGS[name]
        values, held = incidence(shop.folded())
        return list(found_by_values(shop.judged, held, measure(values, min(thresholds)), thresholds))
    if name in ("pexeso", "pexeso-pq"):
        held, vectors = shop.vectors(shop.index().embedder)
        return _quantised(shop, held, vectors) if name == "pexeso-pq" else _by_vectors(shop, held, vectors)
    if name == SENTENCE and shop.sentence_model:
        from embed.registry import create_embedder

        return _by_vectors(shop, *shop.vectors(create_embedder(f"sentence:{shop.sentence_model}")))
    needs = " It needs --sentence-model." if name == SENTENCE else ""
    raise InputError(f"The methods are {', '.join(METHODS)}. Got {name!r}.{needs}")


def _cosines(distances: Sequence[float]) -> list[float]:
    """Turn distances, as a share of the largest (2), into cosines: d**2 = 2 - 2 cos."""
    return [1 - 2 * distance * distance - 1e-6 for distance in distances]


def _by_vectors(shop: Workshop, held: sp.csr_matrix, vectors: np.ndarray) -> list[Found]:
    """Find by all pairs of vectors: what an index answers too, and sooner done for so many thresholds at once."""
    thresholds = _cosines(DISTANCES)
    alike = similar.cosine(vectors, min(thresholds))
    founds = found_by_values(shop.judged, held, alike, thresholds)
    return [replace(found, threshold=distance) for found, distance in zip(founds, DISTANCES, strict=True)]


def _quantised(shop: Workshop, held: sp.csr_matrix, vectors: np.ndarray) -> list[Found]:
    """Find by product-quantised vectors, cut at the distance at which 85 % of the pairs that match are found."""
    import faiss

    n_values, dimensions = vectors.shape
    parts = max(part for part in (1, 2, 4, 5, 8, 10, 16, 20, 25) if dimensions % part == 0)
    quantiser = faiss.ProductQuantizer(dimensions, parts, 8 if n_values >= 256 * 39 else 4)
    quantiser.train(vectors)
    coded = quantiser.decode(quantiser.compute_codes(vectors))
    sample = np.random.default_rng(0).permutation(n_values)[:2000]
    exact, approximate = vectors[sample] @ vectors.T, vectors[sample] @ coded.T
    exact[np.arange(len(sample)), sample] = 0  # that a value is like itself is no find
    cuts = []
    for cosine in _cosines(DISTANCES):
        matching = approximate[exact >= cosine]
        cuts.append(float(np.quantile(matching, 1 - PQ_RECALL)) if len(matching) else cosine)
    least = max(min(cuts), 0.3)
    alike = similar.products(vectors, coded, least)
    founds = found_by_values(shop.judged, held, alike, [max(cut, least) for cut in cuts])
    return [replace(found, threshold=distance) for found, distance in zip(founds, DISTANCES, strict=True)]
