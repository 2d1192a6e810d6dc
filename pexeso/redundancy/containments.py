"""From a lake that was read to the graph of contained tables: every stage with what it leaves.

Stages are named as the gates they are: ``schema`` (R2D2's SGB), ``types``, ``rows``, ``min_max``
(MMP) and ``exact``, which compares all rows, or ``sampled`` (CLP), which compares a few.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from pexeso.errors import InputError
from pexeso.redundancy import SEMANTICS
from pexeso.redundancy.candidates import GATES, prune, schema_graph
from pexeso.redundancy.lake_reading import (
    FileOfTable,
    LakeRows,
    ReadFile,
    files_of_tables,
    table_of_file,
    work_in_tasks,
)
from pexeso.redundancy.pieces import (
    TableOfPieces,
    cell_places,
    hashes_of_rows,
    name_of,
    ordered_tokens,
    stored_pieces,
    table_of,
)
from pexeso.redundancy.row_hashes import RowCounts, contained_rows, counted_rows
from pexeso.redundancy.schema_tokens import Token

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Stage:
    """A stage of the search."""

    name: str
    edges: int  # That it left
    seconds: float


@dataclass(frozen=True)
class Edge:
    """Rows of a table that occur in another."""

    parent: str  # Tables by name
    child: str
    containment: float  # The share of the child's rows, 0 to 1
    rows: int  # Rows of the child
    exact: bool = True  # All rows were compared; else some rows of the child, which the parent has.


@dataclass(frozen=True)
class LeftOut:
    """A table that no edge can have, and why."""

    table: str
    reason: str


@dataclass(frozen=True)
class Containments:
    """The graph of contained tables of a lake."""

    lake: str  # Its name
    edges: tuple[Edge, ...]  # By parent and child
    stages: tuple[Stage, ...]
    tables: tuple[TableOfPieces, ...]  # By name. Their cells are gone once the search is over.
    files: Mapping[str, tuple[ReadFile, ...]]  # Of each table, also of those that are left out
    left_out: tuple[LeftOut, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "edges": [asdict(edge) for edge in self.edges],
            "stages": [asdict(stage) for stage in self.stages],
            "left_out": [asdict(omission) for omission in self.left_out],
        }

    def whole(self) -> set[tuple[str, str]]:
        """Return the pairs of a parent and a child all of whose rows it has, so far as known."""
        return {(edge.parent, edge.child) for edge in self.edges if edge.containment == 1.0}


@dataclass(frozen=True)
class ContainmentOptions:
    """Which tables count as contained in another."""

    # At least this share of the child's rows, above 0 and at most 1, inclusive
    min_containment: float = 1.0
    # {"set", "bag"}: Whether a row of the child has to be in the parent, or as often as in the
    # child
    semantics: Literal[SEMANTICS] = "set"  # type: ignore[valid-type]
    row_count_gate: bool = True  # Leave out pairs whose child has more rows than the parent
    case_sensitive: bool = False  # Whether names of columns may differ by case alone

    def __post_init__(self) -> None:
        if self.semantics not in SEMANTICS:
            raise InputError(
                f"semantics must be one of {', '.join(SEMANTICS)}. Got {self.semantics!r}."
            )
        if not 0 < self.min_containment <= 1:
            raise InputError(
                "min_containment is above 0 and at most 1 (inclusive). Got "
                f"{self.min_containment!r}."
            )


def containments_of(
    spark: SparkSession | None,
    read: LakeRows,
    options: ContainmentOptions,
    *,
    synonyms: Mapping[Token, Token] | None = None,
    read_seconds: float = 0.0,
    progress: Callable[[str], None] | None = None,
) -> Containments:
    """Find the contained tables of a lake that was read; the driver holds the edges."""
    clock = Clock(progress, read_seconds)
    candidates = candidates_of(read, clock, options, synonyms)
    tables = candidates.tables
    clock.begin("exact")
    contained = count_contained(
        work_units(tables, candidates.pairs()),
        spark=spark,
        semantics=options.semantics,
        min_containment=options.min_containment,
    )
    edges = [
        Edge(
            tables[parent].name,
            tables[child].name,
            containment(rows, tables[child].n_rows),
            tables[child].n_rows,
        )
        for parent, child, rows in contained
    ]
    clock.end("exact", len(edges))
    return candidates.graph(read.name, edges, clock)


class Clock:
    def __init__(
        self, progress: Callable[[str], None] | None = None, read_seconds: float = 0.0
    ) -> None:
        self.stages = [Stage("read", 0, read_seconds)]
        self._progress, self._last = progress, 0.0

    def begin(self, name: str) -> None:
        """Start the time of a stage, and of those that follow without a beginning."""
        self._last = time.perf_counter()
        if self._progress is not None:
            self._progress(name)

    def end(self, name: str, edges: int) -> None:
        now = time.perf_counter()
        self.stages.append(Stage(name, edges, now - self._last))
        self._last = now


@dataclass(frozen=True)
class Candidates:
    """Pairs of tables that neither columns nor bounds refute: no row has been compared."""

    tables: tuple[TableOfPieces, ...]
    files: dict[str, tuple[ReadFile, ...]]
    left_out: tuple[LeftOut, ...]
    # int64 (p,): numbers of tables
    parents: np.ndarray
    children: np.ndarray

    def pairs(self) -> Iterator[tuple[int, int]]:
        return zip(self.parents.tolist(), self.children.tolist(), strict=True)

    def graph(self, lake: str, edges: Iterable[Edge], clock: Clock) -> Containments:
        stages = tuple(clock.stages)
        return Containments(lake, tuple(edges), stages, self.tables, self.files, self.left_out)


def candidates_of(
    read: LakeRows,
    clock: Clock,
    options: ContainmentOptions,
    synonyms: Mapping[Token, Token] | None = None,
) -> Candidates:
    clock.begin("schema")
    tables, files, left_out = tables_of(read, options.case_sensitive, synonyms)
    graph = schema_graph([frozenset(column.token for column in table.columns) for table in tables])
    n_edges = graph.n_edges
    clock.end("schema", n_edges)
    clock.begin("types")
    parents, children, removed = prune(
        graph,
        [
            {column.token: (column.family, column.stats) for column in table.columns}
            for table in tables
        ],
        np.array([table.n_rows for table in tables], np.int64),
        row_count_gate=options.row_count_gate,
        bounds=options.min_containment == 1.0,
    )
    for gate in GATES:
        n_edges -= removed[gate]
        clock.end(gate, n_edges)
    return Candidates(tuple(tables), files, tuple(left_out), parents, children)


def tables_of(
    read: LakeRows, case_sensitive: bool, synonyms: Mapping[Token, Token] | None
) -> tuple[list[TableOfPieces], dict[str, tuple[ReadFile, ...]], list[LeftOut]]:
    by_name = {file.file: file for file in read.files}
    tables, files, left_out = [], {}, []
    for name, parts in _files_by_table(read, by_name).items():
        some = files[name] = tuple(by_name[part.file] for part in parts)
        reason = next((file.reason for file in some if file.reason is not None), None)
        table = None
        if reason is None:
            pieces = {part.file: read.pieces[part.file] for part in parts}
            constants = [part.constants for part in parts for _ in pieces[part.file]]
            try:
                table = table_of(
                    name,
                    [piece for part in pieces.values() for piece in part],
                    constants,
                    sum(file.n_bytes for file in some),
                    case_sensitive=case_sensitive,
                    synonyms=synonyms,
                )
            except ValueError as error:
                reason = str(error)
        if table is not None and table.columns:
            tables.append(table)
        else:
            left_out.append(LeftOut(name, reason or "it has no columns"))
    return tables, files, left_out


def _files_by_table(read: LakeRows, files: Iterable[str]) -> dict[str, list[FileOfTable]]:
    if read.lake is None:
        return {name: [FileOfTable(name, name, {})] for name in sorted(files)}
    logged = {
        table: [table_of_file(file)._replace(table=table) for file in some]
        for table, some in read.logged.items()
    }
    with_log = {file.file for some in logged.values() for file in some}
    others = files_of_tables(file for file in files if file not in with_log)
    return dict(sorted({**others, **logged}.items()))


# The exact stage: for each pair of tables, how many rows of the one occur in the other.
#
# Pairs are worked on by the columns of the child: each table is hashed once on these columns,
# whether it is the parent or the child of a pair.

UNIT_ROWS = 1 << 22  # about so many rows are hashed by one unit of work
KEPT_ROWS = 1 << 22  # rows of tables whose hashes a task keeps, some 64 bytes each

_ROW = pa.schema([(name, pa.int64()) for name in ("parent", "child", "rows")])


def work_units(
    tables: Sequence[TableOfPieces], pairs: Iterable[tuple[int, int]]
) -> Iterator[dict[str, Any]]:
    """Divide pairs of a parent and a child into units of work: plain JSON."""
    schemas: dict[tuple[Token, ...], list[tuple[int, int]]] = {}
    tokens_of = lru_cache(maxsize=None)(lambda child: tuple(ordered_tokens(tables[child])))
    for parent, child in pairs:
        schemas.setdefault(tokens_of(child), []).append((parent, child))
    for tokens, some in schemas.items():
        unit: list[tuple[int, int]] = []
        held: dict[int, int] = {}
        for pair in sorted(some):
            more = {number: tables[number].n_rows for number in pair}
            if unit and sum((held | more).values()) > UNIT_ROWS and pair[0] != unit[-1][0]:
                yield _unit(tables, tokens, unit)
                unit, held = [], {}
            unit.append(pair)
            held |= more
        yield _unit(tables, tokens, unit)


def _unit(
    tables: Sequence[TableOfPieces], tokens: tuple[Token, ...], pairs: list[tuple[int, int]]
) -> dict[str, Any]:
    numbers = sorted({number for pair in pairs for number in pair})
    return {
        "tokens": [name_of(token) for token in tokens],
        "tables": {number: cell_places(tables[number], tokens) for number in numbers},
        "pairs": pairs,
    }


def count_contained(
    units: Iterable[dict[str, Any]],
    *,
    spark: SparkSession | None = None,
    semantics: str = "set",
    min_containment: float = 1.0,
) -> list[tuple[int, int, int]]:
    """Return parent, child and common rows of pairs with at least `min_containment`, in order."""
    work = partial(_count_unit, semantics=semantics, min_containment=min_containment)
    return sorted(tuple(row.values()) for row in work_in_tasks(spark, units, work, _ROW))


def _count_unit(
    unit: dict[str, Any], *, semantics: str, min_containment: float
) -> list[dict[str, Any]]:
    opened = lru_cache(maxsize=None)(stored_pieces)
    kept: dict[int, RowCounts] = {}

    def counts_of(table: int) -> RowCounts:
        counts = kept.pop(table, None) or counted_rows(
            hashes_of_rows(unit["tables"][str(table)], unit["tokens"], opened)
        )
        kept[table] = counts  # the last used one is the last
        while len(kept) > 2 and sum(map(len, kept.values())) > KEPT_ROWS:
            kept.pop(next(iter(kept)))
        return counts

    edges = []
    for parent, child in unit["pairs"]:
        theirs, ours = counts_of(parent), counts_of(child)
        n_rows = int(ours.counts.sum())
        missing = int((1 - min_containment) * n_rows) + 1 if min_containment < 1 else 0
        rows = contained_rows(ours, theirs, semantics, max_missing=missing)
        if rows >= 0 and containment(rows, n_rows) >= min_containment:
            edges.append({"parent": parent, "child": child, "rows": rows})
    return edges


def containment(rows: int, n_rows: int) -> float:
    """Return the share of a table's rows that is contained; an empty table is contained whole."""
    return rows / n_rows if n_rows else 1.0
