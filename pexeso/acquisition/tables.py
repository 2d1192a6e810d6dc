"""Tables of a market, and what they cost: nothing, by entropy, or as a file says.

A file of prices is a CSV with the columns ``table``, ``column`` and ``price``, one line for each
column that has a price of its own. The column ``*`` stands for all other columns of its table, the
table ``*`` for all other tables: it can have the column ``*`` alone.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pc_csv

from pexeso.acquisition.quality import Dependency
from pexeso.errors import ColumnNotFoundError, InputError, TableReadError
from pexeso.joins.measures.codes import row_codes
from pexeso.joins.measures.entropies import entropy
from pexeso.runtime.formatting import first_line

ReadColumns = Callable[[Sequence[str]], pa.Table]
"""Returns the named columns of a table, all of its rows, in the same order at each call."""

PriceOf = Callable[[Collection[str]], float]
"""Returns the price of a projection on the named columns."""


def free(names: Collection[str]) -> float:
    """Return the price of one's own tables, and of all tables of a free lake."""
    return 0.0


def projection_price(table: pa.Table, names: Collection[str]) -> float:
    """Return the entropies of columns of a table, added up: one unit for each bit."""
    return math.fsum(entropy(np.bincount(row_codes(table, [name]))) for name in sorted(set(names)))


@dataclass
class EntropyPrices:
    """Prices of projections of a table by the Shannon entropies of its columns, added up.

    Each entropy is measured when it is first asked for and kept: a few bytes a column.
    """

    read: ReadColumns
    _known: dict[str, float] = field(default_factory=dict)

    def __call__(self, names: Collection[str]) -> float:
        """Return the price of a projection."""
        for name in names:
            if name not in self._known:
                self._known[name] = projection_price(self.read([name]), [name])
        return math.fsum(self._known[name] for name in sorted(set(names)))


@dataclass(frozen=True)
class ListedPrices:
    """Prices of columns from a list, added up."""

    table: str
    of_column: Mapping[str, float]

    def __post_init__(self) -> None:
        for column, price in self.of_column.items():
            if not 0 <= price < math.inf:
                raise InputError(
                    f"The price of {column!r} of '{self.table}' must be a finite number from 0, "
                    f"got {price}."
                )

    def __call__(self, names: Collection[str]) -> float:
        """Return the price of a projection."""
        missing = sorted(set(names) - set(self.of_column))
        if missing:
            raise InputError(
                f"There is no price for {', '.join(map(repr, missing))} of '{self.table}'. Add "
                "a line for each to the list of prices."
            )
        return math.fsum(self.of_column[name] for name in sorted(set(names)))


FREE, ENTROPY = "free", "entropy"
LISTED = "The list of prices"
ALL = "*"
FIELDS = ("table", "column", "price")


@dataclass(frozen=True)
class MarketPrices:
    """How tables of a market are priced."""

    model: str = FREE
    listed: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, prices: str | os.PathLike[str] | Mapping[str, Mapping[str, float]]) -> MarketPrices:
        """Return prices by the name of a model, from a file, or by table and column."""
        if isinstance(prices, Mapping):
            return cls(LISTED, prices)
        if prices in (FREE, ENTROPY):
            return cls(str(prices))
        return cls(os.fspath(prices), read_prices(prices))

    @property
    def shown(self) -> str:
        """What errors call the list."""
        return self.model if self.model == LISTED else f"'{self.model}'"

    def of_table(self, table: str, columns: Collection[str], read: ReadColumns) -> PriceOf:
        """Return the prices of one table."""
        if self.model == FREE:
            return free
        if self.model == ENTROPY:
            return EntropyPrices(read)
        prices = self.listed.get(table, {})
        unknown = sorted(set(prices) - set(columns) - {ALL})
        if unknown:
            raise InputError(
                f"{self.shown} has a price for the column {unknown[0]!r} of '{table}', which has "
                f"no such column. Its columns: {', '.join(sorted(columns))}."
            )
        rest = prices.get(ALL, self.listed.get(ALL, {}).get(ALL))
        if rest is None:
            return ListedPrices(table, dict(prices))
        return ListedPrices(table, {name: prices.get(name, rest) for name in columns})


