"""The tables of an index as a market: rows, prices, kinds of columns, dependencies.

A column is numeric, so that its correlation is measured by cumulative entropy, if more than half of
its values are numbers (as the catalog says), its name does not end in id, key, code or the like, no
join uses it, and none of its tokens is a number that begins with further zeros, as codes do. All
others are categorical, keys that are numbers among them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pexeso.acquisition.quality import Dependency, discovered
from pexeso.acquisition.tables import Kept, MarketPrices, MarketTable, ReadColumns
from pexeso.errors import InputError
from pexeso.joins.aggregation import read_numbers
from pexeso.joins.measures import in_one_piece
from pexeso.joins.tables import SPARK_LAKE
from pexeso.lake.choose import profile_columns
from pexeso.lake.tokens import tokens_of
from pexeso.sets.lake_columns import LakeColumns

if TYPE_CHECKING:
    from pexeso.semantic.open_index import OpenIndex


_CODE = r"^0[0-9]+$"


@dataclass(frozen=True, eq=False)
class LakeMarket:
    opened: OpenIndex
    prices: MarketPrices = field(default_factory=MarketPrices)
    # The table that was read last is kept whatever its size
    _kept: Kept = field(default_factory=lambda: Kept(1 << 29), repr=False)

    @classmethod
    def of(
        cls,
        opened: OpenIndex,
        *,
        prices: str | os.PathLike[str] | Mapping[str, Mapping[str, float]] = "free",
        own: Collection[str] = (),
    ) -> LakeMarket:
        if str(opened.lake).startswith(SPARK_LAKE):
            raise InputError(
                "The index was built from Spark's tables, whose rows are not read here. Export "
                "them to files, and build an index of these."
            )
        market = cls(opened, MarketPrices.of(prices))
        market.require_tables(sorted(set(market.prices.listed) - {"*", *own}))
        return market

    @cached_property
    def columns(self) -> LakeColumns:
        return LakeColumns.of_index(self.opened)

    def require_tables(self, names: Sequence[str]) -> None:
        requested = pa.array(list(names), pa.string())
        tables = self.opened.catalog.tables(["table"], among=requested)["table"]
        missing = sorted(set(names) - set(tables.to_pylist()))
        if missing:
            raise InputError(self.opened.catalog.why_not(missing[0], self.opened.lake))

    def labels(self, tables: Sequence[str]) -> dict[str, list[str]]:
        return {table: [label for label, _ in columns] for table, columns in self._kinds(tables)}

    def tables_with(self, column: str) -> list[str]:
        rows = self.opened.catalog.columns(["table", "label"])
        return sorted(set(rows.filter(pc.equal(rows["label"], column))["table"].to_pylist()))

    def tables(
        self, names: Sequence[str], joined: Mapping[str, Collection[str]]
    ) -> list[MarketTable]:
        """Return tables that read their rows when these are needed."""
        self.require_tables(names)
        requested = pa.array(list(names), pa.string())
        rows = self.opened.catalog.tables(["table", "n_rows"], among=requested)
        n_rows = dict(zip(rows["table"].to_pylist(), rows["n_rows"].to_pylist(), strict=True))
        return [
            self._table(table, n_rows[table], columns, joined.get(table, ()))
            for table, columns in self._kinds(names)
        ]

    def _kinds(self, tables: Sequence[str]) -> list[tuple[str, list[tuple[str, str | None]]]]:
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
            if kind == "number"
            and label not in joined
            and not names_a_code(label)
            and not self._holds_codes(table, label)
        )

        def read(names: Sequence[str]) -> pa.Table:
            return self._read(table, n_rows, names, numeric)

        return MarketTable(
            table,
            columns,
            n_rows,
            read,
            self.prices.of_table(table, columns, read),
            numeric=numeric,
            find_dependencies=lambda: discovered(read, columns, numeric),
        )

    def _holds_codes(self, table: str, label: str) -> bool:
        column = self.columns.column(table, label)
        if column < 0:
            return False
        return bool(pc.any(pc.match_substring_regex(self.columns.tokens(column), _CODE)).as_py())

    def _read(
        self, table: str, n_rows: int, columns: Sequence[str], numeric: Collection[str]
    ) -> pa.Table:
        rows = self._kept.keep(table, lambda: self._rows(table))
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
        rows, normaliser = self.opened.rows(table), self.opened.normaliser
        if normaliser.aliases is None:
            return rows
        return pa.table(
            {
                name: pa.chunked_array([normaliser.resolved(chunk) for chunk in column.chunks])
                for name, column in zip(rows.column_names, rows.columns, strict=True)
            }
        )


def own_table(name: str, rows: pa.Table, joined: Collection[str] = ()) -> MarketTable:
    """Return the shopper's table, which costs nothing; what it joins by is categorical."""
    numeric = frozenset(
        label
        for label, column in zip(rows.column_names, rows.columns, strict=True)
        if label not in joined and not names_a_code(label) and _is_of_numbers(column)
    )

    def read(names: Sequence[str]) -> pa.Table:
        chosen = rows.select(list(names))
        return pa.table(
            {
                label: _numbers(column) if label in numeric else column
                for label, column in zip(chosen.column_names, chosen.columns, strict=True)
            }
        )

    columns = tuple(rows.column_names)
    return MarketTable(
        name,
        columns,
        rows.num_rows,
        read,
        owned=True,
        numeric=numeric,
        find_dependencies=lambda: _discovered(read, columns, numeric),
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
    texts = in_one_piece(column).cast(pa.string())
    if profile_columns([texts])[0].kind != "number":
        return False
    return not pc.any(pc.match_substring_regex(tokens_of(texts), _CODE)).as_py()


def _numbers(column: pa.ChunkedArray) -> pa.Array:
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return read_numbers(in_one_piece(column).cast(pa.string()))
    return in_one_piece(column).cast(pa.float64())


_CODES = frozenset(["id", "ids", "key", "code", "codes", "zip", "zipcode", "fips"])
_NO_IDS = frozenset(["paid", "prepaid", "unpaid", "bid", "valid", "grid", "mid", "acid", "aid"])
_NO_IDS |= frozenset(["solid", "liquid", "fluid", "rapid", "humid", "covid"])
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def names_a_code(label: str) -> bool:
    """Return whether a column's name says that its numbers are ids, keys or codes."""
    words = [word.lower() for word in _WORD.findall(label)]
    if not words:
        return False
    last = words[-1]
    return last in _CODES or last.endswith("key") or (last.endswith("id") and last not in _NO_IDS)
