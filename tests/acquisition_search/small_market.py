"""A market in memory, and a search of it that joins rows: an oracle for what faces tell."""

from __future__ import annotations

from itertools import pairwise, product
from types import SimpleNamespace

import pandas as pd
import pyarrow as pa

from pexeso.acquisition.graph.building import natural_graph
from pexeso.acquisition.graph.coded import CodedColumns
from pexeso.acquisition.graph.tables import EntropyPrices, ListedPrices, MarketTable, free
from pexeso.acquisition.measures.correlation import correlation
from pexeso.acquisition.search.found import FoundPlan, FoundPlans
from pexeso.acquisition.search.plans import Join, JoinTree, PlanMeasures
from pexeso.acquisition.search.request import AcquisitionRequest, Terminal
from pexeso.acquisition_search.market_search import Market

PEOPLE = {"zip": ["1", "2", "3", "4"] * 10, "sick": ["yes", "no", "no", "no"] * 10}
"""Sick where the zip code is 1."""

LAKE = {
    "zips.csv": {"zip": ["1", "2", "3", "4"], "state": ["NJ", "NY", "NY", "MA"]},
    "states.csv": {
        "state": ["NJ", "NJ", "NY", "MA"],
        "smog": ["high", "high", "low", "low"],
        "flag": ["x", "x", "x", "x"],
    },
    "direct.csv": {"zip": ["1", "2", "3", "4"], "smog_level": ["a", "a", "b", "b"]},
    "alone.csv": {"moon": ["new", "full"]},
}


class SmallIndex:
    """What `AcquisitionSearches` asks of an open index, for tables in memory."""

    def __init__(self, tables=None, folder="lake"):
        self.tables = {
            name: pa.table(columns)
            for name, columns in (LAKE if tables is None else tables).items()
        }
        self.folder = folder
        self.catalog = SimpleNamespace(columns=self._columns)

    def _columns(self, names, among):
        tables = [name for name in self.tables if name in among.to_pylist()]
        labels = [each for name in tables for each in self.tables[name].schema.names]
        return pa.table({"label": labels})

    def table_of(self, file):
        return str(file).removeprefix(f"{self.folder}/") if self.folder in str(file) else None


def market_of(opened, options):
    """Return the natural join graph of the tables of a `SmallIndex`."""

    listed = options.prices
    if listed not in ("free", "entropy") and not isinstance(listed, dict):
        lines = pd.read_csv(listed)
        listed = {
            name: dict(zip(rows["column"], rows["price"].astype(float), strict=True))
            for name, rows in lines.groupby("table")
        }

    def table(name, rows):
        if listed == "free":
            price = free
        elif listed == "entropy":
            price = EntropyPrices(rows.select)
        else:
            price = ListedPrices(name, listed.get(name, {}))
        return MarketTable.of(name, rows, price=price, numeric=numeric(rows))

    tables = [table(name, rows) for name, rows in opened.tables.items()]
    if options.own is not None:
        own = options.own
        tables.append(MarketTable.of(own.name, own.rows, owned=True, numeric=numeric(own.rows)))
    coded = CodedColumns(options.max_bytes)
    return Market(natural_graph(tables, coded), coded)


def numeric(rows):
    return [each.name for each in rows.schema if pa.types.is_floating(each.type)]


def plans_of(market, request, limits):
    """Return the plans for one column explained by one other, along simple paths."""
    graph, plans, kept = market.graph, [], []
    for have, want in product(ends(request.have), ends(request.want)):
        for path in paths(graph, have[0], want[0], request.max_tables):
            edges = [graph.edge(*step) for step in pairwise(path)]
            for chosen in product(*(edge.join_sets for edge in edges)):
                joins = [
                    Join(edge.left, edge.right, one)
                    for edge, one in zip(edges, chosen, strict=True)
                ]
                plans.append(measured(JoinTree.of(joins, [have], [want]), graph))
    broken = {
        "price": [each for each in plans if each[1].price > request.budget],
        "informativeness": [
            each for each in plans if each[1].informativeness > request.max_informativeness
        ],
        "quality": [each for each in plans if each[1].quality < request.min_quality],
    }
    for tree, worth in plans:
        if not any((tree, worth) in each for each in broken.values()):
            kept.append((tree, worth))
    front = sorted(
        (
            (tree, worth)
            for tree, worth in kept
            if not any(
                other.correlation >= worth.correlation
                and other.price <= worth.price
                and (other.correlation, -other.price) != (worth.correlation, -worth.price)
                for _, other in kept
            )
        ),
        key=lambda each: (-each[1].correlation, each[1].price, each[0].signature),
    )
    if front:
        proved = limits.method == "exact"
        found = [FoundPlan(*each, proved, 0.0 if proved else 0.25) for each in front]
        return FoundPlans(tuple(found), n_trees=len(plans), n_evaluated=len(kept), seconds=0.5)
    if not plans:
        return FoundPlans((), "No joins connect what you have with what you want.")
    wrong = next(name for name, each in broken.items() if each)
    best = min(each.price for _, each in plans)
    return FoundPlans(
        (), f"No plan keeps the bound of the {wrong}.", len(plans), best_seen={"price": best}
    )


def candidates_of(market, have, bounds, limits):
    """Return the plans for each column of the market that joins reach, best first."""
    found = []
    for name, table in sorted(market.graph.tables.items()):
        for column in table.columns if not table.owned else ():
            request = AcquisitionRequest(have, (Terminal(column, (name,)),), **bounds)
            found += plans_of(market, request, limits).plans[:1]
    found.sort(key=lambda each: (-each.measures.correlation, each.tree.signature))
    return FoundPlans(tuple(found))


def ends(terminals):
    return [(name, each.column) for each in terminals for name in each.tables]


def paths(graph, start, end, longest, seen=()):
    here = (*seen, start)
    if start == end:
        yield here
    elif len(here) < longest:
        for edge in graph.edges_of(start):
            if edge.other(start) not in here:
                yield from paths(graph, edge.other(start), end, longest, here)


def measured(tree, graph):
    rows = [{}]
    root = (*tree.have, *tree.want)[0][0]
    for name, join in tree.rooted(root):
        more = [
            {(name, column): value for column, value in row.items()}
            for row in graph.tables[name].read(list(tree.columns[name])).to_pylist()
        ]
        if join is None:
            rows = more
            continue
        near = join.other(name)
        on = list(zip(join.columns_of(near), join.columns_of(name), strict=True))
        rows = [
            {**row, **each}
            for row in rows
            for each in more
            if all(row[near, mine] == each[name, theirs] for mine, theirs in on)
        ]
    [x], [y] = tree.have, tree.want
    table = pa.table({"x": [row[x] for row in rows], "y": [row[y] for row in rows]})
    x_kind = ["x"] if x[1] in graph.tables[x[0]].numeric else []
    worth = correlation(table, ["x"], ["y"], numeric=x_kind) if rows else 0.0
    return tree, PlanMeasures(tree.price(graph), tree.weight, 1.0, worth, len(rows))


def patched(monkeypatch):
    """Let searches use this market."""
    for each in (market_of, plans_of, candidates_of):
        monkeypatch.setattr(f"pexeso.acquisition_search.market_search.{each.__name__}", each)
