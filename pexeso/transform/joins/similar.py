"""Rows joined with the most similar key, where two columns are named and no program joins them."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

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
from pexeso.transform.transformation import KINDS

if TYPE_CHECKING:
    from pexeso.transform.joins.joined import TransformJoin

# Distinct values of a side that are compared at most. All pairs of so many e-mail addresses take 3
# seconds of one core, and of titles of four words 17: the time grows with the number of pairs.
MAX_VALUES = 15_000

# Texts that are compared with all keys at a time.
_ROWS = 500


def with_similar(joined: TransformJoin) -> TransformJoin:
    """Join the rows that have no partner with the most similar key, as a search would.

    Keys may have several rows. Where more than `MAX_VALUES` distinct values have no partner, or
    there are more keys, nothing is compared.
    """
    base = joined.rule
    free = np.flatnonzero(base.partners < 0)
    cells = joined.reading.texts.columns[base.columns[0]].cells.take(pa.array(free))
    texts = pc.unique(cells).drop_null()
    keys = joined.keyed.texts.columns[base.key_column].values
    if not len(texts) or not len(keys):
        return joined
    if max(len(texts), len(keys)) > MAX_VALUES:
        return replace(joined, max_compared=MAX_VALUES)
    positions, distances = nearest_values(texts, keys)
    at = pc.fill_null(pc.index_in(cells, texts), -1).to_numpy(zero_copy_only=False)
    # The last entry is what an empty cell is joined with: nothing.
    positions, distances = np.append(positions, -1)[at], np.append(distances, 0.0)[at]
    partners, kinds, far = base.partners.copy(), base.kinds.copy(), base.distances.copy()
    partners[free], far[free] = positions, distances
    kinds[free[positions >= 0]] = KINDS.index("fuzzy")
    rule = replace(base, partners=partners, kinds=kinds, distances=far)
    return replace(joined, rule=rule)


def nearest_values(texts: pa.Array, keys: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the most similar key of each text, by the default model; an equal one of codes."""
    columns = [side.cast(pa.string()) for side in (texts, keys)]
    normaliser, kind = Normaliser(), exact_kind(columns[0])
    left, right = normaliser.normalise_columns(columns)
    if kind == "date":  # of either order of day and month that by which more are equal
        others = map(normaliser.with_day_first, columns)
        orders = product(*zip((left, right), others, strict=True))
        left, right = max(orders, key=lambda sides: pc.is_in(*sides).true_count)
    left, right = pc.fill_null(left, ""), pc.fill_null(right, "")
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
