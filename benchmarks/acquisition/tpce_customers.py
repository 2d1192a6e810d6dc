"""Tables of the market like TPC-E about customers, brokers and what customers watch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from benchmarks.acquisition.tpce_rows import (
    EXCHANGES,
    GROUPS,
    REGIONAL_TAXES,
    STATUSES,
    TAXES,
    TIERS,
    TRADE_TYPES,
    Rows,
    amounts,
    one_of,
    product,
    texts,
)

_BANDS = 4


def of_customers(made: Rows) -> Iterator[tuple[str, pa.Table]]:
    """Make the tables about customers and where they live."""
    n, draw = made.n, made.draw
    ids, accounts = np.arange(n.customers), np.arange(n.accounts)
    area = draw("customer", "area").between(n.customers, 200, 299)
    home = draw("customer", "address").order(n.addresses)[: n.customers]
    born = draw("customer", "born").between(n.customers, 1930, 2000)
    yield (
        "customer",
        pa.table(
            {
                "customerid": ids,
                "taxnumber": texts("T", draw("customer", "tax").order(n.customers)),
                "lastname": texts("Family", draw("customer", "last").skewed(n.customers, 200)),
                "firstname": texts("Given", draw("customer", "first").skewed(n.customers, 80)),
                "gender": one_of("FMX", draw("customer", "gender").below(n.customers, 3)),
                "tier": made.tier,
                "birthyear": born,
                "generation": born // 10 * 10,
                "areacode": area,
                "country": texts("Country", area % 10),
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
                "customerid": made.owner,
                "brokerid": made.broker[made.owner],
                "accountname": texts("Account", draw("customer_account", "name").order(n.accounts)),
                "taxstatus": draw("customer_account", "tax").below(n.accounts, 3),
                "balance": amounts(balance),
            }
        ),
    )
    second = np.sort(draw("account_permission", "second").order(n.accounts)[: n.accounts // 4])
    allowed = np.concatenate([accounts, second])
    other = draw("account_permission", "other").below(len(second), n.customers)
    holder = np.concatenate([made.owner, other])
    right = np.repeat([0, 1], [n.accounts, len(second)])
    yield (
        "account_permission",
        pa.table(
            {
                "accountid": allowed,
                "permissionid": np.arange(len(allowed)),
                "access": one_of(["trade and view", "view"], right),
                "holdernumber": holder,
                "holdername": texts("Holder", holder * 7919 % n.customers),
            }
        ),
    )
    region = made.group * REGIONAL_TAXES
    region = region + draw("customer_taxrate", "region").below(n.customers, REGIONAL_TAXES)
    first_national = GROUPS * REGIONAL_TAXES
    national = first_national + draw("customer_taxrate", "nation").skewed(
        n.customers, TAXES - first_national
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
                "street": texts("Street", draw("address", "street").skewed(n.addresses, 5000)),
                "zipcode": texts("Z", zips),
                "postdistrict": zips // 10,
            }
        ),
    )
    codes = np.arange(n.zips)
    yield (
        "zip_code",
        pa.table(
            {
                "zipcode": texts("Z", codes),
                "town": texts("Town", codes // 3),
                "division": texts("Division", codes // 30),
            }
        ),
    )


def of_brokers(made: Rows) -> Iterator[tuple[str, pa.Table]]:
    """Make the tables of brokers, charges, commissions and taxes."""
    n, draw = made.n, made.draw
    ids = np.arange(n.brokers)
    yield (
        "broker",
        pa.table(
            {
                "brokerid": ids,
                "brokername": texts("Broker", draw("broker", "name").order(n.brokers)),
                "brokeroffice": texts("Office", ids % GROUPS),
                "brokercity": texts("City", ids % GROUPS // 2),
                "tradecount": draw("broker", "count").below(n.brokers, 10**5),
                "commissiontotal": amounts(draw("broker", "total").below(n.brokers, 10**8)),
            }
        ),
    )
    kinds = np.arange(len(TRADE_TYPES))
    tier, kind = product(TIERS, len(TRADE_TYPES))
    yield (
        "charge",
        pa.table(
            {
                "tradetypeid": kind,
                "tier": tier + 1,
                "chargeamount": amounts(450 - 100 * tier + 25 * kind),
            }
        ),
    )
    tier, kind, exchange, band = product(TIERS, len(TRADE_TYPES), EXCHANGES, _BANDS)
    yield (
        "commission_rate",
        pa.table(
            {
                "tier": tier + 1,
                "tradetypeid": kind,
                "exchangeid": texts("X", exchange),
                "fromquantity": 200 * band + 1,
                "toquantity": 200 * band + 200,
                "commissionpercent": amounts(75 - 10 * tier - 5 * band + 3 * kind + exchange),
            }
        ),
    )
    taxes = np.arange(TAXES)
    regional = taxes < GROUPS * REGIONAL_TAXES
    area = np.where(regional, taxes // REGIONAL_TAXES, GROUPS)
    yield (
        "taxrate",
        pa.table(
            {
                "taxid": taxes,
                "taxname": texts("Tax", taxes),
                "taxregion": texts("Region", area),
                "taxpercent": amounts(draw("taxrate", "rate").below(TAXES, 30) + 25 * area),
            }
        ),
    )
    yield (
        "trade_type",
        pa.table(
            {
                "tradetypeid": kinds,
                "tradetypename": list(TRADE_TYPES),
                "sells": ["sell" in name or "stop" in name for name in TRADE_TYPES],
                "atmarket": ["market" in name for name in TRADE_TYPES],
            }
        ),
    )
    yield (
        "status_type",
        pa.table({"statusid": np.arange(len(STATUSES)), "statusname": list(STATUSES)}),
    )


def of_watchers(made: Rows) -> Iterator[tuple[str, pa.Table]]:
    """Make the tables of what customers watch."""
    n, draw = made.n, made.draw
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
    watched = made.preferred("watch_item", made.group[owner[watching]], 30)
    pairs = np.unique(watching * n.securities + watched)
    selected = np.sort(draw("watch_item", "kept").order(len(pairs))[: n.rows])
    lists, watched = pairs[selected] // n.securities, pairs[selected] % n.securities
    yield (
        "watch_item",
        pa.table(
            {
                "watchlistid": lists,
                "symbol": texts("S", watched),
                "watchgroup": texts("Watch", watched % 9),
                "watchedsince": draw("watch_item", "since").between(len(lists), 1990, 2010),
            }
        ),
    )
