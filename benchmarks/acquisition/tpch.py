"""The market of TPC-H: eight tables, six of them damaged.

Keys have one name in all tables (``custkey``, ``nationkey``), everything else a name of its own, as
tables are joined by equal names. Amounts are floating-point numbers.

Join columns are placed so that no query becomes shorter: customers, orders and suppliers share H1,
line items, parts and their suppliers H2, line items and orders H3, nations and regions H4.

A key of a table determines its attributes whatever becomes of them, as each of its values is in one
row: wrong values show in the other dependencies alone, or where the key is one of another table.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.acquisition.damage import with_join_columns, with_wrong_values
from benchmarks.acquisition.market import About, Query, determined
from benchmarks.datasets.tpch import TABLES, write_tpch

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
        Query("short", ("extendedprice",), ("custkey",), 2, ("lineitem", "orders")),
        Query("medium", ("mktsegment",), ("partkey",), 3, ("customer", "orders", "lineitem")),
        Query(
            "long",
            ("totalprice",),
            ("rname",),
            5,
            ("orders", "customer", "supplier", "nation", "region"),
        ),
    ),
    max_tables=5,
)
"""The queries are those of the paper's lengths; of the long one the path is the paper's own, four
tables would do without suppliers."""


def tpch_tables(
    scale: float = SCALE, *, seed: int = 0, files: Path | None = None
) -> Iterator[tuple[str, pa.Table]]:
    """Make the tables of the market, with their names, one after the other.

    Memory holds one table, and one column a second time: of line items at scale 1 about 3 GB.
    """
    with tempfile.TemporaryDirectory(prefix="pexeso-benchmark-") as temporary:
        folder = Path(temporary) if files is None else files
        if not all((folder / f"{name}.parquet").is_file() for name in TABLES):
            write_tpch(folder, scale)
        for name in TABLES:
            table = clean_table(folder, name)
            if name in ABOUT.damaged:
                table = with_wrong_values(
                    table, ABOUT.dependencies[name], seed=seed, market=NAME, table_name=name
                )
            columns = _JOIN_COLUMNS[name]
            yield (
                name,
                with_join_columns(table, columns, seed=seed, market=NAME, table_name=name),
            )


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
