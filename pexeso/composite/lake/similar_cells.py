"""Which cells of the rows of an index match a column of a key by similarity.

A value of the query, as a key text, stands for the normalised values of the cells of its column
that have this text. A cell of the rows is a key text too, and stands for values of its column that
semantic search holds: for those that were made of a text with its key text, and those whose own key
text is that of the cell once it is normalised. The index keeps one text of each value; from another
text, the second way gives the value that the text gave when the index was built: key texts differ
from cells in what normalising takes away anyway, white space, case and Unicode forms.

Two values match where two that they stand for are no further apart than the largest distance, by
the same arithmetic as in semantic search.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.composite.row_keys import RowKeys
from pexeso.composite.similar import SimilarCells, pieces
from pexeso.engine.stats import SearchStats
from pexeso.lake.key_texts import key_forms
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.runtime.ranges import offsets_of, ranges
from pexeso.semantic.pairs import posting_arrays
from pexeso.sets.overlap.loops import find_texts
from pexeso.store.texts import take_texts

if TYPE_CHECKING:
    from pexeso.composite.part.open import RowShard
    from pexeso.composite.query import KeyQuery
    from pexeso.results.ranking import Hit
    from pexeso.semantic.encoded_query import EncodedQuery
    from pexeso.semantic.open_index import OpenIndex

CELLS_AT_ONCE = 1 << 22
"""Cells of columns whose distinct texts are found at a time, or those of one column: about 40 bytes
each."""


@dataclass(frozen=True, eq=False)
class MatchingCells:
    """Cells that match, with distances.

    Attributes
    ----------
    distances : float64 (n,)
        Smallest distance of what the cell and the value stand for, in [0, 1].
    """

    cells: SimilarCells
    distances: np.ndarray


class SimilarColumn:
    """A column of the key, and the columns of the lake that semantic search finds for it."""

    def __init__(
        self,
        opened: OpenIndex,
        encoded: EncodedQuery,
        texts: pa.LargeStringArray,
        query: KeyQuery,
        column: int,
        hits: Sequence[Hit],
        max_distance: float,
    ) -> None:
        self._opened, self._encoded, self._max_distance = opened, encoded, max_distance
        self._partitions = np.array([hit.partition for hit in hits], np.int64)
        self._positions = np.array([hit.position for hit in hits], np.int64)
        self._tables = pa.array([hit.table for hit in hits], pa.string())
        self._labels = pa.array([hit.label for hit in hits], pa.string())
        both = pc.and_(texts.is_valid(), encoded.value_of_row.is_valid())
        stands_for = encoded.value_of_row.filter(both).to_numpy()
        values = find_texts(query.values, texts.filter(both))
        known = values >= 0  # others are in rows without a key
        pairs = np.unique(np.column_stack([stands_for[known], values[known]]), axis=0)
        self._values_of, self._value_ends = _lists(pairs[:, 0], pairs[:, 1], len(encoded.values))
        counts = np.bincount(query.keys[:, column], minlength=len(query.values))
        n_keys = np.bincount(pairs[:, 0], counts[pairs[:, 1]], minlength=len(encoded.values))
        max_keys = offsets_of(np.sort(n_keys.astype(np.int64))[::-1])
        self._bounds = max_keys[np.array([hit.matched for hit in hits], np.int64)]

    def bounds(self, shard: RowShard) -> np.ndarray:
        """Return how many keys each table may join at most by this column: int64 (t,)."""
        bounds = np.zeros(shard.rows.n_tables, np.int64)
        tables = find_texts(shard.tables, self._tables)
        known = tables >= 0
        np.maximum.at(bounds, tables[known], self._bounds[known])
        return bounds

    def cells(self, shard: RowShard, tables: np.ndarray) -> MatchingCells:
        """Return the cells that match in some tables of a shard, given in order."""
        hits, columns = self._columns(shard, tables)
        pairs = self._pairs(hits, columns)
        rows, matched = shard.rows, np.unique(pairs.columns)
        known = pc.unique(pa.chunked_array([pairs.texts, pairs.values], pa.large_string()))
        codes = np.concatenate(
            [_codes(pairs.columns, side, known)[0] for side in (pairs.texts, pairs.values)]
        )
        order = np.argsort(codes, kind="stable")
        codes, of_code = codes[order], np.tile(np.arange(len(pairs.columns)), 2)[order]
        triples = [np.empty((0, 3), np.int64)]
        for cell_columns, cells, texts in _distinct_cells(rows, matched, self._normaliser):
            for cell_texts in texts:
                cell_codes, at = _codes(cell_columns, cell_texts, known)
                low = np.searchsorted(codes, cell_codes)
                sizes = np.searchsorted(codes, cell_codes, side="right") - low
                at = np.repeat(at, sizes)
                pair = of_code[ranges(low, sizes)]
                triples.append(np.column_stack([cell_columns[at], cells[at], pair]))
        column, cell, pair = np.concatenate(triples).T
        sizes = np.diff(self._value_ends)[pairs.stand_for[pair]]
        value = self._values_of[ranges(self._value_ends[pairs.stand_for[pair]], sizes)]
        column, cell, pair = (np.repeat(array, sizes) for array in (column, cell, pair))
        distance = pairs.distances[pair]
        order = np.lexsort((distance, value, cell, column))
        column, cell, value, distance = (array[order] for array in (column, cell, value, distance))
        first = np.ones(len(order), bool)
        first[1:] = (np.diff(column) != 0) | (np.diff(cell) != 0) | (np.diff(value) != 0)
        cells_ = SimilarCells(column[first], cell[first].astype(np.int32), value[first])
        return MatchingCells(cells_, distance[first])

    @cached_property
    def _normaliser(self) -> Normaliser:
        """What normalises cells: aliases are replaced in the rows already."""
        normaliser = self._opened.normaliser
        if normaliser.aliases is None:
            return normaliser
        return Normaliser(normaliser.rules, normaliser.extra)

    def _columns(self, shard: RowShard, tables: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the hits in some tables, and the numbers of their columns in the shard."""
        of_hit = find_texts(shard.tables, self._tables)
        hits = np.flatnonzero(np.isin(of_hit, tables))
        first = shard.rows.table_columns[tables]
        sizes = shard.rows.table_columns[tables + 1] - first
        columns = ranges(first, sizes)
        labels = take_texts(shard.columns, columns)
        named = pc.unique(self._labels)
        codes, at = _codes(np.repeat(tables, sizes), labels, named)
        order = np.argsort(codes, kind="stable")
        codes, columns = codes[order], columns[at[order]]
        hit_codes, _ = _codes(of_hit[hits], self._labels.take(pa.array(hits)), named)
        positions = np.searchsorted(codes, hit_codes)
        positions[positions == len(codes)] = 0
        mask = codes[positions] == hit_codes if len(codes) else np.zeros(len(hits), bool)
        return hits[mask], columns[positions[mask]]

    def _pairs(self, hits: np.ndarray, columns: np.ndarray) -> _Pairs:
        """Return the matching values of hits, which are these columns of the shard."""
        scan, parts = self._opened.loader, [_Pairs.empty()]
        for number in np.unique(self._partitions[hits]).tolist():
            selected = np.flatnonzero(self._partitions[hits] == number)
            column, stands_for, posting, distance = scan.space.column_pairs(
                scan.open_in_place(number),
                self._encoded.vectors,
                self._positions[hits[selected]],
                self._max_distance,
                SearchStats(),
            )
            postings, inverse = np.unique(posting, return_inverse=True)
            texts = (
                key_forms(array).take(pa.array(inverse))
                for array in posting_arrays(scan, number, postings)
            )
            parts.append(_Pairs(columns[selected[column]], stands_for, distance, *texts))
        return _Pairs.joined(parts)


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Values of the query column that match values of columns of the lake.

    Attributes
    ----------
    columns, stand_for : int64 (p,), int64 (p,)
        Columns of the shard, and places in `EncodedQuery.values`.
    distances : float64 (p,)
    """

    columns: np.ndarray
    stand_for: np.ndarray
    distances: np.ndarray
    texts: pa.LargeStringArray
    values: pa.LargeStringArray

    @classmethod
    def empty(cls) -> _Pairs:
        none, texts = np.empty(0, np.int64), pa.array([], pa.large_string())
        return cls(none, none, np.empty(0), texts, texts)

    @classmethod
    def joined(cls, parts: Sequence[_Pairs]) -> _Pairs:
        return cls(
            *(
                np.concatenate([getattr(part, name) for part in parts])
                for name in ("columns", "stand_for", "distances")
            ),
            *(
                pa.concat_arrays([getattr(part, name) for part in parts])
                for name in ("texts", "values")
            ),
        )


def _distinct_cells(
    rows: RowKeys, columns: np.ndarray, normaliser: Normaliser
) -> Iterator[tuple[np.ndarray, np.ndarray, tuple[pa.LargeStringArray, pa.LargeStringArray]]]:
    """Yield the distinct cells of whole columns, some columns at a time.

    Yields
    ------
    (int64 (c,), int64 (c,), (large texts (c,), large texts (c,)))
        Column and number of each cell; its text, and the key text of that once normalised.
    """
    tables = np.searchsorted(rows.table_columns, columns, side="right") - 1
    starts = rows.table_cells[tables] + columns - rows.table_columns[tables]
    sizes, widths = np.diff(rows.table_rows)[tables], rows.widths[tables]
    for begin, end in pieces(sizes, CELLS_AT_ONCE):
        run = slice(begin, end)
        which = np.repeat(np.arange(begin, end), sizes[run])
        row = ranges(np.zeros(end - begin, np.int64), sizes[run])
        cells = rows.cells[starts[which] + row * widths[which]].astype(np.int64)
        codes = np.unique(which[cells >= 0] * len(rows.values) + cells[cells >= 0])
        which, cells = np.divmod(codes, max(1, len(rows.values)))
        texts = take_texts(rows.values, cells)
        normalised = normaliser.normalise_distinct(texts.cast(pa.string()), which - begin)
        forms = texts.cast(pa.large_string()), key_forms(normalised)
        yield columns[which], cells, forms


def _codes(numbers: np.ndarray, texts: pa.Array, known: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return one number for each number and text together, and the places of texts that are known.

    Others are left out.
    """
    positions = pc.index_in(texts.cast(known.type), value_set=known)
    at = np.flatnonzero(positions.is_valid().to_numpy(zero_copy_only=False))
    return numbers[at] * len(known) + positions.drop_null().to_numpy().astype(np.int64), at


def _lists(numbers: np.ndarray, items: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return items sorted by their numbers, which are below n, and where those of each begin."""
    order = np.argsort(numbers, kind="stable")
    return items[order], offsets_of(np.bincount(numbers, minlength=n))
