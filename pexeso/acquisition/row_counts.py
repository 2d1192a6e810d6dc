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
from weakref import WeakValueDictionary

import numpy as np

from pexeso.acquisition.graph import JoinGraph
from pexeso.acquisition.plans import Join, JoinTree
from pexeso.acquisition.tables import CodedColumns, JoinKeys
from pexeso.joins.measures import paired_codes
from pexeso.runtime.compiled import compiled

loops = compiled("pexeso.acquisition.loops")

# Which rows of a table of a plan count, as bools; None for all.
RowsOf = Callable[[JoinTree, str], np.ndarray | None]

MAX_BYTES = 512 << 20


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
        # What is kept is found by the numbers of joins, which stay theirs while they are held.
        self._held: dict[int, Join] = {}
        # Keys of joins as long as `coded` keeps them.
        self._keys: WeakValueDictionary[int, JoinKeys] = WeakValueDictionary()

    def keys(self, join: Join, table: str) -> np.ndarray:
        """Return the number of the key of a join in each row of one of its tables, or -1."""
        keys = self._keys_of(join)
        return keys.left if table == join.left else keys.right

    def _keys_of(self, join: Join) -> JoinKeys:
        tables = self.graph.tables
        keys = self._coded.keys(tables[join.left], tables[join.right], join.join_set.pairs)
        self._held[id(join)], self._keys[id(join)] = join, keys
        return keys

    def of_rows(
        self,
        joins: tuple[Join, ...],
        table: str,
        *,
        without: Collection[Join] = (),
        masks: Mapping[str, np.ndarray] | None = None,
        keep: bool = True,
    ) -> np.ndarray:
        """Return how often each row of a table is in the result of the joins of a plan.

        The joins are in the order that a plan has them in. `without` some of the table, each row
        counts as if they were not there; `masks` are the rows of tables that count. It is one loop
        without calls, since plans are counted thousands of times.
        """
        kept, known_keys = self._kept, self._keys
        keep = keep and not without and masks is None
        whole = (*map(id, joins), table)
        if not without and masks is None and whole in kept:
            kept.move_to_end(whole)
            return kept[whole]
        # Each join with the table that it leads to, from the first table outwards.
        order: list[tuple[Join | None, str]] = [(None, table)]
        done = set(map(id, without))
        for _, name in order:
            for join in joins:
                if (name == join.left or name == join.right) and id(join) not in done:
                    done.add(id(join))
                    order.append((join, join.right if name == join.left else join.left))
        messages: dict[int, np.ndarray] = {}
        beyond: dict[int, frozenset[int]] = {}
        masked: set[int] = set()
        for join, name in reversed(order):
            further = [
                other
                for other in joins
                if id(other) in messages and (name == other.left or name == other.right)
            ]
            if join is not None:
                beyond[id(join)] = frozenset(map(id, further)).union(
                    *[beyond[id(other)] for other in further]
                )
                if masks is not None and (name in masks or not masked.isdisjoint(map(id, further))):
                    masked.add(id(join))
                key = (id(join), name, beyond[id(join)])
                if id(join) not in masked and key in kept:
                    kept.move_to_end(key)
                    messages[id(join)] = kept[key]
                    continue
            counts = np.ones(self.graph.tables[name].n_rows)
            if self._rows_of is not None:
                chosen = self._rows_of(JoinTree(joins, (), ()), name)
                counts = counts if chosen is None else chosen.astype(np.float64)
            if masks is not None and name in masks:
                counts = counts * masks[name]
            for other in further:
                keys = known_keys.get(id(other)) or self._keys_of(other)
                counts = (
                    counts * messages[id(other)][keys.left if name == other.left else keys.right]
                )
            if join is None:
                break
            keys = known_keys.get(id(join)) or self._keys_of(join)
            codes = keys.left if name == join.left else keys.right
            matched = codes >= 0
            messages[id(join)] = np.bincount(codes[matched], counts[matched], keys.n_codes + 1)
            if id(join) not in masked:
                kept[key] = messages[id(join)]
                self._bytes += kept[key].nbytes
        if keep:
            kept[whole] = counts
            self._bytes += counts.nbytes
        while self._bytes > MAX_BYTES and len(kept) > 1:
            self._bytes -= kept.popitem(last=False)[1].nbytes
        return counts

    def of_keys(self, joins: tuple[Join, ...], join: Join, table: str) -> np.ndarray:
        """Return how many rows the part of a plan beyond a join has for each of its keys."""
        counts, keys = self.of_rows(joins, table, without=(join,)), self._keys_of(join)
        codes = keys.left if table == join.left else keys.right
        matched = codes >= 0
        return np.bincount(codes[matched], counts[matched], keys.n_codes + 1)


