"""Prices of tables of a market: nothing, by entropy, or from a file.

A file of prices is a CSV with the columns ``table``, ``column`` and ``price``, one line for each
column that has a price of its own. The column ``*`` stands for all other columns of its table, the
table ``*`` for all other tables: it can have the column ``*`` alone.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pc_csv

from pexeso.acquisition.graph.tables import (
    EntropyPrices,
    ListedPrices,
    PriceOf,
    ReadColumns,
    free,
)
from pexeso.errors import InputError, TableReadError
from pexeso.runtime.formatting import first_line

FREE, ENTROPY = "free", "entropy"
LISTED = "The list of prices"
ALL = "*"
FIELDS = ("table", "column", "price")


@dataclass(frozen=True)
class MarketPrices:
    """How tables of a market are priced.

    Attributes
    ----------
    model : str
        ``free``, ``entropy``, the file that the list was read from, or `LISTED`.
    listed : mapping of str to mapping of str to float
        Prices by table and column, from a file.
    scale : float
        The price of a bit, of the model ``entropy``.
    """

    model: str = FREE
    listed: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    scale: float = 1.0

    @classmethod
    def of(cls, prices: str | os.PathLike[str] | Mapping[str, Mapping[str, float]]) -> MarketPrices:
        """Return prices by the name of a model, from a file, or by table and column.

        Parameters
        ----------
        prices : {"free", "entropy"}, path, or mapping of str to mapping of str to float
            See the module; a mapping may have ``*`` as a file may.

        Raises
        ------
        InputError
            If a price is none.
        TableReadError
            If the file cannot be read.
        """
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
        """Return the prices of one table.

        Parameters
        ----------
        table : str
            Its name.
        columns : collection of str
            All of its columns.
        read : callable
            Reads them.

        Raises
        ------
        InputError
            If the file prices a column that the table does not have.
        """
        if self.model == FREE:
            return free
        if self.model == ENTROPY:
            return EntropyPrices(read, self.scale)
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
    """Read a file of prices.

    Returns
    -------
    dict
        Prices by table and column; see the module.

    Raises
    ------
    InputError
        If a column of the file is missing, a price is missing, negative or no number, or a column
        has two prices; with line, table and column.
    TableReadError
        If the file cannot be read.
    """
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
