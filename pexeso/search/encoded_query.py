"""A query column in the space of an index: normalised, made distinct, embedded."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from embed.protocol import Embedder
from pexeso.engine.vector_space import Vectors
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.parts.encode import encode_values, known_vectors
from pexeso.search.query import QueryColumn


@dataclass(frozen=True)
class EncodedQuery:
    """The distinct values of a query column and their vectors.

    Attributes
    ----------
    values : pyarrow.StringArray
        Distinct normalised values, n of them, in order of first appearance.
    value_of_row : pyarrow.Int64Array
        For each row its place in `values`, null where the cell is empty.
    vectors : Vectors
        Those of the values, in the space of the index.
    weights : int64 (n,)
        Rows of each value.
    normaliser : Normaliser or None
        What the values went through.
    """

    column: QueryColumn
    values: pa.StringArray
    value_of_row: pa.Int64Array
    vectors: Vectors
    weights: torch.Tensor
    normaliser: Normaliser | None = None

    def total(self, ignore_missing: bool) -> int:
        """Return |Q|: all rows, or only those that can match."""
        return self.n_rows - (self.n_empty + self.n_unknown if ignore_missing else 0)

    @property
    def n_rows(self) -> int:
        """Rows of the column."""
        return len(self.value_of_row)

    @property
    def n_empty(self) -> int:
        """Rows that are empty, before or after normalisation."""
        return self.value_of_row.null_count

    @cached_property
    def known(self) -> torch.Tensor:
        """Whether the model knows anything about each value, bool (n,); others match nothing."""
        return known_vectors(self.vectors)

    @cached_property
    def n_unknown(self) -> int:
        """Rows whose value the model knows nothing about."""
        return int(self.weights[~self.known].sum())

    @cached_property
    def texts(self) -> tuple[list[str], np.ndarray]:
        """Return the distinct texts of the column, and the position of each in `values`.

        The texts are as they are in the column, by first appearance.
        """
        rows = pc.drop_null(pc.indices_nonzero(pc.is_valid(self.value_of_row)))
        encoded = self.column.values.take(rows).dictionary_encode()
        _, first = np.unique(encoded.indices.to_numpy(zero_copy_only=False), return_index=True)
        positions = self.value_of_row.take(rows).to_numpy(zero_copy_only=False)
        return encoded.dictionary.to_pylist(), positions[first]

    @cached_property
    def text_array(self) -> pa.StringArray:
        """The distinct texts of `texts`, as an Arrow array."""
        return pa.array(self.texts[0], self.column.values.type)

    @cached_property
    def rows_of_text(self) -> np.ndarray:
        """How many rows of the column have each of `texts`, int64."""
        positions = pc.drop_null(pc.index_in(self.column.values, value_set=self.text_array))
        return np.bincount(
            positions.to_numpy(zero_copy_only=False), minlength=len(self.text_array)
        ).astype(np.int64)

    def describe(self) -> dict[str, Any]:
        """Return the query as plain JSON: source, rows, distinct values, rows that cannot match."""
        return {
            **self.column.describe(),
            "distinct": len(self.values),
            "empty": self.n_empty,
            "unknown": self.n_unknown,
        }


def prepare(column: QueryColumn, normaliser: Normaliser, embedder: Embedder) -> EncodedQuery:
    """Normalise and embed a query column just as the lake was."""
    encoded = normaliser.normalise(column.values).dictionary_encode()
    values = encoded.dictionary.cast(pa.string())
    value_of_row = encoded.indices.cast(pa.int64())
    positions = pc.drop_null(value_of_row).to_numpy(zero_copy_only=False)
    weights = np.bincount(positions, minlength=len(values)).astype(np.int64)
    vectors = encode_values(embedder, values)
    return EncodedQuery(
        column, values, value_of_row, vectors, torch.from_numpy(weights), normaliser
    )
