"""From a lake to the graph of contained tables: every stage with what it leaves.

Stages are named as the gates they are: ``schema`` (R2D2's SGB), ``types``, ``rows``, ``min_max``
(MMP) and ``exact``, which replaces sampled rows (CLP) by all of them.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from pexeso.errors import InputError
from pexeso.redundancy import SEMANTICS
from pexeso.redundancy.containment import RowCounts, contained_rows, counted_rows, require_semantics
from pexeso.redundancy.pieces import StoredPiece, stored_pieces
from pexeso.redundancy.plans.in_tasks import done_in_tasks
from pexeso.redundancy.plans.lake_tables import FileOfTable, files_of_tables, table_of_file
from pexeso.redundancy.plans.reading import DEFAULT_MAX_TABLE_BYTES, LakeRows, ReadFile, read_lake
from pexeso.redundancy.pruning import GATES, Profile, prune
from pexeso.redundancy.schema_graph import schema_graph
from pexeso.redundancy.schema_tokens import Token
from pexeso.redundancy.tables import (
    TableOfPieces,
    hashes_of_rows,
    name_of,
    ordered_tokens,
    place_of_cells,
    table_of,
)
from pexeso.store.io.temporary import temporary_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# The exact stage: for each pair of tables, how many rows of the one occur in the other.
#
# Pairs are worked on by the columns of the child: each table is hashed once on these columns,
# whether it is the parent or the child of a pair.

ROWS_OF_A_UNIT = 1 << 22
"""Rows to be hashed by one unit of work, about."""

ROWS_KEPT = 1 << 22
"""Rows of tables whose hashes a task keeps for further pairs: some 64 bytes each."""

_ROW = pa.schema([(name, pa.int64()) for name in ("parent", "child", "rows")])

Unit = str
"""JSON: ``tokens``; ``tables``, places of cells by number of the table; ``pairs``."""


def units_of(
    tables: Sequence[TableOfPieces], parents: np.ndarray, children: np.ndarray
) -> Iterator[Unit]:
    """Divide pairs of tables into units of work."""
    schema_of = {child: tuple(ordered_tokens(tables[child])) for child in set(children.tolist())}
    schemas: dict[tuple[Token, ...], list[int]] = {}
    for pair, child in enumerate(children.tolist()):
        schemas.setdefault(schema_of[child], []).append(pair)
    for tokens, pairs in schemas.items():
        pairs.sort(key=lambda pair: (parents[pair], children[pair]))
        some: list[tuple[int, int]] = []
        held: dict[int, int] = {}
        for pair in pairs:
            both = int(parents[pair]), int(children[pair])
            more = {number: tables[number].n_rows for number in both}
            if some and sum((held | more).values()) > ROWS_OF_A_UNIT and both[0] != some[-1][0]:
                yield _unit(tables, tokens, some)
                some, held = [], {}
            some.append(both)
            held |= more
        yield _unit(tables, tokens, some)


def _unit(
    tables: Sequence[TableOfPieces], tokens: tuple[Token, ...], pairs: list[tuple[int, int]]
) -> Unit:
    numbers = sorted({number for pair in pairs for number in pair})
    return json.dumps(
        {
            "tokens": [name_of(token) for token in tokens],
            "tables": {number: place_of_cells(tables[number], tokens) for number in numbers},
            "pairs": pairs,
        }
    )


def count_contained(
    units: Iterable[Unit],
    *,
    spark: SparkSession | None = None,
    semantics: str = "set",
    min_containment: float = 1.0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Count the rows of children that occur in parents, in tasks of Spark or threads.

    Returns
    -------
    parents, children, rows : int64 (e,)
        Of the pairs of which at least `min_containment` of the child's rows are contained, or which
        has none, by parent and child.
    """
    work = partial(_work, semantics=semantics, min_containment=min_containment)
    rows = [tuple(row.values()) for row in done_in_tasks(spark, units, work, _ROW)]
    edges = np.array(sorted(rows), np.int64).reshape(-1, 3)
    return edges[:, 0], edges[:, 1], edges[:, 2]


def _work(unit: Unit, *, semantics: str, min_containment: float) -> list[dict[str, Any]]:
    document = json.loads(unit)
    tables: Mapping[str, Any] = document["tables"]
    opened = lru_cache(maxsize=None)(stored_pieces)
    counts = _Counts(tables, document["tokens"], lambda path, number: opened(path)[number])
    edges = []
    for parent, child in document["pairs"]:
        parent_counts = counts.of(parent)
        child_counts = counts.of(child)
        n_rows = int(child_counts.counts.sum())
        missing = int((1 - min_containment) * n_rows) + 1 if min_containment < 1 else 0
        rows = contained_rows(child_counts, parent_counts, semantics, max_missing=missing)
        if rows >= 0 and containment(rows, n_rows) >= min_containment:
            edges.append({"parent": parent, "child": child, "rows": rows})
    return edges


def containment(rows: int, n_rows: int) -> float:
    """Return the share of a table's rows that is contained; an empty table is contained whole."""
    return rows / n_rows if n_rows else 1.0


