"""The tables of an index as a market: rows, prices, kinds of columns, dependencies.

A column is numeric, so that its correlation is measured by cumulative entropy, if more than half of
its values are numbers (as the catalog says), its name does not end in id, key, code or the like, no
join uses it, and none of its tokens is a number that begins with further zeros, as codes do. All
others are categorical, keys that are numbers among them.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pexeso.acquisition.graph.tables import MarketTable, ReadColumns
from pexeso.acquisition.measures.quality import Dependency
from pexeso.acquisition_search.market.dependencies import (
    DISCOVER,
    OFF,
    LazyDependencies,
    discovered,
    read_dependencies,
    require_columns,
)
from pexeso.acquisition_search.market.lake_rows import LakeRows, names_a_code
from pexeso.acquisition_search.market.prices_file import MarketPrices
from pexeso.acquisition_search.pairs.lake_columns import LakeColumns
from pexeso.errors import InputError
from pexeso.join.aggregation import read_numbers
from pexeso.lake.sniff import profile_columns
from pexeso.lake.tokens import tokens_of

if TYPE_CHECKING:
    from pexeso.search.open_index import OpenIndex

_CODE = r"^0[0-9]+$"


@dataclass(frozen=True, eq=False)
class Market:
    """The tables of an index, which can be bought.

    Attributes
    ----------
    opened : OpenIndex
        The index.
    prices : MarketPrices
        What they cost.
    dependencies : mapping of str to sequence of Dependency, or None
        By table; None to discover them when they are first asked for.
    numeric, categorical : mapping of str to collection of str
        Columns by table that are numeric or categorical whatever the rules say.
    """

    opened: OpenIndex
    prices: MarketPrices = field(default_factory=MarketPrices)
    dependencies: Mapping[str, Sequence[Dependency]] | None = None
    numeric: Mapping[str, Collection[str]] = field(default_factory=dict)
    categorical: Mapping[str, Collection[str]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        opened: OpenIndex,
        *,
        prices: str | os.PathLike[str] | Mapping[str, Mapping[str, float]] = "free",
        dependencies: str | os.PathLike[str] = DISCOVER,
        numeric: Mapping[str, Collection[str]] | None = None,
        categorical: Mapping[str, Collection[str]] | None = None,
        own: Collection[str] = (),
    ) -> Market:
        """Return the market of an index.

        Parameters
        ----------
        opened : OpenIndex
            The index; it needs token sets.
        prices : {"free", "entropy"}, path or mapping
            See `pexeso.acquisition_search.market.prices_file`.
        dependencies : {"discover", "off"} or path
            See `pexeso.acquisition_search.market.dependencies`.
        numeric, categorical : mapping, optional
            As the attributes.
        own : collection of str
            Names of the shopper's tables, which dependencies and kinds may name too.

        Raises
        ------
        InputError
            If the tables of the index are Spark's, or a file is not as it must be or names a table
            that the lake does not have.
        TableReadError
            If a file cannot be read.
        """
        known = None
        if dependencies == OFF:
            known = {}
        elif dependencies != DISCOVER:
            known = read_dependencies(dependencies)
        priced = MarketPrices.of(prices)
        market = cls(opened, priced, known, numeric or {}, categorical or {})
        named = {**priced.listed, **(known or {}), **market.numeric, **market.categorical}
        market.require_files()
        market.require_tables(sorted(set(named) - {"*", *own}))
        return market

    @cached_property
    def columns(self) -> LakeColumns:
        """The columns of the index."""
        return LakeColumns.of_index(self.opened)

    @cached_property
    def rows(self) -> LakeRows:
        """Reads the tables."""
        return LakeRows.of_index(self.opened)

    def require_files(self) -> None:
        """Raise `InputError` if the tables of the index are not files, but Spark's."""
        _ = self.rows

    def require_tables(self, names: Sequence[str]) -> None:
        """Raise `InputError` unless the index has tables of these names."""
        requested = pa.array(list(names), pa.string())
        tables = self.opened.catalog.tables(["table"], among=requested)["table"]
        missing = sorted(set(names) - set(tables.to_pylist()))
        if missing:
            raise InputError(self.opened.catalog.why_not(missing[0], self.opened.lake))

    def labels(self, tables: Sequence[str]) -> dict[str, list[str]]:
        """Return the columns of tables, in their order."""
        return {table: [label for label, _ in columns] for table, columns in self._kinds(tables)}

    def tables_with(self, column: str) -> list[str]:
        """Return the tables that have a column of a name, by name."""
        rows = self.opened.catalog.columns(["table", "label"])
        return sorted(set(rows.filter(pc.equal(rows["label"], column))["table"].to_pylist()))

    def tables(
        self, names: Sequence[str], joined: Mapping[str, Collection[str]]
    ) -> list[MarketTable]:
        """Return tables that read their rows when these are needed.

        Parameters
        ----------
        names : sequence of str
            Tables of the lake.
        joined : mapping of str to collection of str
            For each of them the columns that it joins by; these are categorical.

        Raises
        ------
        InputError
            If the index has no such table, or it could not be read when the index was built.
        """
        self.require_tables(names)
        requested = pa.array(list(names), pa.string())
        rows = self.opened.catalog.tables(["table", "n_rows"], among=requested)
        n_rows = dict(zip(rows["table"].to_pylist(), rows["n_rows"].to_pylist(), strict=True))
        return [
            self._table(table, n_rows[table], columns, joined.get(table, ()))
            for table, columns in self._kinds(names)
        ]

    def _kinds(self, tables: Sequence[str]) -> list[tuple[str, list[tuple[str, str | None]]]]:
        """Return label and kind of each column of tables."""
        fields = ["table", "position", "label", "kind"]
        rows = self.opened.catalog.columns(fields, among=pa.array(list(tables), pa.string()))
        columns: dict[str, list[tuple[str, str | None]]] = {table: [] for table in tables}
        for row in rows.sort_by("position").to_pylist():
            columns[row["table"]].append((row["label"], row["kind"]))
        return list(columns.items())

    def _table(
        self,
        table: str,
        n_rows: int | None,
        kinds: list[tuple[str, str | None]],
        joined: Collection[str],
    ) -> MarketTable:
        if n_rows is None:
            raise InputError(self.opened.catalog.why_not(table, self.opened.lake))
        columns = tuple(label for label, _ in kinds)
        numeric = frozenset(
            label
            for label, kind in kinds
            if label in self.numeric.get(table, ())
            or (
                kind == "number"
                and label not in joined
                and label not in self.categorical.get(table, ())
                and not names_a_code(label)
                and not self._holds_codes(table, label)
            )
        )

        def read(names: Sequence[str]) -> pa.Table:
            return self.rows.read(table, n_rows, names, numeric)

        if self.dependencies is None:
            dependencies = LazyDependencies(lambda: discovered(read, columns, numeric))
        else:
            dependencies = require_columns(table, columns, self.dependencies)
        price = self.prices.of_table(table, columns, read)
        return MarketTable(
            table, columns, n_rows, read, price, numeric=numeric, dependencies=dependencies
        )

    def _holds_codes(self, table: str, label: str) -> bool:
        column = self.columns.column(table, label)
        if column < 0:
            return False
        return bool(pc.any(pc.match_substring_regex(self.columns.tokens(column), _CODE)).as_py())


