"""Search by keys some of whose columns match similar values, shard by shard.

A table joins a key where one of its rows has a cell for each value of the key, in the columns of a
mapping: in a column of the key marked ``~`` a similar one, of a column that semantic search holds,
and in the others an equal one, of any column. Nothing is estimated, and no pair is left out.

A value of the query, as a key text, represents the normalised values of the cells of its column
that have this text. A cell of the rows is a key text too, and represents values of its column that
semantic search holds: for those that were made of a text with its key text, and those whose own key
text is that of the cell once it is normalised. Two values match where two that they represent are
no further apart than the largest distance, by the same arithmetic as in semantic search.

Semantic search says for each column of the lake how many values match, so how many keys a table can
join at most. Tables that promise most come first, and once as many as are wanted join more keys
than any other can, values of the others are not compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.composite.row_keys import RowKeys
from pexeso.composite.similar import SimilarCells, SimilarSearch
from pexeso.engine.lists import damage_made_plain, distinct_numbers, offsets_of, ranges
from pexeso.engine.stats import SearchStats
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.lake.readings import read_cells
from pexeso.lake.tokens import key_forms
from pexeso.options import SearchOptions
from pexeso.results.query import Hit, query_from_values
from pexeso.runtime.ranges import runs_within
from pexeso.semantic.partition_loader import posting_arrays
from pexeso.sets.overlap.dictionary import find_texts
from pexeso.store.arrays import take_texts, take_wide

if TYPE_CHECKING:
    from pexeso.composite.key_table import KeyTable
    from pexeso.composite.part.open import RowShard
    from pexeso.composite.search import KeyMatch, KeyQuery
    from pexeso.semantic.encoded_query import EncodedQuery
    from pexeso.semantic.executor import Executor
    from pexeso.semantic.open_index import OpenIndex

# Cells of columns whose distinct texts are found at a time, or those of one column: about 40 bytes
# each.
CHUNK_CELLS = 1 << 22


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
        stand_for = encoded.value_of_row.filter(both).to_numpy()
        values = find_texts(query.values, texts.filter(both))
        known = values >= 0  # others are in rows without a key
        pairs = np.unique(np.column_stack([stand_for[known], values[known]]), axis=0)
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

    def cells(self, shard: RowShard, tables: np.ndarray) -> SimilarCells:
        """Return the cells that match in some tables of a shard, given in order."""
        hits, columns = self._columns(shard, tables)
        columns, stand_for, distances, *both = self._pairs(hits, columns)
        known = pc.unique(pa.chunked_array(both, pa.large_string()))
        codes = np.concatenate([_codes(columns, side, known)[0] for side in both])
        order = np.argsort(codes, kind="stable")
        codes, of_code = codes[order], np.tile(np.arange(len(columns)), 2)[order]
        triples = [np.empty((0, 3), np.int64)]
        every = _distinct_cells(shard.rows, np.unique(columns), self._normaliser)
        for cell_columns, cells, texts in every:
            for cell_texts in texts:
                cell_codes, at = _codes(cell_columns, cell_texts, known)
                low = np.searchsorted(codes, cell_codes)
                sizes = np.searchsorted(codes, cell_codes, side="right") - low
                at, pair = np.repeat(at, sizes), of_code[ranges(low, sizes)]
                triples.append(np.column_stack([cell_columns[at], cells[at], pair]))
        column, cell, pair = np.concatenate(triples).T
        sizes = np.diff(self._value_ends)[stand_for[pair]]
        value = self._values_of[ranges(self._value_ends[stand_for[pair]], sizes)]
        column, cell, pair = (np.repeat(array, sizes) for array in (column, cell, pair))
        distance = distances[pair]
        order = np.lexsort((distance, value, cell, column))
        column, cell, value, distance = (array[order] for array in (column, cell, value, distance))
        first = np.ones(len(order), bool)
        first[1:] = (np.diff(column) != 0) | (np.diff(cell) != 0) | (np.diff(value) != 0)
        cells = cell[first].astype(np.int32)
        return SimilarCells(column[first], cells, value[first], distance[first])

    @cached_property
    def _normaliser(self) -> Normaliser:
        """What normalises cells: aliases are replaced in the rows already."""
        normaliser = self._opened.normaliser
        if normaliser.aliases is None:
            return normaliser
        return Normaliser(normaliser.rules, normaliser.extra)

    def _columns(self, shard: RowShard, tables: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
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

    def _pairs(
        self, hits: np.ndarray, columns: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, pa.LargeStringArray, pa.LargeStringArray]:
        """Return values of the query column that match values of the columns of hits.

        These are columns of the shard and places in `EncodedQuery.values`, int64 (p,), distances,
        float64 (p,), and the texts and values of the lake.
        """
        scan, none = self._opened.loader, np.empty(0, np.int64)
        readings = self._normaliser.readings
        arrays, texts = [(none, none, np.empty(0))], [(pa.array([], pa.large_string()),) * 2]
        for number in np.unique(self._partitions[hits]).tolist():
            selected = np.flatnonzero(self._partitions[hits] == number)
            positions = self._positions[hits[selected]]
            sizes = scan.on_host(number).column_lists.sizes(positions)
            column, stand_for, posting, distance, _ = scan.compare(
                number,
                len(self._encoded.vectors) * int(sizes.sum()),
                lambda partition, positions=positions: scan.space.column_pairs(
                    partition,
                    self._encoded.vectors,
                    positions,
                    self._max_distance,
                    SearchStats(),
                ),
            )
            postings, inverse = np.unique(posting, return_inverse=True)
            arrays.append((columns[selected[column]], stand_for, distance))
            texts.append(
                tuple(
                    read_cells(key_forms(array), readings).take(pa.array(inverse))
                    for array in posting_arrays(scan, number, postings)
                )
            )
        return (
            *map(np.concatenate, zip(*arrays, strict=True)),
            *map(pa.concat_arrays, zip(*texts, strict=True)),
        )


def _distinct_cells(
    rows: RowKeys, columns: np.ndarray, normaliser: Normaliser
) -> Iterator[tuple[np.ndarray, np.ndarray, tuple[pa.LargeStringArray, pa.LargeStringArray]]]:
    tables = np.searchsorted(rows.table_columns, columns, side="right") - 1
    starts = rows.table_cells[tables] + columns - rows.table_columns[tables]
    sizes, widths = np.diff(rows.table_rows)[tables], rows.widths[tables]
    for run in runs_within(sizes, CHUNK_CELLS):
        begin, end = run.start, run.stop
        which = np.repeat(np.arange(begin, end), sizes[run])
        row = ranges(np.zeros(end - begin, np.int64), sizes[run])
        cells = rows.cells[starts[which] + row * widths[which]].astype(np.int64)
        codes = distinct_numbers(which[cells >= 0] * len(rows.values) + cells[cells >= 0])
        which, cells = np.divmod(codes, max(1, len(rows.values)))
        texts = take_texts(rows.values, cells)
        normalised = normaliser.normalise_distinct(texts.cast(pa.string()), which - begin)
        forms = (
            texts.cast(pa.large_string()),
            read_cells(key_forms(normalised), normaliser.readings),
        )
        yield columns[which], cells, forms


def _codes(numbers: np.ndarray, texts: pa.Array, known: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    positions = pc.index_in(texts.cast(known.type), value_set=known)
    at = np.flatnonzero(positions.is_valid().to_numpy(zero_copy_only=False))
    return numbers[at] * len(known) + positions.drop_null().to_numpy().astype(np.int64), at


def _lists(numbers: np.ndarray, items: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return items sorted by their numbers, which are below n, and where those of each begin."""
    order = np.argsort(numbers, kind="stable")
    return items[order], offsets_of(np.bincount(numbers, minlength=n))


