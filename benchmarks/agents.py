"""Whether agents reach the right join: clients that do what the descriptions of the tools say.

A client asks `find_joins` with a column of the lake, `explain_match` with the first candidate, and
`preview_join` or `join_sql` with the same arguments: three calls, and what the last one joins is
what the client has reached. It is right where the truth of the data set says that the two columns
can be joined. Candidates without truth are passed over, as if they were not in the list.
"""

from __future__ import annotations

import json
import math
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import anyio
import click
import numpy as np
from mcp.client.client import Client

from benchmarks.effectiveness.judged import BY_MEANING, BY_TEXT, NOT_JUDGED
from benchmarks.effectiveness.sets import SHARED, TruthSet, shared_set, text_columns
from benchmarks.report import RESULTS, write_result
from pexeso.index import Index, build_index
from pexeso.mcp.asking import Desk
from pexeso.mcp.budget import count_tokens
from pexeso.mcp.serving import make_server

DRAWN = {"wikitables": 100, "countries": 60, "autofj": 25, "entity-pairs": 3}
"""Tasks of each data set, at most; what is missing to `TASKS` is drawn from the first."""

TASKS = 200
AIM = 0.9
LAST = ("preview_join", "join_sql")
"""What clients call last, in turn."""


@dataclass(frozen=True)
class Task:
    """A column to search with.

    Attributes
    ----------
    data : str
    query : (str, str)
        Table and column.
    right : frozenset of (str, str)
        What it can be joined with.
    unknown : frozenset of (str, str)
        Columns of which the truth does not say.
    """

    data: str
    query: tuple[str, str]
    right: frozenset[tuple[str, str]]
    unknown: frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Outcome:
    """What a client reached.

    Attributes
    ----------
    reached : str or None
        The column that was joined; None where nothing was found.
    calls : int
    tokens : int
        Of all answers, as the server counts them.
    longest : int
        Of the longest answer.
    seconds : float
    error : str or None
    """

    data: str
    query: str
    right: bool
    reached: str | None
    calls: int
    tokens: int
    longest: int
    seconds: float
    error: str | None = None


def tasks_of(truth: TruthSet, index: Index) -> list[Task]:
    """Return the query columns of a data set that have a partner, by table and column."""
    tasks = [*_of_pairs(truth, index), *_of_partners(truth)]
    return sorted(tasks, key=lambda task: task.query)


def _of_pairs(truth: TruthSet, index: Index) -> Iterator[Task]:
    judged = truth.judged
    if judged is None:
        return
    rows = index.catalog.columns(["table", "label", "position"]).to_pylist()
    labels = {(row["table"], row["position"]): row["label"] for row in rows}
    all_columns = {(row["table"], row["label"]) for row in rows}
    names = [(table, labels[table, position]) for table, position in judged.keys]
    known = set(names)
    everything = np.arange(judged.n_columns)
    for query in judged.queries.tolist():
        classes = judged.classes(np.full(judged.n_columns, query), everything)
        partners = {names[at] for at in np.flatnonzero(np.isin(classes, (BY_TEXT, BY_MEANING)))}
        right = {partner for partner in partners if partner[0] != names[query][0]}
        unsure = {names[at] for at in np.flatnonzero(classes == NOT_JUDGED)}
        if right:
            unknown = (all_columns - known) | unsure
            yield Task(truth.name, names[query], frozenset(right), frozenset(unknown))


def _of_partners(truth: TruthSet) -> Iterator[Task]:
    partners = truth.partners
    if partners is None:
        return
    columns = [(table, name) for table, name, _ in text_columns(truth.lake)]
    for number, (query, partner) in enumerate(partners.pair_by_task.values()):
        twins = np.flatnonzero(partners.twins[number]).tolist()
        right = {columns[at] for at in (partner, *twins)}
        yield Task(truth.name, columns[query], frozenset(right), frozenset())


def draw(by_data: dict[str, list[Task]], seed: int, n_tasks: int) -> list[Task]:
    """Draw tasks, of each data set its part of `DRAWN`; the first fills up what others lack."""
    random = np.random.default_rng(seed)
    parts = sum(DRAWN[name] for name in by_data)
    first, *others = by_data
    drawn: list[Task] = []
    for name in (*others, first):
        tasks, part = by_data[name], math.ceil(DRAWN[name] * n_tasks / parts)
        number = min(n_tasks - len(drawn), len(tasks) if name == first else part)
        chosen = random.permutation(len(tasks))[:number]
        drawn += [tasks[at] for at in sorted(chosen.tolist())]
    return drawn