class _Counts:
    """Rows of tables counted on some columns, kept while there is room."""

    def __init__(
        self,
        tables: Mapping[str, Any],
        tokens: Sequence[str],
        open_piece: Callable[[Path, int], StoredPiece],
    ) -> None:
        self._tables, self._tokens, self._open = tables, tokens, open_piece
        self._kept: dict[int, RowCounts] = {}

    def of(self, table: int) -> RowCounts:
        if table in self._kept:
            counts = self._kept.pop(table)
        else:
            hashes = hashes_of_rows(self._tables[str(table)], self._tokens, self._open)
            counts = counted_rows(hashes)
        self._kept[table] = counts  # the last used one is the last
        while len(self._kept) > 2 and sum(map(len, self._kept.values())) > ROWS_KEPT:
            self._kept.pop(next(iter(self._kept)))
        return counts


FOLDER = "pexeso-redundancy-"


@dataclass(frozen=True)
class Stage:
    """A stage of the search.

    Attributes
    ----------
    name : str
    edges : int
        That it left.
    seconds : float
    """

    name: str
    edges: int
    seconds: float


@dataclass(frozen=True)
class Edge:
    """Rows of a table that occur in another.

    Attributes
    ----------
    parent, child : str
        Tables by name.
    containment : float
        The share of the child's rows, 0 to 1.
    rows : int
        So many rows of the child.
    exact : bool
        All rows were compared.
    """

    parent: str
    child: str
    containment: float
    rows: int
    exact: bool = True


@dataclass(frozen=True)
class LeftOut:
    """A table that no edge can have, and why."""

    table: str
    reason: str


