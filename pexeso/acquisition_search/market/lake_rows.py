"""Rows of tables of an index's lake as texts and numbers, a bounded number of them in memory."""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pexeso.errors import InputError
from pexeso.join.aggregation import read_numbers
from pexeso.lake.rows import read_rows

if TYPE_CHECKING:
    from pexeso.io.location import Location
    from pexeso.lake.normalise.normaliser import Normaliser
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
    """Reads tables of a lake; it can be sent to another process.

    Parameters
    ----------
    lake : path or Location
        The folder.
    max_table_bytes : int
        The most that is read of a table.
    normaliser : Normaliser
        Of the index: its aliases hold for the cells, as they do for the tokens of the index.
    max_bytes : int
        Memory for rows that are kept for the next call.
    """

    def __init__(
        self,
        lake: str | os.PathLike[str] | Location,
        max_table_bytes: int,
        normaliser: Normaliser,
        max_bytes: int = DEFAULT_BYTES,
    ) -> None:
        self._lake, self._max_table_bytes, self._normaliser = lake, max_table_bytes, normaliser
        self._max_bytes, self._bytes = max_bytes, 0
        self._kept: OrderedDict[str, pa.Table] = OrderedDict()

    def __reduce__(self) -> tuple[Any, ...]:
        # Rows that are kept stay here.
        return LakeRows, (self._lake, self._max_table_bytes, self._normaliser, self._max_bytes)

    @classmethod
    def of_index(cls, opened: OpenIndex) -> LakeRows:
        """Return what reads the tables of the lake of an index.

        Raises
        ------
        InputError
            If the index was built from tables of Spark.
        """
        from pexeso.join.matched_join import SPARK_LAKE

        if str(opened.lake).startswith(SPARK_LAKE):
            raise InputError(
                "The index was built from Spark's tables, whose rows are not read here. Export "
                "them to files, and build an index of these."
            )
        max_bytes = opened.store.manifest.options["max_table_bytes"]
        return cls(opened.lake, max_bytes, opened.normaliser)

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
        rows = read_rows(self._lake, table, max_bytes=self._max_table_bytes)
        if self._normaliser.aliases is not None:
            resolved = self._normaliser.resolved
            rows = pa.table(
                {
                    name: pa.chunked_array([resolved(chunk) for chunk in column.chunks])
                    for name, column in zip(rows.column_names, rows.columns, strict=True)
                }
            )
        self._kept[table] = rows
        self._bytes += rows.nbytes
        while self._bytes > self._max_bytes and len(self._kept) > 1:
            self._bytes -= self._kept.popitem(last=False)[1].nbytes
        return rows
