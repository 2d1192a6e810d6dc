"""Which tables of a lake are contained in others, and which of them can go."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pexeso.build.build import SMALL_LAKE_SETTINGS, worker_errors_made_plain
from pexeso.build.spark.session import spark_session
from pexeso.errors import InputError
from pexeso.lake.frames.results import Tabular
from pexeso.redundancy.costs import Costs, read_accesses, read_costs
from pexeso.redundancy.plans.pipeline import (
    FOLDER,
    ContainmentOptions,
    Containments,
    Edge,
    LeftOut,
    Stage,
    containments_of,
)
from pexeso.redundancy.plans.plan import Plan, plan_to_json, write_plan
from pexeso.redundancy.plans.planning import plan_deletions
from pexeso.redundancy.plans.reading import DEFAULT_MAX_TABLE_BYTES
from pexeso.redundancy.plans.rebuilds import Rebuilds, read_statements
from pexeso.redundancy.plans.sources import is_index, rows_of_index, rows_of_lake
from pexeso.redundancy.plans.verifying import Statement, verify_statements
from pexeso.redundancy.schema_tokens import read_synonyms
from pexeso.runtime.progress import stage_bar, with_bar
from pexeso.runtime.shown import many
from pexeso.store.io.location import Location
from pexeso.store.io.temporary import temporary_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


STAGES = ("read", "schema", "types", "exact", "plan", "verify")
"""What a search for redundant tables goes through, in order."""


@dataclass(frozen=True, repr=False)
class Redundancy(Tabular):
    """The contained tables of a lake, and the plan of those that can go.

    Attributes
    ----------
    containments : Containments
    plan : Plan
        Its statements were run if `verified` was asked for.
    refuted : dict of str to str
        Tables that stay since a statement did not give them, with the reason.
    """

    containments: Containments
    plan: Plan
    refuted: Mapping[str, str]

    def _summary(self) -> str:
        tables, edges = many(len(self.containments.tables), "table"), many(len(self.edges), "edge")
        return f"{tables}, {edges}, {len(self.plan.delete):,} can go"

    def _shown(self) -> tuple[list[str], list[list[Any]]]:
        return self.plan._shown()

    fields = ("parent", "child", "containment", "rows", "exact")  # of no dataclass field

    def rows(self) -> list[dict[str, Any]]:
        """Return the values of `fields` for each of `edges`."""
        return [{name: getattr(edge, name) for name in self.fields} for edge in self.edges]

    def _field_types(self) -> dict[str, pa.DataType]:
        numbers = {"containment": pa.float64(), "rows": pa.int64(), "exact": pa.bool_()}
        return {**dict.fromkeys(self.fields, pa.string()), **numbers}

    @property
    def edges(self) -> tuple[Edge, ...]:
        """Pairs of a parent and a child, by parent and child."""
        return self.containments.edges

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages of the search, with the pairs that each left."""
        return self.containments.stages

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """Tables that could not be compared, with the reason."""
        return self.containments.left_out

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON."""
        plan = plan_to_json(self.plan)
        names = ("delete", "keep", "cost", "keep_all_cost", "optimal", "gap")
        tables = [
            {
                "name": table.name,
                "rows": table.n_rows,
                "columns": len(table.columns),
                "bytes": table.n_bytes,
            }
            for table in self.containments.tables
        ]
        return {
            "lake": self.containments.lake,
            **self.containments.to_dict(),
            "tables": tables,
            "plan": {
                **{name: plan[name] for name in names},
                "freed_bytes": sum(deletion.bytes for deletion in self.plan.delete),
            },
            "refuted": [
                {"table": table, "reason": reason} for table, reason in self.refuted.items()
            ],
        }

    def write_plan(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the plan as JSON, for `pexeso.apply_plan`.

        Raises
        ------
        OutputError
            The file is there and not to be overwritten, or it cannot be written.
        """
        write_plan(path, self.plan, overwrite=overwrite)


