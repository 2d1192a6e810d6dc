"""A market: tables with prices, what is known of their attributes, and what can be asked of it.

In a folder it is ``tables/NAME.parquet`` (or ``.csv``), ``prices.csv`` with the columns table,
column and price, and ``market.json`` with everything else.
"""

from __future__ import annotations

import csv
import json
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pc_csv
import pyarrow.parquet as pq

from benchmarks.redundancy.writing import write_table
from pexeso.acquisition.quality import Dependency
from pexeso.acquisition.tables import projection_price
from pexeso.errors import InputError, LakeError

TABLES_FOLDER, PRICES_FILE, ABOUT_FILE = "tables", "prices.csv", "market.json"
"""What the folder of a market holds."""


@dataclass(frozen=True)
class Query:
    """What a shopper asks of a market.

    Attributes
    ----------
    name : str
    source, target : tuple of str
        A_S and A_T of the paper, none of which is in several tables but join columns.
    length : int
        Of the path that the query is meant for, in tables.
    path : tuple of str
        Such a path.
    """

    name: str
    source: tuple[str, ...]
    target: tuple[str, ...]
    length: int
    path: tuple[str, ...]


@dataclass(frozen=True)
class About:
    """What is known of a market beside its rows.

    Attributes
    ----------
    name : str
    numeric : tuple of str
        Attributes whose values are amounts; all others are categories, keys among them.
    dependencies : mapping of str to tuple of Dependency
        Of each table, given and not looked for.
    damaged : tuple of str
        Tables that have wrong values.
    queries : tuple of Query
    max_tables : int
        Of the longest path that is searched.
    """

    name: str
    numeric: tuple[str, ...]
    dependencies: Mapping[str, tuple[Dependency, ...]]
    damaged: tuple[str, ...]
    queries: tuple[Query, ...]
    max_tables: int


@dataclass(frozen=True)
class Market:
    """A market that was read.

    Attributes
    ----------
    about : About
    tables : dict of str to pyarrow.Table
        By name.
    prices : dict of (str, str) to float
        Of each column of each table.
    options : dict
        What it was made with.
    """

    about: About
    tables: dict[str, pa.Table]
    prices: dict[tuple[str, str], float]
    options: dict[str, object] = field(default_factory=dict)

    @property
    def schemas(self) -> dict[str, tuple[str, ...]]:
        """Return the attributes of each table."""
        return {name: tuple(table.column_names) for name, table in self.tables.items()}


def write_market(
    folder: Path,
    about: About,
    tables: Iterable[tuple[str, pa.Table]],
    *,
    options: Mapping[str, object] | None = None,
    file_format: str = "parquet",
) -> dict[str, dict[str, float]]:
    """Write a market, one table after the other."""
    facts, prices = {}, []
    for name, table in tables:
        write_table(folder / TABLES_FOLDER, name, table, file_format=file_format)
        of_table = column_prices(table)
        prices += [(name, column, repr(price)) for column, price in of_table.items()]
        facts[name] = {
            "rows": table.num_rows,
            "columns": table.num_columns,
            "price": projection_price(table, table.column_names),
        }
    with (folder / PRICES_FILE).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([("table", "column", "price"), *prices])
    text = json.dumps({"about": asdict(about), "options": dict(options or {})}, indent=1)
    (folder / ABOUT_FILE).write_text(text + "\n", encoding="utf-8")
    return facts


def column_prices(table: pa.Table) -> dict[str, float]:
    """Return the price of each column: its entropy in bits."""
    return {name: projection_price(table, [name]) for name in table.column_names}


def read_market(folder: Path) -> Market:
    """Read a market that `write_market` wrote; all its tables are held in memory."""
    if not (folder / ABOUT_FILE).is_file():
        raise LakeError(f"{folder} holds no market: there is no {ABOUT_FILE}. Write one first.")
    document = json.loads((folder / ABOUT_FILE).read_text(encoding="utf-8"))
    about = document["about"]
    with (folder / PRICES_FILE).open(encoding="utf-8", newline="") as file:
        prices = {
            (row["table"], row["column"]): float(row["price"]) for row in csv.DictReader(file)
        }
    paths = sorted((folder / TABLES_FOLDER).iterdir())
    return Market(
        About(
            name=about["name"],
            numeric=tuple(about["numeric"]),
            dependencies={
                table: tuple(Dependency(tuple(one["left"]), one["right"]) for one in of_table)
                for table, of_table in about["dependencies"].items()
            },
            damaged=tuple(about["damaged"]),
            queries=tuple(
                Query(
                    one["name"],
                    tuple(one["source"]),
                    tuple(one["target"]),
                    one["length"],
                    tuple(one["path"]),
                )
                for one in about["queries"]
            ),
            max_tables=about["max_tables"],
        ),
        {path.stem: _read(path) for path in paths},
        prices,
        document["options"],
    )


def _read(path: Path) -> pa.Table:
    return pc_csv.read_csv(path) if path.suffix == ".csv" else pq.read_table(path)


def determined(keys: Collection[str], *attributes: str) -> tuple[Dependency, ...]:
    """Return the dependencies of attributes on a key, one for each attribute.

    Examples
    --------
    >>> determined(("nationkey",), "nname", "regionkey")[1]
    Dependency(left=('nationkey',), right='regionkey')
    """
    return tuple(Dependency(tuple(keys), attribute) for attribute in attributes)


def shortest_path(
    schemas: Mapping[str, Collection[str]], source: str, target: str
) -> tuple[str, ...]:
    """Return a shortest path of tables between two attributes.

    Two tables are neighbours where they share an attribute.

    Examples
    --------
    >>> shortest_path({"one": ["a", "k"], "two": ["k", "m"], "three": ["m", "b"]}, "a", "b")
    ('one', 'two', 'three')
    """
    names = sorted(schemas)
    for attribute in (source, target):
        if not any(attribute in schemas[name] for name in names):
            raise InputError(f"No table has the attribute {attribute!r}.")
    shared = {name: frozenset(schemas[name]) for name in names}
    paths = {name: (name,) for name in names if source in shared[name]}
    waiting = deque(paths)
    while waiting:
        table = waiting.popleft()
        if target in shared[table]:
            return paths[table]
        for name in names:
            if name not in paths and shared[table] & shared[name]:
                paths[name] = (*paths[table], name)
                waiting.append(name)
    return ()
