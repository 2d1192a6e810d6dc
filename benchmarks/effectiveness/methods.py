"""The compared methods: those of table IV of the paper, sentence vectors, and pexeso's own.

The latter are what pexeso adds to a search.

A method is one similarity between values. Measures of strings compare folded texts; vectors are
those of normalised values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.effectiveness import similar
from benchmarks.effectiveness.judged import fold
from benchmarks.effectiveness.searched import index_for
from benchmarks.effectiveness.spelled import by_spelling
from embed.protocol import Embedder
from pexeso.errors import InputError
from pexeso.index import Index

# Vectors as codes of product quantisation, and the cut-offs of their similarities.
#
# This is the approximate method of table IV.

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
    """Product quantisation trained on the vectors of a lake."""

    def __init__(self, vectors: np.ndarray) -> None:
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
        sample = np.random.default_rng(0).permutation(n_values)[:n_sample]
        exact = vectors[sample] @ vectors.T
        exact[np.arange(len(sample)), sample] = 0  # that a value is like itself is no find
        near = exact >= _LEAST_LEARNT
        self._exact = exact[near]
        self._approximate = (self.as_queries(vectors[sample]) @ self.coded(vectors).T)[near]

    def as_queries(self, vectors: np.ndarray) -> np.ndarray:
        """Return vectors whose products with `coded` ones are similarities."""
        return np.hstack([vectors, vectors.any(1, keepdims=True)]).astype(np.float32)

    def coded(self, vectors: np.ndarray) -> np.ndarray:
        """Return vectors as decoded from their codes, float32 (values, d + 1)."""
        decoded = self._quantiser.decode(self._quantiser.compute_codes(vectors))
        added = (1 - np.square(decoded).sum(1, keepdims=True)) / 2
        known = vectors.any(1, keepdims=True)
        return np.hstack([decoded * known, np.where(known, added, -1)]).astype(np.float32)

    def cuts(self, cosines: Sequence[float]) -> list[float]:
        """Return the code similarity at which to cut for each cosine, from the highest."""
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


def _evenly(lowest: float, step: float) -> tuple[float, ...]:
    return tuple(np.round(np.arange(lowest, 1 + step / 2, step), 3).tolist())


MEASURES: dict[str, tuple[similar.Measure, tuple[float, ...]]] = {
    "equi": (similar.equal, (1.0,)),
    "jaccard": (similar.jaccard_of_tokens, _evenly(0.3, 0.02)),
    "edit": (similar.edit_similarity, _evenly(0.6, 0.01)),
    "fuzzy": (similar.fuzzy_tokens, _evenly(0.4, 0.02)),
    "tf-idf": (similar.tfidf, _evenly(0.3, 0.02)),
}
"""Measures of strings, and the similarities that are tried for joinable columns.

