"""From contained tables to a plan: which of them can go, at least cost."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import numpy as np

from pexeso.cleanup.pipeline import Containments
from pexeso.cleanup.plan import ContainmentEdge, Deletion, Plan
from pexeso.cleanup.set_aside.moving import table_fingerprint
from pexeso.redundancy.costs import Costs
from pexeso.redundancy.retention import TIME_LIMIT, RetentionProblem, plan_retention


def plan_deletions(
    found: Containments, lake: Path, costs: Costs | None = None, *, time_limit: float = TIME_LIMIT
) -> Plan:
    """Choose which tables of a lake to delete, at least cost.

    A table is deleted only where it is known how it is rebuilt from one that is kept, where that
    takes less than the costs allow, and where it was read as it stands: repaired rows would not
    come back as they were.

    Parameters
    ----------
    found : Containments
        Of the lake as it is.
    lake : Path
        A folder of this machine.
    costs : Costs, optional
    time_limit : float
        Seconds for the solver; see `pexeso.redundancy.retention.plan_retention`.
    """
    costs = costs or Costs()
    tables = {table.name: number for number, table in enumerate(found.tables)}
    n_bytes = np.array([table.n_bytes for table in found.tables], float)
    accesses = np.array([costs.accesses_of.get(name, costs.accesses) for name in tables])
    ends = [
        (tables[parent], tables[child])
        for parent, child in found.rebuilds
        if not any(file.notes for file in found.files[child])
    ]
    parents, children = np.array(ends, np.int64).reshape(-1, 2).T
    seconds = costs.seconds(n_bytes[parents], n_bytes[children])
    if costs.max_rebuild_seconds is not None:
        in_time = seconds < costs.max_rebuild_seconds
        parents, children = parents[in_time], children[in_time]
    rebuilding = costs.rebuilding(n_bytes[parents], n_bytes[children], accesses[children])
    problem = RetentionProblem(costs.keeping(n_bytes), parents, children, rebuilding)
    best = plan_retention(problem, time_limit=time_limit)
    derived = Counter(best.source.tolist())
    deletions = []
    for child in np.flatnonzero(~best.kept).tolist():
        table, source = found.tables[child], found.tables[int(best.source[child])]
        rebuild = found.rebuilds[source.name, table.name]
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
                derived=derived[int(best.source[child])],
                fingerprint=table_fingerprint(lake / table.name),
                parent_fingerprint=table_fingerprint(lake / source.name),
                transformation=asdict(rebuild),
            )
        )
    return Plan(
        lake=str(lake.absolute()),
        created=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        costs=asdict(costs),
        cost=best.cost,
        keep_all_cost=best.keep_all_cost,
        optimal=best.optimal,
        gap=best.gap,
        delete=tuple(deletions),
        keep=tuple(found.tables[table].name for table in np.flatnonzero(best.kept).tolist()),
        edges=tuple(
            ContainmentEdge(each.parent, each.child, each.containment, each.rows)
            for each in found.edges
        ),
    )
