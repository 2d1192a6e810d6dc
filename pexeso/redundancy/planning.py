"""From contained tables to a plan: prices, and which tables can go at least cost.

R2D2 gives no prices; the defaults here are round numbers near the list prices of cloud storage in
2026, and meant to be replaced by one's own. Sizes are stored bytes, a gigabyte is 10**9 bytes, and
all prices are for a month.

Symbols of the paper: C_s is `storage`, C_m `maintenance`, f_v `maintenances`, A_v `accesses`, r and
w `read` and `write`, r_l and w_l `read_seconds` and `write_seconds`, Th `max_rebuild_seconds`.
"""

from __future__ import annotations

import csv
import datetime as dt
import hashlib
import os
import re
from collections.abc import Container, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

import numpy as np

from pexeso.errors import InputError
from pexeso.redundancy.containments import Containments
from pexeso.redundancy.plan import ContainmentEdge, Deletion, Plan, can_name_table
from pexeso.redundancy.rebuilds import Rebuilds
from pexeso.redundancy.retention import TIME_LIMIT, Retention, RetentionProblem, plan_retention
from pexeso.redundancy.schema_tokens import read_toml
from pexeso.redundancy.table_files import TableRefused, table_files, table_fingerprint
from pexeso.store.io.location import Location

GIGABYTE = 1e9


@dataclass(frozen=True)
class Costs:
    """Prices, and how often tables are used unless it is known of each.

    Attributes
    ----------
    storage : float
        Of a gigabyte kept for a month.
    maintenance : float
        Of a gigabyte gone over once, as a scan for privacy does.
    maintenances : float
        Such operations on a table in a month; one a week.
    read, write : float
        Of a gigabyte read or written once, where a table is rebuilt.
    accesses : float
        Of a table in a month: each would rebuild it, once it is deleted.
    read_seconds, write_seconds : float
        To read and write a gigabyte.
    max_rebuild_seconds : float or None
        A table is deleted only where rebuilding takes less, exclusive; None for no bound.
    accesses_of : dict of str to float
        Of single tables, by name.
    """

    storage: float = 0.02
    maintenance: float = 0.01
    maintenances: float = 52 / 12
    read: float = 0.01
    write: float = 0.01
    accesses: float = 0.1
    read_seconds: float = 10.0
    write_seconds: float = 20.0
    max_rebuild_seconds: float | None = None
    accesses_of: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            for number in value.values() if name == "accesses_of" else [value]:
                if name == "max_rebuild_seconds" and number is None:
                    continue
                if isinstance(number, bool) or not isinstance(number, int | float):
                    raise InputError(f"{name} is a number. Got {number!r}.")
                if not 0 <= number < np.inf:
                    raise InputError(f"{name} is 0 or more, inclusive. Got {number!r}.")

    def keeping(self, n_bytes: np.ndarray) -> np.ndarray:
        """Return what keeping tables costs in a month: float64 (n,)."""
        return (self.storage + self.maintenance * self.maintenances) * n_bytes / GIGABYTE

    def rebuilding(
        self, parent_bytes: np.ndarray, child_bytes: np.ndarray, accesses: np.ndarray
    ) -> np.ndarray:
        """Return what rebuilding deleted tables is expected to cost in a month: float64 (e,)."""
        return accesses * (self.read * parent_bytes + self.write * child_bytes) / GIGABYTE

    def seconds(self, parent_bytes: np.ndarray, child_bytes: np.ndarray) -> np.ndarray:
        """Return how long rebuilding tables takes: float64 (e,)."""
        return (self.read_seconds * parent_bytes + self.write_seconds * child_bytes) / GIGABYTE


def read_costs(path: str | os.PathLike[str]) -> Costs:
    """Read costs from a TOML file; what it does not name keeps its default.

    The table ``[accesses_of]`` has the accesses of single tables by name.
    """
    document = read_toml(path, "costs")
    known = {cost.name for cost in fields(Costs)}
    unknown = sorted(set(document) - known)
    if unknown:
        raise InputError(
            f"'{os.fspath(path)}' names {', '.join(unknown)}, which is no cost. Known are "
            f"{', '.join(sorted(known))}."
        )
    if not isinstance(document.get("accesses_of", {}), dict):
        raise InputError(f"accesses_of in '{os.fspath(path)}' is a table of names and numbers.")
    return Costs(**document)


