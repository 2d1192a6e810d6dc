"""A table of yours with a composite key, and a table of the lake that it is to be joined with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pexeso.build.parts.metadata import has_aliases
from pexeso.composite.lake.query import KeyTable, key_table
from pexeso.errors import InputError, QueryError
from pexeso.joins.composite_join import KeyedTable, join_keys
from pexeso.joins.matched_join import SPARK_LAKE
from pexeso.joins.options import join_options
from pexeso.joins.sql.lake_tables import Rows, names_in_duckdb
from pexeso.joins.sql.texts import YOURS
from pexeso.lake.columns import label_columns
from pexeso.lake.containers.reader import open_named
from pexeso.lake.frames.columns import column_texts
from pexeso.lake.frames.tables import KINDS, frame_of
from pexeso.lake.key_columns import KeyColumn, spec_of
from pexeso.lake.rows import read_typed_rows

if TYPE_CHECKING:
    from pathlib import Path

    from pexeso.composite.one_table import OneTable
    from pexeso.joins.sql.joins import JoinSql
    from pexeso.joins.tables import Joined
    from pexeso.lake.normalise.normaliser import Normaliser
    from pexeso.semantic.open_index import OpenIndex
    from pexeso.store.io.location import Location


@dataclass(frozen=True)
class JoinedKeys:
    """A table of the lake, and the keys of yours that its rows have.

    Attributes
    ----------
    table : str
    columns : tuple of str
        One for each column of the key.
    matched, total : int
        Distinct keys that are joined, and all.
    """

    table: str
    columns: tuple[str, ...]
    matched: int
    total: int

    joinability_of = "keys"
    """What `matched` and `total` count."""

    @property
    def joinability(self) -> float:
        """Share of the keys, in [0, 1]; 0 where there is none."""
        return self.matched / self.total if self.total else 0.0

    @property
    def column(self) -> str:
        """The columns as a command names them."""
        return spec_of(self.columns)

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form."""
        return {
            "table": self.table,
            "columns": list(self.columns),
            "matched_keys": self.matched,
            "total_keys": self.total,
            "joinability": self.joinability,
        }


