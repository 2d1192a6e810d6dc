"""How often each row of each table stands in the join result of a plan, without forming it.

Each table tells each neighbour, for each key, how many rows its side of the tree has: the sum over
its rows with the key of the product of what its other neighbours told it. The number of times that
a row stands in the result is the product of what all its neighbours tell of its keys. Time and
memory are linear in the rows of the tables, whatever the size of the result.

Counts are doubles, exact up to 2**53; greater ones are rounded, the same way on every processor.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pexeso.acquisition.coded_columns import CodedColumns
from pexeso.acquisition.graph import JoinGraph
from pexeso.acquisition.plans import Join, JoinTree
from pexeso.joins.measures.codes import paired_codes
from pexeso.runtime.jit import loop

RowsOf = Callable[[JoinTree, str], np.ndarray | None]
"""Which rows of a table of a plan count, as bools; None for all."""

_MAX_BYTES = 512 << 20


class RowCounts:
    """Counts of rows in the join results of plans over one graph.

    Plans share what equal parts of their trees tell; up to half a gigabyte of it is kept.
    """

    def __init__(
        self, graph: JoinGraph, coded: CodedColumns, rows_of: RowsOf | None = None
    ) -> None:
        self.graph, self._coded, self._rows_of = graph, coded, rows_of
        self._kept: OrderedDict[object, np.ndarray] = OrderedDict()
        self._bytes = 0

    def keys(self, join: Join, table: str) -> np.ndarray:
        """Return the number of the key of a join in each row of one of its tables, or -1."""
        tables = self.graph.tables
        keys = self._coded.keys(tables[join.left], tables[join.right], join.join_set.pairs)
        return keys.left if table == join.left else keys.right

    def n_keys(self, join: Join) -> int:
        """Return a number above all those of the keys of a join."""
        tables = self.graph.tables
        return self._coded.keys(tables[join.left], tables[join.right], join.join_set.pairs).n_codes

    def of_rows(
        self,
        tree: JoinTree,
        table: str,
        *,
        without: Collection[Join] = (),
        masks: Mapping[str, np.ndarray] | None = None,
    ) -> np.ndarray:
        """Return how often each row of a table stands in the join result."""
        key = (tree.joins, table)
        is_whole = not without and masks is None
        if is_whole and key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        counts = np.ones(self.graph.tables[table].n_rows)
        if self._rows_of is not None:
            chosen = self._rows_of(tree, table)
            if chosen is not None:
                counts = chosen.astype(np.float64)
        if masks is not None and table in masks:
            counts = counts * masks[table]
        for join in tree.joins_at.get(table, ()):
            if join not in without:
                key_counts = self.of_keys(tree, join, join.other(table), masks=masks)
                counts = counts * key_counts[self.keys(join, table)]
        if is_whole:
            self._keep(key, counts)
        return counts

    def of_keys(
        self,
        tree: JoinTree,
        join: Join,
        table: str,
        *,
        masks: Mapping[str, np.ndarray] | None = None,
    ) -> np.ndarray:
        """Return how many rows the part of the tree beyond a join has for each of its keys."""
        joins, tables = tree.beyond(join, table)
        masked = masks is not None and any(name in masks for name in tables)
        key = (join, table, joins)
        if not masked and key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        counts = self.of_rows(tree, table, without=(join,), masks=masks)
        codes, n_keys = self.keys(join, table), self.n_keys(join)
        matched = codes >= 0
        key_counts = np.bincount(codes[matched], counts[matched], minlength=n_keys + 1)
        if not masked:
            self._keep(key, key_counts)
        return key_counts

    def _keep(self, key: object, key_counts: np.ndarray) -> None:
        self._kept[key] = key_counts
        self._bytes += key_counts.nbytes
        while self._bytes > _MAX_BYTES and len(self._kept) > 1:
            self._bytes -= self._kept.popitem(last=False)[1].nbytes


DEFAULT_ENTRIES = 5_000_000

_SMALL = 1 << 16

Chosen = Mapping[str, Sequence[np.ndarray]]
"""For each table the codes of its chosen columns: one int64 array for each, a code for each row."""


@dataclass(frozen=True, eq=False)
class JointCounts:
    """Values that stand together, and how often."""

    codes: dict[str, list[np.ndarray]]
    counts: np.ndarray


def joint_counts(
    tree: JoinTree,
    chosen: Chosen,
    first: str,
    rows: RowCounts,
    max_entries: int = DEFAULT_ENTRIES,
) -> Iterator[JointCounts]:
    """Count values of chosen columns that stand together in the join result of a plan."""
    needed = _tables_between(tree, set(chosen), first)
    order = [(name, join) for name, join in tree.rooted(first) if join and name in needed]
    yield from _contracted(
        _Entries.of(tree, first, needed, chosen, rows),
        order,
        _Contraction(tree, needed, chosen, rows, max_entries),
    )


@dataclass(frozen=True, eq=False)
class _Entries:
    """Codes of chosen columns, keys of joins to come, and counts."""

    values: dict[str, list[np.ndarray]]
    keys: dict[Join, np.ndarray]
    counts: np.ndarray

    @classmethod
    def of(
        cls,
        tree: JoinTree,
        table: str,
        needed: set[str],
        chosen: Chosen,
        rows: RowCounts,
    ) -> _Entries:
        """Return the rows of a table, with what parts without a chosen column tell.

        Entries may repeat: products add them up.
        """
        to_come = [join for join in tree.joins_at.get(table, ()) if join.other(table) in needed]
        counts = rows.of_rows(tree, table, without=to_come)
        indices = np.flatnonzero(rows.of_rows(tree, table) > 0)  # others have no partner somewhere
        return cls(
            {table: [codes[indices] for codes in chosen.get(table, ())]},
            {join: rows.keys(join, table)[indices] for join in to_come},
            counts[indices],
        )

    def at(self, positions: np.ndarray, counts: np.ndarray) -> _Entries:
        """Return some of the entries, with other counts."""
        return _Entries(
            {name: [codes[positions] for codes in arrays] for name, arrays in self.values.items()},
            {join: codes[positions] for join, codes in self.keys.items()},
            counts,
        )

    def where(self, chosen: np.ndarray) -> _Entries:
        """Return some of the entries."""
        return self.at(chosen, self.counts[chosen])


@dataclass(frozen=True, eq=False)
class _Contraction:
    tree: JoinTree
    needed: set[str]
    chosen: Chosen
    rows: RowCounts
    max_entries: int


def _contracted(
    entries: _Entries, order: Sequence[tuple[str, Join]], whole: _Contraction
) -> Iterator[JointCounts]:
    if not order:
        yield JointCounts(entries.values, entries.counts)
        return
    table, join = order[0]
    other = _Entries.of(whole.tree, table, whole.needed, whole.chosen, whole.rows)
    for part in _parts(entries, other, join, whole.max_entries):
        yield from _contracted(_product(part, other, join), order[1:], whole)


def _product(one: _Entries, other: _Entries, join: Join) -> _Entries:
    """Return the entries of two sides of a join, summed over its keys."""
    left_groups, first_of_left = _grouped(one, join)
    right_groups, first_of_right = _grouped(other, join)
    left, right, counts = _multiplied(
        (left_groups, one.keys[join], one.counts),
        (right_groups, other.keys[join], other.counts),
        (len(first_of_left), len(first_of_right)),
    )
    rows, columns = first_of_left[left], first_of_right[right]
    return _Entries(
        {
            **{name: [codes[rows] for codes in arrays] for name, arrays in one.values.items()},
            **{name: [codes[columns] for codes in arrays] for name, arrays in other.values.items()},
        },
        {
            **{
                open_join: codes[rows]
                for open_join, codes in one.keys.items()
                if open_join is not join
            },
            **{
                open_join: codes[columns]
                for open_join, codes in other.keys.items()
                if open_join is not join
            },
        },
        counts,
    )


def _grouped(entries: _Entries, join: Join) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of what each entry has beside a key, and an entry for each number."""
    others = [codes for open_join, codes in entries.keys.items() if open_join is not join]
    return compact_codes([*_flat(entries.values), *others], len(entries.counts))


