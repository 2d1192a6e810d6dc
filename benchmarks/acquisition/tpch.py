"""The market of TPC-H: eight tables, six of them damaged.

Keys have one name in all tables (``custkey``, ``nationkey``), everything else a name of its own, as
tables are joined by equal names. Amounts are floating-point numbers.

Join columns are placed so that no query becomes shorter: customers, orders and suppliers share H1,
line items, parts and their suppliers H2, line items and orders H3, nations and regions H4.

A key of a table is in one row, so wrong values show in the other dependencies alone.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Collection, Iterator, Sequence
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.acquisition.market import About, Query, determined
from benchmarks.datasets.tpch import TABLES, write_tpch
from pexeso.acquisition.quality import Dependency

# Draws that are the same on every machine.
#
# They use the raw stream of the Philox generator, which numpy keeps the same, and whole numbers
# alone. Each purpose has a stream of its own, keyed by a hash of what it is for, so that a further
# column changes no other.


class Draws:
    """A stream of whole numbers for one purpose."""

    def __init__(self, seed: int, *purpose: str):
        text = "\x1f".join([str(int(seed)), *purpose])
        key = int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "little")
        self._stream = np.random.Philox(key=key)

    def raw(self, n: int) -> np.ndarray:
        return np.atleast_1d(self._stream.random_raw(n)) if n else np.zeros(0, np.uint64)

    def below(self, n: int, limit: int | np.ndarray) -> np.ndarray:
        """Return whole numbers from 0 below a limit, each as likely: int64 (n,)."""
        return (self.raw(n) % np.asarray(limit).astype(np.uint64)).astype(np.int64)

    def between(self, n: int, first: int, last: int) -> np.ndarray:
        """Return whole numbers from the first to the last, each as likely: int64 (n,)."""
        return first + self.below(n, last - first + 1)

    def chance(self, n: int, percent: int) -> np.ndarray:
        """Return what is true in so many of a hundred cases: bool (n,)."""
        return self.below(n, 100) < percent

    def order(self, n: int) -> np.ndarray:
        """Return the numbers from 0 below n in a random order: int64 (n,)."""
        return np.argsort(self.raw(n), kind="stable").astype(np.int64)


# What is done to the tables of a market: join columns are added, and values made wrong.
#
# The paper does both without saying how. Here join columns hold whole numbers of domains of 50 to
# 5,000, of which each table has a share; in damaged tables 30 % of the rows have one wrong value,
# in an attribute that a dependency of the table determines.

DAMAGED_PERCENT = 30

_SMALLEST_DOMAIN, _STEPS, _STEP_THOUSANDTHS = 50, 100, 1047
_LEAST_COVERED, _MOST_COVERED = 60, 100


def domain_size(seed: int, market: str, column: str) -> int:
    """Return how many values a join column can have, from 50 to 5,000, logarithms alike likely."""
    size = _SMALLEST_DOMAIN * 10**6
    # Powers of floating-point numbers differ between processors.
    for _ in range(int(Draws(seed, market, column, "domain").below(1, _STEPS + 1)[0])):
        size = size * _STEP_THOUSANDTHS // 1000
    return size // 10**6


def with_join_columns(
    table: pa.Table, names: Collection[str], *, seed: int, market: str, table_name: str
) -> pa.Table:
    """Add join columns to a table."""
    for name in names:
        size = domain_size(seed, market, name)
        draws = Draws(seed, market, table_name, name)
        percent = int(draws.between(1, _LEAST_COVERED, _MOST_COVERED)[0])
        covered = draws.order(size)[: -(-size * percent // 100)]
        values = covered[draws.below(table.num_rows, len(covered))]
        table = table.append_column(name, pa.array(values))
    return table


def with_wrong_values(
    table: pa.Table,
    dependencies: Sequence[Dependency],
    *,
    seed: int,
    market: str,
    table_name: str,
) -> pa.Table:
    """Make one value wrong in some rows."""
    n = table.num_rows
    draws = Draws(seed, market, table_name, "wrong values")
    rows = np.sort(draws.order(n)[: n * DAMAGED_PERCENT // 100])
    encoded = {}
    for name in sorted({dependency.right for dependency in dependencies}):
        column = table.column(name).combine_chunks().dictionary_encode()
        if len(column.dictionary) > 1:
            encoded[name] = column
    if not encoded:
        return table
    chosen = draws.below(len(rows), len(encoded))
    for at, (name, column) in enumerate(encoded.items()):
        wrong = rows[chosen == at]
        codes = column.indices.to_numpy().astype(np.int64)
        size = len(column.dictionary)
        other = Draws(seed, market, table_name, name, "wrong").between(len(wrong), 1, size - 1)
        codes[wrong] = (codes[wrong] + other) % size
        position = table.schema.get_field_index(name)
        table = table.set_column(position, name, pc.take(column.dictionary, pa.array(codes)))
    return table


NAME = "tpch"
SCALE = 0.1

_PREFIXES = {
    "customer": "c",
    "lineitem": "l",
    "nation": "n",
    "orders": "o",
    "part": "p",
    "partsupp": "ps",
    "region": "r",
    "supplier": "s",
}
_OF_SEVERAL = ("acctbal", "address", "comment", "name", "phone", "size", "type")
"""Names that are in several tables, or are not telling alone: they keep the letter of the table."""

_JOIN_COLUMNS = {
    "customer": ("H1",),
    "lineitem": ("H2", "H3"),
    "nation": ("H4",),
    "orders": ("H1", "H3"),
    "part": ("H2",),
    "partsupp": ("H2",),
    "region": ("H4",),
    "supplier": ("H1",),
}

_LINE = ("orderkey", "linenumber")
ABOUT = About(
    name=NAME,
    numeric=(
        "availqty",
        "cacctbal",
        "discount",
        "extendedprice",
        "psize",
        "quantity",
        "retailprice",
        "sacctbal",
        "supplycost",
        "tax",
        "totalprice",
    ),
    dependencies={
        "customer": determined(
            ("custkey",), "cname", "caddress", "nationkey", "cphone", "cacctbal", "mktsegment"
        )
        + determined(("cphone",), "nationkey"),
        "lineitem": determined(
            _LINE, "partkey", "suppkey", "quantity", "extendedprice", "returnflag", "shipmode"
        )
        + determined(("shipdate",), "linestatus")
        + determined(("partkey", "quantity"), "extendedprice"),
        "nation": determined(("nationkey",), "nname", "regionkey")
        + determined(("nname",), "nationkey"),
        "orders": determined(
            ("orderkey",), "custkey", "orderstatus", "totalprice", "orderdate", "orderpriority"
        )
        # Nearly: orders of a few months before the last shipment are partly delivered.
        + determined(("orderdate",), "orderstatus"),
        "part": determined(("partkey",), "pname", "brand", "ptype", "psize", "retailprice")
        + determined(("brand",), "mfgr"),
        "partsupp": determined(("partkey", "suppkey"), "availqty", "supplycost"),
        "region": determined(("regionkey",), "rname") + determined(("rname",), "regionkey"),
        "supplier": determined(("suppkey",), "sname", "nationkey", "sphone", "sacctbal")
        + determined(("sphone",), "nationkey"),
    },
    damaged=("customer", "lineitem", "orders", "part", "partsupp", "supplier"),
    queries=(
        Query("short", ("extendedprice",), ("custkey",), 2),
        Query("medium", ("mktsegment",), ("partkey",), 3),
        Query("long", ("totalprice",), ("rname",), 5),
    ),
)
"""The queries are of the paper's lengths: from line items to orders, from customers by orders to
line items, and from orders by customers, suppliers and nations to regions."""


def tpch_tables(scale: float = SCALE, *, seed: int = 0) -> Iterator[tuple[str, pa.Table]]:
    """Make the tables of the market, with their names, one after the other."""
    with tempfile.TemporaryDirectory(prefix="pexeso-benchmark-") as temporary:
        folder = Path(temporary)
        write_tpch(folder, scale)
        for name in TABLES:
            table = clean_table(folder, name)
            if name in ABOUT.damaged:
                table = with_wrong_values(
                    table, ABOUT.dependencies[name], seed=seed, market=NAME, table_name=name
                )
            names = _JOIN_COLUMNS[name]
            yield name, with_join_columns(table, names, seed=seed, market=NAME, table_name=name)


def clean_table(folder: Path, name: str) -> pa.Table:
    """Read a table of TPC-H with the names and types of the market."""
    table = pq.read_table(folder / f"{name}.parquet")
    return pa.table(
        {
            _name(column, _PREFIXES[name]): _plain(table.column(column))
            for column in table.column_names
        }
    )


def _name(column: str, prefix: str) -> str:
    name = column.removeprefix(prefix + "_")
    return prefix + name if name in _OF_SEVERAL else name


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_decimal(kind):
        cents = pc.multiply(column, pa.scalar(Decimal(10**kind.scale))).cast(pa.int64())
        # One division, which is rounded alike everywhere.
        return pa.chunked_array([cents.to_numpy() / np.float64(10**kind.scale)])
    if pa.types.is_string_view(kind):
        return column.cast(pa.string())
    return column.cast(pa.int64()) if pa.types.is_integer(kind) else column
