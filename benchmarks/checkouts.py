"""The command ``python -m benchmarks checkouts``: one index searched by the code of two checkouts.

Each checkout searches in a process of its own, and the two take turns query by query, so that other
load affects both alike. Seconds are processor time. Every answer of one must be that of the other.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks.commands import benchmark, setting
from benchmarks.origin import ROOT, current_commit
from benchmarks.report import markdown_table
from pexeso.errors import InputError, LakeError, PexesoError
from pexeso.index import open_index
from pexeso.lake.containers.reader import read_table
from pexeso.lake.files import find_tables

MIN_VALUES, MAX_VALUES = 5, 100  # distinct ones of a query column

WORKER = """
import json, sys, time
import pexeso
index = pexeso.open_index(sys.argv[1], device="cpu")
others = {}
def plain(match):
    names = ("table", "column", "columns", "matched", "overlap", "joinability", "n_matched")
    return [str(getattr(match, name, None)) for name in names]
for line in sys.stdin:
    request = json.loads(line)
    model = request["model"]
    if model not in others:
        others[model] = index.with_model(model)
    search = getattr(others[model], request["search"])
    started = time.process_time()
    answer = search(request["values"], **request["options"])
    seconds = time.process_time() - started
    print(json.dumps([seconds, [plain(match) for match in answer]]), flush=True)