@with_bar(partial(stage_bar, STAGES))
def find_redundancy(
    source: Any,
    *,
    min_containment: float = 1.0,
    semantics: str = "set",
    row_count_gate: bool = True,
    case_sensitive: bool = False,
    synonyms: str | os.PathLike[str] | None = None,
    costs: str | os.PathLike[str] | Costs | None = None,
    accesses: str | os.PathLike[str] | None = None,
    statements: str | os.PathLike[str] | None = None,
    verified: bool = False,
    max_table_bytes: int = DEFAULT_MAX_TABLE_BYTES,
    work_folder: str | os.PathLike[str] | None = None,
    master: str | None = None,
    conf: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Redundancy:
    """Find the tables of a lake whose rows are all in another one, and plan which of them can go.

    Parameters
    ----------
    source : path, URL, Store, name, or dict of str to DataFrame
        An index with the part ``redundancy``, whose lake is not read for the pairs, the store of
        one that is open (`pexeso.Index.store`) as it was opened; a folder of
        CSV, Parquet and JSON lines; a table or database of Spark's catalog; or tables by name.
    min_containment, semantics, row_count_gate, case_sensitive
        See `pexeso.redundancy.plans.pipeline.ContainmentOptions`.
    synonyms : path, optional
        Columns that mean the same; see `pexeso.redundancy.schema_tokens.read_synonyms`.
    costs : path or Costs, optional
        See `pexeso.redundancy.costs.read_costs`.
    accesses : path, optional
        How often tables are used in a month; see `pexeso.redundancy.costs.read_accesses`.
    statements : path, optional
        Statements that rebuild tables whose rows another one holds, where none can be found; see
        `pexeso.redundancy.plans.rebuilds.read_statements`. They count where they are `verified`.
    verified : bool
        Run the statements of the plan in Spark, compare all rows, and plan again without those that
        do not give their table.
    max_table_bytes : int
        Larger files of text are left out.
    work_folder : path, optional
        Where hashes of all cells go while the search lasts, up to 16 bytes each; not needed with
        an index. The folder for temporary files by default.
    master, conf
        Of Spark, see `pexeso.build_index`. An index is searched in threads of this process unless
        `master` is given.
    progress : callable, optional
        Called with the name of each stage as it starts.

    Returns
    -------
    Redundancy

    Raises
    ------
    InputError, LakeError, StoredIndexError, SparkError
        See `pexeso.errors`.

    Notes
    -----
    R2D2 (Shah et al., SIGMOD 2024) with all rows compared in place of samples: precision and recall
    are 1, but for collisions of 128-bit hashes (see `pexeso.redundancy.row_hashes`). The driver
    holds what is known of each column of each table, and the pairs that are left.
    """
    options = ContainmentOptions(min_containment, semantics, row_count_gate, case_sensitive)
    names = None if synonyms is None else read_synonyms(synonyms)
    prices = _costs(costs, accesses)
    known_sql = {} if statements is None else read_statements(statements)
    tell = progress or (lambda stage: None)
    indexed = is_index(source)
    with (
        _LazySession(master, conf) as session,
        temporary_folder(FOLDER, root=Path(work_folder) if work_folder else None) as folder,
    ):
        tell("read")
        spark = session.started() if master is not None or not indexed else None
        started = time.perf_counter()
        read = (
            rows_of_lake(spark, source, folder, max_table_bytes=max_table_bytes)
            if spark is not None and not indexed
            else rows_of_index(source)
        )
        graph = containments_of(
            spark,
            read,
            options,
            synonyms=names,
            read_seconds=time.perf_counter() - started,
            progress=progress,
        )
        tell("plan")
        started = time.perf_counter()
        whole = {(edge.parent, edge.child) for edge in graph.edges if edge.containment == 1.0}
        rebuilds = Rebuilds(
            spark,
            read.lake,
            graph.tables,
            graph.files,
            max_table_bytes=max_table_bytes,
            statements={pair: known_sql[pair] for pair in known_sql.keys() & whole}
            if verified
            else None,
        )
        plan = plan_deletions(graph, read.lake, rebuilds, prices)
        planned = Stage("plan", len(plan.delete), time.perf_counter() - started)
        graph = replace(graph, stages=(*graph.stages, planned))
        stay = {
            table: f"a statement was told for it, and '{parent}' does not hold all its rows"
            for parent, table in sorted(known_sql.keys() - whole)
        }
        if not verified or not plan.delete:
            return Redundancy(graph, plan, stay)
        tell("verify")
        shown = _verified(session.started(), graph, read.lake, rebuilds, prices, max_table_bytes)
        return replace(shown, refuted={**stay, **shown.refuted})


def _costs(
    costs: str | os.PathLike[str] | Costs | None, accesses: str | os.PathLike[str] | None
) -> Costs:
    prices = costs if isinstance(costs, Costs) else Costs() if costs is None else read_costs(costs)
    if accesses is None:
        return prices
    return replace(prices, accesses_of={**prices.accesses_of, **read_accesses(accesses)})


def _verified(
    spark: SparkSession,
    graph: Containments,
    lake: Path | Location | None,
    rebuilds: Rebuilds,
    costs: Costs,
    max_table_bytes: int,
) -> Redundancy:
    """Plan until every statement of the plan gives its table."""
    if not isinstance(lake, Path):
        raise InputError(
            "Statements are compared with the tables of a folder of this machine or its cluster. "
            f"'{graph.lake}' is none: leave verified out."
        )
    right: set[tuple[str, str]] = set()
    refuted: dict[tuple[str, str], str] = {}
    while True:
        plan = plan_deletions(graph, lake, rebuilds, costs, refuted=refuted, verified=True)
        statements = [
            Statement(deletion.table, deletion.parent, deletion.sql)
            for deletion in plan.delete
            if (deletion.parent, deletion.table) not in right
        ]
        wrong = verify_statements(spark, lake, statements, max_table_bytes=max_table_bytes)
        for statement in statements:
            if statement.table in wrong:
                refuted[statement.parent, statement.table] = wrong[statement.table]
            else:
                right.add((statement.parent, statement.table))
        if not wrong:
            deleted = {deletion.table for deletion in plan.delete}
            stay = {table: why for (_, table), why in refuted.items() if table not in deleted}
            return Redundancy(graph, plan, stay)


class _LazySession(ExitStack):
    """A session of Spark that starts when it is first needed, and ends with the block."""

    def __init__(self, master: str | None, conf: Mapping[str, Any] | None) -> None:
        super().__init__()
        self._master, self._conf = master, conf
        self._spark: SparkSession | None = None

    def started(self) -> SparkSession:
        if self._spark is None:
            settings = {**SMALL_LAKE_SETTINGS, **(self._conf or {})}
            self._spark = self.enter_context(spark_session(self._master, conf=settings))
            self.enter_context(
                worker_errors_made_plain(
                    "searching for contained tables",
                    "there is no room for the hashes of all cells, up to 16 bytes each. Free some "
                    "space, or name another folder for temporary files in TMPDIR.",
                )
            )
        return self._spark