def own_table(
    name: str,
    rows: pa.Table,
    joined: Collection[str] = (),
    *,
    numeric: Collection[str] = (),
    categorical: Collection[str] = (),
    dependencies: Sequence[Dependency] | None = None,
) -> MarketTable:
    """Return the shopper's table, which costs nothing.

    Parameters
    ----------
    name : str
        Its name.
    rows : pyarrow.Table
        Its rows. Texts of a column of numbers are read as numbers.
    joined : collection of str
        Columns that it joins by, which are categorical.
    numeric, categorical : collection of str
        Columns that are so whatever the rules of the module say.
    dependencies : sequence of Dependency, optional
        Discovered if not given.
    """
    numeric = {*numeric} | {
        label
        for label, column in zip(rows.column_names, rows.columns, strict=True)
        if label not in joined
        and label not in categorical
        and not names_a_code(label)
        and _is_of_numbers(column)
    }

    def read(names: Sequence[str]) -> pa.Table:
        chosen = rows.select(list(names))
        return pa.table(
            {
                label: _numbers(column) if label in numeric else column
                for label, column in zip(chosen.column_names, chosen.columns, strict=True)
            }
        )

    columns = tuple(rows.column_names)
    if dependencies is None:
        dependencies = LazyDependencies(lambda: _discovered(read, columns, numeric))
    return MarketTable(
        name,
        columns,
        rows.num_rows,
        read,
        owned=True,
        numeric=frozenset(numeric),
        dependencies=dependencies,
    )


def _discovered(
    read: ReadColumns, columns: Sequence[str], numeric: Collection[str]
) -> tuple[Dependency, ...]:
    def texts(names: Sequence[str]) -> pa.Table:
        rows = read(names)
        return pa.table(
            {name: tokens_of(rows[name]) for name in names}
        )  # numbers as the same texts as those of the lake

    return discovered(texts, columns, numeric)


def _is_of_numbers(column: pa.ChunkedArray) -> bool:
    kind = column.type
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_integer(kind):
        return True
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return False
    texts = _whole(column).cast(pa.string())
    if profile_columns([texts])[0].kind != "number":
        return False
    return not pc.any(pc.match_substring_regex(tokens_of(texts), _CODE)).as_py()


def _numbers(column: pa.ChunkedArray) -> pa.Array:
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return read_numbers(_whole(column).cast(pa.string()))
    return _whole(column).cast(pa.float64())


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