def read_prices(path: str | os.PathLike[str]) -> dict[str, dict[str, float]]:
    """Read a file of prices."""
    shown = os.fspath(path)
    rows = _read(shown)
    texts = {name: pc.utf8_trim_whitespace(rows[name]) for name in FIELDS}
    numbers = pc.match_substring_regex(texts["price"], r"^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)$")
    prices = np.full(rows.num_rows, np.nan)
    known = pc.fill_null(numbers, False).to_numpy(zero_copy_only=False)
    prices[known] = texts["price"].filter(pa.array(known)).cast(pa.float64()).to_numpy()
    tables, columns = (texts[name].to_pylist() for name in ("table", "column"))

    def refuse(at: int, why: str) -> None:
        raise InputError(
            f"Line {at + 2} of '{shown}', table {tables[at]!r}, column {columns[at]!r}: {why}"
        )

    for name in ("table", "column"):
        empty = np.flatnonzero(pc.equal(texts[name], "").to_numpy(zero_copy_only=False))
        if len(empty):
            refuse(int(empty[0]), f"the {name} must have a name. Write {ALL} for all others.")
    wrong = np.flatnonzero(~(prices >= 0))
    if len(wrong):
        at = int(wrong[0])
        text = texts["price"][at].as_py()
        refuse(
            at, f"a price must be a number from 0, such as 2.50, got {text!r}. Correct the line."
        )
    by_table: dict[str, dict[str, float]] = {}
    for at, (table, column, price) in enumerate(zip(tables, columns, prices.tolist(), strict=True)):
        of_table = by_table.setdefault(table, {})
        if column in of_table:
            refuse(at, "it has a price in a line before. Remove one of them.")
        if table == ALL and column != ALL:
            refuse(at, f"all other tables can have one price for all columns. Write {ALL}.")
        of_table[column] = price
    return by_table


def _read(shown: str) -> pa.Table:
    try:
        rows = pc_csv.read_csv(
            shown,
            parse_options=pc_csv.ParseOptions(newlines_in_values=True),
            convert_options=pc_csv.ConvertOptions(
                column_types=dict.fromkeys(FIELDS, pa.string()), strings_can_be_null=False
            ),
        )
    except (pa.ArrowException, OSError) as error:
        number = getattr(error, "errno", None)  # beside it Arrow says the path once more
        why = first_line(error) if number is None else os.strerror(number)
        raise TableReadError(
            f"'{shown}' cannot be read as a list of prices: {why.rstrip('.')}."
        ) from error
    missing = [name for name in FIELDS if rows.column_names.count(name) != 1]
    if missing:
        raise InputError(
            f"'{shown}' must have the columns table, column and price once each. Got "
            f"{', '.join(rows.column_names)}. Write the first line as 'table,column,price'."
        )
    return rows


@dataclass(frozen=True, eq=False)
class MarketTable:
    """A table that could be bought, or that the shopper owns."""

    name: str
    columns: tuple[str, ...]
    n_rows: int
    read: ReadColumns
    price: PriceOf = free
    owned: bool = False
    numeric: frozenset[str] = frozenset()
    dependencies: tuple[Dependency, ...] = ()

    def __post_init__(self) -> None:
        twice = sorted({name for name in self.columns if self.columns.count(name) > 1})
        if twice:
            raise InputError(
                f"The columns of '{self.name}' must have different names, got {twice} more than "
                "once. Rename them."
            )

    @classmethod
    def of(
        cls,
        name: str,
        rows: pa.Table,
        *,
        price: PriceOf | None = None,
        owned: bool = False,
        numeric: Iterable[str] = (),
        dependencies: Iterable[Dependency] = (),
    ) -> MarketTable:
        """Return a table whose rows are in memory."""
        if price is None:
            price = free if owned else EntropyPrices(rows.select)
        return cls(
            name,
            tuple(rows.column_names),
            rows.num_rows,
            rows.select,
            price,
            owned,
            frozenset(numeric),
            tuple(dependencies),
        )

    def require(self, column: str) -> None:
        """Raise `ColumnNotFoundError` unless the table has a column."""
        if column not in self.columns:
            raise ColumnNotFoundError(
                f"'{self.name}' has no column {column!r}. Its columns: {', '.join(self.columns)}."
            )