def compact_codes(columns: Sequence[np.ndarray], n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a number for each combination of codes in n rows, and a row for each number.

    Numbers have gaps where that saves a sort: then some stand for no row.
    """
    codes, size = np.zeros(n, np.int64), 1
    for column in columns:
        n_codes = int(column.max(initial=0)) + 1
        if size * n_codes <= max(4 * n, _SMALL):
            codes, size = codes * n_codes + column, size * n_codes
        else:
            codes = paired_codes(codes, column.astype(np.int64))
            size = int(codes.max(initial=0)) + 1
    row_of_code = np.zeros(size, np.int64)
    row_of_code[codes] = np.arange(n)
    return codes, row_of_code


def _parts(entries: _Entries, other: _Entries, join: Join, max_entries: int) -> Iterator[_Entries]:
    """Split entries by the values of the first table so that products are small enough."""
    n_keys = int(max(entries.keys[join].max(initial=-1), other.keys[join].max(initial=-1))) + 1
    of_key = np.bincount(other.keys[join], minlength=n_keys)
    sizes = of_key[entries.keys[join]]
    if sizes.sum() <= max_entries:
        yield entries
        return
    first, _ = compact_codes(next(iter(entries.values.values())), len(entries.counts))
    of_value = np.bincount(first, sizes)
    block_of_value = (np.cumsum(of_value) - of_value) // max_entries
    blocks = block_of_value.astype(np.int64)[first]
    order = np.argsort(blocks, kind="stable")
    for positions in np.split(order, np.flatnonzero(np.diff(blocks[order])) + 1):
        yield entries.where(positions)


def _tables_between(tree: JoinTree, chosen: set[str], first: str) -> set[str]:
    """Return the tables on the paths from the first table to those with chosen columns."""
    parents: dict[str, str] = {}
    for table, join in tree.rooted(first):
        if join is not None:
            parents[table] = join.other(table)
    needed = {first}
    for table in chosen:
        while table not in needed:
            needed.add(table)
            table = parents[table]
    return needed


def _flat(values: Mapping[str, Sequence[np.ndarray]]) -> list[np.ndarray]:
    return [codes for arrays in values.values() for codes in arrays]


@loop
def _ordered(numbers, n):
    """Return where each of n numbers begins in an array that is ordered by them, and the order."""
    begins = np.zeros(n + 1, np.int64)
    for number in numbers:
        begins[number + 1] += 1
    for number in range(n):
        begins[number + 1] += begins[number]
    order, ends = np.empty(len(numbers), np.int64), begins[:n].copy()
    for at in range(len(numbers)):
        order[ends[numbers[at]]] = at
        ends[numbers[at]] += 1
    return begins, order


@loop
def _multiplied(left, right, sizes):
    """Return the product of two sparse matrices, ordered by row and column.

    Parameters
    ----------
    left : (int64 (l,), int64 (l,), float64 (l,))
        Rows, keys and counts above 0; what repeats is added up.
    right : (int64 (r,), int64 (r,), float64 (r,))
        The same of columns.

    Returns
    -------
    (int64 (p,), int64 (p,), float64 (p,))
        Row, column, and the products added up over the keys.
    """
    n_keys = 0
    for key in left[1]:
        n_keys = max(n_keys, key + 1)
    for key in right[1]:
        n_keys = max(n_keys, key + 1)
    row_begins, by_row = _ordered(left[0], sizes[0])
    key_begins, by_key = _ordered(right[1], n_keys)
    sums, met = np.zeros(sizes[1]), np.empty(sizes[1], np.int64)
    rows, columns, counts = np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64)
    n = 0
    for row in range(sizes[0]):
        n_met = 0
        for one in by_row[row_begins[row] : row_begins[row + 1]]:
            key = left[1][one]
            for other in by_key[key_begins[key] : key_begins[key + 1]]:
                column = right[0][other]
                if sums[column] == 0:
                    met[n_met] = column
                    n_met += 1
                sums[column] += left[2][one] * right[2][other]
        if n + n_met > len(rows):
            size = 2 * (n + n_met)
            larger, wider, more = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size)
            larger[:n], wider[:n], more[:n] = rows[:n], columns[:n], counts[:n]
            rows, columns, counts = larger, wider, more
        for column in np.sort(met[:n_met]):
            rows[n], columns[n], counts[n] = row, column, sums[column]
            sums[column] = 0.0
            n += 1
    return rows[:n], columns[:n], counts[:n]