"""
"""What runs in the process of a checkout: a search for each line of its input."""

SEARCHES: Mapping[str, dict[str, Any]] = {
    "lexical": {"search": "search", "model": "lexical", "options": {}},
    "fasttext, .06": {
        "search": "search",
        "model": "fasttext",
        "options": {"max_distance": 0.06, "min_joinability": 0.6},
    },
    "overlap": {"search": "overlap", "model": "lexical", "options": {"k": 10}},
    "composite": {
        "search": "search_composite",
        "model": "lexical",
        "options": {"columns": ["one", "two"], "k": 10},
    },
}
COMPOSITE = "composite"
MOST_ROWS = 2000
_FOLDER = click.Path(file_okay=False)


class Checkout:
    """The process of a checkout, for as long as a block lasts."""

    def __init__(self, folder: Path, python: str, index: Path) -> None:
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        self._process = subprocess.Popen(
            [python, "-c", WORKER, str(index.resolve())],
            cwd=folder,
            env={**os.environ, **threads, "PYTHONPATH": str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Checkout:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stdin.close()
        self._process.wait()

    def search(self, request: Mapping[str, Any]) -> tuple[float, list[Any]]:
        """Return the seconds of a search and its answer."""
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise PexesoError(f"A checkout failed at the search {request['search']}.")
        return tuple(json.loads(line))


def requests_of(lake: Path, n_queries: int, seed: int) -> dict[str, list[dict[str, Any]]]:
    """Draw keys of two columns from tables of a lake; the first column is what others ask for."""
    files, rng, keys = find_tables(lake)[0], np.random.default_rng(seed), []
    for number in rng.permutation(len(files)).tolist():
        try:
            columns = read_table(files[number].path).columns
        except PexesoError:
            continue
        if len(columns) < 2:
            continue
        chosen = rng.choice(len(columns), 2, replace=False).tolist()
        cells = [columns[column].to_pylist()[:MOST_ROWS] for column in chosen]
        if len(_distinct(cells[0])) >= MIN_VALUES and any(cells[1]):
            keys.append(dict(zip(("one", "two"), cells, strict=True)))
        if len(keys) == n_queries:
            columns = [_distinct(key["one"])[:MAX_VALUES] for key in keys]
            return {
                name: [
                    {**search, "values": values}
                    for values in (keys if name == COMPOSITE else columns)
                ]
                for name, search in SEARCHES.items()
            }
    raise LakeError(f"{lake} has fewer than {n_queries} tables with two columns of five values.")


def _distinct(cells: Sequence[str | None]) -> list[str]:
    return list(dict.fromkeys(filter(None, cells)))


def compare(
    checkouts: Mapping[str, Checkout], requests: Sequence[Mapping[str, Any]], repeats: int
) -> dict[str, Any]:
    """Return medians of the seconds of each checkout, and the ratios other / this of queries."""
    seconds = np.zeros((len(checkouts), len(requests), repeats))
    differences = []
    for number, request in enumerate(requests):
        for repeat in range(-1, repeats):  # the first round is not counted
            answers = []
            turns = list(enumerate(checkouts.values()))
            for place, checkout in turns if repeat % 2 else turns[::-1]:
                elapsed, answer = checkout.search(request)
                answers.append(answer)
                if repeat >= 0:
                    seconds[place, number, repeat] = elapsed
        if answers[0] != answers[1]:
            differences.append(number)
    medians = np.median(seconds, axis=2)
    ratios = medians[1] / medians[0]
    quantiles = np.quantile(ratios, [0.0, 0.1, 0.25, 0.5, 0.75]).round(3).tolist()
    return {
        "queries": len(requests),
        "differences": differences,
        "median_processor_seconds": dict(
            zip(checkouts, np.median(medians, axis=1).tolist(), strict=True)
        ),
        "total_ratio": round(float(medians[1].sum() / medians[0].sum()), 3),
        "ratios": dict(
            zip(("least", "tenth", "quarter", "median", "three_quarters"), quantiles, strict=True)
        ),
    }


def checkouts_table(result: Mapping[str, Any]) -> str:
    """Return the times of both checkouts, and how many times longer the other takes."""
    rows = [
        [
            name,
            figures["queries"],
            *(f"{1e3 * s:.2f} ms" for s in figures["median_processor_seconds"].values()),
            *(f"{figures['ratios'][name]:.2f}" for name in ("median", "tenth", "least")),
            f"{figures['total_ratio']:.2f}",
        ]
        for name, figures in result["searches"].items()
    ]
    head = ("search", "queries", "this", "other", "other / this: median", "tenth", "least", "all")
    return markdown_table(head, rows)


@dataclass(frozen=True)
class Request:
    other: str = setting(nargs=1, type=_FOLDER)
    index: str = setting(nargs=1, type=_FOLDER)
    python: str = setting(sys.executable, "Python of the other checkout.")
    commit: str = setting("", "Commit of the other checkout, where it is no repository.")
    queries: int = setting(60, "Of each kind of search.")
    repeats: int = setting(5, "Of each query.")
    seed: int = setting(0, "Of the columns that are asked.")


@benchmark("checkouts", Request, checkouts_table)
def checkouts_command(request: Request) -> Iterator[tuple[str, dict[str, Any]]]:
    """Search INDEX by the code of this checkout and by that of OTHER, in turn.

    The index has the models lexical and fasttext and the parts overlap and composite, and its lake
    is a folder.
    """
    opened = open_index(request.index)
    if missing := {"lexical", "fasttext"} - set(opened.models):
        raise InputError(f"The index {request.index} has no model {', '.join(sorted(missing))}.")
    requests = requests_of(Path(opened.lake), request.queries, request.seed)
    searches, differences, index = {}, [], Path(request.index)
    other = Path(request.other).resolve()
    with (
        Checkout(ROOT, sys.executable, index) as ours,
        Checkout(other, request.python, index) as theirs,
    ):
        for name in SEARCHES:
            searches[name] = compare(
                {"this": ours, "other": theirs}, requests[name], request.repeats
            )
            differences += [f"{name}, query {n}" for n in searches[name]["differences"]]
            click.echo(f"{name}: {json.dumps(searches[name])}", err=True)
    result = {
        "other": request.commit or current_commit(Path(request.other)),
        "columns": opened.info().columns_indexed,
        "queries": request.queries,
        "repeats": request.repeats,
        "searches": searches,
        "differences": differences,
    }
    yield "checkouts/loops", result
