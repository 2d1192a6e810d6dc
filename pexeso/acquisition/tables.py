"""Tables of a market, their columns as numbers, and what they cost: nothing, by entropy, or a list.

A file of prices is a CSV with the columns ``table``, ``column`` and ``price``, one line for each
column that has a price of its own. The column ``*`` stands for all other columns of its table, the
table ``*`` for all other tables: it can have the column ``*`` alone.
"""

from __future__ import annotations

import math
import os
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pc_csv

from pexeso.acquisition import DEFAULT_MAX_MEMORY
from pexeso.acquisition.quality import Dependency
from pexeso.errors import ColumnNotFoundError, InputError, TableReadError
from pexeso.joins.measures import column_of, encoded, entropy, paired_codes, row_codes
from pexeso.lake.tokens import tokens_of
from pexeso.runtime.formatting import first_line

# Returns the named columns of a table, all of its rows, in the same order at each call.
ReadColumns = Callable[[Sequence[str]], pa.Table]

# Returns the price of a projection on the named columns.
PriceOf = Callable[[Collection[str]], float]


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
        for name in names:
            if name not in self._known:
                self._known[name] = projection_price(self.read([name]), [name])
        return math.fsum(self._known[name] for name in sorted(set(names)))


@dataclass(frozen=True)
class ListedPrices:
    """Prices of columns from a list, added up."""

    table: str
    of_column: Mapping[str, float]

    def __call__(self, names: Collection[str]) -> float:
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
        return self.model if self.model == LISTED else f"'{self.model}'"

    def of_table(self, table: str, columns: Collection[str], read: ReadColumns) -> PriceOf:
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
    find_dependencies: Callable[[], Sequence[Dependency]] = tuple

    @cached_property
    def dependencies(self) -> Sequence[Dependency]:
        return self.find_dependencies()

    def require(self, column: str) -> None:
        if column not in self.columns:
            raise ColumnNotFoundError(
                f"'{self.name}' has no column {column!r}. Its columns: {', '.join(self.columns)}."
            )


@dataclass(frozen=True, eq=False)
class ColumnCodes:
    """A column as positions in its distinct values."""

    codes: np.ndarray
    values: pa.Array

    @property
    def nbytes(self) -> int:
        return self.codes.nbytes + self.values.nbytes


@dataclass(frozen=True, eq=False)
class JoinKeys:
    """The keys of two tables as numbers, equal where the keys are."""

    left: np.ndarray
    right: np.ndarray
    n_codes: int

    @property
    def nbytes(self) -> int:
        return self.left.nbytes + self.right.nbytes

    def swapped(self) -> JoinKeys:
        return JoinKeys(self.right, self.left, self.n_codes)


class Kept:
    """What was used last, up to some bytes; the latest is kept whatever its size."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes, self._bytes = max_bytes, 0
        self._kept: OrderedDict[Any, Any] = OrderedDict()

    def keep(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return what is kept under a key, made where it is not; it has `nbytes`."""
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        entry = self._kept[key] = make()
        self._bytes += entry.nbytes
        while self._bytes > self._max_bytes and len(self._kept) > 1:
            self._bytes -= self._kept.popitem(last=False)[1].nbytes
        return entry


class CodedColumns(Kept):
    """Columns of a market as numbers, read once and kept: values, and the keys of joins.

    Keys are compared by their tokens (`pexeso.lake.tokens`), as overlap searches compare them: 1,
    1.0 and "1" are one key, a missing cell is none.

    Memory: 4 bytes a row for each column of values and 8 for each set of join columns and side, and
    the distinct tokens of join columns; what was used longest ago is dropped beyond `max_bytes` and
    is read again when it is needed.
    """

    def __init__(self, max_bytes: int = DEFAULT_MAX_MEMORY) -> None:
        super().__init__(max_bytes)

    def values(self, table: MarketTable, name: str) -> ColumnCodes:
        """Return a column as numbers; missing cells are a value equal to itself."""

        def coded() -> ColumnCodes:
            table.require(name)
            column = encoded(column_of(table.read([name]), name), name)
            return ColumnCodes(
                column.indices.to_numpy().astype(np.int32, copy=False), column.dictionary
            )

        return self.keep(("values", table.name, name), coded)

    def tokens(self, table: MarketTable, name: str) -> ColumnCodes:
        """Return the tokens of a column as numbers, -1 where a cell has none."""

        def coded() -> ColumnCodes:
            # Not through `values`: columns that only join would be kept twice.
            table.require(name)
            column = encoded(column_of(table.read([name]), name), name)
            tokens = tokens_of(column.dictionary).dictionary_encode()
            of_value = pc.fill_null(tokens.indices, -1).to_numpy(zero_copy_only=False)
            codes = of_value.astype(np.int32)[column.indices.to_numpy()]
            return ColumnCodes(codes, tokens.dictionary)

        return self.keep(("tokens", table.name, name), coded)

    def keys(
        self, left: MarketTable, right: MarketTable, pairs: Sequence[tuple[str, str]]
    ) -> JoinKeys:
        if left.name > right.name:
            return self.keys(right, left, [(second, first) for first, second in pairs]).swapped()
        ordered = tuple(sorted(pairs))
        return self.keep(
            ("keys", left.name, right.name, ordered), lambda: self._keys(left, right, ordered)
        )

    def _keys(
        self, left: MarketTable, right: MarketTable, pairs: Sequence[tuple[str, str]]
    ) -> JoinKeys:
        whole = np.zeros(left.n_rows + right.n_rows, np.int64)
        missing = np.zeros(len(whole), bool)
        for left_column, right_column in pairs:
            one, other = self.tokens(left, left_column), self.tokens(right, right_column)
            # Tokens of the right column alone are numbered after those of the left one.
            both = np.empty(len(whole), np.int64)
            both[: left.n_rows] = one.codes
            numbers = np.arange(len(one.values), len(one.values) + len(other.values) + 1)
            numbers[-1] = -1
            in_left = pc.index_in(other.values, one.values)
            known = in_left.is_valid().to_numpy(zero_copy_only=False).nonzero()[0]
            numbers[known] = in_left.drop_null().to_numpy()
            both[left.n_rows :] = numbers[other.codes]
            missing |= both < 0
            whole = both if len(pairs) == 1 else paired_codes(whole, np.maximum(both, 0))
        whole[missing] = -1
        return JoinKeys(whole[: left.n_rows], whole[left.n_rows :], int(whole.max(initial=-1)) + 1)
