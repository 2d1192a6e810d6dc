"""Search by keys some of whose columns match similar values, shard by shard.

A table joins a key where one of its rows has a cell for each value of the key, in the columns of a
mapping: in a column of the key marked ``~`` a similar one, of a column that semantic search holds,
and in the others an equal one, of any column. Which cells are similar is told in
`pexeso.composite.lake.similar_cells`; nothing is estimated, and no pair is left out.

Semantic search says for each column of the lake how many values match, so how many keys a table can
join at most. Tables that promise most come first, and once as many as are wanted join more keys
than any other can, values of the others are not compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pexeso.composite.lake.similar_cells import MatchingCells, SimilarColumn
from pexeso.composite.similar import SimilarSearch
from pexeso.engine.damage import damage_made_plain
from pexeso.options import SearchOptions
from pexeso.results.query import query_from_values
from pexeso.store.io.wide_offsets import take_wide
from pexeso.store.texts import take_texts

if TYPE_CHECKING:
    from pexeso.composite.lake.query import KeyTable
    from pexeso.composite.part.open import RowShard
    from pexeso.composite.query import KeyQuery
    from pexeso.composite.search import KeyMatch
    from pexeso.lake.normalise.normaliser import Normaliser
    from pexeso.semantic.executor import Executor
    from pexeso.semantic.open_index import OpenIndex

TABLES_AT_ONCE = 256
"""Tables whose values are compared together at first; then twice as many each time."""


@dataclass(frozen=True)
class SimilarPair:
    """A value of the query and a cell that it is joined with by similarity."""

    value: str
    cell: str
    distance: float


class SimilarKeys:
    """Searches the shards of an index by one query, some of whose columns match similar values.

    Parameters
    ----------
    max_distance : float
        Largest distance of two values that match, inclusive, in [0, 1].
    """

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
        answers = executor.search(opened.loader, encoded, [options] * len(encoded))
        self._columns = {
            i: SimilarColumn(opened, encoded_query, texts[i], query, i, hits, self.max_distance)
            for i, encoded_query, (hits, _) in zip(columns, encoded, answers, strict=True)
        }

    @property
    def options(self) -> dict[str, Any]:
        """Return what was asked for, defaults filled in."""
        return {"max_distance": self.max_distance}

    @property
    def stats(self) -> dict[str, Any]:
        """Return the tables whose values were compared so far."""
        return {"tables": self._n_compared}

    @damage_made_plain("the index")
    def search_shard(
        self, shard: RowShard, k: int | None, at_least: int, excluded: Sequence[int] | np.ndarray
    ) -> tuple[KeyMatch, ...]:
        """Find the tables of a shard that join most keys, equal ones by number.

        Parameters
        ----------
        k : int or None
            Tables wanted; None for all that join `at_least` keys.
        """
        search = SimilarSearch(shard.rows, self._query, self._columns)
        bounds = np.minimum.reduce([column.bounds(shard) for column in self._columns.values()])
        tables = np.setdiff1d(search.tables, np.asarray(excluded, np.int64))
        tables = tables[bounds[tables] > 0]
        tables = tables[np.lexsort((tables, -bounds[tables]))]
        matches: list[KeyMatch] = []
        begin, n = 0, TABLES_AT_ONCE
        while begin < len(tables) and bounds[tables[begin]] >= at_least:
            some = np.sort(tables[begin : begin + n])
            self._n_compared += len(some)
            cells = {i: column.cells(shard, some).cells for i, column in self._columns.items()}
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
        """Return what a match joins by similarity, the nearest first, without equal texts.

        Parameters
        ----------
        limit : int, optional
            Pairs for each column; None for all.
        """
        table = np.array([match.table])
        matching = {i: column.cells(shard, table) for i, column in self._columns.items()}
        search = SimilarSearch(shard.rows, self._query, self._columns)
        joined = search.joined_pairs(
            {i: column_cells.cells for i, column_cells in matching.items()}, match
        )
        return {
            i: self._pairs_of(shard, match, i, column_cells, *joined, limit)
            for i, column_cells in matching.items()
        }

    def _pairs_of(
        self,
        shard: RowShard,
        match: KeyMatch,
        i: int,
        matching: MatchingCells,
        table_rows: np.ndarray,
        keys: np.ndarray,
        limit: int | None,
    ) -> tuple[SimilarPair, ...]:
        rows, n_values = shard.rows, len(self._query.values)
        begin = rows.table_cells[match.table] + match.columns[i]
        cells = rows.cells[begin + table_rows * rows.widths[match.table]].astype(np.int64)
        joined = np.unique(cells * n_values + self._query.keys[keys, i])
        column = rows.table_columns[match.table] + match.columns[i]
        hits = np.flatnonzero(matching.cells.columns == column)
        codes = matching.cells.cells[hits].astype(np.int64) * n_values + matching.cells.values[hits]
        distances = matching.distances[hits[np.searchsorted(codes, joined)]]
        texts = take_texts(rows.values, joined // n_values).to_pylist()
        values = take_wide(self._query.values, pa.array(joined % n_values)).to_pylist()
        pairs = [
            SimilarPair(*fields)
            for fields in zip(values, texts, distances.tolist(), strict=True)
            if fields[0] != fields[1]
        ]
        return tuple(sorted(pairs, key=lambda pair: (pair.distance, pair.value, pair.cell))[:limit])
