"""The rows of a table as records: pieces of it, each with its distinct texts and numbers of them.

Every column counts here, whatever the rules say of it: a key is made of names, years and codes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from pexeso.composite.part import FIELDS, RECORD
from pexeso.composite.row_keys import numbered
from pexeso.engine.lists import offsets_of
from pexeso.lake.catalog import SCHEMA, batch_of_columns
from pexeso.lake.cells import present
from pexeso.lake.readings import read_cells, read_columns
from pexeso.lake.records import ReadTable
from pexeso.lake.tokens import key_forms

CHUNK_CELLS = 1 << 18  # Cells of one record, and of the records that are made together.

MIN_COLUMNS = 2  # Narrower tables have no composite key.


@dataclass(frozen=True)
class Piece:
    """Some rows of a table, with its labels where they are the first."""

    table: str
    first_row: int
    n_rows: int
    n_columns: int
    labels: Sequence[str] | None
    columns: Sequence[pa.DictionaryArray] = ()

    @property
    def n_cells(self) -> int:
        return self.n_rows * self.n_columns


def records(tables: Sequence[ReadTable]) -> Iterator[pa.RecordBatch]:
    for pieces in together(_pieces(tables)):
        yield _records_of(pieces)


def together(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    """Yield pieces by as many as have about `CHUNK_CELLS` cells."""
    some: list[Piece] = []
    n_cells = 0
    for piece in pieces:
        if some and n_cells + piece.n_cells > CHUNK_CELLS:
            yield some
            some, n_cells = [], 0
        some.append(piece)
        n_cells += piece.n_cells
    if some:
        yield some


def rows_of_a_piece(n_columns: int) -> int:
    return max(1, CHUNK_CELLS // n_columns)


def _pieces(tables: Sequence[ReadTable]) -> Iterator[Piece]:
    with_rows = [
        (table, rows)
        for table in tables
        if (rows := table.rows) is not None and len(rows.columns) >= MIN_COLUMNS and len(rows)
    ]
    readings = tables[0].readings if tables else ()
    forms = iter(_forms([rows.resolved() for _, rows in with_rows], readings))
    for table, rows in with_rows:
        columns = next(forms)
        n = rows_of_a_piece(len(columns))
        for start in range(0, len(rows), n):
            some = [column.slice(start, n) for column in columns]
            labels = None if start else list(rows.labels)
            yield Piece(table.name, rows.first_row + start, len(some[0]), len(some), labels, some)


def _forms(
    tables: Sequence[Sequence[pa.StringArray]], readings: Collection[str]
) -> list[list[pa.DictionaryArray]]:
    """Return the forms of the cells of tables; the texts of all are worked on together."""
    encoded = [column.dictionary_encode() for columns in tables for column in columns]
    if not encoded:
        return []
    sizes = [len(column.dictionary) for column in encoded]
    texts = pa.concat_arrays([column.dictionary for column in encoded]).cast(pa.large_string())
    columns = np.repeat(np.arange(len(sizes)), sizes)
    texts = read_cells(key_forms(present(texts, columns)), readings, columns)
    texts, bounds = read_columns(texts, readings, columns), offsets_of(sizes).tolist()
    forms = iter(
        pa.DictionaryArray.from_arrays(column.indices, texts[begin:end])
        for column, (begin, end) in zip(encoded, pairwise(bounds), strict=True)
    )
    return [[next(forms) for _ in columns_of_table] for columns_of_table in tables]


def _records_of(pieces: Sequence[Piece]) -> pa.RecordBatch:
    """Make one record of each piece; the texts of all are worked on together."""
    columns = [column.dictionary_decode() for piece in pieces for column in piece.columns]
    cells = pa.concat_arrays(columns)
    encoded = cells.dictionary_encode()
    forms, form_of_text = numbered(pa.chunked_array([encoded.dictionary]))
    numbers = np.full(len(cells), -1, np.int32)
    known = encoded.indices.is_valid().to_numpy(zero_copy_only=False)
    numbers[known] = form_of_text[encoded.indices.drop_null().to_numpy()]
    bounds = offsets_of([piece.n_cells for piece in pieces])
    of_pieces = [
        numbers[begin:end].reshape(piece.n_columns, piece.n_rows).T.ravel()
        for piece, (begin, end) in zip(pieces, pairwise(bounds.tolist()), strict=True)
    ]
    fields = fields_of(pieces, of_pieces, len(forms), lambda rows: forms.take(pa.array(rows)))
    return batch_of_columns({"record": pa.repeat(RECORD, len(pieces)), **fields})


def fields_of(
    pieces: Sequence[Piece],
    numbers: Sequence[np.ndarray],
    n_texts: int,
    take: Callable[[np.ndarray], pa.Array],
) -> dict[str, pa.Array]:
    texts, positions = zip(*(_distinct(cells, n_texts) for cells in numbers), strict=True)
    columns = {
        "table": [piece.table for piece in pieces],
        "n_rows": [piece.n_rows for piece in pieces],
        "n_columns": [piece.n_columns for piece in pieces],
        "first_row": [piece.first_row for piece in pieces],
        "labels": [piece.labels for piece in pieces],
        "texts": _lists_of(take(np.concatenate(texts)), texts),
        "cells": _lists_of(pa.array(np.concatenate(positions)), positions),
    }
    fields = [SCHEMA.field(name) for name in FIELDS]
    return {
        field.name: column.cast(field.type)
        if isinstance(column := columns[field.name], pa.Array)
        else pa.array(column, field.type)
        for field in fields
    }


def _lists_of(items: pa.Array, lists: Sequence[np.ndarray]) -> pa.ListArray:
    """Cut items into lists as long as others are."""
    return pa.ListArray.from_arrays(pa.array(offsets_of([*map(len, lists)]), pa.int32()), items)


def _distinct(numbers: np.ndarray, n_numbers: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct numbers from 0 on, ascending, and the place of each number among them."""
    if len(numbers) < n_numbers // 8:
        distinct, positions = np.unique(numbers, return_inverse=True)
        n_missing = int(len(distinct) > 0 and distinct[0] < 0)
        return distinct[n_missing:], (positions - n_missing).astype(np.int32)
    is_present = np.zeros(n_numbers + 1, bool)  # behind the last one: those that are missing
    is_present[numbers] = True
    is_present[-1] = False
    place_of = np.cumsum(is_present, dtype=np.int32) - 1
    place_of[-1] = -1
    return np.flatnonzero(is_present), place_of[numbers]
