"""From contained tables to a plan: which of them can go, at least cost."""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import re
from collections.abc import Container
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from pexeso.errors import InputError
from pexeso.redundancy.costs import Costs
from pexeso.redundancy.plans.pipeline import Containments
from pexeso.redundancy.plans.plan import ContainmentEdge, Deletion, Plan, can_name_table
from pexeso.redundancy.plans.rebuilds import Rebuilds
from pexeso.redundancy.plans.set_aside.moving import TableRefused, table_files, table_fingerprint
from pexeso.redundancy.retention import TIME_LIMIT, Retention, RetentionProblem, plan_retention
from pexeso.store.io.location import Location

_BY_ENGINES = re.compile(r"_SUCCESS|_(common_)?metadata|_(started|committed)_\d+|\..+\.crc")
"""What engines write beside the files of a table: checksums, footers, and that they have ended."""


def plan_deletions(
    graph: Containments,
    lake: Path | Location | None,
    rebuilds: Rebuilds,
    costs: Costs | None = None,
    *,
    refuted: Container[tuple[str, str]] = (),
    verified: bool = False,
    time_limit: float = TIME_LIMIT,
) -> Plan:
    """Choose which tables of a lake to delete, at least cost.

    A table is deleted only where it is known how it is rebuilt from one that is kept, where that
    takes less than the costs allow, where it was read as it stands (repaired rows would not come
    back as they were), where no other table lies in its folder, where neither it is a symbolic
    link nor one leads to it, and where it does not lie inside another file.
    """
    costs = costs or Costs()
    _require_known(costs, graph)
    tables = {table.name: number for number, table in enumerate(graph.tables)}
    n_bytes = np.array([table.n_bytes for table in graph.tables], float)
    accesses = np.array([costs.accesses_of.get(name, costs.accesses) for name in tables])
    mixed, untold = _unsure_folders(graph, lake)
    stay = _must_stay(graph, lake) | mixed | untold
    ends = [
        (tables[edge.parent], tables[edge.child])
        for edge in graph.edges
        if edge.containment == 1.0
        and edge.child not in stay
        and edge.parent not in untold
        and (edge.parent, edge.child) not in refuted
    ]
    parents, children = np.array(ends, np.int64).reshape(-1, 2).T
    seconds = costs.seconds(n_bytes[parents], n_bytes[children])
    if costs.max_rebuild_seconds is not None:
        in_time = seconds < costs.max_rebuild_seconds
        parents, children = parents[in_time], children[in_time]
    rebuilding = costs.rebuilding(n_bytes[parents], n_bytes[children], accesses[children])
    problem = RetentionProblem(costs.keeping(n_bytes), parents, children, rebuilding)
    best = best_with_statements(problem, rebuilds, time_limit)
    held = _held_by(graph, {graph.tables[table].name for table in np.flatnonzero(~best.kept)})
    deletions = []
    for child in np.flatnonzero(~best.kept).tolist():
        table, source = graph.tables[child], graph.tables[int(best.source[child])]
        rebuild = rebuilds.of(int(best.source[child]), child)
        price = costs.rebuilding(
            np.float64(source.n_bytes), np.float64(table.n_bytes), accesses[child]
        )
        deletions.append(
            Deletion(
                table=table.name,
                parent=source.name,
                sql=rebuild.sql,
                bytes=table.n_bytes,
                rows=table.n_rows,
                saving=float(problem.keep_cost[child] - price),
                seconds=float(costs.seconds(np.float64(source.n_bytes), np.float64(table.n_bytes))),
                derived=held[table.name],
                fingerprint=_fingerprint(graph, lake, table.name),
                parent_fingerprint=_fingerprint(graph, lake, source.name),
                verified=verified,
            )
        )
    remaining = {graph.tables[table].name for table in np.flatnonzero(best.kept).tolist()}
    # What an archive calls "../a.csv" is left out, and nothing that a plan could move.
    left_out = (omission.table for omission in graph.left_out)
    return Plan(
        lake=graph.lake if lake is None else str(lake),
        created=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        costs=asdict(costs),
        cost=best.cost,
        keep_all_cost=best.keep_all_cost,
        optimal=best.optimal,
        gap=best.gap,
        delete=tuple(deletions),
        keep=tuple(sorted(remaining | set(filter(can_name_table, left_out)))),
        edges=tuple(
            ContainmentEdge(edge.parent, edge.child, edge.containment, edge.rows)
            for edge in graph.edges
        ),
    )


def _require_known(costs: Costs, graph: Containments) -> None:
    """Refuse accesses of other tables alone: names in another form would count for nothing."""
    if costs.accesses_of and graph.files and not costs.accesses_of.keys() & graph.files.keys():
        raise InputError(
            f"The accesses are of no table of '{graph.lake}'. Got {next(iter(costs.accesses_of))!r}"
            f"; tables are named by their path relative to the lake, such as "
            f"{next(iter(graph.files))!r}."
        )


