"""Join graphs of given weights, without rows that lead to them."""

from collections.abc import Mapping

import pyarrow as pa

from pexeso.acquisition.graph import JoinEdge, JoinGraph, JoinSet
from tests.acquisition.oracle import market_table


def join_set(columns: str, weight: float) -> JoinSet:
    names = tuple(columns)
    return JoinSet(names, names, weight, 1, 1, 1)


def weighted_graph(
    weights: Mapping[tuple[str, str], float], columns: Mapping[str, str] | None = None
) -> JoinGraph:
    """Return tables that join by a column `k` with given weights."""
    names = sorted({name for pair in weights for name in pair} | set(columns or {}))
    tables = [
        market_table(
            name, pa.table({label: [1, 2] for label in ["k", name, *(columns or {}).get(name, "")]})
        )
        for name in names
    ]
    edges = [JoinEdge.of(*pair, [join_set("k", weight)]) for pair, weight in weights.items()]
    return JoinGraph.of(tables, edges)