MAX_ENTRIES = 5_000_000

_SMALL = 1 << 16

# For each table the codes of its chosen columns: one int64 array for each, a code for each row.
Chosen = Mapping[str, Sequence[np.ndarray]]


@dataclass(frozen=True, eq=False)
class JointCounts:
    """Values that are in rows together, how often, and the keys of joins that are to come."""

    codes: dict[str, list[np.ndarray]]
    counts: np.ndarray
    keys: dict[Join, np.ndarray]


def joint_counts(
    tree: JoinTree, chosen: Chosen, first: str, rows: RowCounts
) -> Iterator[JointCounts]:
    """Count values of chosen columns that are together in the join result of a plan."""
    outwards = tree.rooted(first)
    parents = {table: join.other(table) for table, join in outwards if join is not None}
    needed = {first}  # the tables on the paths to those with chosen columns
    for table in chosen:
        while table not in needed:
            needed.add(table)
            table = parents[table]

    def of_table(table: str) -> JointCounts:
        # What parts without a chosen column have is in the counts. Entries may repeat: products
        # add them up.
        to_come = [join for join in tree.joins_at.get(table, ()) if join.other(table) in needed]
        counts = rows.of_rows(tree.joins, table, without=to_come)
        joined = np.flatnonzero(
            rows.of_rows(tree.joins, table) > 0
        )  # others have no partner somewhere
        keys = {join: rows.keys(join, table)[joined] for join in to_come}
        codes = [column[joined] for column in chosen.get(table, ())]
        return JointCounts({table: codes}, counts[joined], keys)

    def contracted(
        entries: JointCounts, order: Sequence[tuple[str, Join]]
    ) -> Iterator[JointCounts]:
        if not order:
            yield entries
            return
        table, join = order[0]
        other = of_table(table)
        for part in _parts(entries, join, other.keys[join]):
            yield from contracted(_product(part, other, join), order[1:])

    order = [(name, join) for name, join in outwards if join is not None and name in needed]
    yield from contracted(of_table(first), order)


def _product(one: JointCounts, other: JointCounts, join: Join) -> JointCounts:
    """Return the entries of two sides of a join, summed over its keys."""
    # What each entry has next to the key is a number, for which there is an entry.
    groups = []
    for side in (one, other):
        to_come = [codes for open_join, codes in side.keys.items() if open_join is not join]
        values = [column for columns in side.codes.values() for column in columns]
        groups.append(compact_codes([*values, *to_come], len(side.counts)))
    (left, first_of_left), (right, first_of_right) = groups
    left_groups, right_groups, counts = loops.multiplied(
        (left, one.keys[join], one.counts),
        (right, other.keys[join], other.counts),
        (len(first_of_left), len(first_of_right)),
    )
    sides = (one, first_of_left[left_groups]), (other, first_of_right[right_groups])
    return JointCounts(
        {
            name: [column[at] for column in columns]
            for side, at in sides
            for name, columns in side.codes.items()
        },
        counts,
        {
            open_join: keys[at]
            for side, at in sides
            for open_join, keys in side.keys.items()
            if open_join is not join
        },
    )


def _parts(entries: JointCounts, join: Join, other_keys: np.ndarray) -> Iterator[JointCounts]:
    """Split entries by the values of the first table so that products are small enough."""
    own_keys = entries.keys[join]
    n_keys = int(max(own_keys.max(initial=-1), other_keys.max(initial=-1))) + 1
    sizes = np.bincount(other_keys, minlength=n_keys)[own_keys]
    if sizes.sum() <= MAX_ENTRIES:
        yield entries
        return
    first, _ = compact_codes(next(iter(entries.codes.values())), len(entries.counts))
    of_value = np.bincount(first, sizes)
    blocks = ((np.cumsum(of_value) - of_value) // MAX_ENTRIES).astype(np.int64)[first]
    order = np.argsort(blocks, kind="stable")
    for at in np.split(order, np.flatnonzero(np.diff(blocks[order])) + 1):
        yield JointCounts(
            {name: [column[at] for column in columns] for name, columns in entries.codes.items()},
            entries.counts[at],
            {open_join: keys[at] for open_join, keys in entries.keys.items()},
        )


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
