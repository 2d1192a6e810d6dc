"""The tables of the documentation, written from the result files.

A table stands between ``<!-- table: KIND FILE ... -->`` and ``<!-- end -->``; files are those below
``benchmarks/results``, and the kinds are in `KINDS`. Below it stands where its figures come from.
``python -m benchmarks tables`` writes all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from benchmarks import comparison, lexical_speed, result_tables, sparse_speed
from benchmarks.acquisition import plan_tables
from benchmarks.cluster import running as cluster
from benchmarks.effectiveness import report as effectiveness
from benchmarks.gpu.page import gpu_table
from benchmarks.origin import ROOT
from benchmarks.report import RESULTS, read_result
from benchmarks.transform import tables as transform
from pexeso.errors import InputError

Result = Mapping[str, Any]
Kind = Callable[[Sequence[Result]], str]

_TABLE = re.compile(r"(<!-- table: (\S+) ([^\n]+?) -->\n).*?(<!-- end -->)", re.DOTALL)


def _of_one(table: Callable[[Result], str]) -> Kind:
    """Return the kind of a table of one result."""

    def of_the_only_one(results: Sequence[Result]) -> str:
        (result,) = results
        return table(result).strip()

    return of_the_only_one


KINDS: Mapping[str, Kind] = {
    **result_tables.KINDS,
    **{name: _of_one(table) for name, table in result_tables.KINDS_OF_ONE.items()},
    "acquisition-direct": _of_one(plan_tables.direct_table),
    "acquisition-plans": _of_one(plan_tables.searches_table),
    "acquisition-thinned": _of_one(plan_tables.thinned_table),
    "comparison": _of_one(comparison.table_of),
    "cluster": _of_one(cluster.page_table),
    "effectiveness": _of_one(effectiveness.tables_of),
    "effectiveness-paper": _of_one(effectiveness.paper_table),
    "effectiveness-summary": effectiveness.summary_table,
    "gpu": _of_one(gpu_table),
    "lexical": _of_one(lexical_speed.tables_of),
    "sparse": _of_one(sparse_speed.table_of),
    "transform-draws": _of_one(transform.draws_table),
    "transform-life": _of_one(transform.life_table),
    "transform-means": _of_one(transform.means_table),
    "transform-planted": _of_one(transform.planted_page_table),
    "transform-tasks": _of_one(transform.tasks_means_table),
}


def pages(root: Path = ROOT) -> list[Path]:
    """Return the pages for users, and the page of the papers' experiments."""
    experiments = root / "benchmarks" / "EXPERIMENTS.md"
    return [root / "README.md", experiments, *sorted((root / "docs").rglob("*.md"))]


def with_tables(text: str, results: Path = RESULTS) -> str:
    """Return the text of a page with its tables as the results have them."""

    def part(match: re.Match[str]) -> str:
        kind, names = match[2], match[3].split()
        if kind not in KINDS:
            raise InputError(
                f"Kinds of tables are {', '.join(sorted(KINDS))}. Got {kind!r} instead."
            )
        records = [read_result(results / name) for name in names]
        if None in records:
            missing = names[records.index(None)]
            raise InputError(f"A table of a page names {missing!r}, and there is no such result.")
        named = [{**result, "file": name} for name, result in zip(names, records, strict=True)]
        return f"{match[1]}\n{KINDS[kind](named)}\n\n{source_line(named)}\n\n{match[4]}"

    return _TABLE.sub(part, text)


def source_line(results: Sequence[Result]) -> str:
    """Return when, at which commits and on which machines results were measured.

    Examples
    --------
    >>> origin = {"commit": "12ab", "date": "2026-12-02T10:00:00+00:00"}
    >>> machine = {"processor": "A", "cores": 2, "device": "cpu"}
    >>> source_line([{"origin": origin, "machine": machine}])
    '*Measured 2026-12-02 at commit 12ab on A, 2 cores.*'
    """
    origins = [result["origin"] for result in results]
    dates = sorted({origin["date"][:10] for origin in origins})
    commits = sorted({str(origin["commit"]) for origin in origins})
    machines = sorted(
        {
            _machine_name(result.get("machine") or origin["machine"])
            for result, origin in zip(results, origins, strict=True)
        }
    )
    when = " to ".join(dict.fromkeys((dates[0], dates[-1])))
    at = f"commit{'s' * (len(commits) > 1)} {', '.join(commits)}"
    earlier = sorted(
        {
            f"; {name} on {row['measured']}"
            for result in results
            for name, row in dict(result.get("methods", ())).items()
            if row.get("measured", dates[0]) < dates[0]
        }
    )
    return f"*Measured {when} at {at} on {'; '.join(machines)}{''.join(earlier)}.*"


def _machine_name(machine: Mapping[str, Any]) -> str:
    if machine["device"] != "cpu":
        return machine["device"]
    return f"{machine['processor']}, {machine['cores']} cores"


def write_pages(root: Path = ROOT, results: Path = RESULTS) -> list[Path]:
    """Write the tables of all pages, and return the pages that have changed."""
    changed = []
    for page in pages(root):
        text = page.read_text(encoding="utf-8")
        new = with_tables(text, results)
        if new != text:
            page.write_text(new, encoding="utf-8")
            changed.append(page)
    return changed


@click.command("tables")
def tables_command() -> None:
    """Write the tables of the documentation from the result files."""
    for page in write_pages():
        click.echo(page.relative_to(ROOT))
