"""A market: tables with prices, what is known of their attributes, and what can be asked of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from pexeso.acquisition.quality import Dependency
from pexeso.acquisition.tables import projection_price


@dataclass(frozen=True)
class Query:
    """What a shopper asks of a market."""

    name: str
    source: tuple[str, ...]
    target: tuple[str, ...]
    length: int


@dataclass(frozen=True)
class About:
    """What is known of a market beside its rows."""

    name: str
    numeric: tuple[str, ...]
    dependencies: Mapping[str, tuple[Dependency, ...]]
    damaged: tuple[str, ...]
    queries: tuple[Query, ...]


@dataclass(frozen=True)
class Market:
    """A market that was read."""

    about: About
    tables: dict[str, pa.Table]
    prices: dict[tuple[str, str], float]
    options: dict[str, object] = field(default_factory=dict)


def market_of(
    about: About, tables: Iterable[tuple[str, pa.Table]], options: Mapping[str, object]
) -> Market:
    """Return a market whose columns have prices: their entropy in bits."""
    tables = dict(tables)
    prices = {
        (name, column): projection_price(table, [column])
        for name, table in tables.items()
        for column in table.column_names
    }
    return Market(about, tables, prices, dict(options))


def determined(keys: Collection[str], *attributes: str) -> tuple[Dependency, ...]:
    """Return the dependencies of attributes on a key, one for each attribute."""
    return tuple(Dependency(tuple(keys), attribute) for attribute in attributes)
