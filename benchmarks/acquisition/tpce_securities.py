"""Tables of the market like TPC-E about companies, securities and trades."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.acquisition.tpce_rows import (
    EXCHANGES,
    GROUPS,
    INDUSTRIES,
    RATINGS,
    SECTORS,
    STATUSES,
    Rows,
    amounts,
    dates,
    one_of,
    product,
    texts,
)

_QUARTERS, _COMPETITORS = 20, 3


def of_markets(made: Rows) -> Iterator[tuple[str, pa.Table]]:
    """Make the tables of companies, securities and what these are worth."""
    n, draw = made.n, made.draw
    industries = np.arange(INDUSTRIES)
    yield "sector", pa.table({"sectorid": np.arange(GROUPS), "sectorname": list(SECTORS)})
    yield (
        "industry",
        pa.table(
            {
                "industryid": industries,
                "industryname": texts("Industry", industries),
                "sectorid": industries % GROUPS,
            }
        ),
    )
    ids = np.arange(n.companies)
    yield (
        "company",
        pa.table(
            {
                "companyid": ids,
                "companyname": texts("Company", draw("company", "name").order(n.companies)),
                "industryid": made.industry,
                "businessline": texts("Line", made.industry % GROUPS * 3),
                "creditrating": one_of(RATINGS, made.rating),
                "chief": texts("Chief", draw("company", "chief").order(n.companies)),
                "opened": draw("company", "opened").between(n.companies, 1850, 2000),
            }
        ),
    )
    third = (n.companies - 1) // _COMPETITORS
    company, number = product(n.companies, _COMPETITORS)
    step = 1 + third * number + draw("company_competitor", "step").below(len(company), third)
    competitor = (company + step) % n.companies
    yield (
        "company_competitor",
        pa.table(
            {
                "companyid": company,
                "competitorid": competitor,
                "industryid": made.industry[competitor],
            }
        ),
    )
    company, quarter = product(n.companies, _QUARTERS)
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
                "revenue": amounts(revenue),
                "earnings": amounts(earned),
                "assets": amounts(draw("financial", "assets").below(len(company), 10**10)),
            }
        ),
    )
    symbols = texts("S", np.arange(n.securities))
    exchange = draw("security", "exchange").skewed(n.securities, EXCHANGES)
    yield (
        "security",
        pa.table(
            {
                "symbol": symbols,
                "securityname": texts("Share", draw("security", "name").order(n.securities)),
                "companyid": made.company,
                "exchangeid": texts("X", exchange),
                "tradedin": texts("Currency", exchange // 2),
                "issue": draw("security", "issue").skewed(n.securities, 5),
                "shares": draw("security", "shares").between(n.securities, 10**4, 10**8),
                "dividend": amounts(draw("security", "dividend").below(n.securities, 500)),
            }
        ),
    )
    names = np.arange(EXCHANGES)
    yield (
        "exchange",
        pa.table(
            {
                "exchangeid": texts("X", names),
                "exchangename": texts("Exchange", names),
                "opens": 900 + 30 * (names % 2),
                "closes": 1600 + 30 * (names // 2),
            }
        ),
    )
    security, day = product(n.securities, n.days)
    close = made.cents[security] * draw("daily_market", "close").between(len(day), 80, 120)
    low = close * draw("daily_market", "low").between(len(day), 90, 100) // 100
    high = close * draw("daily_market", "high").between(len(day), 100, 110) // 100
    yield (
        "daily_market",
        pa.table(
            {
                "symbol": pc.take(symbols, pa.array(security)),
                "marketdate": dates(day),
                "marketweek": day // 7,
                "closeprice": amounts(close // 100),
                "highprice": amounts(high // 100),
                "lowprice": amounts(low // 100),
                "marketvolume": draw("daily_market", "volume").between(len(day), 1000, 10**5),
            }
        ),
    )
    yield (
        "last_trade",
        pa.table(
            {
                "symbol": symbols,
                "lastprice": amounts(made.cents),
                "openprice": amounts(
                    made.cents * draw("last_trade", "open").between(n.securities, 95, 105) // 100
                ),
                "lastvolume": draw("last_trade", "volume").below(n.securities, 10**6),
            }
        ),
    )


def of_trades(made: Rows) -> Iterator[tuple[str, pa.Table]]:
    """Make the tables of trades and what followed from them."""
    n, draw = made.n, made.draw
    ids = np.arange(n.trades)
    symbols = texts("S", made.symbol)
    yield (
        "trade",
        pa.table(
            {
                "tradeid": ids,
                "tradedate": dates(made.day),
                "statusid": made.status,
                "tradetypeid": made.kind,
                "symbol": symbols,
                "quantity": made.quantity,
                "tradeprice": amounts(made.price),
                "accountid": made.account,
                "executor": texts("Executor", made.account * 31 % n.customers),
                "commission": amounts(made.price * made.quantity // 10_000),
            }
        ),
    )
    steps = 2 + draw("trade_history", "steps").below(n.trades, 2)
    trade = np.repeat(ids, steps)
    step = np.arange(len(trade)) - np.repeat(np.cumsum(steps) - steps, steps)
    state = np.where(step + 1 == steps[trade], made.status[trade], len(STATUSES) - 1 - step)
    yield (
        "trade_history",
        pa.table(
            {
                "tradeid": trade,
                "historystep": step,
                "statusid": state,
                "finality": one_of(["closed", "open"], (state % 4 > 0).astype(np.int64)),
                "historydate": dates(made.day[trade] + step),
            }
        ),
    )
    means = draw("settlement", "means").below(n.trades, 2)
    yield (
        "settlement",
        pa.table(
            {
                "tradeid": ids,
                "settledby": one_of(["cash account", "margin"], means),
                "settlementdays": 2 + 3 * means,
                "settlementdate": dates(made.day + 2 + 3 * means),
                "settledamount": amounts(made.price * made.quantity),
            }
        ),
    )
    paid = np.sort(draw("cash_transaction", "trade").order(n.trades)[: n.trades * 9 // 10])
    yield (
        "cash_transaction",
        pa.table(
            {
                "tradeid": paid,
                "cashdate": dates(made.day[paid] + 1),
                "cashamount": amounts(made.price[paid] * made.quantity[paid]),
                "cashcode": made.kind[paid] + 10,
                "cashnote": texts("Note", made.kind[paid]),
            }
        ),
    )
    held = made.held
    yield (
        "holding",
        pa.table(
            {
                "tradeid": held,
                "accountid": made.account[held],
                "symbol": pc.take(symbols, pa.array(held)),
                "boughton": dates(made.day[held]),
                "boughtin": 1 + made.day[held] // 30,
                "boughtat": amounts(made.price[held]),
                "heldquantity": made.quantity[held],
            }
        ),
    )
    pairs, which = np.unique(
        made.account[held] * n.securities + made.symbol[held], return_inverse=True
    )
    total = np.zeros(len(pairs), np.int64)
    np.add.at(total, which, made.quantity[held])
    yield (
        "holding_summary",
        pa.table(
            {
                "accountid": pairs // n.securities,
                "symbol": texts("S", pairs % n.securities),
                "totalquantity": total,
                "lot": texts("Lot", pairs % n.securities % 7),
            }
        ),
    )
