"""Prices of columns from a file or a mapping."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from typing import Any

from pexeso.errors import InputError, TableReadError
from pexeso.lake.readers.reader import read_table
from pexeso.runtime.formatting import shown

MODELS = ("free", "entropy")
"""Prices that need no list: nothing, or by the entropies of columns (one unit a bit)."""

_NAMES = ("table", "column", "price")

Prices = str | dict[str, dict[str, float]]
"""One of `MODELS`, or by table and column."""


def read_prices(prices: Any) -> Prices:
    """Return what tables cost, from what a user gives.

    Parameters
    ----------
    prices : None, {"free", "entropy"}, path or mapping
        None is free. A file is a table with the columns ``table``, ``column`` and ``price``. A
        mapping goes from tables to prices by column, or from (table, column) to a price.

    Returns
    -------
    str or dict of str to dict of str to float

    Raises
    ------
    InputError
        A price is missing, negative or no number, a column is priced twice, or the file lacks a
        column.
    TableReadError
        The file cannot be read.

    Examples
    --------
    >>> read_prices({"regions.csv": {"name": 2}})
    {'regions.csv': {'name': 2.0}}
    >>> read_prices({("regions.csv", "name"): -1})
    Traceback (most recent call last):
        ...
    pexeso.errors.InputError: The price of 'name' of 'regions.csv' must be a finite number from 0. \
Got -1 instead.
    """
    if prices is None or (isinstance(prices, str) and prices in MODELS):
        return prices or "free"
    if isinstance(prices, Mapping):
        return _by_table(_entries(prices), "prices")
    if isinstance(prices, str | os.PathLike):
        return _by_table(_lines(os.fspath(prices)), f"'{os.fspath(prices)}'")
    raise InputError(
        f"prices must be one of {', '.join(MODELS)}, a file, or a mapping. Got {shown(prices)}."
    )


def _entries(prices: Mapping[Any, Any]) -> Iterable[tuple[str, str, Any]]:
    for name, value in prices.items():
        if isinstance(value, Mapping):
            yield from ((str(name), str(column), price) for column, price in value.items())
        elif isinstance(name, tuple) and len(name) == 2:
            yield str(name[0]), str(name[1]), value
        else:
            raise InputError(
                "prices go from a table to prices by column, or from (table, column) to a price. "
                f"Got {shown(name)}: {shown(value)}."
            )


def _lines(file: str) -> Iterable[tuple[str, str, Any]]:
    try:
        table = read_table(file)
    except TableReadError as error:
        raise TableReadError(
            f"The list of prices cannot be read: {error} It is 'free', 'entropy' or a file with "
            f"the columns {', '.join(_NAMES)}."
        ) from error
    missing = [name for name in _NAMES if list(table.names).count(name) != 1]
    if missing:
        raise InputError(
            f"The list of prices '{file}' needs one column each named {', '.join(_NAMES)}. Got "
            f"{', '.join(map(repr, table.names))}."
        )
    columns = [table.columns[table.names.index(name)].to_pylist() for name in _NAMES]
    return zip(*columns, strict=True)


def _by_table(entries: Iterable[tuple[Any, Any, Any]], source: str) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for table, column, price in entries:
        if not table or not column:
            raise InputError(
                f"A line of {source} has no table or no column: {table!r}, {column!r}, {price!r}."
            )
        of_table = found.setdefault(table, {})
        if column in of_table:
            raise InputError(f"{source} has two prices of {column!r} of '{table}'. Keep one.")
        of_table[column] = _number(table, column, price)
    return found


def _number(table: str, column: str, price: Any) -> float:
    try:
        number = math.nan if isinstance(price, bool) else float(price)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 <= number < math.inf:
        raise InputError(
            f"The price of {column!r} of '{table}' must be a finite number from 0. Got "
            f"{shown(price)} instead."
        )
    return number
