"""Rows of the tables of the market that is like TPC-E.

A customer is of one of twelve groups. It has brokers and regional taxes of this group and trades
mostly securities of one sector, so that attributes at both ends of a long path are correlated.
Symbols, accounts and groups are skewed: some occur much more often than others.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.acquisition.draws import Draws
from pexeso.errors import InputError

NAME = "tpce"
MIN_ROWS = 1000

_GROUPS, _INDUSTRIES, _EXCHANGES, _TIERS, _TAXES = 12, 102, 4, 3, 320
_REGIONAL_TAXES = 20
"""Of each group; what is left of the taxes is national."""

_STATUSES = ("completed", "active", "submitted", "pending", "cancelled")
_TRADE_TYPES = ("market buy", "market sell", "limit buy", "limit sell", "stop loss")
_SECTORS = tuple(
    [
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
    ]
)
_RATINGS = ("AAA", "AA", "A", "BBB", "BB", "B", "CCC", "D")
_FIRST_DAY, _DAYS = 12_000, 730
_QUARTERS, _BANDS, _COMPETITORS = 20, 4, 3


class Sizes:
    """How many rows the tables have that others refer to.

    Parameters
    ----------
    rows : int
        Of the largest table, at least `MIN_ROWS`.
    """

    def __init__(self, rows: int):
        if rows < MIN_ROWS:
            raise InputError(f"The largest table has at least {MIN_ROWS:,} rows, got {rows:,}.")
        self.rows = rows
        self.customers = rows // 100 + 10
        self.accounts = 5 * self.customers
        self.brokers = _GROUPS * (2 + self.customers // 500)
        self.securities = rows // 150 + 60
        self.companies = self.securities * 3 // 4
        self.addresses = self.customers * 3 // 2
        self.zips = rows // 70 + 50
        self.trades = rows // 4
        self.days = rows // (2 * self.securities) + 1


class Rows:
    """Makes the tables; those that others refer to are made first and kept.

    Parameters
    ----------
    rows : int
        Of the largest table.
    seed : int
    """

    def __init__(self, rows: int, seed: int):
        self.n = Sizes(rows)
        self.seed = seed
        n = self.n
        self.group = self.draw("customer", "group").skewed(n.customers, _GROUPS)
        self.tier = self.draw("customer", "tier").between(n.customers, 1, _TIERS)
        owners = self.draw("customer_account", "owner").skewed(
            n.accounts - n.customers, n.customers
        )
        self.owner = np.concatenate([np.arange(n.customers), owners])
        branch = self.draw("customer", "broker").below(n.customers, n.brokers // _GROUPS)
        self.broker = self.group + _GROUPS * branch
        self.industry = np.arange(n.companies) % _INDUSTRIES
        further = self.draw("security", "company").below(n.securities - n.companies, n.companies)
        self.company = np.concatenate([np.arange(n.companies), further])
        self.rating = self.draw("company", "rating").below(n.companies, len(_RATINGS))
        noise = self.draw("security", "price").below(n.securities, 2000)
        self.cents = 2000 + 1500 * (len(_RATINGS) - self.rating[self.company]) + noise
        sector = self.industry[self.company] % _GROUPS
        self._by_sector = np.argsort(sector, kind="stable")
        self._in_sector = np.bincount(sector, minlength=_GROUPS)
        self._first = np.cumsum(self._in_sector) - self._in_sector
        self.account = self.draw("trade", "account").skewed(n.trades, n.accounts)
        self.symbol = self.preferred("trade", self.group[self.owner[self.account]], 70)
        self.day = self.draw("trade", "day").below(n.trades, _DAYS)
        self.kind = self.draw("trade", "type").below(n.trades, len(_TRADE_TYPES))
        self.status = self.draw("trade", "status").skewed(n.trades, len(_STATUSES))
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

    def of_customers(self) -> Iterator[tuple[str, pa.Table]]:
        """Make the tables about customers and where they live."""
        n, draw = self.n, self.draw
        ids, accounts = np.arange(n.customers), np.arange(n.accounts)
        area = draw("customer", "area").between(n.customers, 200, 299)
        home = draw("customer", "address").order(n.addresses)[: n.customers]
        born = draw("customer", "born").between(n.customers, 1930, 2000)
        yield (
            "customer",
            pa.table(
                {
                    "customerid": ids,
                    "taxnumber": _text("T", draw("customer", "tax").order(n.customers)),
                    "lastname": _text("Family", draw("customer", "last").skewed(n.customers, 200)),
                    "firstname": _text("Given", draw("customer", "first").skewed(n.customers, 80)),
                    "gender": _one_of("FMX", draw("customer", "gender").below(n.customers, 3)),
                    "tier": self.tier,
                    "birthyear": born,
                    "generation": born // 10 * 10,
                    "areacode": area,
                    "country": _text("Country", area % 10),
                    "addressid": home,
                }
            ),
        )
        balance = draw("customer_account", "balance").below(n.accounts, 10**8) - 10**6
        yield (
            "customer_account",
            pa.table(
                {
                    "accountid": accounts,
                    "customerid": self.owner,
                    "brokerid": self.broker[self.owner],
                    "accountname": _text(
                        "Account", draw("customer_account", "name").order(n.accounts)
                    ),
                    "taxstatus": draw("customer_account", "tax").below(n.accounts, 3),
                    "balance": _amount(balance),
                }
            ),
        )
        second = np.sort(draw("account_permission", "second").order(n.accounts)[: n.accounts // 4])
        allowed = np.concatenate([accounts, second])
        other = draw("account_permission", "other").below(len(second), n.customers)
        holder = np.concatenate([self.owner, other])
        right = np.repeat([0, 1], [n.accounts, len(second)])
        yield (
            "account_permission",
            pa.table(
                {
                    "accountid": allowed,
                    "permissionid": np.arange(len(allowed)),
                    "access": _one_of(["trade and view", "view"], right),
                    "holdernumber": holder,
                    "holdername": _text("Holder", holder * 7919 % n.customers),
                }
            ),
        )
        region = self.group * _REGIONAL_TAXES
        region = region + draw("customer_taxrate", "region").below(n.customers, _REGIONAL_TAXES)
        first_national = _GROUPS * _REGIONAL_TAXES
        national = first_national + draw("customer_taxrate", "nation").skewed(
            n.customers, _TAXES - first_national
        )
        since = draw("customer_taxrate", "since").below(n.customers, 40) + 1980
        yield (
            "customer_taxrate",
            pa.table(
                {
                    "customerid": np.repeat(ids, 2),
                    "taxid": np.stack([region, national], axis=1).ravel(),
                    "taxedsince": np.repeat(since, 2),
                }
            ),
        )
        zips = draw("address", "zip").skewed(n.addresses, n.zips)
        yield (
            "address",
            pa.table(
                {
                    "addressid": np.arange(n.addresses),
                    "street": _text("Street", draw("address", "street").skewed(n.addresses, 5000)),
                    "zipcode": _text("Z", zips),
                    "postdistrict": zips // 10,
                }
            ),
        )
        codes = np.arange(n.zips)
        yield (
            "zip_code",
            pa.table(
                {
                    "zipcode": _text("Z", codes),
                    "town": _text("Town", codes // 3),
                    "division": _text("Division", codes // 30),
                }
            ),
        )

    def of_brokers(self) -> Iterator[tuple[str, pa.Table]]:
        """Make the tables of brokers, charges, commissions and taxes."""
        n, draw = self.n, self.draw
        ids = np.arange(n.brokers)
        yield (
            "broker",
            pa.table(
                {
                    "brokerid": ids,
                    "brokername": _text("Broker", draw("broker", "name").order(n.brokers)),
                    "brokeroffice": _text("Office", ids % _GROUPS),
                    "brokercity": _text("City", ids % _GROUPS // 2),
                    "tradecount": draw("broker", "count").below(n.brokers, 10**5),
                    "commissiontotal": _amount(draw("broker", "total").below(n.brokers, 10**8)),
                }
            ),
        )
        kinds = np.arange(len(_TRADE_TYPES))
        tier, kind = _product(_TIERS, len(_TRADE_TYPES))
        yield (
            "charge",
            pa.table(
                {
                    "tradetypeid": kind,
                    "tier": tier + 1,
                    "chargeamount": _amount(450 - 100 * tier + 25 * kind),
                }
            ),
        )
        tier, kind, exchange, band = _product(_TIERS, len(_TRADE_TYPES), _EXCHANGES, _BANDS)
        yield (
            "commission_rate",
            pa.table(
                {
                    "tier": tier + 1,
                    "tradetypeid": kind,
                    "exchangeid": _text("X", exchange),
                    "fromquantity": 200 * band + 1,
                    "toquantity": 200 * band + 200,
                    "commissionpercent": _amount(75 - 10 * tier - 5 * band + 3 * kind + exchange),
                }
            ),
        )
        taxes = np.arange(_TAXES)
        regional = taxes < _GROUPS * _REGIONAL_TAXES
        area = np.where(regional, taxes // _REGIONAL_TAXES, _GROUPS)
        yield (
            "taxrate",
            pa.table(
                {
                    "taxid": taxes,
                    "taxname": _text("Tax", taxes),
                    "taxregion": _text("Region", area),
                    "taxpercent": _amount(draw("taxrate", "rate").below(_TAXES, 30) + 25 * area),
                }
            ),
        )
        yield (
            "trade_type",
            pa.table(
                {
                    "tradetypeid": kinds,
                    "tradetypename": list(_TRADE_TYPES),
                    "sells": ["sell" in name or "stop" in name for name in _TRADE_TYPES],
                    "atmarket": ["market" in name for name in _TRADE_TYPES],
                }
            ),
        )
        yield (
            "status_type",
            pa.table({"statusid": np.arange(len(_STATUSES)), "statusname": list(_STATUSES)}),
        )

    def of_markets(self) -> Iterator[tuple[str, pa.Table]]:
        """Make the tables of companies, securities and what these are worth."""
        n, draw = self.n, self.draw
        industries = np.arange(_INDUSTRIES)
        yield "sector", pa.table({"sectorid": np.arange(_GROUPS), "sectorname": list(_SECTORS)})
        yield (
            "industry",
            pa.table(
                {
                    "industryid": industries,
                    "industryname": _text("Industry", industries),
                    "sectorid": industries % _GROUPS,
                }
            ),
        )
        ids = np.arange(n.companies)
        yield (
            "company",
            pa.table(
                {
                    "companyid": ids,
                    "companyname": _text("Company", draw("company", "name").order(n.companies)),
                    "industryid": self.industry,
                    "businessline": _text("Line", self.industry % _GROUPS * 3),
                    "creditrating": _one_of(_RATINGS, self.rating),
                    "chief": _text("Chief", draw("company", "chief").order(n.companies)),
                    "opened": draw("company", "opened").between(n.companies, 1850, 2000),
                }
            ),
        )
        third = (n.companies - 1) // _COMPETITORS
        company, number = _product(n.companies, _COMPETITORS)
        step = 1 + third * number + draw("company_competitor", "step").below(len(company), third)
        competitor = (company + step) % n.companies
        yield (
            "company_competitor",
            pa.table(
                {
                    "companyid": company,
                    "competitorid": competitor,
                    "industryid": self.industry[competitor],
                }
            ),
        )
        company, quarter = _product(n.companies, _QUARTERS)
        revenue = draw("financial", "revenue").below(len(company), 10**9) + 10**6
        earned = revenue * draw("financial", "margin").below(len(company), 30) // 100
        yield (
            "financial",
            pa.table(
                {
                    "companyid": company,
                    "quarterid": quarter,
                    "financialyear": 2000 + quarter // 4,
                    "quarterofyear": quarter % 4 + 1,
                    "revenue": _amount(revenue),
                    "earnings": _amount(earned),
                    "assets": _amount(draw("financial", "assets").below(len(company), 10**10)),
                }
            ),
        )
        symbols = _text("S", np.arange(n.securities))
        exchange = draw("security", "exchange").skewed(n.securities, _EXCHANGES)
        yield (
            "security",
            pa.table(
                {
                    "symbol": symbols,
                    "securityname": _text("Share", draw("security", "name").order(n.securities)),
                    "companyid": self.company,
                    "exchangeid": _text("X", exchange),
                    "tradedin": _text("Currency", exchange // 2),
                    "issue": draw("security", "issue").skewed(n.securities, 5),
                    "shares": draw("security", "shares").between(n.securities, 10**4, 10**8),
                    "dividend": _amount(draw("security", "dividend").below(n.securities, 500)),
                }
            ),
        )
        names = np.arange(_EXCHANGES)
        yield (
            "exchange",
            pa.table(
                {
                    "exchangeid": _text("X", names),
                    "exchangename": _text("Exchange", names),
                    "opens": 900 + 30 * (names % 2),
                    "closes": 1600 + 30 * (names // 2),
                }
            ),
        )
        security, day = _product(n.securities, n.days)
        close = self.cents[security] * draw("daily_market", "close").between(len(day), 80, 120)
        low = close * draw("daily_market", "low").between(len(day), 90, 100) // 100
        high = close * draw("daily_market", "high").between(len(day), 100, 110) // 100
        yield (
            "daily_market",
            pa.table(
                {
                    "symbol": pc.take(symbols, pa.array(security)),
                    "marketdate": _date(day),
                    "marketweek": day // 7,
                    "closeprice": _amount(close // 100),
                    "highprice": _amount(high // 100),
                    "lowprice": _amount(low // 100),
                    "marketvolume": draw("daily_market", "volume").between(len(day), 1000, 10**5),
                }
            ),
        )
        yield (
            "last_trade",
            pa.table(
                {
                    "symbol": symbols,
                    "lastprice": _amount(self.cents),
                    "openprice": _amount(
                        self.cents
                        * draw("last_trade", "open").between(n.securities, 95, 105)
                        // 100
                    ),
                    "lastvolume": draw("last_trade", "volume").below(n.securities, 10**6),
                }
            ),
        )

    def of_trades(self) -> Iterator[tuple[str, pa.Table]]:
        """Make the tables of trades and what followed from them."""
        n, draw = self.n, self.draw
        ids = np.arange(n.trades)
        symbols = _text("S", self.symbol)
        yield (
            "trade",
            pa.table(
                {
                    "tradeid": ids,
                    "tradedate": _date(self.day),
                    "statusid": self.status,
                    "tradetypeid": self.kind,
                    "symbol": symbols,
                    "quantity": self.quantity,
                    "tradeprice": _amount(self.price),
                    "accountid": self.account,
                    "executor": _text("Executor", self.account * 31 % n.customers),
                    "commission": _amount(self.price * self.quantity // 10_000),
                }
            ),
        )
        steps = 2 + draw("trade_history", "steps").below(n.trades, 2)
        trade = np.repeat(ids, steps)
        step = np.arange(len(trade)) - np.repeat(np.cumsum(steps) - steps, steps)
        state = np.where(step + 1 == steps[trade], self.status[trade], len(_STATUSES) - 1 - step)
        yield (
            "trade_history",
            pa.table(
                {
                    "tradeid": trade,
                    "historystep": step,
                    "statusid": state,
                    "finality": _one_of(["closed", "open"], (state % 4 > 0).astype(np.int64)),
                    "historydate": _date(self.day[trade] + step),
                }
            ),
        )
        means = draw("settlement", "means").below(n.trades, 2)
        yield (
            "settlement",
            pa.table(
                {
                    "tradeid": ids,
                    "settledby": _one_of(["cash account", "margin"], means),
                    "settlementdays": 2 + 3 * means,
                    "settlementdate": _date(self.day + 2 + 3 * means),
                    "settledamount": _amount(self.price * self.quantity),
                }
            ),
        )
        paid = np.sort(draw("cash_transaction", "trade").order(n.trades)[: n.trades * 9 // 10])
        yield (
            "cash_transaction",
            pa.table(
                {
                    "tradeid": paid,
                    "cashdate": _date(self.day[paid] + 1),
                    "cashamount": _amount(self.price[paid] * self.quantity[paid]),
                    "cashcode": self.kind[paid] + 10,
                    "cashnote": _text("Note", self.kind[paid]),
                }
            ),
        )
        held = self.held
        yield (
            "holding",
            pa.table(
                {
                    "tradeid": held,
                    "accountid": self.account[held],
                    "symbol": pc.take(symbols, pa.array(held)),
                    "boughton": _date(self.day[held]),
                    "boughtin": 1 + self.day[held] // 30,
                    "boughtat": _amount(self.price[held]),
                    "heldquantity": self.quantity[held],
                }
            ),
        )
        pairs, which = np.unique(
            self.account[held] * n.securities + self.symbol[held], return_inverse=True
        )
        total = np.zeros(len(pairs), np.int64)
        np.add.at(total, which, self.quantity[held])
        yield (
            "holding_summary",
            pa.table(
                {
                    "accountid": pairs // n.securities,
                    "symbol": _text("S", pairs % n.securities),
                    "totalquantity": total,
                    "lot": _text("Lot", pairs % n.securities % 7),
                }
            ),
        )

    def of_watchers(self) -> Iterator[tuple[str, pa.Table]]:
        """Make the tables of what customers watch."""
        n, draw = self.n, self.draw
        yield (
            "watch_list",
            pa.table(
                {
                    "watchlistid": np.arange(n.customers),
                    "customerid": draw("watch_list", "customer").order(n.customers),
                    "watchlistkind": draw("watch_list", "kind").skewed(n.customers, 6),
                }
            ),
        )
        owner = draw("watch_list", "customer").order(n.customers)
        watching = draw("watch_item", "list").below(4 * n.rows, n.customers)
        watched = self.preferred("watch_item", self.group[owner[watching]], 30)
        pairs = np.unique(watching * n.securities + watched)
        kept = np.sort(draw("watch_item", "kept").order(len(pairs))[: n.rows])
        lists, watched = pairs[kept] // n.securities, pairs[kept] % n.securities
        yield (
            "watch_item",
            pa.table(
                {
                    "watchlistid": lists,
                    "symbol": _text("S", watched),
                    "watchgroup": _text("Watch", watched % 9),
                    "watchedsince": draw("watch_item", "since").between(len(lists), 1990, 2010),
                }
            ),
        )


def _product(*sizes: int) -> tuple[np.ndarray, ...]:
    """Return all combinations of numbers below sizes, the last one changing fastest."""
    return tuple(axis.ravel() for axis in np.indices(sizes))


def _text(prefix: str, numbers: np.ndarray) -> pa.Array:
    """Return texts such as ``S12``."""
    return pc.binary_join_element_wise(prefix, pa.array(numbers).cast(pa.string()), "")


def _one_of(texts: str | tuple[str, ...] | list[str], codes: np.ndarray) -> pa.Array:
    return pc.take(pa.array(list(texts)), pa.array(codes))


def _amount(cents: np.ndarray) -> np.ndarray:
    return cents / np.float64(100)


def _date(days: np.ndarray) -> pa.Array:
    return pa.array((_FIRST_DAY + days).astype(np.int32)).cast(pa.date32())