# Tables whose values are compared together at first; then twice as many each time.
FIRST_TABLES = 256


@dataclass(frozen=True)
class SimilarPair:
    """A value of the query and a cell that it is joined with by similarity."""

    value: str
    cell: str
    distance: float


class SimilarKeys:
    """Searches the shards of an index by one query, some of whose columns match similar values."""

    def __init__(
        self,
        opened: OpenIndex,
        executor: Executor,
        query_table: KeyTable,
        query: KeyQuery,
        normaliser: Normaliser | None,
        max_distance: float,
    ) -> None:
        self._query, self._n_compared = query, 0
        options = SearchOptions(max_distance=max_distance, min_joinability=None)
        self.max_distance = options.max_distance
        columns = [i for i, column in enumerate(query_table.key) if column.similar]
        cells = [query_from_values(query_table.cells[query_table.key[i].position]) for i in columns]
        encoded = [opened.encode(values) for values in cells]
        texts = query_table.key_texts(normaliser)
        answers = executor(opened.loader, encoded, [options] * len(encoded))
        self._columns = {
            i: SimilarColumn(opened, encoded_query, texts[i], query, i, hits, self.max_distance)
            for i, encoded_query, (hits, _) in zip(columns, encoded, answers, strict=True)
        }

    @property
    def options(self) -> dict[str, Any]:
        return {"max_distance": self.max_distance}

    @property
    def stats(self) -> dict[str, Any]:
        return {"tables": self._n_compared}

    @damage_made_plain("the index")
    def search_shard(
        self, shard: RowShard, k: int | None, at_least: int, excluded: Sequence[int] | np.ndarray
    ) -> tuple[KeyMatch, ...]:
        search = SimilarSearch(shard.rows, self._query, self._columns)
        bounds = np.minimum.reduce([column.bounds(shard) for column in self._columns.values()])
        tables = np.setdiff1d(search.tables, np.asarray(excluded, np.int64))
        tables = tables[bounds[tables] > 0]
        tables = tables[np.lexsort((tables, -bounds[tables]))]
        matches: list[KeyMatch] = []
        begin, n = 0, FIRST_TABLES
        while begin < len(tables) and bounds[tables[begin]] >= at_least:
            some = np.sort(tables[begin : begin + n])
            self._n_compared += len(some)
            cells = {i: column.cells(shard, some) for i, column in self._columns.items()}
            matches += search.search(cells, k, at_least=at_least)
            matches.sort(key=lambda match: (-match.keys, match.table))
            if k is not None and len(matches) >= k:
                del matches[k:]
                at_least = matches[-1].keys  # a table of as many keys may have a lower number
            begin, n = begin + n, 2 * n
        return tuple(matches)

    @damage_made_plain("the index")
    def pairs(
        self, shard: RowShard, match: KeyMatch, limit: int | None = None
    ) -> dict[int, tuple[SimilarPair, ...]]:
        """Return what a match joins by similarity, the nearest first, without equal texts."""
        table = np.array([match.table])
        matching = {i: column.cells(shard, table) for i, column in self._columns.items()}
        search = SimilarSearch(shard.rows, self._query, self._columns)
        joined = search.joined_pairs(matching, match)
        return {
            i: self._pairs_of(shard, match, i, cells, *joined, limit)
            for i, cells in matching.items()
        }

    def _pairs_of(
        self,
        shard: RowShard,
        match: KeyMatch,
        i: int,
        matching: SimilarCells,
        table_rows: np.ndarray,
        keys: np.ndarray,
        limit: int | None,
    ) -> tuple[SimilarPair, ...]:
        rows, n_values = shard.rows, len(self._query.values)
        begin = rows.table_cells[match.table] + match.columns[i]
        cells = rows.cells[begin + table_rows * rows.widths[match.table]].astype(np.int64)
        joined = distinct_numbers(cells * n_values + self._query.keys[keys, i])
        column = rows.table_columns[match.table] + match.columns[i]
        hits = np.flatnonzero(matching.columns == column)
        codes = matching.cells[hits].astype(np.int64) * n_values + matching.values[hits]
        distances = matching.distances[hits[np.searchsorted(codes, joined)]]
        texts = take_texts(rows.values, joined // n_values).to_pylist()
        values = take_wide(self._query.values, pa.array(joined % n_values)).to_pylist()
        pairs = [
            SimilarPair(*fields)
            for fields in zip(values, texts, distances.tolist(), strict=True)
            if fields[0] != fields[1]
        ]
        return tuple(sorted(pairs, key=lambda pair: (pair.distance, pair.value, pair.cell))[:limit])
