"""The command ``python -m benchmarks graph``: the join graph of a lake, and searches one by one.

The same work in two ways, in one run: all columns in one pass, and a search with each of some
columns alone, of which the time of all columns is estimated. Both read values from the index. Each
answer of a search is held against the edges of its column.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
import torch

from benchmarks import report
from benchmarks.machine import describe_machine, pin_threads
from pexeso.acquisition.lake_columns import LakeColumns
from pexeso.engine.vector_space import count_needed
from pexeso.index import Index, open_index
from pexeso.lake_graph.options import METHODS, OVERLAP
from pexeso.lake_graph.semantic import ValuesAlike
from pexeso.search.executor import LocalExecutor
from pexeso.token_search.overlap_search import search_overlap
from pexeso.token_search.query import token_query

MIN_JOINABILITY, K = 0.5, 20

Column = tuple[str, str]
Result = dict[str, Any]


@click.command("graph", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("index", type=click.Path(path_type=Path))
@click.option("--queries", default=200, show_default=True, help="Columns that are searched alone.")
@click.option("--seed", default=0, show_default=True, help="Of the columns that are drawn.")
@click.option("--name", help="Keep the result in benchmarks/results/graph/NAME.json.")
def graph_command(index: Path, queries: int, seed: int, name: str | None) -> None:
    """Make the join graph of an INDEX, and search with its columns one by one."""
    pin_threads(1)
    if queries < 1:
        raise click.UsageError(f"--queries is at least 1. Got {queries}.")
    result = measure(open_index(index, device="cpu"), queries, seed)
    click.echo(json.dumps(result, indent=2))
    if name is not None:
        report.write_result(report.RESULTS / "graph" / f"{name}.json", result)


def measure(index: Index, queries: int, seed: int) -> Result:
    """Return for each method what both ways take, in seconds of the processor."""
    return {
        "machine": describe_machine(torch.device("cpu")),
        "asked": {"queries": queries, "seed": seed, "min_joinability": MIN_JOINABILITY, "k": K},
        "methods": {
            method: _measured(index, method, queries, seed)
            for method in METHODS
            if method != OVERLAP or OVERLAP in index.parts
        },
    }


def _measured(index: Index, method: str, queries: int, seed: int) -> Result:
    searches = {OVERLAP: _overlaps}.get(method, _alike)(index)
    names = list(searches)
    random = np.random.default_rng(seed)
    chosen = random.choice(len(names), min(queries, len(names)), replace=False).tolist()
    options = {"method": method, "min_joinability": MIN_JOINABILITY, "k": K}
    # The first of each loads loops and pages.
    index.graph(**options)
    searches[names[chosen[0]]]()
    started = time.process_time()
    graph = index.graph(**options)
    whole = time.process_time() - started
    edges = defaultdict(list)
    for row in graph.rows():
        end = (row["right_table"], row["right_column"], row["matched"])
        edges[row["left_table"], row["left_column"]].append(end)
    started, answers = time.process_time(), {}
    for at in chosen:
        answers[names[at]] = searches[names[at]]()
    one = (time.process_time() - started) / len(chosen)
    n_alike = sum(answers[name] == edges[name] for name in answers)
    if n_alike < len(answers):
        raise click.ClickException(f"{len(answers) - n_alike} of {len(answers)} answers differ.")
    return {
        "columns": graph.n_columns,
        "edges": len(graph),
        "graph_seconds": round(whole, 3),
        "search_seconds": round(one, 5),
        "searches_of_all_seconds": round(one * graph.n_columns, 2),
        "ratio": round(one * graph.n_columns / whole, 1),
        "answers_alike": n_alike,
    }


Searches = dict[Column, Callable[[], list[tuple[str, str, int]]]]


def _overlaps(index: Index) -> Searches:
    """Return for each column a search for those that share most of its values."""
    columns = LakeColumns.of_index(index._opened)

    def search(at: int) -> list[tuple[str, str, int]]:
        query = token_query(columns.tokens(at).cast(pa.string()))
        table = columns.name(at)[0]
        matches = search_overlap(index.shards, query, K, exclude_table=table)
        min_overlap = count_needed(MIN_JOINABILITY, len(query))
        return [(m.table, m.column, m.overlap) for m in matches if m.overlap >= min_overlap]

    return {columns.name(at): _bound(search, at) for at in range(len(columns))}


def _alike(index: Index) -> Searches:
    """Return for each column a search for those with values alike."""
    compared = ValuesAlike.of(index._opened, LocalExecutor(), folds=False)

    def search(at: int) -> list[tuple[str, str, int]]:
        # The distance that its cells have by their kind, which distinct values do not always tell.
        matches = index.search(
            compared._query(at).values,
            max_distance=0.0 if compared.exact[at] else index.usual_max_distance,
            min_joinability=MIN_JOINABILITY,
            k=K,
            exclude_table=compared.nodes.tables[at].as_py(),
            rerank=False,
            fold_copies=False,
        )
        return [(m.table, m.column, m.matched) for m in matches]

    return dict(_named(compared, search))


def _named(compared: ValuesAlike, search: Callable[..., Any]) -> Iterator[tuple[Column, Any]]:
    nodes = compared.nodes
    names = zip(nodes.tables.to_pylist(), nodes.labels.to_pylist(), strict=True)
    for at, name in enumerate(names):
        yield name, _bound(search, at)


def _bound(search: Callable[..., Any], at: int) -> Callable[[], Any]:
    return lambda: search(at)
