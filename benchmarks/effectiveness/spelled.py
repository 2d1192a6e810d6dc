"""Similar values by the lexical model of an index: all pairs above a similarity."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from benchmarks.effectiveness.similar import Measure, Pieces
from embed.protocol import Embedder
from pexeso.build.parts.metadata import sparse_vectors
from pexeso.engine.sparse.partition import SparsePartition, build_partition
from pexeso.engine.sparse.search import find_rows
from pexeso.engine.sparse.vectors import pair_distances
from pexeso.engine.stats import SearchStats

ROWS = 500
"""Values that are compared with all others at a time."""


def by_spelling(embedder: Embedder) -> Measure:
    """Return the measure that compares values as a search by posting lists does, to the bit."""

    def compare(values: Sequence[str], others: Sequence[str], cutoff: float) -> Pieces:
        queries, held = (
            sparse_vectors(embedder, pa.array(side, pa.string())) for side in (values, others)
        )
        whole = np.array([0, len(held)])
        arrays, order = build_partition(held, whole, np.arange(len(held)))
        partition = SparsePartition.from_arrays(arrays, held.space)
        # A cosine is 1 - 2 d ** 2 of the distance d, as a fraction of the largest one.
        limit, n_threads = float(np.sqrt((1 - cutoff) / 2)), len(os.sched_getaffinity(0))
        for start in range(0, len(queries), ROWS):
            some = queries[slice(start, start + ROWS)]
            matches = find_rows(partition, some, limit, n_threads, SearchStats())
            row = np.repeat(np.arange(len(some)), np.diff(matches.offsets))
            column = order[matches.members]
            distances = pair_distances(some.take(row), held.take(column))
            cosines = (1 - 2 * distances * distances).astype(np.float32)
            shape = (len(some), len(held))
            yield sp.csr_matrix((cosines, (row, column)), shape=shape)

    return compare
