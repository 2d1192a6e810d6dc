"""The most similar key of each text, as a search would find it in a lake of these keys alone."""

from __future__ import annotations

import tempfile
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from embed.corpus import write_corpus
from embed.registry import create_embedder
from pexeso.build.parts.metadata import sparse_vectors
from pexeso.engine.sparse.partition import SparsePartition, build_partition
from pexeso.engine.sparse.search import find_rows
from pexeso.engine.sparse.vectors import pair_costs, pair_distances
from pexeso.engine.stats import SearchStats
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.lake.normalise.rules import DISTINCTIONS
from pexeso.options import USUAL_MAX_DISTANCES
from pexeso.results.query import exact_kind
from pexeso.runtime.system import available_processors

# Texts that are compared with all keys at a time.
_ROWS = 500


def nearest_values(
    texts: pa.Array, keys: pa.Array, max_distance: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the most similar key of each text, by the default model, and its distance.

    By default that is within the usual distance, and of codes an equal one.
    """
    columns = [side.cast(pa.string()) for side in (texts, keys)]
    normaliser, kind = Normaliser(), exact_kind(columns[0])
    left, right = normaliser.normalise_columns(columns)
    if kind == "date":  # of either order of day and month that by which more are equal
        others = map(normaliser.with_day_first, columns)
        orders = product(*zip((left, right), others, strict=True))
        left, right = max(orders, key=lambda sides: pc.is_in(*sides).true_count)
    left, right = pc.fill_null(left, ""), pc.fill_null(right, "")
    if max_distance is None:
        max_distance = USUAL_MAX_DISTANCES["lexical"] if kind is None else 0.0
    with tempfile.TemporaryDirectory(prefix="pexeso-transform-") as folder:
        corpus = Path(folder) / "corpus.txt"
        held = pa.table({"group": np.zeros(len(right), np.int64), "value": right})
        write_corpus(held.to_batches(), corpus)
        embedder = create_embedder("lexical", corpus=corpus, distinctions=DISTINCTIONS)
    queries, stored = sparse_vectors(embedder, left), sparse_vectors(embedder, right)
    whole = np.array([0, len(stored)])
    arrays, order = build_partition(stored, whole, np.arange(len(stored)))
    partition = SparsePartition.from_arrays(arrays, stored.space)
    positions, nearest = np.full(len(texts), -1, np.int64), np.zeros(len(texts))
    n_threads = available_processors()
    for start in range(0, len(queries), _ROWS):
        some = queries[slice(start, start + _ROWS)]
        hits = find_rows(partition, some, max_distance, n_threads, SearchStats())
        row = np.repeat(np.arange(len(some)), np.diff(hits.offsets))
        key = order[hits.members]
        pairs = some.take(row), stored.take(key)
        distances = pair_distances(*pairs)
        best = np.lexsort((key, pair_costs(*pairs, distances), row))
        first = best[np.unique(row[best], return_index=True)[1]]
        positions[start + row[first]], nearest[start + row[first]] = key[first], distances[first]
    return positions, nearest
