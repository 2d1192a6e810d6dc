"""What the stages of a build left for one partition, and the files of a partition."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from pexeso.build.parts.base import Filled
from pexeso.store.arrays import write_arrays
from pexeso.store.files import write_document
from pexeso.store.local.target import META
from pexeso.store.texts import write_texts


@dataclass(frozen=True)
class PlacedPartition:
    """Columns, values and texts of a partition that is to be built.

    Attributes
    ----------
    values : pyarrow.StringArray
        n distinct values, sorted.
    column, value : numpy.ndarray, int64
        Of each posting, by column, then value.
    text : numpy.ndarray
        Of each posting, its text.
    """

    columns: pa.Table
    values: pa.Array
    column: np.ndarray
    value: np.ndarray
    texts: pa.Array
    text: np.ndarray

    @classmethod
    def read(cls, placed: Path, number: int, values: pa.Array | None = None) -> PlacedPartition:
        """Read what is placed for a partition.

        Parameters
        ----------
        values : pyarrow.StringArray, optional
            Its distinct values, sorted, where they are known.
        """
        columns = read_placed(placed, "columns", number, ["column_id", "table", "label"])
        # The catalog's own files also have columns that are left out.
        columns = columns.filter(pc.field("column_id").is_valid()).sort_by("column_id")
        postings = read_placed(placed, "postings", number, ["column_id", "value", "text"])
        # Rows come from a shuffle, in any order.
        postings = postings.sort_by([("column_id", "ascending"), ("value", "ascending")])
        if values is None:
            values = one_array(postings["value"]).unique()
            values = values.take(pc.sort_indices(values))
        ids = columns["column_id"].to_numpy()
        column = np.searchsorted(ids, postings["column_id"].to_numpy())
        value = pc.index_in(postings["value"], values).to_numpy(zero_copy_only=False)
        text = postings["text"].combine_chunks().dictionary_encode()
        codes = text.indices.to_numpy(zero_copy_only=False)
        return cls(columns, values, column, value.astype(np.int64), text.dictionary, codes)

    @property
    def column_offsets(self) -> np.ndarray:
        """Where the values of each column begin in `value`, int64 (C + 1,)."""
        sizes = np.bincount(self.column, minlength=self.columns.num_rows)
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    def write(
        self,
        folder: Path,
        arrays: Mapping[str, np.ndarray],
        order: np.ndarray,
        facts: Mapping[str, Any],
        document: Mapping[str, Any],
    ) -> Filled:
        """Write the files of the partition.

        Parameters
        ----------
        arrays : mapping of str to numpy.ndarray
            Those of the engine.
        order : numpy.ndarray, int64
            The value of each stored row.
        """
        texts = self._texts_of_postings(order)
        ids = self.columns["column_id"].to_numpy()
        every = {
            "columns": len(ids),
            "values": len(order),
            "values_without_vector": len(self.values) - len(order),
            "postings": len(texts),
            **facts,
        }
        files = [
            *write_arrays(folder, {**arrays, "column_ids": ids, "posting_texts": texts}),
            write_texts(folder / "values.arrow", self.values.take(pa.array(order))),
            write_texts(folder / "texts.arrow", self.texts),
            write_texts(folder / "tables.arrow", self.columns["table"]),
            write_texts(folder / "labels.arrow", self.columns["label"]),
            write_document(folder / META, {**every, **document}),
        ]
        return every, files

    def _texts_of_postings(self, order: np.ndarray) -> np.ndarray:
        """Return the text of each posting, int32, in the order of ``column_values``.

        This order is by column, then stored row.
        """
        stored_row = np.full(len(self.values), -1, dtype=np.int64)
        stored_row[order] = np.arange(len(order))
        row = stored_row[self.value]
        by_column_and_row = np.lexsort((row, self.column))
        postings = by_column_and_row[row[by_column_and_row] >= 0]
        return self.text[postings].astype(np.int32)


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array."""
    return pa.concat_arrays(column.chunks) if column.num_chunks != 1 else column.chunk(0)


def read_placed(placed: Path, name: str, number: int, columns: list[str]) -> pa.Table:
    """Read some columns of what a stage left for a partition."""
    folder = placed / name / f"partition={number}"
    return ds.dataset(os.fspath(folder), format="parquet").to_table(columns=columns)