def read_accesses(path: str | os.PathLike[str]) -> dict[str, float]:
    """Read monthly uses of tables from a CSV with the columns ``table`` and ``accesses``."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            if not {"table", "accesses"} <= set(rows.fieldnames or ()):
                raise ValueError(f"its columns are {', '.join(rows.fieldnames or ()) or 'none'}")
            accesses: dict[str, float] = {}
            for row in rows:
                if row["table"] in accesses:
                    raise ValueError(f"it names {row['table']!r} twice")
                accesses[row["table"]] = float(row["accesses"])
        return accesses
    except (OSError, TypeError, ValueError, csv.Error) as error:
        raise InputError(
            f"'{os.fspath(path)}' must be a CSV with the columns table and accesses, and a number "
            f"in each row, one for each table. {type(error).__name__}: {error}."
        ) from error


def plan_deletions(
    graph: Containments,
    lake: Path | Location | None,
    rebuilds: Rebuilds,
    costs: Costs,
    *,
    refuted: Container[tuple[str, str]] = (),
    verified: bool = False,
) -> Plan:
    """Choose which tables of a lake to delete, at least cost.

    A table is deleted only where it is known how it is rebuilt from one that is kept, where that
    takes less than the costs allow, where it was read as it is (repaired rows would not come
    back as they were), where no other table lies in its folder, where neither it is a symbolic
    link nor one leads to it, and where it does not lie inside another file.
    """
    _require_known(costs, graph)
    numbers = {table.name: number for number, table in enumerate(graph.tables)}
    names = list(numbers)
    n_bytes = np.array([table.n_bytes for table in graph.tables], float)
    accesses = np.array([costs.accesses_of.get(name, costs.accesses) for name in names])
    mixed, unknown = _unsure_folders(graph, lake)
    stay = _must_stay(graph, lake) | mixed | unknown
    ends = [
        (numbers[parent], numbers[child])
        for parent, child in sorted(graph.whole())
        if child not in stay and parent not in unknown and (parent, child) not in refuted
    ]
    parents, children = np.array(ends, np.int64).reshape(-1, 2).T
    seconds = costs.seconds(n_bytes[parents], n_bytes[children])
    rebuilding = costs.rebuilding(n_bytes[parents], n_bytes[children], accesses[children])
    problem = RetentionProblem(costs.keeping(n_bytes), parents, children, rebuilding)
    if costs.max_rebuild_seconds is not None:
        problem = problem.with_edges(seconds < costs.max_rebuild_seconds)
    best = best_with_statements(problem, rebuilds, TIME_LIMIT)
    deleted = np.flatnonzero(~best.kept).tolist()
    held = _held_by(graph, {names[table] for table in deleted})
    deletions = []
    for child in deleted:
        table, parent = graph.tables[child], int(best.source[child])
        sizes = n_bytes[parent], n_bytes[child]
        price = costs.rebuilding(*sizes, accesses[child])
        deletions.append(
            Deletion(
                table=table.name,
                parent=names[parent],
                sql=rebuilds.of(parent, child),
                bytes=table.n_bytes,
                rows=table.n_rows,
                saving=float(problem.keep_cost[child] - price),
                seconds=float(costs.seconds(*sizes)),
                derived=held[table.name],
                fingerprint=_fingerprint(graph, lake, table.name),
                parent_fingerprint=_fingerprint(graph, lake, names[parent]),
                verified=verified,
            )
        )
    remaining = {names[table] for table in np.flatnonzero(best.kept).tolist()}
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
        edges=edges_of_plan(graph),
    )


def edges_of_plan(graph: Containments) -> tuple[ContainmentEdge, ...]:
    return tuple(
        ContainmentEdge(edge.parent, edge.child, edge.containment, edge.rows)
        for edge in graph.edges
        if edge.exact
    )


def _require_known(costs: Costs, graph: Containments) -> None:
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
    parents, children = problem.parents, problem.children
    order = np.lexsort((parents, problem.rebuild_cost, children))
    first = np.searchsorted(children[order], np.arange(len(problem.keep_cost) + 1))
    possible = np.ones(len(parents), bool)
    n_tried: dict[int, int] = {}
    while True:
        best = plan_retention(problem.with_edges(possible), time_limit=time_limit)
        chosen = [(int(best.source[child]), child) for child in np.flatnonzero(~best.kept).tolist()]
        rebuilds.look_for(chosen)
        failed = [pair for pair in chosen if rebuilds.of(*pair) is None]
        if not failed:
            return best
        tried: list[int] = []
        for _, child in failed:
            n_tried[child] = 2 * n_tried.get(child, 1)
            edges = order[first[child] : first[child + 1]]
            tried += edges[possible[edges]][: n_tried[child]].tolist()
        pairs = [(int(parents[edge]), int(children[edge])) for edge in tried]
        rebuilds.look_for(pairs)
        wrong = [*failed, *(pair for pair in pairs if rebuilds.of(*pair) is None)]
        codes = np.array(wrong, np.int64) @ [1, len(problem.keep_cost)]
        possible &= ~np.isin(parents + children * len(problem.keep_cost), codes)


def _must_stay(graph: Containments, lake: Path | Location | None) -> set[str]:
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
    """Return the tables that are symbolic links or what such lead to, or inside another file."""
    table_of = {
        os.path.join(lake, file.file): name for name, files in graph.files.items() for file in files
    }
    links = [path for path in table_of if os.path.islink(path)]
    real = os.path.realpath(lake)
    led_to = [os.path.join(lake, os.path.relpath(os.path.realpath(path), real)) for path in links]
    inside = [path for path in table_of if not os.path.lexists(path)]
    return {table_of[path] for path in (*links, *led_to, *inside) if path in table_of}


# What engines write next to the files of a table: checksums, footers, and that they have ended.
_BY_ENGINES = re.compile(r"_SUCCESS|_(common_)?metadata|_(started|committed)_\d+|\..+\.crc")


def _unsure_folders(graph: Containments, lake: Path | Location | None) -> tuple[set[str], set[str]]:
    """Return the folders of tables that hold other files, and those of unknown content.

    Hidden files, notes, and tables that are newer than an index would leave the lake with their
    folder, and no statement gives them back. What has symbolic links, is gone or closed has no
    fingerprint.
    """
    mixed: set[str] = set()
    unknown: set[str] = set()
    if not isinstance(lake, Path):
        return mixed, unknown
    for name in {name for edge in graph.edges for name in (edge.parent, edge.child)}:
        own_paths = {lake / file.file for file in graph.files[name]}
        if own_paths == {lake / name}:
            continue
        try:
            files = table_files(lake / name)
        except (TableRefused, OSError):
            unknown.add(name)
            continue
        if any(path not in own_paths and not _BY_ENGINES.fullmatch(path.name) for _, path in files):
            mixed.add(name)
    return mixed, unknown


def _held_by(graph: Containments, tables: set[str]) -> dict[str, tuple[str, ...]]:
    """Return the tables that each of some others holds whole, equal ones left out."""
    whole = graph.whole()
    held: dict[str, list[str]] = {name: [] for name in tables}
    for parent, child in sorted(whole):
        if parent in tables and (child, parent) not in whole:
            held[parent].append(child)
    return {name: tuple(others) for name, others in held.items()}


def _fingerprint(graph: Containments, lake: Path | Location | None, table: str) -> str:
    """Return the fingerprint of a table as it was read; other files in its folder are read here."""
    known = {
        file.file: file.fingerprint for file in graph.files[table] if file.fingerprint is not None
    }
    if list(known) == [table]:
        return known[table]
    if isinstance(lake, Path):
        inside = {
            name.removeprefix(f"{table}/"): fingerprint for name, fingerprint in known.items()
        }
        return table_fingerprint(lake / table, inside)
    return hashlib.blake2b(repr(sorted(known.items())).encode(), digest_size=16).hexdigest()
