"""Functions that tasks apply to their Arrow batches.

Every function takes an iterator of batches, holds one slice of a batch at a time as a dense matrix
of at most :data:`partition.clustering.CHUNK_ELEMENTS` numbers, and carries at most one cluster
table from batch to batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from partition.balance import partition_bytes
from partition.clustering import Partials, nearest, normalise, partial_sums, row_chunks
from partition.codebook import Codebook, assign
from pexeso.errors import InputError

CODES = pa.schema([("value", pa.string()), ("code", pa.int32())])
ASSIGNED = pa.schema(
    [
        ("column_id", pa.int64()),
        ("n_bytes", pa.int64()),
        ("tie", pa.int64()),
        ("cluster", pa.int32()),
        ("divergence", pa.float64()),
    ]
)


def matrix_of(vectors: pa.Array, dimensions: int) -> np.ndarray:
    """Turn a list array into a matrix.

    Parameters
    ----------
    vectors : pa.ListArray of float32, length n
        Null for a value without a vector.

    Returns
    -------
    ndarray, shape (n, dimensions), float32
        Zeros where the array is null.
    """
    lengths = pc.list_value_length(vectors)
    wrong = pc.fill_null(pc.not_equal(lengths, dimensions), False)
    if pc.any(wrong).as_py():
        length = pc.filter(lengths, wrong)[0].as_py()
        raise InputError(f"Every vector must have {dimensions} dimensions. Got one of {length}.")
    matrix = np.zeros((len(vectors), dimensions), dtype=np.float32)
    # flatten() leaves out what lies under a null.
    known = pc.is_valid(vectors).to_numpy(zero_copy_only=False)
    matrix[known] = vectors.flatten().to_numpy(zero_copy_only=False).reshape(-1, dimensions)
    return matrix


def features_of(batch: pa.RecordBatch, n_features: int) -> np.ndarray:
    """Read columns' features from a batch.

    Parameters
    ----------
    batch : pa.RecordBatch of n rows
        ``codes: list<int32>`` and ``counts: list<int64>``.
    """
    codes = batch.column("codes")
    counts = np.zeros((batch.num_rows, n_features))
    rows = pc.list_parent_indices(codes).to_numpy()
    counts[rows, codes.flatten().to_numpy()] = batch.column("counts").flatten().to_numpy()
    return normalise(counts)


def encode_values(
    batches: Iterable[pa.RecordBatch], codebook: Codebook, dimensions: int
) -> Iterator[pa.RecordBatch]:
    """``(value, vector)`` to :data:`CODES`: the region of every value."""
    for part in _slices(batches, dimensions):
        codes = assign(matrix_of(part.column("vector"), dimensions), codebook)
        yield pa.RecordBatch.from_arrays([part.column("value"), pa.array(codes)], schema=CODES)


def sums_of(batches: Iterable[pa.RecordBatch], centres: np.ndarray) -> Partials:
    """Sum the features of columns by their nearest centres."""
    total = Partials.zeros(*centres.shape)
    for part in _slices(batches, centres.shape[1]):
        total.add(partial_sums(features_of(part, centres.shape[1]), centres))
    return total


def add_divergences(
    batches: Iterable[pa.RecordBatch], centres: np.ndarray
) -> Iterator[pa.RecordBatch]:
    """Append ``divergence: float64`` to features: to the nearest centre."""
    for part in _slices(batches, centres.shape[1]):
        divergences = nearest(features_of(part, centres.shape[1]), centres)[1]
        yield part.append_column("divergence", pa.array(divergences))


def assign_columns(
    batches: Iterable[pa.RecordBatch], centres: np.ndarray, dimensions: int, entry_bytes: int = 4
) -> Iterator[pa.RecordBatch]:
    """Features to :data:`ASSIGNED`: every column's size, nearest centre and divergence from it."""
    for part in _slices(batches, centres.shape[1]):
        clusters, divergences = nearest(features_of(part, centres.shape[1]), centres)
        n_values = part.column("n_values").to_numpy()
        n_bytes = partition_bytes(n_values, n_values, dimensions, entry_bytes)
        columns = [part.column("column_id"), pa.array(n_bytes), part.column("tie")]
        yield pa.RecordBatch.from_arrays(
            [*columns, pa.array(clusters), pa.array(divergences)], schema=ASSIGNED
        )


def _slices(batches: Iterable[pa.RecordBatch], width: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for rows in row_chunks(batch.num_rows, width):
            yield batch.slice(rows.start, rows.stop - rows.start)
