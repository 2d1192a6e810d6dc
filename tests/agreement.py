"""Agreement of the index with brute force on real query columns.

Every option is checked, with one partition and with many.

``PYTHONPATH=. python tests/agreement.py INDEX [INDEX ...] --queries 200`` draws query columns from
the tables of the lake, searches each index with and without ``exact=True`` and compares columns,
counts and value pairs; all indexes must also agree with the first one. They must be built from the
same lake with the same model. Prints one line a setting and ends with one summary line; exit status
1 when anything differs.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click
import numpy as np
import pyarrow.compute as pc

import pexeso
from pexeso.lake.catalog import Catalog
from pexeso.results.query import QueryColumn, read_query

SETTINGS: tuple[dict[str, Any], ...] = (
    {"max_distance": 0.02, "min_joinability": 0.2},
    {"max_distance": 0.06, "min_joinability": 0.6},
    {"max_distance": 0.08, "min_joinability": 0.8},
    {"max_distance": 0.06, "k": 10},
)


@dataclass
class Tally:
    """What was compared under one setting."""

    queries: int = 0
    columns: int = 0
    pairs: int = 0
    seconds: float = 0.0
    exact_seconds: float = 0.0


def draw_queries(index: pexeso.Index, n_queries: int, seed: int) -> list[QueryColumn]:
    """Draw indexed columns evenly from the lake's top folders and read them from their files.

    The columns are read with all rows.
    """
    columns = Catalog(index.store.catalog_files).columns(["table", "label", "reason"])
    columns = columns.filter(pc.is_null(columns["reason"]))
    tables, labels = columns["table"].to_pylist(), columns["label"].to_pylist()
    folders = np.array([table.split("/")[0] if "/" in table else "" for table in tables])
    generator = np.random.default_rng(seed)
    names = np.unique(folders)
    drawn: list[int] = []
    for position, folder in enumerate(names):
        rows = np.flatnonzero(folders == folder)
        share = n_queries // len(names) + (position < n_queries % len(names))
        drawn += generator.choice(rows, min(share, len(rows)), replace=False).tolist()
    return [read_query(index.lake / tables[row], labels[row]) for row in sorted(drawn)]


def answer(result: pexeso.SearchResult) -> list[tuple[Any, ...]]:
    """Return a result as plain data: columns, counts and every pair."""
    return [
        (
            match.table,
            match.column,
            match.matched,
            match.total,
            [(p.query, p.value, p.distance) for p in match.pairs()],
        )
        for match in result
    ]


def compare(
    indexes: Sequence[pexeso.Index], query: QueryColumn, options: dict[str, Any], tally: Tally
) -> str | None:
    """Search every index both ways; give a sentence where two answers differ."""
    expected: list[tuple[Any, ...]] | None = None
    for index in indexes:
        for exact in (True, False):
            started = time.perf_counter()
            result = index.search(
                query, exact=exact, rerank=False, fold_copies=False, **{"k": "all", **options}
            )
            elapsed = time.perf_counter() - started
            actual = answer(result)
            if expected is None:
                expected = actual
            if actual != expected:
                return (
                    f"{query.file}:{query.column} {options}: {index.path} with exact={exact} "
                    "differs"
                )
            if exact:
                tally.exact_seconds += elapsed
            else:
                tally.seconds += elapsed
    tally.queries += 1
    tally.columns += len(expected or [])
    tally.pairs += sum(len(column[-1]) for column in expected or [])
    return None


def run(
    indexes: Sequence[pexeso.Index], queries: Sequence[QueryColumn]
) -> tuple[list[Tally], list[str]]:
    """Compare everything; give a tally for each setting and the differences."""
    tallies, differences = [Tally() for _ in SETTINGS], []
    for query in queries:
        for tally, options in zip(tallies, SETTINGS, strict=True):
            difference = compare(indexes, query, options, tally)
            if difference is not None:
                differences.append(difference)
    return tallies, differences


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison from the command line."""
    parser = argparse.ArgumentParser(
        prog="python tests/agreement.py", description=__doc__.splitlines()[0]
    )
    parser.add_argument(
        "index", nargs="+", help="index folders built from the same lake with the same model"
    )
    parser.add_argument("--queries", type=int, default=200, help="query columns to draw (200)")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(arguments)
    indexes = [pexeso.open_index(path) for path in chosen.index]
    queries = draw_queries(indexes[0], chosen.queries, chosen.seed)
    tallies, differences = run(indexes, queries)
    for options, tally in zip(SETTINGS, tallies, strict=True):
        setting = ", ".join(f"{name} {value}" for name, value in options.items())
        click.echo(
            f"{setting}: {tally.queries} queries, {tally.columns:,} columns, {tally.pairs:,} "
            "pairs; "
            f"search {tally.seconds:.1f} s, exact {tally.exact_seconds:.1f} s"
        )
    for difference in differences:
        click.echo(f"DIFFERENT: {difference}")
    partitions = " and ".join(str(index.store.n_partitions) for index in indexes)
    click.echo(
        f"{len(queries)} query columns, {len(SETTINGS)} settings, {partitions} partitions: "
        f"{len(differences)} differences"
    )
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
