"""From contained tables to a plan: prices, and which tables can go at least cost.

R2D2 gives no prices; the defaults here are round numbers near the list prices of cloud storage in
2026, and meant to be replaced by one's own. Sizes are stored bytes, a gigabyte is 10**9 bytes, and
all prices are for a month.

Symbols of the paper: C_s is `storage`, C_m `maintenance`, f_v `maintenances`, A_v `accesses`, r and
w `read` and `write`, r_l and w_l `read_seconds` and `write_seconds`, Th `max_rebuild_seconds`;
rho_v is `keep_cost`, d_e `rebuild_cost`, x_v `kept`, y_e `source`.

The problem is R2D2's (Opt-Ret): keep a table at its retention cost, or delete it and pay what
rebuilding it from one kept parent is expected to cost. A deleted table is nobody's source. It is
solved as an integer program by HiGHS.
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
from pexeso.redundancy.schema_tokens import read_toml
from pexeso.redundancy.table_files import TableRefused, table_files, table_fingerprint
from pexeso.runtime.compiled import compiled
from pexeso.runtime.extras import require
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
    """Read costs, and ``[accesses_of]`` single tables, from TOML; others keep their defaults."""
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


loops = compiled("pexeso.redundancy.loops")

TIME_LIMIT = 60.0  # seconds

_ROUNDING = 1e-9
_SOLVED_COST = 1e6  # of the dearest table in a program for the solver


@dataclass(frozen=True)
class RetentionProblem:
    """Tables, and by which edges they can be rebuilt; no cost is below 0."""

    keep_cost: np.ndarray  # float64 (n,)
    # int64 (e,): numbers of tables: the child can be rebuilt from the parent
    parents: np.ndarray
    children: np.ndarray
    rebuild_cost: np.ndarray  # float64 (e,): expected for a period where the child is deleted

    def with_edges(self, edges: np.ndarray) -> RetentionProblem:
        """Return the problem with some of the edges: numbers, or bool (e,)."""
        parents, children = self.parents[edges], self.children[edges]
        return RetentionProblem(self.keep_cost, parents, children, self.rebuild_cost[edges])


@dataclass(frozen=True)
class Retention:
    """Which tables are kept, and from which the others are rebuilt."""

    kept: np.ndarray
    # int64 (n,): of a deleted table the parent that it is rebuilt from; -1 for one that is kept
    source: np.ndarray
    cost: float
    keep_all_cost: float
    bound: float

    @property
    def optimal(self) -> bool:
        """Whether it is proved that no plan costs less, but for rounding."""
        return self.cost <= self.bound + _ROUNDING * self.keep_all_cost

    @property
    def gap(self) -> float:
        """The share of the cost that a better plan could save at most."""
        return 0.0 if self.optimal else (self.cost - self.bound) / self.cost


def plan_retention(problem: RetentionProblem, *, time_limit: float = TIME_LIMIT) -> Retention:
    """Choose which tables to keep at least cost, or the best plan known when time is up."""
    # An edge that costs as much as keeping its child is never used: on a tie the table is kept.
    useful = problem.with_edges(problem.rebuild_cost < problem.keep_cost[problem.children])
    able = ~dominated(useful)
    useful = useful.with_edges(able[useful.parents])
    is_kept, bound = np.ones(len(able), bool), float(problem.keep_cost.sum())
    if len(useful.parents):
        is_kept, bound = _solved(useful, able, time_limit)
    return with_sources(problem, _without_needless(problem, is_kept), bound)


def dominated(problem: RetentionProblem) -> np.ndarray:
    """Return tables that some best plan does not keep: bool (n,).

    Let there be an edge from u to w, and for each edge from w to a table v other than u an edge
    from u to v that costs no more. Let m be the least cost of an edge to u (infinite where there is
    none), and ``keep[u] + cost[u, w] - m <= keep[w]``. Then a best plan does not keep w:

    - A plan that keeps both saves ``keep[w] - cost[u, w] > 0`` by deleting w: what was rebuilt from
      w is rebuilt from u for no more.
    - A plan that keeps w and not u pays m or more for u. Keep u and delete w: ``keep[u]`` and
      ``cost[u, w]`` are added, ``keep[w]`` and at least m are saved, and what was rebuilt from w is
      rebuilt from u for no more.

    Once w may not be kept, its edges go. That only raises m for other tables, and removes
    conditions, so steps made one after the other each hold for the problem that the former left. Of
    n equal copies one is left, which an integer program would have to find among n like it.
    """
    n = len(problem.keep_cost)
    n_children = np.bincount(problem.parents, minlength=n)
    spared = np.full(n, np.inf)
    np.minimum.at(spared, problem.children, problem.rebuild_cost)
    # Those first that are likely to dominate many others.
    order = np.lexsort((-n_children, problem.keep_cost - spared))
    able = np.ones(n, bool)
    loops.drop_dominated(
        *_edges_by(problem.parents, problem.children, problem.rebuild_cost, n),
        *_edges_by(problem.children, problem.parents, problem.rebuild_cost, n),
        problem.keep_cost,
        order[n_children[order] > 0],
        able,
        np.full(n, np.inf),
    )
    return ~able


def _edges_by(
    ends: np.ndarray, others: np.ndarray, costs: np.ndarray, n: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    order = np.argsort(ends, kind="stable")
    return np.searchsorted(ends[order], np.arange(n + 1)), others[order], costs[order]


def _without_needless(problem: RetentionProblem, is_kept: np.ndarray) -> np.ndarray:
    """Delete what is kept for nothing: savings too small for the solver to tell."""
    source = with_sources(problem, is_kept, 0.0).source
    needed = np.zeros(len(is_kept), bool)
    needed[source[source >= 0]] = True
    saved = problem.keep_cost[problem.children] - problem.rebuild_cost
    free = is_kept[problem.parents] & is_kept[problem.children] & (saved > 0)
    edges = np.flatnonzero(free & ~needed[problem.children])
    is_kept = is_kept.copy()
    for edge in edges[np.argsort(-saved[edges], kind="stable")].tolist():
        parent, child = int(problem.parents[edge]), int(problem.children[edge])
        if is_kept[parent] and is_kept[child] and not needed[child]:
            is_kept[child], needed[parent] = False, True
    return is_kept


def _solved(
    problem: RetentionProblem, able: np.ndarray, time_limit: float
) -> tuple[np.ndarray, float]:
    """Solve the integer program: which `able` tables are kept, bool (n,), and a bound on costs."""
    require("scipy", "The cheapest plan")
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_array

    n, n_edges = len(able), len(problem.parents)
    unit = float(problem.keep_cost.max()) / _SOLVED_COST  # the solver's tolerances are absolute
    tables, edges = np.arange(n), np.arange(n_edges)
    # The source of a table is kept: y_e <= x_u.
    ends = np.concatenate([edges, edges]), np.concatenate([n + edges, problem.parents])
    sources = coo_array((np.repeat([1.0, -1.0], n_edges), ends), (n_edges, n + n_edges))
    # Kept, or rebuilt from one: x_v + sum y = 1. With >= 1 a plan could only cost more.
    ends = np.concatenate([tables, problem.children]), np.concatenate([tables, n + edges])
    one = coo_array((np.ones(n + n_edges), ends), (n, n + n_edges))
    solution = milp(
        np.concatenate([problem.keep_cost, problem.rebuild_cost]) / unit,
        integrality=np.concatenate([np.ones(n), np.zeros(n_edges)]),
        bounds=Bounds(0, np.concatenate([able, np.ones(n_edges)]).astype(float)),
        constraints=[
            LinearConstraint(sources.tocsr(), -np.inf, 0),
            LinearConstraint(one.tocsr(), 1, 1),
        ],
        options={"time_limit": time_limit, "mip_rel_gap": 0.0},
    )
    cheapest = np.where(able, problem.keep_cost, np.inf)
    np.minimum.at(cheapest, problem.children, problem.rebuild_cost)
    best = float(cheapest.sum())  # as if every table had its best source
    bound = getattr(solution, "mip_dual_bound", None)
    if bound is not None and np.isfinite(bound):
        best = max(best, float(bound) * unit)
    choices = [] if solution.x is None else [solution.x[:n] > 0.5]
    if solution.status != 0:  # stopped: what is simple may be better
        choices.append(greedily_kept(problem))
    plans = [with_sources(problem, choice, best) for choice in choices]
    return min(plans, key=lambda plan: plan.cost).kept, best


def greedily_kept(problem: RetentionProblem) -> np.ndarray:
    """Delete the tables by what each saves, as long as a parent is left: bool (n,)."""
    n = len(problem.keep_cost)
    order = np.lexsort((problem.parents, problem.rebuild_cost, problem.children))
    begins = np.searchsorted(problem.children[order], np.arange(n + 1))
    sources = problem.parents[order].tolist()
    prices = problem.rebuild_cost[order].tolist()
    cheapest = np.full(n, np.inf)
    np.minimum.at(cheapest, problem.children, problem.rebuild_cost)
    is_kept, needed = np.ones(n, bool), np.zeros(n, bool)
    for table in np.argsort(cheapest - problem.keep_cost, kind="stable").tolist():
        if needed[table]:
            continue
        for edge in range(begins[table], begins[table + 1]):
            if is_kept[sources[edge]] and prices[edge] < problem.keep_cost[table]:
                is_kept[table], needed[sources[edge]] = False, True
                break
    return is_kept


def with_sources(problem: RetentionProblem, kept: np.ndarray, bound: float) -> Retention:
    """Return a plan: every deleted table has its cheapest kept parent, ties by number."""
    usable = kept[problem.parents] & ~kept[problem.children]
    order = np.lexsort((problem.parents, problem.rebuild_cost))
    order = order[usable[order]][::-1]
    source = np.full(len(kept), -1, np.int64)
    cost = np.where(kept, problem.keep_cost, 0.0)
    source[problem.children[order]] = problem.parents[order]
    cost[problem.children[order]] = problem.rebuild_cost[order]
    if (source[~kept] < 0).any():
        lost = np.flatnonzero(~kept & (source < 0))[0]
        raise InputError(f"Table {lost} is deleted, and no table that it is rebuilt from is kept.")
    return Retention(kept, source, float(cost.sum()), float(problem.keep_cost.sum()), bound)
