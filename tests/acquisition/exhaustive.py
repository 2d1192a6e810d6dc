"""All plans of a request one by one, each measured on a materialised join.

The paper's baselines LP and GP: on samples the best of these plans is LP's, on whole tables GP's.
Nothing here is clever: subsets of edges, tested for being trees, and merges of row numbers.
"""

import math
from collections import Counter
from itertools import combinations, product

import pandas as pd
import pyarrow as pa

from pexeso.acquisition.graph import JoinGraph
from pexeso.acquisition.plans import AcquisitionRequest, Join, JoinTree, PlanMeasures
from pexeso.acquisition.quality import Dependency
from pexeso.acquisition.tables import MarketTable
from pexeso.joins.measures import correlation
from pexeso.lake.tokens import tokens_of
from tests.acquisition import oracle
from tests.acquisition.oracle import quality


def all_plans(graph: JoinGraph, request: AcquisitionRequest) -> list[JoinTree]:
    """Return each closed tree of at most `max_tables` tables with all terminals, by signature."""
    plans = {}
    for edges in trees(graph, request.max_tables):
        for chosen in product(*(graph.edges[pair].join_sets for pair in edges)):
            joins = [Join(*pair, join_set) for pair, join_set in zip(edges, chosen, strict=True)]
            for sources in product(*(terminal.tables for terminal in request.terminals)):
                terminals = [
                    (table, terminal.column)
                    for table, terminal in zip(sources, request.terminals, strict=True)
                ]
                if not _spans(edges, set(sources)):
                    continue
                if len(set(terminals)) < len(terminals):
                    continue
                n_have = len(request.have)
                tree = JoinTree.of(joins, terminals[:n_have], terminals[n_have:])
                if is_closed(tree, graph):
                    plans[tree.signature] = tree
    return [plans[signature] for signature in sorted(plans)]


def plans_within(
    graph: JoinGraph, request: AcquisitionRequest
) -> list[tuple[JoinTree, PlanMeasures]]:
    both = [(tree, measured(graph, request, tree)) for tree in all_plans(graph, request)]
    return [(tree, measures) for tree, measures in both if is_within(request, measures)]


def is_within(request: AcquisitionRequest, measures: PlanMeasures) -> bool:
    return (
        measures.price <= request.budget
        and measures.informativeness <= request.max_informativeness
        and measures.quality >= request.min_quality
    )


def trees(graph: JoinGraph, max_tables: int) -> list[tuple[tuple[str, str], ...]]:
    edges = sorted(graph.edges)
    return [
        chosen
        for n_edges in range(min(max_tables, len(graph.tables)))
        for chosen in combinations(edges, n_edges)
        if is_tree(chosen)
    ]


def is_tree(edges: tuple[tuple[str, str], ...]) -> bool:
    tables = {table for pair in edges for table in pair}
    if not edges:
        return True
    reached = {edges[0][0]}
    for _ in edges:
        for pair in edges:
            if reached & set(pair):
                reached |= set(pair)
    return reached == tables and len(edges) == len(tables) - 1


def _spans(edges: tuple[tuple[str, str], ...], terminals: set[str]) -> bool:
    if not edges:
        return len(terminals) == 1
    degrees = Counter(table for pair in edges for table in pair)
    ends = {table for table, degree in degrees.items() if degree == 1}
    return ends <= terminals <= set(degrees)


def measured(graph: JoinGraph, request: AcquisitionRequest, tree: JoinTree) -> PlanMeasures:
    joined = materialised(graph, tree)
    numeric = [
        qualified(table, column)
        for table, columns in tree.columns.items()
        for column in columns
        if column in graph.tables[table].numeric
    ]
    options = {
        "numeric": numeric,
    }
    have = [qualified(*terminal) for terminal in tree.have]
    want = [qualified(*terminal) for terminal in tree.want]
    value = (
        correlation(joined, have, want, **options)
        if have
        else oracle.total_correlation(joined, want, **options)
    )
    return PlanMeasures(
        math.fsum(
            graph.tables[table].price(columns)
            for table, columns in tree.columns.items()
            if not graph.tables[table].owned
        ),
        math.fsum(join.join_set.weight for join in tree.joins),
        quality(joined, dependencies_of(graph, tree)),
        value,
        joined.num_rows,
    )


def dependencies_of(graph: JoinGraph, tree: JoinTree) -> list[Dependency]:
    return [
        Dependency(
            tuple(qualified(table, column) for column in rule.left), qualified(table, rule.right)
        )
        for table, columns in tree.columns.items()
        for rule in graph.tables[table].dependencies
        if {*rule.left, rule.right} <= set(columns)
    ]


def qualified(table: str, column: str) -> str:
    return repr((table, column))


def materialised(graph: JoinGraph, tree: JoinTree) -> pa.Table:
    first = min(tree.tables)
    rows = pd.DataFrame({first: range(graph.tables[first].n_rows)})
    left = list(tree.joins)
    while left:
        join = next(join for join in left if (join.left in rows) != (join.right in rows))
        left.remove(join)
        rows = rows.merge(matches(graph, join), on=join.left if join.left in rows else join.right)
    columns = {}
    for table, names in tree.columns.items():
        table_rows = graph.tables[table].read(names).take(pa.array(rows[table], pa.int64()))
        for name in names:
            columns[qualified(table, name)] = table_rows.column(name)
    return pa.table(columns)


def matches(graph: JoinGraph, join: Join) -> pd.DataFrame:
    sides = [
        _keys(graph.tables[table], join.columns_of(table)) for table in (join.left, join.right)
    ]
    names = [name for name in sides[0] if name.startswith("key")]
    return sides[0].merge(sides[1], on=names)[[join.left, join.right]]


def _keys(table: MarketTable, columns: tuple[str, ...]) -> pd.DataFrame:
    rows = table.read(columns)
    keys = {f"key {i}": tokens_of(rows.column(name)).to_pylist() for i, name in enumerate(columns)}
    whole = pd.DataFrame({**keys, table.name: range(table.n_rows)})
    return whole.dropna()


def is_closed(tree, graph):
    return all(
        set(join.join_set.left) == set(tree.columns[join.left]) & set(tree.columns[join.right])
        for join in tree.joins
        if graph.edge(join.left, join.right).natural
    )
