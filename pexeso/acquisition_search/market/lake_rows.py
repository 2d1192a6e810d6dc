"""Rows of tables of an index's lake as texts and numbers, a bounded number of them in memory."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from pexeso.errors import InputError
from pexeso.join.numbers import read_numbers
from pexeso.lake.rows import read_rows

if TYPE_CHECKING:
    from pexeso.search.open_index import OpenIndex

DEFAULT_BYTES = 1 << 29
"""Memory for rows that are kept; the table that was read last is kept whatever its size."""

_CODES = frozenset(["id", "ids", "key", "code", "codes", "zip", "zipcode", "fips"])
_NO_IDS = frozenset(["paid", "prepaid", "unpaid", "bid", "valid", "grid", "mid", "acid", "aid"])
_NO_IDS |= frozenset(["solid", "liquid", "fluid", "rapid", "humid", "covid"])
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def names_a_code(label: str) -> bool:
    """Return whether a column's name says that its numbers are ids, keys or codes.

    Examples
    --------
    >>> [names_a_code(label) for label in ("playerID", "cust_id", "custkey", "zip", "userid")]
    [True, True, True, True, True]
    >>> [names_a_code(label) for label in ("amount paid", "price", "id count", "#3")]
    [False, False, False, False]
    """
    words = [word.lower() for word in _WORD.findall(label)]
    if not words:
        return False
    last = words[-1]
    return last in _CODES or last.endswith("key") or (last.endswith("id") and last not in _NO_IDS)


class LakeRows:
    """Reads tables of the lake of an index.

    Parameters
    ----------
    opened : OpenIndex
        The index.
    max_bytes : int
        Memory for rows that are kept for the next call.

    Raises
    ------
    InputError
        If the index was built from tables of Spark.
    """

    def __init__(self, opened: OpenIndex, max_bytes: int = DEFAULT_BYTES) -> None:
        from pexeso.join.matched_join import SPARK_LAKE

        if str(opened.lake).startswith(SPARK_LAKE):
            raise InputError(
                "The index was built from Spark's tables, whose rows are not read here. Export "
                "them to files, and build an index of these."
            )
        self._opened, self._max_bytes, self._bytes = opened, max_bytes, 0
        self._kept: OrderedDict[str, pa.Table] = OrderedDict()

    def read(
        self, table: str, n_rows: int, columns: Sequence[str], numeric: Collection[str]
    ) -> pa.Table:
        """Read columns of a table.

        Parameters
        ----------
        table : str
            Its name.
        n_rows : int
            The rows that it had when it was indexed.
        columns : sequence of str
            Labels.
        numeric : collection of str
            Those that are read as numbers; what is no number is missing there.

        Raises
        ------
        InputError
            If it has other columns, or another number of rows, than were indexed.
        TableReadError, PlaceError
            If it cannot be read.
        """
        rows = self._rows(table)
        missing = sorted(set(columns) - set(rows.column_names))
        if missing or rows.num_rows != n_rows:
            what = f"no column {missing[0]!r}" if missing else f"{rows.num_rows:,} rows"
            raise InputError(
                f"The table '{table}' has changed since it was indexed: it has {what}"
                f"{'' if missing else f', and had {n_rows:,}'}. Bring the index up to date with "
                "'pexeso append'."
            )
        return pa.table(
            {
                name: read_numbers(pa.concat_arrays(column.chunks).cast(pa.string()))
                if name in numeric and column.num_chunks
                else column
                for name, column in zip(columns, rows.select(list(columns)).columns, strict=True)
            }
        )

    def _rows(self, table: str) -> pa.Table:
        if table in self._kept:
            self._kept.move_to_end(table)
            return self._kept[table]
        most = self._opened.store.manifest.options["max_table_bytes"]
        rows = read_rows(self._opened.lake, table, max_bytes=most)
        normaliser = self._opened.normaliser
        if normaliser.aliases is not None:
            # Aliases are what the tokens of the index stand for.
            rows = pa.table(
                {
                    name: pa.chunked_array([normaliser.resolved(chunk) for chunk in column.chunks])
                    for name, column in zip(rows.column_names, rows.columns, strict=True)
                }
            )
        self._kept[table] = rows
        self._bytes += rows.nbytes
        while self._bytes > self._max_bytes and len(self._kept) > 1:
            self._bytes -= self._kept.popitem(last=False)[1].nbytes
        return rows