@dataclass(frozen=True, eq=False)
class TablePair:
    """The two tables, read whole.

    Memory: both tables, and the texts of their keys.

    Attributes
    ----------
    query_table : KeyTable
        Yours.
    table : str
        Name of the lake's.
    rows : pa.Table
        The lake's, as `pexeso.lake.rows.read_rows` gives it.
    lake : Path or Location
        Where it lies.
    normaliser : Normaliser or None
        Of the index: what is an alias stands for something else.
    typed : sequence of pyarrow.ChunkedArray or None
        The columns of `rows` with the types of their file, where that has types.
    """

    query_table: KeyTable
    table: str
    rows: pa.Table
    lake: Path | Location
    normaliser: Normaliser | None = None
    typed: Sequence[pa.ChunkedArray] | None = None

    @cached_property
    def mine(self) -> KeyedTable:
        """The key of your table."""
        return self._keyed(self.query_table)

    @cached_property
    def beside(self) -> OneTable:
        """The keys of your table beside all columns of the lake's.

        Raises
        ------
        InputError
            The lake's table has fewer columns than the key.
        """
        from pexeso.composite.one_table import one_table  # brings numba

        names, n_parts = self.rows.column_names, len(self.query_table.key)
        if len(names) < n_parts:
            raise InputError(
                f"A key of {n_parts} columns needs a table with as many. '{self.table}' has "
                f"{len(names)}: take another table, or fewer columns."
            )
        every = tuple(KeyColumn(position, name) for position, name in enumerate(names))
        texts = KeyTable(tuple(names), tuple(self.rows.columns), every).key_texts(self.normaliser)
        return one_table(self.mine.parts, pa.Table.from_arrays(texts, names=names))

    def theirs(self, columns: str | Iterable[str] | None) -> KeyedTable:
        """Return the columns of the lake's table that the key is joined with.

        Parameters
        ----------
        columns : str, iterable of str or None
            One for each of the key, as `pexeso.lake.key_columns.find_key_columns` takes them; None:
            those that join most keys, of equal choices the leftmost.

        Raises
        ------
        ColumnNotFoundError, QueryError
            The columns are not there, make no key, or are not as many as yours.
        InputError
            None are named, and no row of the table has a key.
        """
        if columns is None:
            best = self.beside.best()
            if best is None:
                raise InputError(
                    f"No row of '{self.table}' has a whole key of your table "
                    f"({', '.join(self.mine.labels)}), in whatever columns: pexeso explain shows "
                    "which parts it has."
                )
            columns = [f"#{position}" for position in best.columns]
        lake_table = key_table(self.rows, columns)
        if len(lake_table.key) != len(self.mine.labels):
            labels = ", ".join(column.label for column in lake_table.key)
            raise QueryError(
                "A key has as many columns in the lake's table as in yours. Got "
                f"{len(self.mine.labels)} of yours ({', '.join(self.mine.labels)}) and "
                f"{len(lake_table.key)} of '{self.table}' ({labels}): name one for each."
            )
        return self._keyed(lake_table)

    def keys_joined(self, theirs: KeyedTable) -> JoinedKeys:
        """Count the keys that the lake's table has in some columns, which `theirs` returned."""
        keys = pc.drop_null(self.mine.keys.unique())
        matched = pc.sum(pc.is_in(keys, value_set=theirs.keys), min_count=0).as_py()
        return JoinedKeys(self.table, theirs.labels, matched, len(keys))

    def join(
        self,
        theirs: KeyedTable,
        options: Mapping[str, Any],
        *,
        table: Any = None,
        to: str | None = None,
    ) -> Joined:
        """Join your table with the lake's.

        Parameters
        ----------
        theirs : KeyedTable
            What `theirs` returned.
        options : mapping
            Of `pexeso.joins.options.JoinOptions`, all but `values`: of equal keys there is no
            nearer one.
        table : table, optional
            Yours, as it was given; what is not of pandas, Arrow or polars is joined as an Arrow
            table.
        to : {"pandas", "arrow", "polars"}, optional
            The kind of table that is given back; by default that of `table`.
        """
        if "values" in options:
            raise InputError(
                "values chooses among values alike. Keys of several columns are joined where they "
                "are equal: leave it out."
            )
        frame = frame_of(table)
        source = table if frame is not None and frame.kind in KINDS else self._in_memory
        chosen = join_options(options)
        return join_keys(source, self.mine, self.rows, self.table, theirs, chosen, to, self.typed)

    def sql(
        self,
        theirs: KeyedTable,
        *,
        how: str = "left",
        names: tuple[str, str | None] = (YOURS, None),
    ) -> JoinSql:
        """Write the join as SQL; see `pexeso.joins.sql.key_joins.sql_of_key`."""
        from pexeso.joins.sql.key_joins import sql_of_key

        positions = [column.position for column in self.query_table.key]
        sql_names = names_in_duckdb(self.query_table.names)
        cells = pa.Table.from_arrays(
            [self.query_table.cells[at] for at in positions],
            names=[sql_names[at] for at in positions],
        )
        rows = Rows(self.rows, self.typed)
        yours, lakes = (self.mine, cells), (theirs, self.table, rows)
        return sql_of_key(yours, lakes, self.lake, how=how, names=names)

    @property
    def _in_memory(self) -> pa.Table:
        query_table, typed = self.query_table, None
        if query_table.file is not None:
            typed = open_named(query_table.file, options=query_table.reading).typed_columns(
                query_table.cells
            )
        return pa.Table.from_arrays(
            typed or list(query_table.cells), names=label_columns(query_table.names)
        )

    def _keyed(self, table: KeyTable) -> KeyedTable:
        similar = [column.label for column in table.key if column.similar]
        if similar:
            raise QueryError(
                f"Tables are joined where the parts of a key are equal. Got {similar[0]}~: leave "
                "the ~ out, or join by this column alone, which matches similar values."
            )
        positions = tuple(column.position for column in table.key)
        return KeyedTable(
            tuple(column.label for column in table.key),
            positions,
            [column_texts(table.cells[position]) for position in positions],
            table.key_texts(self.normaliser),
        )


def open_pair(opened: OpenIndex, query_table: KeyTable, table: str) -> TablePair:
    """Read a table of the lake of an index, to be joined with yours."""
    if not isinstance(table, str):
        raise InputError(f"A table is named by a text, as results name it. Got {table!r}.")
    lake = opened.lake
    if str(lake).startswith(SPARK_LAKE):
        raise InputError(
            "The index was built from Spark's tables, which are not read here: export "
            f"'{table}' to a file to join it by a key of several columns."
        )
    table = opened.catalog.named(table)
    if not opened.catalog.columns(["label"], among=pa.array([table])).num_rows:
        raise InputError(opened.catalog.why_not(table, lake))
    max_bytes = opened.store.manifest.options["max_table_bytes"]
    rows, typed = read_typed_rows(lake, table, max_bytes=max_bytes)
    normaliser = opened.normaliser if has_aliases(opened.store.manifest) else None
    return TablePair(query_table, table, rows, lake, normaliser, typed)
