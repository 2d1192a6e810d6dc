"""A market like TPC-E: 29 tables of a brokerage, drawn from a seed, twenty of them damaged.

Tables and keys follow the public schema of TPC-E; rows are our own. Of its 33
tables these are left out: requests of trades, which are empty between two trades, news and what
companies they are about, which are documents, and the history of holdings.

Tables are joined by equal names, so only names of one thing are equal. Addresses of companies and
states of anything but trades are no keys here: they would join customers with companies of the same
street. Then a shortest path from sectors to tax rates has eight tables.

By their distance from sectors, each of four pairs of distances shares one join column, H1 the
nearest and H4 the farthest. No path becomes shorter by them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import pyarrow as pa

from benchmarks.acquisition.damage import with_join_columns, with_wrong_values
from benchmarks.acquisition.market import About, Query, determined
from benchmarks.acquisition.tpce_customers import of_brokers, of_customers, of_watchers
from benchmarks.acquisition.tpce_rows import NAME, Rows
from benchmarks.acquisition.tpce_securities import of_markets, of_trades

ROWS = 100_000
"""Of the largest table, what customers watch."""

JOIN_COLUMNS = {
    "H1": ("industry", "sector"),
    "H2": ("company", "company_competitor", "financial", "security"),
    "H3": (
        "account_permission",
        "cash_transaction",
        "charge",
        "commission_rate",
        "customer",
        "customer_account",
        "daily_market",
        "exchange",
        "holding",
        "holding_summary",
        "last_trade",
        "settlement",
        "status_type",
        "trade",
        "trade_history",
        "trade_type",
        "watch_item",
        "watch_list",
    ),
    "H4": ("address", "broker", "customer_taxrate", "taxrate", "zip_code"),
}
"""The tables that have each join column."""

_DEPENDENCIES = {
    "account_permission": determined(("permissionid",), "accountid", "access", "holdernumber")
    + determined(("holdernumber",), "holdername"),
    "address": determined(("addressid",), "street", "zipcode")
    + determined(("zipcode",), "postdistrict"),
    "broker": determined(("brokerid",), "brokername", "brokeroffice", "tradecount")
    + determined(("brokeroffice",), "brokercity"),
    "cash_transaction": determined(("tradeid",), "cashdate", "cashamount", "cashcode")
    + determined(("cashcode",), "cashnote"),
    "charge": determined(("tradetypeid", "tier"), "chargeamount"),
    "commission_rate": determined(
        ("tier", "tradetypeid", "exchangeid", "fromquantity"), "commissionpercent"
    )
    + determined(("fromquantity",), "toquantity"),
    "company": determined(("companyid",), "companyname", "industryid", "creditrating", "chief")
    + determined(("industryid",), "businessline"),
    "company_competitor": determined(("competitorid",), "industryid"),
    "customer": determined(("customerid",), "taxnumber", "tier", "areacode", "addressid")
    + determined(("areacode",), "country")
    + determined(("birthyear",), "generation"),
    "customer_account": determined(("accountid",), "customerid", "accountname", "balance")
    + determined(("customerid",), "brokerid"),
    "customer_taxrate": determined(("customerid",), "taxedsince"),
    "daily_market": determined(
        ("symbol", "marketdate"), "closeprice", "highprice", "lowprice", "marketvolume"
    )
    + determined(("marketdate",), "marketweek"),
    "exchange": determined(("exchangeid",), "exchangename", "opens", "closes"),
    "financial": determined(("companyid", "quarterid"), "revenue", "earnings", "assets")
    + determined(("quarterid",), "financialyear", "quarterofyear"),
    "holding": determined(("tradeid",), "accountid", "symbol", "boughtat", "heldquantity")
    + determined(("boughton",), "boughtin"),
    "holding_summary": determined(("accountid", "symbol"), "totalquantity")
    + determined(("symbol",), "lot"),
    "industry": determined(("industryid",), "industryname", "sectorid"),
    "last_trade": determined(("symbol",), "lastprice", "openprice", "lastvolume"),
    "sector": determined(("sectorid",), "sectorname"),
    "security": determined(("symbol",), "securityname", "companyid", "shares", "dividend")
    + determined(("exchangeid",), "tradedin"),
    "settlement": determined(("tradeid",), "settledby", "settlementdate", "settledamount")
    + determined(("settledby",), "settlementdays"),
    "status_type": determined(("statusid",), "statusname"),
    "taxrate": determined(("taxid",), "taxname", "taxregion", "taxpercent"),
    "trade": determined(("tradeid",), "statusid", "symbol", "tradeprice", "accountid")
    + determined(("accountid",), "executor"),
    "trade_history": determined(("tradeid", "historystep"), "statusid", "historydate")
    + determined(("statusid",), "finality"),
    "trade_type": determined(("tradetypeid",), "tradetypename", "sells", "atmarket"),
    "watch_item": determined(("watchlistid", "symbol"), "watchedsince")
    + determined(("symbol",), "watchgroup"),
    "watch_list": determined(("watchlistid",), "customerid", "watchlistkind"),
    "zip_code": determined(("zipcode",), "town", "division") + determined(("town",), "division"),
}

_UNDAMAGED = (
    "charge",
    "commission_rate",
    "exchange",
    "industry",
    "sector",
    "status_type",
    "taxrate",
    "trade_type",
    "zip_code",
)

ABOUT = About(
    name=NAME,
    numeric=(
        "assets",
        "balance",
        "birthyear",
        "boughtat",
        "cashamount",
        "chargeamount",
        "closeprice",
        "commission",
        "commissionpercent",
        "commissiontotal",
        "dividend",
        "earnings",
        "heldquantity",
        "highprice",
        "lastprice",
        "lastvolume",
        "lowprice",
        "marketvolume",
        "openprice",
        "quantity",
        "revenue",
        "settledamount",
        "shares",
        "taxpercent",
        "totalquantity",
        "tradecount",
        "tradeprice",
    ),
    dependencies=_DEPENDENCIES,
    damaged=tuple(name for name in sorted(_DEPENDENCIES) if name not in _UNDAMAGED),
    queries=(
        Query("short", ("tradeprice",), ("creditrating",), 3, ("trade", "security", "company")),
        Query(
            "medium",
            ("brokeroffice",),
            ("businessline",),
            5,
            ("broker", "customer_account", "trade", "security", "company"),
        ),
        Query(
            "long",
            ("sectorname",),
            ("taxregion",),
            8,
            (
                "sector",
                "industry",
                "company",
                "security",
                "trade",
                "customer_account",
                "customer_taxrate",
                "taxrate",
            ),
        ),
    ),
    max_tables=8,
)


def tpce_tables(rows: int = ROWS, *, seed: int = 0) -> Iterator[tuple[str, pa.Table]]:
    """Draw the tables of the market, with their names, one after the other.

    Memory holds what tables refer to, about a hundred bytes for each row of the largest table, and
    one table.
    """
    columns = {
        name: [column for column, names in JOIN_COLUMNS.items() if name in names]
        for name in _DEPENDENCIES
    }
    for name, clean in clean_tables(rows, seed=seed):
        table = clean
        if name in ABOUT.damaged:
            table = with_wrong_values(
                table, _DEPENDENCIES[name], seed=seed, market=NAME, table_name=name
            )
        yield (
            name,
            with_join_columns(table, columns[name], seed=seed, market=NAME, table_name=name),
        )


def clean_tables(rows: int = ROWS, *, seed: int = 0) -> Iterator[tuple[str, pa.Table]]:
    """Draw the tables before join columns are added and values made wrong."""
    shared_rows = Rows(rows, seed)
    return chain(
        of_customers(shared_rows),
        of_brokers(shared_rows),
        of_markets(shared_rows),
        of_trades(shared_rows),
        of_watchers(shared_rows),
    )
