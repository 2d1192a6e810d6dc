"""A query column in the space of an index: normalised, made distinct, embedded."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from embed.protocol import Embedder
from pexeso.build.parts.metadata import encode_values
from pexeso.engine.vector_space import Vectors, known_vectors
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.options import ROWS
from pexeso.results.query import QueryColumn
from pexeso.runtime.threads import release_unused

if TYPE_CHECKING:
    from pexeso.options import SearchOptions
    from pexeso.semantic.judged import QueryJudgements


@dataclass(frozen=True)
class EncodedQuery:
    """The distinct values of a query column and their vectors."""

    column: QueryColumn
    values: pa.StringArray  # normalised, n of them, in order of first appearance
    value_of_row: pa.Int64Array  # positions in `values`, null where the cell is empty
    vectors: Vectors
    weights: np.ndarray  # int64 (n,): rows of each value
    normaliser: Normaliser | None = None
    # Distinct values of a column of the lake that an index lacks: the model knows none of them.
    n_unstored: int = 0
    # Of columns of the index by number, once computed: no search asks for anything else of them.
    similarities: dict[int, float] = field(default_factory=dict, repr=False, compare=False)
    judged: QueryJudgements | None = field(default=None, repr=False, compare=False)
    day_first: bool | None = None  # of dates that do not say what comes first

    def counted(self, joinability_of: str) -> np.ndarray:
        """Return what each value counts for: 1, or its rows; int64 (n,)."""
        return self.weights if joinability_of == ROWS else np.ones_like(self.weights)

    def counted_texts(self, joinability_of: str) -> np.ndarray:
        """Return what each of `texts` counts for: its rows, or 1 for the first of each value."""
        if joinability_of == ROWS:
            return self.rows_of_text
        _, value_of_text = self.texts
        counted = np.zeros(len(value_of_text), np.int64)
        counted[np.unique(value_of_text, return_index=True)[1]] = 1
        return counted

    def total(self, options: SearchOptions) -> int:
        """Return |Q|, the distinct values or rows, all or only those that can match."""
        counted = self.counted(options.joinability_of)
        if options.ignore_missing:
            return int(counted[self.known].sum())
        n_empty = self.n_empty if options.joinability_of == ROWS else 0
        return int(counted.sum()) + n_empty + self.n_unstored

    @property
    def n_empty(self) -> int:
        """Rows that are empty, before or after normalisation."""
        return self.column.n_rows - int(self.weights.sum())

    @cached_property
    def known(self) -> np.ndarray:
        """Whether the model knows anything about each value, bool (n,); others match nothing."""
        return known_vectors(self.vectors)

    @cached_property
    def texts(self) -> tuple[list[str], np.ndarray]:
        """The distinct texts of the column by first appearance, and the value of each."""
        rows = pc.drop_null(pc.indices_nonzero(pc.is_valid(self.value_of_row)))
        encoded = self.column.values.take(rows).dictionary_encode()
        _, first = np.unique(encoded.indices.to_numpy(zero_copy_only=False), return_index=True)
        positions = self.value_of_row.take(rows).to_numpy(zero_copy_only=False)
        return encoded.dictionary.to_pylist(), positions[first]

    @cached_property
    def text_array(self) -> pa.StringArray:
        return pa.array(self.texts[0], self.column.values.type)

    @cached_property
    def rows_of_text(self) -> np.ndarray:
        """How many rows of the column have each of `texts`, int64."""
        positions = pc.index_in(self.column.values, value_set=self.text_array)
        return _rows_at(self.column, positions, len(self.text_array))

    def describe(self) -> dict[str, Any]:
        described = self.column.describe()
        return {
            **described,
            "distinct": len(self.values),
            "empty": described["rows"] - int(self.weights.sum()),
            "unknown": int(self.weights[~self.known].sum()),  # to the model
            **({} if self.day_first is None else {"day_first": self.day_first}),
        }


def prepare(
    column: QueryColumn,
    normaliser: Normaliser,
    embedder: Embedder,
    *,
    day_first: bool | None = None,
) -> EncodedQuery:
    """Normalise and embed a query column just as the lake was, each distinct text once."""
    texts = column.values.cast(pa.string()).dictionary_encode()
    release_unused(column.values.nbytes)
    if day_first:
        forms = normaliser.with_day_first(texts.dictionary)
    else:
        of_one_column = np.zeros(len(texts.dictionary), np.int64)
        forms = normaliser.normalise_distinct(texts.dictionary, of_one_column)
    encoded = forms.dictionary_encode()
    release_unused(column.values.nbytes)
    values = encoded.dictionary.cast(pa.string())
    value_of_row = encoded.indices.take(texts.indices).cast(pa.int64())
    weights = _rows_at(column, value_of_row, len(values))
    vectors = encode_values(embedder, values)
    return EncodedQuery(
        column, values, value_of_row, vectors, weights, normaliser, day_first=day_first
    )


def _rows_at(column: QueryColumn, positions: pa.Array, n: int) -> np.ndarray:
    """Count the rows at each of n positions; null is none. int64 (n,)."""
    if column.counts is None:
        return np.bincount(pc.drop_null(positions).to_numpy(), minlength=n)
    at = positions.fill_null(n).to_numpy()
    rows = np.zeros(n + 1, np.int64)
    np.add.at(rows, at, column.counts)
    return rows[:n]
