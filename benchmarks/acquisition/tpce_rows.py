"""What the tables of the market like TPC-E have in common: sizes, references and columns.

A customer is of one of twelve groups. It has brokers and regional taxes of this group and trades
mostly securities of one sector, so that attributes at both ends of a long path are correlated.
Symbols, accounts and groups are skewed: some occur much more often than others.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.acquisition.draws import Draws
from pexeso.errors import InputError

NAME = "tpce"
MIN_ROWS = 1000

GROUPS, INDUSTRIES, EXCHANGES, TIERS, TAXES = 12, 102, 4, 3, 320
REGIONAL_TAXES = 20
"""Of each group; what is left of the taxes is national."""

STATUSES = ("completed", "active", "submitted", "pending", "cancelled")
TRADE_TYPES = ("market buy", "market sell", "limit buy", "limit sell", "stop loss")
SECTORS = (
    "basic materials",
    "capital goods",
    "conglomerates",
    "consumer cyclical",
    "consumer non-cyclical",
    "energy",
    "financial",
    "health care",
    "services",
    "technology",
    "transportation",
    "utilities",
)
RATINGS = ("AAA", "AA", "A", "BBB", "BB", "B", "CCC", "D")
_FIRST_DAY, DAYS = 12_000, 730


class Sizes:
    """How many rows the tables have that others refer to."""

    def __init__(self, rows: int):
        if rows < MIN_ROWS:
            raise InputError(f"The largest table has at least {MIN_ROWS:,} rows, got {rows:,}.")
        self.rows = rows
        self.customers = rows // 100 + 10
        self.accounts = 5 * self.customers
        self.brokers = GROUPS * (2 + self.customers // 500)
        self.securities = rows // 150 + 60
        self.companies = self.securities * 3 // 4
        self.addresses = self.customers * 3 // 2
        self.zips = rows // 70 + 50
        self.trades = rows // 4
        self.days = rows // (2 * self.securities) + 1


class Rows:
    """What several tables of the market refer to, drawn before any of them."""

    def __init__(self, rows: int, seed: int):
        self.n = Sizes(rows)
        self.seed = seed
        n = self.n
        self.group = self.draw("customer", "group").skewed(n.customers, GROUPS)
        self.tier = self.draw("customer", "tier").between(n.customers, 1, TIERS)
        owners = self.draw("customer_account", "owner").skewed(
            n.accounts - n.customers, n.customers
        )
        self.owner = np.concatenate([np.arange(n.customers), owners])
        branch = self.draw("customer", "broker").below(n.customers, n.brokers // GROUPS)
        self.broker = self.group + GROUPS * branch
        self.industry = np.arange(n.companies) % INDUSTRIES
        further = self.draw("security", "company").below(n.securities - n.companies, n.companies)
        self.company = np.concatenate([np.arange(n.companies), further])
        self.rating = self.draw("company", "rating").below(n.companies, len(RATINGS))
        noise = self.draw("security", "price").below(n.securities, 2000)
        self.cents = 2000 + 1500 * (len(RATINGS) - self.rating[self.company]) + noise
        sector = self.industry[self.company] % GROUPS
        self._by_sector = np.argsort(sector, kind="stable")
        self._in_sector = np.bincount(sector, minlength=GROUPS)
        self._first = np.cumsum(self._in_sector) - self._in_sector
        self.account = self.draw("trade", "account").skewed(n.trades, n.accounts)
        self.symbol = self.preferred("trade", self.group[self.owner[self.account]], 70)
        self.day = self.draw("trade", "day").below(n.trades, DAYS)
        self.kind = self.draw("trade", "type").below(n.trades, len(TRADE_TYPES))
        self.status = self.draw("trade", "status").skewed(n.trades, len(STATUSES))
        self.quantity = 100 * self.draw("trade", "quantity").between(n.trades, 1, 8)
        percent = self.draw("trade", "percent").between(n.trades, 80, 120)
        self.price = self.cents[self.symbol] * percent // 100
        self.held = np.sort(self.draw("holding", "trade").order(n.trades)[: n.trades * 3 // 10])

    def draw(self, table: str, column: str) -> Draws:
        """Return the draws of a column."""
        return Draws(self.seed, NAME, table, column)

    def preferred(self, table: str, group: np.ndarray, percent: int) -> np.ndarray:
        """Draw securities, so many of a hundred of the sector that a group prefers."""
        n, draws = len(group), self.draw(table, "preferred")
        lower = np.minimum(*(draws.below(n, self._in_sector[group]) for _ in range(2)))
        inside = self._by_sector[self._first[group] + lower]
        anywhere = draws.skewed(n, self.n.securities)
        return np.where(draws.chance(n, percent), inside, anywhere)


def product(*sizes: int) -> tuple[np.ndarray, ...]:
    """Return all combinations of numbers below sizes, the last one changing fastest."""
    return tuple(axis.ravel() for axis in np.indices(sizes))


def texts(prefix: str, numbers: np.ndarray) -> pa.Array:
    """Return texts such as ``S12``."""
    return pc.binary_join_element_wise(prefix, pa.array(numbers).cast(pa.string()), "")


def one_of(values: str | tuple[str, ...] | list[str], codes: np.ndarray) -> pa.Array:
    """Return the values at positions."""
    return pc.take(pa.array(list(values)), pa.array(codes))


def amounts(cents: np.ndarray) -> np.ndarray:
    """Return hundredths as numbers: one division, which is rounded alike everywhere."""
    return cents / np.float64(100)


def dates(days: np.ndarray) -> pa.Array:
    """Return the dates so many days after the first one."""
    return pa.array((_FIRST_DAY + days).astype(np.int32)).cast(pa.date32())
