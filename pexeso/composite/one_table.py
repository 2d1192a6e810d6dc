"""A query beside one table: which rows hold its keys, in which columns, and what comes near."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from pexeso.composite.query import KeyQuery, key_query
from pexeso.composite.row_keys import RowKeys, build_row_keys
from pexeso.composite.search import search_keys

MAX_CELLS_TRIED = 1 << 26
"""Cells and values of keys that a search for other mappings compares at most: where dozens of
columns hold the same few values it is cut short."""

_NONE = -1


@dataclass(frozen=True)
class KeyMapping:
    """Columns of a table, one for each column of the key, and the keys that they join.

    Attributes
    ----------
    columns : tuple of int
    matched : int
    """

    columns: tuple[int, ...]
    matched: int


@dataclass(frozen=True, eq=False)
class OneTable:
    """The keys of a query and the rows of one table, as numbers of values. `one_table` makes it.

    Attributes
    ----------
    rows : RowKeys
        Of the table alone.
    query : KeyQuery
    """

    rows: RowKeys
    query: KeyQuery

    @cached_property
    def keys(self) -> np.ndarray:
        """Return the keys of the query, -1 for a value that the table lacks: int32 (n, m)."""
        return self.query.numbers_in(self.rows)

    @cached_property
    def cells(self) -> np.ndarray:
        """Return the cells of the table, -1 for a missing one: int32 (r, w)."""
        return self.rows.cells.reshape(self.rows.n_rows, int(self.rows.widths[0]))

    @cached_property
    def overlaps(self) -> np.ndarray:
        """Count for each column of the key and of the table the values that both have: (m, w).

        Values of the key's column are distinct ones of whole keys.
        """
        counts = np.zeros((self.query.n_columns, self.cells.shape[1]), np.int64)
        in_column = np.zeros(len(self.rows.values), bool)
        values = [np.unique(part[part >= 0]) for part in self.keys.T]
        for column in range(self.cells.shape[1]):
            in_column[:] = False
            cells = self.cells[:, column]
            in_column[cells[cells >= 0]] = True
            counts[:, column] = [np.count_nonzero(in_column[of_part]) for of_part in values]
        return counts

    def best(self) -> KeyMapping | None:
        """Return the mapping that joins most keys, the first if several do; None if none does."""
        matches = search_keys(self.rows, self.query, k=1).matches
        return KeyMapping(matches[0].columns, matches[0].keys) if matches else None

    def likeliest(self) -> KeyMapping:
        """Return the mapping by which columns overlap most, one after the other.

        It is of use where no row holds a key. The table has as many columns as the key at least.
        """
        left = self.overlaps.copy()
        columns = [0] * len(left)
        for _ in columns:
            part, column = np.unravel_index(np.argmax(left), left.shape)
            columns[part] = int(column)
            left[part], left[:, column] = _NONE, _NONE
        return KeyMapping(tuple(columns), self.matched(columns))

    def matched(self, columns: Sequence[int]) -> int:
        """Count the keys that rows hold in some columns, one for each column of the key."""
        held = self.key_of_row(columns)
        return len(np.unique(held[held >= 0]))

    def key_of_row(self, columns: Sequence[int]) -> np.ndarray:
        """Return for each row of the table the key that it holds in some columns, -1 for none.

        Parameters
        ----------
        columns : sequence of int
            One for each column of the key, all different.

        Returns
        -------
        int64 (r,)
        """
        rows, codes = self._whole()
        of_key = self._every_key()
        for part, column in enumerate(columns):
            of_key, rows, codes, _ = self._narrowed(part, column, of_key, rows, codes)
        key_of_code = np.zeros(len(self.keys), np.int64)
        key_of_code[of_key[of_key >= 0]] = np.flatnonzero(of_key >= 0)
        held = np.full(len(self.cells), _NONE, np.int64)
        held[rows] = key_of_code[codes]
        return held

    def mappings(self, at_least: int) -> tuple[list[KeyMapping], bool]:
        """List the mappings that join some number of keys at least, those with most first.

        Columns are chosen one after the other; a choice that leaves fewer keys is followed no
        further.

        Parameters
        ----------
        at_least : int
            From 1 on.

        Returns
        -------
        list of KeyMapping
            Equal ones in the order of their columns.
        bool
            Whether all choices were followed: `MAX_CELLS_TRIED` bounds the work.
        """
        rows, codes = self._whole()
        walk = _Walk(self, at_least)
        mappings = list(walk.follow((), self._every_key(), rows, codes))
        return sorted(
            mappings, key=lambda mapping: (-mapping.matched, mapping.columns)
        ), walk.left >= 0

    def parts_there(self, columns: Sequence[int]) -> np.ndarray:
        """Return for each key which of its values are somewhere in their columns: bool (n, m)."""
        masks = [
            np.isin(self.keys[:, part], self.cells[:, column], kind="sort")
            for part, column in enumerate(columns)
        ]
        return np.stack(masks, axis=1) & (self.keys >= 0)

    def nearest_row(self, key: int, columns: Sequence[int]) -> tuple[int, np.ndarray]:
        """Return the first row that holds most values of a key in their columns.

        Parameters
        ----------
        key : int
        columns : sequence of int

        Returns
        -------
        row : int
            -1 where the table has no rows.
        held : bool (m,)
            Which of the values it holds.
        """
        if not len(self.cells):
            return _NONE, np.zeros(len(columns), bool)
        held = (self.cells[:, list(columns)] == self.keys[key]) & (self.keys[key] >= 0)
        row = int(np.argmax(held.sum(axis=1)))
        return row, held[row]

    def _every_key(self) -> np.ndarray:
        return np.zeros(len(self.keys), np.int64)

    def _whole(self) -> tuple[np.ndarray, np.ndarray]:
        return np.arange(len(self.cells)), np.zeros(len(self.cells), np.int64)

    def _narrowed(
        self, part: int, column: int, of_key: np.ndarray, rows: np.ndarray, codes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        """Choose a column for one more value of the keys.

        Parameters
        ----------
        part, column : int
        of_key : int64 (n,)
            The code of what each key has in the columns chosen before; -1 where no row has it.
        rows, codes : int64
            The rows that hold what some key has there, and the code of it.

        Returns
        -------
        of_key, rows, codes
            The same with the new column.
        int
            Keys that are left.
        """
        base = len(self.rows.values)
        values, cells = self.keys[:, part], self.cells[rows, column]
        key_codes = np.where((of_key >= 0) & (values >= 0), of_key * base + values, _NONE)
        present = np.where(cells >= 0, codes * base + cells, _NONE)
        both = np.intersect1d(key_codes[key_codes >= 0], present[present >= 0])
        code, new = _places(key_codes, both), _places(present, both)
        mask = new >= 0
        return code, rows[mask], new[mask], int(np.count_nonzero(code >= 0))


class _Walk:
    """Walk through the mappings of a table; `left` sinks below 0 where it was cut short."""

    def __init__(self, table: OneTable, at_least: int) -> None:
        self.table, self.at_least = table, at_least
        self.left = MAX_CELLS_TRIED

    def follow(
        self, columns: tuple[int, ...], of_key: np.ndarray, rows: np.ndarray, codes: np.ndarray
    ) -> Iterator[KeyMapping]:
        """Yield the mappings that begin with some columns."""
        part, table = len(columns), self.table
        # Those first that have most of the values: a walk that is cut short has seen the best ones.
        for column in np.argsort(-table.overlaps[part], kind="stable").tolist():
            self.left -= len(rows) + len(of_key)
            if column in columns or not table.overlaps[part, column] or self.left < 0:
                continue
            narrowed = table._narrowed(part, column, of_key, rows, codes)
            if narrowed[-1] < self.at_least:
                continue
            chosen = (*columns, column)
            if len(chosen) == table.query.n_columns:
                yield KeyMapping(chosen, narrowed[-1])
            else:
                yield from self.follow(chosen, *narrowed[:-1])


def _places(codes: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Return the place of each code among ascending ones, -1 for one that is not there."""
    if not len(among):
        return np.full(len(codes), _NONE, np.int64)
    at = np.minimum(np.searchsorted(among, codes), len(among) - 1)
    return np.where(among[at] == codes, at, _NONE)


def one_table(key: Sequence[pa.Array | pa.ChunkedArray], table: pa.Table) -> OneTable:
    """Put a query beside a table.

    Notes
    -----
    Memory: 8 bytes for a cell, the distinct texts, and 50 bytes or so for each row and key while a
    mapping is looked at. Time: sorting the distinct texts, and the rows for each column chosen.

    Examples
    --------
    >>> table = pa.table({"last": ["hopper", "turing"], "first": ["grace", "alan"]})
    >>> beside = one_table([pa.array(["grace", "alan"]), pa.array(["hopper", "kay"])], table)
    >>> beside.best(), beside.key_of_row((1, 0)).tolist()
    (KeyMapping(columns=(1, 0), matched=1), [1, -1])
    >>> beside.parts_there((1, 0)).tolist()
    [[True, False], [True, True]]
    """
    return OneTable(build_row_keys([table]), key_query(key))