@dataclass(frozen=True)
class Containments:
    """The graph of contained tables of a lake.

    Attributes
    ----------
    lake : str
        Its name.
    edges : tuple of Edge
        By parent and child.
    stages : tuple of Stage
    tables : tuple of TableOfPieces
        By name. Their cells are gone once the search is over.
    files : dict of str to tuple of ReadFile
        Of each table, also of those that are left out.
    left_out : tuple of LeftOut
    """

    lake: str
    edges: tuple[Edge, ...]
    stages: tuple[Stage, ...]
    tables: tuple[TableOfPieces, ...]
    files: Mapping[str, tuple[ReadFile, ...]]
    left_out: tuple[LeftOut, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return edges, stages and what was left out as plain JSON."""
        return {
            "edges": [asdict(edge) for edge in self.edges],
            "stages": [asdict(stage) for stage in self.stages],
            "left_out": [asdict(omission) for omission in self.left_out],
        }


@dataclass(frozen=True)
class ContainmentOptions:
    """Which tables count as contained in another.

    Attributes
    ----------
    min_containment : float
        At least this share of the child's rows, above 0 and at most 1, inclusive.
    semantics : {"set", "bag"}
        Whether a row of the child has to be in the parent, or as often as in the child; see
        `pexeso.redundancy.containment.contained_rows`.
    row_count_gate : bool
        Leave out pairs whose child has more rows than the parent.
    case_sensitive : bool
        Whether names of columns may differ by case alone.
    """

    min_containment: float = 1.0
    semantics: Literal[SEMANTICS] = "set"  # type: ignore[valid-type]
    row_count_gate: bool = True
    case_sensitive: bool = False

    def __post_init__(self) -> None:
        require_semantics(self.semantics)
        if not 0 < self.min_containment <= 1:
            raise InputError(
                "min_containment is above 0 and at most 1 (inclusive). Got "
                f"{self.min_containment!r}."
            )


def find_containments(
    spark: SparkSession,
    lake: str | os.PathLike[str],
    *,
    synonyms: Mapping[Token, Token] | None = None,
    max_table_bytes: int = DEFAULT_MAX_TABLE_BYTES,
    work_folder: Path | None = None,
    **options: Any,
) -> Containments:
    """Find all pairs of tables of a folder of which the one holds rows of the other.

    Parameters
    ----------
    work_folder : Path, optional
        Where hashes of all cells go while the search lasts, up to 16 bytes each: seen by all tasks.
        The folder for temporary files by default.
    """
    chosen = ContainmentOptions(**options)
    with temporary_folder(FOLDER, root=work_folder) as folder:
        started = time.perf_counter()
        read = read_lake(spark, lake, folder, max_table_bytes=max_table_bytes)
        seconds = time.perf_counter() - started
        return containments_of(
            spark,
            read,
            chosen,
            synonyms=synonyms,
            read_seconds=seconds,
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
    """Find the contained tables of a lake that was read.

    Parameters
    ----------
    read_seconds : float
        What the reading took.

    Notes
    -----
    The driver holds what is known of each column of each table, and the edges that are left.
    """
    clock = Clock(progress)
    clock.stages.append(Stage("read", 0, read_seconds))
    candidates = candidates_of(
        read,
        clock,
        case_sensitive=options.case_sensitive,
        row_count_gate=options.row_count_gate,
        bounds=options.min_containment == 1.0,
        synonyms=synonyms,
    )
    tables, files = candidates.tables, candidates.files
    clock.begin("exact")
    contained = count_contained(
        units_of(tables, candidates.parents, candidates.children),
        spark=spark,
        semantics=options.semantics,
        min_containment=options.min_containment,
    )
    edges = tuple(
        Edge(
            tables[parent].name,
            tables[child].name,
            containment(rows, tables[child].n_rows),
            tables[child].n_rows,
        )
        for parent, child, rows in zip(*(array.tolist() for array in contained), strict=True)
    )
    clock.end("exact", len(edges))
    return Containments(read.name, edges, tuple(clock.stages), tables, files, candidates.left_out)


@dataclass(frozen=True)
class Candidates:
    """Pairs of tables that neither columns nor bounds refute: no row has been compared.

    Attributes
    ----------
    parents, children : int64 (p,)
        Numbers of tables.
    """

    tables: tuple[TableOfPieces, ...]
    files: Mapping[str, tuple[ReadFile, ...]]
    left_out: tuple[LeftOut, ...]
    parents: np.ndarray
    children: np.ndarray


def candidates_of(
    read: LakeRows,
    clock: Clock,
    *,
    case_sensitive: bool = False,
    row_count_gate: bool = True,
    bounds: bool = True,
    synonyms: Mapping[Token, Token] | None = None,
) -> Candidates:
    """Find the pairs that columns, types, numbers of rows and bounds leave."""
    clock.begin("schema")
    tables, files, left_out = _tables_of(read, case_sensitive, synonyms)
    graph = schema_graph([frozenset(column.token for column in table.columns) for table in tables])
    n_edges = graph.n_edges
    clock.end("schema", n_edges)
    clock.begin("types")
    profiles = [_profile(table) for table in tables]
    pruned = prune(graph, profiles, row_count_gate=row_count_gate, bounds=bounds)
    for gate in GATES:
        n_edges -= pruned.removed[gate]
        clock.end(gate, n_edges)
    return Candidates(tuple(tables), files, left_out, pruned.parents, pruned.children)


class Clock:
    """Stages with what they took."""

    def __init__(self, progress: Callable[[str], None] | None = None) -> None:
        self.stages: list[Stage] = []
        self._tell, self._last = progress, 0.0

    def begin(self, name: str) -> None:
        """Start the time of a stage, and of those that follow without a beginning."""
        self._last = time.perf_counter()
        if self._tell is not None:
            self._tell(name)

    def end(self, name: str, edges: int) -> None:
        """Note a stage with the pairs that it left."""
        now = time.perf_counter()
        self.stages.append(Stage(name, edges, now - self._last))
        self._last = now


def _profile(table: TableOfPieces) -> Profile:
    columns = {column.token: (column.family, column.stats) for column in table.columns}
    return Profile(columns, table.n_rows)


def _tables_of(
    read: LakeRows, case_sensitive: bool, synonyms: Mapping[Token, Token] | None
) -> tuple[list[TableOfPieces], dict[str, tuple[ReadFile, ...]], tuple[LeftOut, ...]]:
    """Put tables together from the files that were read."""
    by_name = {file.file: file for file in read.files}
    of_tables = _files_by_table(read, by_name)
    tables, files, left_out = [], {}, []
    for name, parts in of_tables.items():
        some = tuple(by_name[file.file] for file in parts)
        files[name] = some
        reason = next((file.reason for file in some if file.reason is not None), None)
        try:
            n_bytes = sum(file.n_bytes for file in some)
            table = (
                None if reason else _table_of(name, parts, read, n_bytes, case_sensitive, synonyms)
            )
        except ValueError as error:
            table, reason = None, str(error)
        if table is not None and table.columns:
            tables.append(table)
        else:
            left_out.append(LeftOut(name, reason or "it has no columns"))
    return tables, files, tuple(left_out)


def _files_by_table(read: LakeRows, files: Iterable[str]) -> dict[str, list[FileOfTable]]:
    if read.lake is None:
        return {name: [FileOfTable(name, name, {})] for name in sorted(files)}
    logged = {
        table: [replace(table_of_file(file), table=table) for file in some]
        for table, some in read.logged.items()
    }
    with_log = {file.file for some in logged.values() for file in some}
    others = files_of_tables(file for file in files if file not in with_log)
    return dict(sorted({**others, **logged}.items()))


def _table_of(
    name: str,
    files: Sequence[FileOfTable],
    read: LakeRows,
    n_bytes: int,
    case_sensitive: bool,
    synonyms: Mapping[Token, Token] | None,
) -> TableOfPieces:
    pieces: list[StoredPiece] = []
    constants: list[Mapping[Token, str]] = []
    for file in files:
        some = read.pieces[file.file]
        pieces += some
        constants += [file.constants] * len(some)
    return table_of(
        name, pieces, constants, n_bytes, case_sensitive=case_sensitive, synonyms=synonyms
    )
