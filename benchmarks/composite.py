"""The command ``python -m benchmarks.composite``: filters of rows in searches of composite keys.

Keys of two and of three columns, drawn from the tables of a lake, are searched with each filter in
turn, in processor time of one thread, the fastest of `REPEATS`. All must give one answer.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
import torch

from benchmarks.machine import describe_machine, pin_threads
from benchmarks.report import RESULTS, write_result
from pexeso.composite.bloom import Bloom, hashes_for
from pexeso.composite.query import KeyQuery, key_query
from pexeso.composite.row_keys import RowKeys, build_row_keys
from pexeso.composite.search import KeyMatches, search_keys
from pexeso.composite.xash import Xash
from pexeso.errors import PexesoError
from pexeso.lake.files import find_tables
from pexeso.lake.readers.reader import read_table
from pexeso.lake.tokens import tokens_of

FILTERS = ("none", "xash", "bloom", "intersection", "auto")
REPEATS, N_QUERIES, MOST_ROWS, K = 3, 200, 2000, 10

MOST_COLUMNS = 200
"""Of a table: to find the best of the 1,093 columns of one table took 15 seconds of a search."""


def token_tables(folder: Path) -> list[pa.Table]:
    """Return the tables of a folder that can be read and are not too wide, all cells as tokens."""
    tables = []
    for file in find_tables(folder)[0]:
        try:
            columns = [tokens_of(column) for column in read_table(file.path).columns]
        except PexesoError:
            continue
        if len(columns) > MOST_COLUMNS:
            continue
        tables.append(pa.table(columns, names=[str(number) for number in range(len(columns))]))
    return tables


def drawn_queries(tables: list[pa.Table], m: int, seed: int) -> list[tuple[int, KeyQuery]]:
    """Return tables, and keys of m of their columns; tables and columns are drawn alike."""
    rng = np.random.default_rng(seed)
    usable = [n for n, table in enumerate(tables) if table.num_columns >= m and table.num_rows > 4]
    found: list[tuple[int, KeyQuery]] = []
    while len(found) < N_QUERIES:
        number = int(rng.choice(usable))
        columns = rng.choice(tables[number].num_columns, m, replace=False)
        query = key_query([tables[number].column(int(c))[:MOST_ROWS] for c in columns])
        if query.n_keys > 1:
            found.append((number, query))
    return found


def measured(rows: RowKeys, queries: list[tuple[int, KeyQuery]]) -> dict[str, Any]:
    """Search with each filter, and return times and counts; raise if two answers differ."""
    seconds = np.full((len(queries), len(FILTERS)), np.inf)
    counts = {name: {"probes": 0, "passed": 0, "held": 0, "chosen": 0} for name in FILTERS}
    for at, (table, query) in enumerate(queries):
        answers = []
        for repeat in range(REPEATS):
            for column, name in enumerate(FILTERS):
                begin = time.process_time()
                found = search_keys(rows, query, K, row_filter=name, excluded=[table])
                seconds[at, column] = min(seconds[at, column], time.process_time() - begin)
                if repeat == 0:
                    answers.append(found.matches)
                    _count(counts, name, found)
        if any(answer != answers[0] for answer in answers):
            raise click.ClickException(f"Query {at}: the filters give different answers.")
    total, best = seconds.sum(axis=0), seconds[:, :-1].min(axis=1)
    return {
        name: {
            "median_ms": round(1e3 * float(np.median(seconds[:, column])), 3),
            "total_over_fastest_of_each": round(float(total[column] / best.sum()), 2),
            **counts[name],
        }
        for column, name in enumerate(FILTERS)
    }


def _count(counts: dict[str, dict[str, int]], name: str, found: KeyMatches) -> None:
    for counted in ("probes", "passed", "held"):
        counts[name][counted] += getattr(found.work, counted)
    if name == "auto":
        counts[found.row_filter]["chosen"] += 1


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("folders", nargs=-1, type=click.Path(exists=True, path_type=Path), required=True)
@click.option("--seed", default=7, show_default=True, help="Of the keys that are drawn.")
@click.option("--write", is_flag=True, help="Keep the result in benchmarks/results.")
def main(folders: tuple[Path, ...], seed: int, write: bool) -> None:
    """Measure searches of composite keys in the tables of FOLDERS, one lake each."""
    pin_threads(1)
    result: dict[str, Any] = {"machine": describe_machine(torch.device("cpu")), "seed": seed}
    for folder in folders:
        tables = token_tables(folder)
        width = sum(table.num_columns for table in tables) / len(tables)
        rows = build_row_keys(tables, [Bloom(128, hashes_for(128, width)), Xash()])
        sizes = {"tables": rows.n_tables, "rows": rows.n_rows, "cells": len(rows.cells)}
        result[folder.name] = {**sizes, "values": len(rows.values)}
        for m in (2, 3):
            found = measured(rows, drawn_queries(tables, m, seed))
            result[folder.name][f"{m} columns"] = found
            click.echo(json.dumps({"lake": folder.name, "columns": m, **found}))
    if write:
        write_result(RESULTS / "composite" / "filters.json", result)


if __name__ == "__main__":
    main()
