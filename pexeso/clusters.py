"""Groups of similar values in one column."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

from pexeso.lake.frames.tables import AsTables
from pexeso.results.query import query_from_values
from pexeso.runtime.formatting import many, plain
from pexeso.store.arrays import take_wide
from pexeso.two_tables import RIGHT, index_of_table, write_as_it_is

COLUMN = "value"


@dataclass(frozen=True)
class Cluster:
    """Similar values of a column.

    Attributes
    ----------
    values : tuple of str
        The distinct cells, the most frequent first; of equally frequent ones the first in the
        column.
    counts : tuple of int
        The rows that have each of them.
    """

    values: tuple[str, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Clusters(AsTables):
    """The groups of similar values of a column, those with most rows first.

    Attributes
    ----------
    n_values : int
        Distinct cells of the column that are not empty.
    max_distance : float
        Of values that are similar.
    """

    n_values: int
    max_distance: float
    _table: pa.Table

    fields = ("group", "value", "rows", "most_frequent")  # of no dataclass field

    @cached_property
    def groups(self) -> tuple[Cluster, ...]:
        """Groups of two values or more."""
        starts = np.flatnonzero(np.diff(self._table["group"].to_numpy(), prepend=0))
        values, counts = (self._table[name].to_pylist() for name in ("value", "rows"))
        return tuple(
            Cluster(tuple(values[start:end]), tuple(counts[start:end]))
            for start, end in pairwise([*starts.tolist(), self._table.num_rows])
        )

    def _summary(self) -> str:
        return (
            f"{many(len(self.groups), 'group')} with {self._table.num_rows:,} of "
            f"{many(self.n_values, 'value')}, within distance {self.max_distance:g}"
        )

    def _table_rows(self) -> list[dict[str, Any]]:
        return self._table.to_pylist()

    def _shown(self) -> tuple[Sequence[str], list[list[Any]]]:
        shown = [plain(", ".join(group.values)) for group in self.groups]
        rows = [sum(group.counts) for group in self.groups]
        return ("rows", "values"), [list(row) for row in zip(rows, shown, strict=True)]

    def to_arrow(self) -> pa.Table:
        """Return an Arrow table with a row for each value of a group, the most frequent first.

        Its columns are the number of the group from 1, the value, its rows, and the most frequent
        value of the group.
        """
        return self._table


def cluster(
    values: Any, on: str | int | None = None, *, max_distance: float | None = None
) -> Clusters:
    """Find groups of similar values in one column, such as spellings of one name.

    Two values are in one group if a chain of similar values joins them; a smaller `max_distance`
    makes smaller groups. The column is indexed in a temporary folder.

    Parameters
    ----------
    values : column or table
        As in `pexeso.Index.search`: a list, an array, a Series, or a table in memory whose column
        `on` names. Missing values are in no group.
    on : str or int, optional
        The column of a table, by name or position.
    max_distance : float, optional
        Of values that are similar, in [0, 1], as a fraction of the largest possible; by default 0
        for dates, numbers and codes, and 0.4 for other values.

    Returns
    -------
    Clusters
        Groups of at least two distinct values, those with most rows first.

    Raises
    ------
    InputError
        The column has no values, or an option is not as it must be; or the pairs of similar values
        are more than the memory holds.
    QueryError, ColumnNotFoundError
        The values are no column, or there is no such column.

    Examples
    --------
    >>> groups = cluster(["Reykjavik", "Oslo", "Reykjavík", "Reykjavík", None]).groups
    >>> groups[0].values, groups[0].counts
    (('Reykjavík', 'Reykjavik'), (2, 1))
    """
    column = query_from_values(values, COLUMN, on=on)
    chosen: dict[str, Any] = {} if max_distance is None else {"max_distance": max_distance}
    with TemporaryDirectory(prefix="pexeso-") as folder:
        file = os.path.join(folder, RIGHT)
        write_as_it_is(pa.table({COLUMN: column.values}), file)
        with index_of_table(file, COLUMN, "") as (index, label):
            explained = index.explain(column, RIGHT, label, **chosen)
            texts, rows, group = explained.match._details.text_groups(explained.match._position)
    return Clusters(len(texts), explained.options.max_distance, _table(texts, rows, group))


def _table(texts: pa.Array, rows: np.ndarray, group: np.ndarray) -> pa.Table:
    members = np.flatnonzero(np.bincount(group)[group] > 1)
    group, rows = group[members], rows[members]
    group_rows = np.bincount(group, rows, minlength=1)
    # Components and texts are numbered in the order of the column.
    order = np.lexsort((members, -rows, group, -group_rows[group]))
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    number = np.cumsum(np.bincount(starts, minlength=len(order)))
    names = take_wide(texts, pa.array(members[order]))
    arrays = pa.array(number), names, pa.array(rows[order])
    most_frequent = names.take(pa.array(starts[number - 1]))
    return pa.table([*arrays, most_frequent], names=list(Clusters.fields))
