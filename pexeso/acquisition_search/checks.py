"""What an acquisition is asked for, checked before a table is read."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pexeso.acquisition_search.defaults import METHODS
from pexeso.acquisition_search.market_search import Prices
from pexeso.errors import InputError
from pexeso.lake.key_columns import names_in
from pexeso.runtime.formatting import plain_scalar, shown


def require_prices(prices: Any) -> None:
    """Raise InputError unless prices are a name or file, or prices by table and column."""
    if isinstance(prices, str | os.PathLike):
        return
    if not isinstance(prices, Mapping):
        raise InputError(
            "prices must be 'free', 'entropy', the file of a list, or prices by table and column, "
            f"such as {{'a.csv': {{'rain': 2.5}}}}. Got {shown(prices)}."
        )
    for table, columns in prices.items():
        if not isinstance(columns, Mapping) or not all(
            isinstance(name, str) for name in (table, *columns)
        ):
            raise InputError(
                "prices of a table are those of its columns, by their names, such as "
                f"{{'a.csv': {{'rain': 2.5}}}}. Got {shown({table: columns})}."
            )
        for column, price in columns.items():
            if not is_number(price, -math.inf, sys.float_info.max) or price < 0:
                raise InputError(
                    f"The price of {column!r} of '{table}' must be a finite number from 0. Got "
                    f"{shown(price)}."
                )


def require_method(method: Any, sample_rate: Any) -> None:
    """Raise InputError unless there is such a method, and such a share of keys to sample."""
    if not isinstance(method, str) or method not in METHODS:
        raise InputError(f"method must be one of {', '.join(METHODS)}. Got {shown(method)}.")
    if sample_rate is not None and not is_number(sample_rate, 0, 1):
        raise InputError(
            "sample_rate must be a number above 0 and at most 1 (inclusive): the share of the "
            f"keys that samples have. Got {shown(sample_rate)}."
        )


def priced(prices: Prices) -> str:
    """Return the model of the prices, or the file that lists them."""
    if isinstance(prices, Mapping):
        return "listed"
    return os.fspath(prices)


def path_text(value: Any, name: str) -> str:
    """Return a path as a text."""
    if not isinstance(value, str | os.PathLike):
        raise InputError(f"{name} must be the path of a file. Got {shown(value)}.")
    return os.fspath(value)


def names_given(names: Iterable[str], option: str) -> tuple[str, ...]:
    """Return different names, in their order."""
    all_names = _listed(names, option, "names, such as ['a.csv']")
    for name in all_names:
        if not isinstance(name, str):
            raise InputError(f"{option} must be a list of names. Got {shown(name)} among them.")
    return tuple(dict.fromkeys(all_names))


def pairs_given(pairs: Iterable[Sequence[str]]) -> tuple[tuple[str, str], ...]:
    """Return pairs of tables that are not to be joined."""
    table_pairs = []
    for pair in _listed(pairs, "exclude_joins", "pairs of tables, such as [('a.csv', 'b.csv')]"):
        several = list(pair) if isinstance(pair, Iterable) else []
        names = names_in(pair) if isinstance(pair, str) else several
        if len(names) != 2 or not all(isinstance(name, str) for name in names):
            raise InputError(
                f"exclude_joins are pairs of tables, such as ('a.csv', 'b.csv'). Got {shown(pair)}."
            )
        table_pairs.append((names[0], names[1]))
    return tuple(table_pairs)


def _listed(values: Any, option: str, what: str) -> list[Any]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InputError(f"{option} must be a list of {what}. Got {shown(values)}.")
    return list(values)


def limit(value: Any, name: str) -> float:
    """Return an upper bound; infinite for None."""
    if value is None:
        return math.inf
    number = plain_scalar(value)
    if isinstance(number, bool) or not isinstance(number, int | float) or not number >= 0:
        raise InputError(f"{name} must be a number from 0. Got {shown(value)}.")
    return float(min(number, sys.float_info.max)) if isinstance(number, int) else number


def share(value: Any, name: str) -> float:
    """Return a share, from 0 to 1."""
    number = plain_scalar(value)
    if not is_number(number, -math.inf, 1) or number < 0:
        raise InputError(f"{name} must be a number from 0 to 1. Got {shown(value)}.")
    return float(number)


def fan_out(value: Any, want: Any, method: str) -> float:
    """Return the most rows of a key in a table that a join leads to."""
    if value is None:
        return math.inf if want is not None else 1.0
    if want is not None and method == "published":
        raise InputError("max_fan_out is for the method exact. Leave one of them out.")
    number = limit(value, "max_fan_out")
    if number < 1:
        raise InputError(f"max_fan_out must be a number from 1. Got {shown(value)}.")
    return number


def is_number(value: Any, above: float, maximum: float) -> bool:
    """Return whether a value is a number above a bound and at most another."""
    number = plain_scalar(value)
    is_number = isinstance(number, int | float) and not isinstance(number, bool)
    return is_number and above < number <= maximum