def best_with_statements(
    problem: RetentionProblem, rebuilds: Rebuilds, time_limit: float
) -> Retention:
    """Plan as if every child could be rebuilt from every parent, and take back what cannot be.

    The plan is of least cost among those whose children all can be rebuilt: all of these were
    allowed. Where a parent turns out not to give its child, twice as many others of that child are
    tried as last time, cheapest first, before the next plan.
    """
    parents, children, cost = problem.parents, problem.children, problem.rebuild_cost
    order = np.lexsort((parents, cost, children))
    first = np.searchsorted(children[order], np.arange(len(problem.keep_cost) + 1))
    possible = np.ones(len(parents), bool)
    n_tried: dict[int, int] = {}
    while True:
        open_problem = replace(
            problem,
            parents=parents[possible],
            children=children[possible],
            rebuild_cost=cost[possible],
        )
        best = plan_retention(open_problem, time_limit=time_limit)
        deleted_tables = np.flatnonzero(~best.kept).tolist()
        chosen = [(int(best.source[child]), child) for child in deleted_tables]
        rebuilds.look_for(chosen)
        failed = [child for parent, child in chosen if rebuilds.of(parent, child) is None]
        if not failed:
            return best
        tried: list[int] = []
        for child in failed:
            n_tried[child] = 2 * n_tried.get(child, 1)
            edges = order[first[child] : first[child + 1]]
            tried += edges[possible[edges]][: n_tried[child]].tolist()
        pairs = [(int(parents[edge]), int(children[edge])) for edge in tried]
        rebuilds.look_for(pairs)
        wrong = {(int(best.source[child]), child) for child in failed}
        wrong |= {pair for pair in pairs if rebuilds.of(*pair) is None}
        possible &= ~np.isin(
            children * len(problem.keep_cost) + parents,
            [child * len(problem.keep_cost) + parent for parent, child in wrong],
        )


def _must_stay(graph: Containments, lake: Path | Location | None) -> set[str]:
    """Return the tables that are not deleted whatever they cost."""
    repaired = {name for name, files in graph.files.items() if any(file.notes for file in files)}
    folders = {
        "/".join(parts[:end])
        for name in graph.files
        for parts in [name.split("/")]
        for end in range(1, len(parts))
    }
    immovable = _immovable(graph, lake) if isinstance(lake, Path) else set()
    return repaired | folders | immovable | {"."}


def _immovable(graph: Containments, lake: Path) -> set[str]:
    """Return the tables that are never moved.

    These have symbolic links or what such lead to, or lie inside another file.
    """
    table_of = {
        os.path.join(lake, file.file): name for name, files in graph.files.items() for file in files
    }
    links = [path for path in table_of if os.path.islink(path)]
    real = os.path.realpath(lake)
    led_to = [os.path.join(lake, os.path.relpath(os.path.realpath(path), real)) for path in links]
    inside = [path for path in table_of if not os.path.lexists(path)]
    return {table_of[path] for path in (*links, *led_to, *inside) if path in table_of}


def _unsure_folders(graph: Containments, lake: Path | Location | None) -> tuple[set[str], set[str]]:
    """Return the folders of tables that hold other files, and those whose content cannot be told.

    Hidden files, notes, and tables that are newer than an index would leave the lake with their
    folder, and no statement gives them back. What has symbolic links, is gone or closed has no
    fingerprint.
    """
    mixed: set[str] = set()
    untold: set[str] = set()
    if not isinstance(lake, Path):
        return mixed, untold
    for name in {name for edge in graph.edges for name in (edge.parent, edge.child)}:
        own_paths = {lake / file.file for file in graph.files[name]}
        if own_paths == {lake / name}:
            continue
        try:
            files = table_files(lake / name)
        except (TableRefused, OSError):
            untold.add(name)
            continue
        if any(path not in own_paths and not _BY_ENGINES.fullmatch(path.name) for _, path in files):
            mixed.add(name)
    return mixed, untold


def _held_by(graph: Containments, tables: set[str]) -> dict[str, tuple[str, ...]]:
    """Return the tables that each of some others holds whole, equal ones left out."""
    whole = {(edge.parent, edge.child) for edge in graph.edges if edge.containment == 1.0}
    held: dict[str, list[str]] = {name: [] for name in tables}
    for parent, child in sorted(whole):
        if parent in tables and (child, parent) not in whole:
            held[parent].append(child)
    return {name: tuple(others) for name, others in held.items()}


def _fingerprint(graph: Containments, lake: Path | Location | None, table: str) -> str:
    """Return the fingerprint of a table as it was read.

    Files in its folder that are no tables are read here.
    """
    files = graph.files[table]
    known = {file.file: file.fingerprint for file in files if file.fingerprint is not None}
    if list(known) == [table]:
        return known[table]
    if isinstance(lake, Path):
        inside = {
            name.removeprefix(f"{table}/"): fingerprint for name, fingerprint in known.items()
        }
        return table_fingerprint(lake / table, inside)
    return hashlib.blake2b(repr(sorted(known.items())).encode(), digest_size=16).hexdigest()