They are about as many as `DISTANCES`, so that no measure is tuned less finely than pexeso.
"""

NORMALISED = "-normalised"
"""What ends the name of a measure of values as the index normalises them; else they are folded."""

BY_STRINGS = tuple(name + form for name in MEASURES for form in ("", NORMALISED))

NEAREST_SIMILARITIES = _evenly(0.2, 0.01)
"""Least similarities of strings that are tried where each value is joined with its nearest one."""

DISTANCES = tuple(
    np.round([0.0, *np.arange(0.04, 0.161, 0.04), *np.arange(0.18, 0.461, 0.01)], 3).tolist()
)
"""Largest distances of vectors that are tried for joinable columns, as a share of the largest."""

NEAREST_DISTANCES = tuple(np.round(np.arange(0.0, 0.601, 0.01), 3).tolist())
"""Largest distances that are tried where each value is joined with its nearest one."""

PEXESO, FOLDED, CODES = "pexeso", "pexeso-folded", "pexeso-pq"
AUTOMATIC, RERANKED, SENTENCE = "pexeso-auto", "pexeso-reranked", "sentence"
OTHER_MODELS = ("hashing", "fasttext")
METHODS = (*BY_STRINGS, FOLDED, PEXESO, CODES, AUTOMATIC, RERANKED, *OTHER_MODELS, SENTENCE)
MODELS = ",".join(("lexical", *OTHER_MODELS))
"""The models of an index that is built: of `PEXESO`, and those that have rows of their own."""

FOLDING_RULES = ("case", "punctuation")
"""The rules of the index of `FOLDED`: what folding does for measures of strings, and no more."""

Prepare = Callable[[Sequence[pa.StringArray]], list[list[str]]]


@dataclass(frozen=True)
class Method:
    """One similarity between values, and the thresholds that are tried."""

    name: str
    prepare: Prepare
    compare: similar.Measure
    thresholds: tuple[float, ...]
    nearest_thresholds: tuple[float, ...]
    similarities: Callable[[Sequence[float]], list[float]] = list


@dataclass
class Workshop:
    """What the methods work on."""

    texts: Sequence[pa.StringArray]
    lake: Path
    folder: Path
    model: str = MODELS
    sentence_model: str | None = None
    name: str = "lake"

    @cached_property
    def whole_index(self) -> Index:
        """The index of pexeso, opened or built."""
        return index_for(self.lake, self.folder / f"{self.name}.pexeso", self.model)

    @cached_property
    def folded_index(self) -> Index:
        """The index of `FOLDED`, opened or built: of the first model, with `FOLDING_RULES`."""
        path, model = self.folder / f"{self.name}-folded.pexeso", self.model.partition(",")[0]
        return index_for(self.lake, path, model, rules=FOLDING_RULES)

    def index(self, model: str | None = None) -> Index:
        """Return the index of pexeso, searched by its first model or another."""
        return self.whole_index if model is None else self.whole_index.with_model(model)

    def model_of(self, name: str) -> str | None:
        """Return the model of the index that a method compares vectors of; None: it has none."""
        models = self.index().models
        if name in OTHER_MODELS:
            return name if name in models else None
        if name == CODES:
            return next((model for model in models if model != "lexical"), None)
        return models[0]

    def describe_model(self, name: str) -> str:
        """Name the model of a method, and its dimensions."""
        if name == SENTENCE:
            return Path(self.sentence_model).name
        embedder = self.index(self.model_of(name)).embedder
        if embedder.kind == "lexical":
            return embedder.kind
        return f"{embedder.kind}, {embedder.dimensions} dimensions"

    def normalised(self, columns: Sequence[pa.StringArray]) -> list[list[str]]:
        """Return cells in the form that the index has them."""
        return _normalised(self.index(), columns)


def make_method(name: str, shop: Workshop) -> Method:
    """Make a method of `METHODS` by name."""
    if name in BY_STRINGS:
        measure, thresholds = MEASURES[name.removesuffix(NORMALISED)]
        prepare = shop.normalised if name.endswith(NORMALISED) else _folded
        return Method(
            name, prepare, measure, thresholds,
            (1.0,) if measure is similar.equal else NEAREST_SIMILARITIES,
        )  # fmt: skip
    if name == FOLDED:
        index = shop.folded_index
        return replace(_by_vectors(name, shop, index.embedder), prepare=partial(_normalised, index))
    if name in (PEXESO, *OTHER_MODELS):
        return _by_vectors(name, shop, shop.index(shop.model_of(name)).embedder)
    if name == CODES:
        return _by_codes(name, shop)
    if name == SENTENCE and shop.sentence_model:
        from embed.registry import create_embedder

        return _by_vectors(name, shop, create_embedder(f"sentence:{shop.sentence_model}"))
    needs = " It needs --sentence-model." if name == SENTENCE else ""
    raise InputError(f"The methods are {', '.join(METHODS)}. Got {name!r}.{needs}")


def _normalised(index: Index, columns: Sequence[pa.StringArray]) -> list[list[str]]:
    normalised = index.normaliser.normalise_columns(list(columns))
    return [[text or "" for text in column.to_pylist()] for column in normalised]


def _folded(columns: Sequence[pa.StringArray]) -> list[list[str]]:
    return [[fold(text or "") for text in column.to_pylist()] for column in columns]


def cosines(distances: Sequence[float]) -> list[float]:
    """Turn distances, as a share of the largest (2), into cosines: d**2 = 2 - 2 cos."""
    return [1 - 2 * distance * distance - 1e-6 for distance in distances]


def _by_vectors(name: str, shop: Workshop, embedder: Embedder) -> Method:
    def compare(values: Sequence[str], others: Sequence[str], lowest: float) -> similar.Pieces:
        return similar.products(_embedded(embedder, values), _embedded(embedder, others), lowest)

    if embedder.kind == "lexical":
        compare = by_spelling(embedder)
    return Method(name, shop.normalised, compare, DISTANCES, NEAREST_DISTANCES, cosines)


def _by_codes(name: str, shop: Workshop) -> Method:
    """Compare vectors with product-quantised ones, cut where 85 % of matching pairs are found."""
    embedder = shop.index(shop.model_of(CODES)).embedder
    values = sorted({text for column in shop.normalised(shop.texts) for text in column if text})
    quantised = Quantised(_embedded(embedder, values))

    def compare(values: Sequence[str], others: Sequence[str], lowest: float) -> similar.Pieces:
        queries, coded = (
            quantised.as_queries(_embedded(embedder, values)),
            quantised.coded(_embedded(embedder, others)),
        )
        return similar.products(queries, coded, lowest)

    @lru_cache
    def cuts(distances: tuple[float, ...]) -> list[float]:
        return quantised.cuts(cosines(distances))

    return Method(name, shop.normalised, compare, DISTANCES, NEAREST_DISTANCES, cuts)


def _embedded(embedder: Embedder, values: Sequence[str]) -> np.ndarray:
    return embedder.embed(pa.array(values, pa.string()))