async def reach(client: Client, task: Task, last: str) -> Outcome:
    """Do what the descriptions of the tools say, and return what was reached."""
    begun, answers = time.perf_counter(), []
    name = ":".join(task.query)

    async def ask(tool: str, **arguments: Any) -> dict[str, Any]:
        result = await client.call_tool(tool, {"column": name, **arguments})
        if result.is_error:
            raise RuntimeError(result.content[0].text)
        answers.append(count_tokens(result.structured_content))
        return result.structured_content

    reached, error = None, None
    try:
        answer = await ask("find_joins")
        reached = first_known(answer["candidates"], task)
        if reached is not None:
            await ask("explain_match", lake_column=reached)
            await ask(last, lake_column=reached)
    except RuntimeError as failed:
        error = str(failed)
    return Outcome(
        task.data,
        name,
        error is None and reached in {":".join(column) for column in task.right},
        reached,
        len(answers) + (error is not None),
        sum(answers),
        max(answers, default=0),
        time.perf_counter() - begun,
        error,
    )


def first_known(candidates: Sequence[dict[str, Any]], task: Task) -> str | None:
    """Return the first candidate of which the truth knows."""
    unknown = {":".join(column) for column in task.unknown}
    names = (name for join in candidates for name in (join["lake_column"], *join["copies"]))
    return next((name for name in names if name not in unknown), None)


async def _all(desk: Desk, tasks: Sequence[Task]) -> list[Outcome]:
    async with Client(make_server(desk)) as client:
        return [await reach(client, task, LAST[number % 2]) for number, task in enumerate(tasks)]


def summary(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return shares by data set, and what the answers cost."""
    by_data: dict[str, Any] = {}
    for name in dict.fromkeys(outcome.data for outcome in outcomes):
        right = [outcome.right for outcome in outcomes if outcome.data == name]
        by_data[name] = {"tasks": len(right), "right": sum(right)}
    right = sum(outcome.right for outcome in outcomes)
    return {
        "tasks": len(outcomes),
        "right": right,
        "share": round(right / len(outcomes), 4),
        "aim": AIM,
        "by_data": by_data,
        "most_calls": max(outcome.calls for outcome in outcomes),
        "median_tokens": statistics.median(outcome.tokens for outcome in outcomes),
        "longest_answer_tokens": max(outcome.longest for outcome in outcomes),
        "median_seconds": round(statistics.median(outcome.seconds for outcome in outcomes), 3),
        "wrong": [
            {name: value for name, value in asdict(outcome).items() if name in _OF_WRONG}
            for outcome in outcomes
            if not outcome.right
        ],
    }


_OF_WRONG = ("data", "query", "reached", "error")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--tasks", default=TASKS, show_default=True, type=click.IntRange(1), help="Tasks.")
@click.option("--seed", default=0, show_default=True, help="Which tasks are drawn.")
@click.option("--data", default=",".join(DRAWN), show_default=True, help="Data sets.")
@click.option("--model", default="lexical", show_default=True, help="Of the indexes.")
@click.option(
    "--shared",
    default=SHARED,
    type=click.Path(path_type=Path),
    help="Where the data sets lie.",
    show_default="../shared/data",
)
@click.option("--write", is_flag=True, help="Keep the result in benchmarks/results.")
def main(tasks: int, seed: int, data: str, model: str, shared: Path, write: bool) -> None:
    """Let clients that follow the tools' descriptions look for joins whose truth is known."""
    names = data.split(",")
    if unknown := sorted(set(names) - set(DRAWN)):
        raise click.BadParameter(
            f"known are {', '.join(DRAWN)}. Got {', '.join(unknown)}.", param_hint="--data"
        )
    by_data: dict[str, list[Task]] = {}
    with tempfile.TemporaryDirectory(prefix="pexeso-agents-") as folder:
        indexes = {}
        for name in names:
            truth = shared_set(name, Path(folder) / name, shared)
            path = Path(folder) / f"{name}.pexeso"
            index = build_index(truth.lake, path, model=model)
            by_data[name], indexes[name] = tasks_of(truth, index), path
            click.echo(f"{name}: {len(by_data[name])} columns with a partner", err=True)
        drawn = draw(by_data, seed, tasks)
        outcomes = []
        for name in names:
            chosen = [task for task in drawn if task.data == name]
            outcomes += anyio.run(_all, Desk.of(str(indexes[name])), chosen) if chosen else []
    result = {"seed": seed, "model": model, **summary(outcomes)}
    click.echo(json.dumps(result, ensure_ascii=False, indent=1))
    if write:
        write_result(RESULTS / "agents.json", result)


if __name__ == "__main__":
    main()
