"""How often values of chosen columns of several tables stand together in the join result of a plan.

The tree is contracted from one table outwards. What was contracted so far is a list of entries: the
values of chosen columns, the keys of joins to tables that are still to come, and a count. The next
table is a list of the same kind with the key of its join, so that the two are a sparse matrix each,
their product sums over the key, and rows of the join result are never formed. Parts of the tree
without a chosen column only tell how many rows they have (`row_counts`).

Memory: products whose result could have more than `max_entries` entries are done for a part of the
entries at a time, by the values that were chosen first. All entries of one value of these are in
one block, so sums over values that stand together can be taken block by block. A block is about 60
bytes an entry.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix

from pexeso.acquisition.measures.codes import paired_codes
from pexeso.acquisition.search.plans import Join, JoinTree
from pexeso.acquisition.search.row_counts import RowCounts

DEFAULT_ENTRIES = 5_000_000

_SMALL = 1 << 16

Chosen = Mapping[str, Sequence[np.ndarray]]
"""For each table the codes of its chosen columns: one int64 array for each, a code for each row."""


@dataclass(frozen=True, eq=False)
class JointCounts:
    """Values that stand together, and how often.

    Attributes
    ----------
    codes : dict of str to list of numpy.ndarray
        For each table as many arrays as it has chosen columns, with one code for each entry.
    counts : numpy.ndarray of float64
        One for each entry. Entries differ if the plan has a join between chosen columns.
    """

    codes: dict[str, list[np.ndarray]]
    counts: np.ndarray


def joint_counts(
    tree: JoinTree,
    chosen: Chosen,
    first: str,
    rows: RowCounts,
    max_entries: int = DEFAULT_ENTRIES,
) -> Iterator[JointCounts]:
    """Count values of chosen columns that stand together in the join result of a plan.

    Parameters
    ----------
    tree : JoinTree
        The plan.
    chosen : mapping of str to sequence of numpy.ndarray
        The codes of the chosen columns.
    first : str
        A table with chosen columns: all entries with one combination of its values are in one
        block.
    rows : RowCounts
        Counts rows, and knows the graph.
    max_entries : int
        See above.

    Yields
    ------
    JointCounts
        Blocks without a common entry; together they are the whole.
    """
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
    n_keys = int(max(one.keys[join].max(initial=-1), other.keys[join].max(initial=-1))) + 1
    left = csr_matrix((one.counts, (left_groups, one.keys[join])), (len(first_of_left), n_keys))
    right = csr_matrix(
        (other.counts, (other.keys[join], right_groups)), (n_keys, len(first_of_right))
    )
    product = left @ right
    product.sort_indices()  # so that measures of ordered values need no sort
    product = product.tocoo()
    rows = first_of_left[product.row]
    columns = first_of_right[product.col]
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
        product.data,
    )


def _grouped(entries: _Entries, join: Join) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of what each entry has beside a key, and an entry for each number."""
    others = [codes for open_join, codes in entries.keys.items() if open_join is not join]
    return compact_codes([*_flat(entries.values), *others], len(entries.counts))


def compact_codes(columns: Sequence[np.ndarray], n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a number for each combination of codes in n rows, and a row for each number.

    Numbers have gaps where that saves a sort: then some stand for no row.

    Examples
    --------
    >>> codes, rows = compact_codes([np.array([1, 0, 1]), np.array([0, 0, 0])], 3)
    >>> codes.tolist(), rows[codes].tolist()
    ([1, 0, 1], [2, 1, 2])
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
