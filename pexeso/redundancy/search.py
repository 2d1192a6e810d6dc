"""Which tables of a lake are contained in others, and which of them can go."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pexeso.build.job import SMALL_LAKE_SETTINGS
from pexeso.build.source import SparkSource, source_of
from pexeso.build.spark.session import plain_task_errors, spark_session
from pexeso.build.workers import SparkWorkers
from pexeso.errors import InputError
from pexeso.lake.frames.tables import Tabular
from pexeso.redundancy import METHODS
from pexeso.redundancy.containments import (
    ContainmentOptions,
    Containments,
    Edge,
    LeftOut,
    Stage,
    containments_of,
)
from pexeso.redundancy.lake_reading import (
    DEFAULT_MAX_TABLE_BYTES,
    is_index,
    list_lake,
    rows_of_index,
    rows_of_lake,
)
from pexeso.redundancy.plan import Plan, plan_to_json, write_plan
from pexeso.redundancy.planning import (
    Costs,
    edges_of_plan,
    plan_deletions,
    read_accesses,
    read_costs,
)
from pexeso.redundancy.rebuilds import Rebuilds, Statement, read_statements, verify_statements
from pexeso.redundancy.sampled import SAMPLE_ROWS, ExactCheck, sampled_containments
from pexeso.redundancy.schema_tokens import read_synonyms
from pexeso.runtime.formatting import many
from pexeso.runtime.progress import stage_bar, with_bar
from pexeso.store.io.location import Location
from pexeso.store.io.temporary import temporary_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER = "pexeso-redundancy-"
STAGES = ("read", "schema", "types", "exact", "plan", "verify")  # in order
_IF_FULL = (
    "there is no room for the hashes of all cells, up to 16 bytes each. Free some space, or name "
    "another folder for temporary files in TMPDIR."
)


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
    method: str = "exact",
    min_containment: float = 1.0,
    semantics: str = "set",
    row_count_gate: bool = True,
    case_sensitive: bool = False,
    sample_rows: int = SAMPLE_ROWS,
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
    method : {"exact", "sampled"}
        Compare all rows, or a few of each table of a folder: for lakes too large to be read whole.
        No contained table is missed, and some edges may be wrong: those whose rows were not all
        compared are not `exact`. Tables that can go, and their parents, are read whole first.
    min_containment, semantics, row_count_gate, case_sensitive
        See `pexeso.redundancy.containments.ContainmentOptions`.
    sample_rows : int
        Rows drawn from each table by ``method="sampled"``, from 1 on. 29 rows show with a
        probability of 95 % that a table is not contained of which 90 % are.
    synonyms : path, optional
        Columns that mean the same; see `pexeso.redundancy.schema_tokens.read_synonyms`.
    costs : path or Costs, optional
        See `pexeso.redundancy.planning.read_costs`.
    accesses : path, optional
        How often tables are used in a month; see `pexeso.redundancy.planning.read_accesses`.
    statements : path, optional
        Statements that rebuild tables whose rows another one holds, where none can be found; see
        `pexeso.redundancy.rebuilds.read_statements`. They count where they are `verified`.
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
    R2D2 (Shah et al., SIGMOD 2024), with all rows compared in place of samples unless these are
    asked for: precision and recall are 1, but for collisions of 128-bit hashes (see
    `pexeso.redundancy.row_hashes`). The driver holds what is known of each column of each table,
    and the pairs that are left.
    """
    options = ContainmentOptions(min_containment, semantics, row_count_gate, case_sensitive)
    indexed = is_index(source)
    _require_method(source, method, options, sample_rows)
    names = None if synonyms is None else read_synonyms(synonyms)
    prices = costs if isinstance(costs, Costs) else Costs() if costs is None else read_costs(costs)
    if accesses is not None:
        known = {**prices.accesses_of, **read_accesses(accesses)}
        prices = replace(prices, accesses_of=known)
    known_sql = {} if statements is None else read_statements(statements)
    tell = progress or (lambda stage: None)
    settings = {**SMALL_LAKE_SETTINGS, **(conf or {})}
    with (
        SparkWorkers(partial(spark_session, master, conf=settings)) as workers,
        plain_task_errors("searching for contained tables", _IF_FULL),
        temporary_folder(FOLDER, root=Path(work_folder) if work_folder else None) as folder,
    ):
        tell("read")
        spark = workers.spark if master is not None or not indexed else None
        started, check = time.perf_counter(), None
        lake: Path | Location | None
        if method == "sampled":
            listing = list_lake(source)
            graph = sampled_containments(
                spark,
                listing,
                options,
                sample_rows=sample_rows,
                synonyms=names,
                max_table_bytes=max_table_bytes,
                progress=progress,
            )
            check = ExactCheck(
                spark,
                graph,
                listing,
                folder,
                options,
                synonyms=names,
                max_table_bytes=max_table_bytes,
            )
            graph, lake = replace(graph, files=check.files), listing.root
        else:
            read = (
                rows_of_lake(spark, source, folder, max_table_bytes=max_table_bytes)
                if spark is not None and not indexed
                else rows_of_index(source)
            )
            seconds = time.perf_counter() - started
            graph = containments_of(
                spark, read, options, synonyms=names, read_seconds=seconds, progress=progress
            )
            lake = read.lake
        tell("plan")
        started = time.perf_counter()
        whole = graph.whole()
        rebuilds = Rebuilds(
            spark,
            lake,
            graph.tables if check is None else check.tables,
            graph.files,
            max_table_bytes=max_table_bytes,
            statements={pair: known_sql[pair] for pair in known_sql.keys() & whole}
            if verified
            else None,
            check=None if check is None else check.contained,
        )
        plan = plan_deletions(graph, lake, rebuilds, prices)
        planned = Stage("plan", len(plan.delete), time.perf_counter() - started)
        graph = replace(graph, stages=(*graph.stages, planned))
        refuted = {
            table: f"a statement was given for it, and '{parent}' does not hold all its rows"
            for parent, table in sorted(known_sql.keys() - whole)
        }
        if verified and plan.delete:
            tell("verify")
            spark = workers.spark
            plan, wrong = _verified(spark, graph, lake, rebuilds, prices, max_table_bytes)
            refuted |= wrong
        if check is not None:
            graph = replace(graph, edges=check.checked(graph.edges))
            plan = replace(plan, edges=edges_of_plan(graph))
        return Redundancy(graph, plan, refuted)


def _require_method(
    source: Any, method: str, options: ContainmentOptions, sample_rows: int
) -> None:
    if method not in METHODS:
        raise InputError(f"method must be one of {', '.join(METHODS)}. Got {method!r}.")
    if isinstance(sample_rows, bool) or not isinstance(sample_rows, int) or sample_rows < 1:
        raise InputError(f"sample_rows is a whole number from 1 on. Got {sample_rows!r}.")
    if method == "exact":
        return
    if options.min_containment < 1:
        raise InputError(
            "min_containment below 1 needs all rows: samples cannot show which share of a table is "
            f"contained. Got {options.min_containment!r} with the method 'sampled'."
        )
    if is_index(source):
        raise InputError(
            "Rows are sampled from the files of a folder, and an index has all rows at hand: use "
            "the method 'exact', or give the folder of the lake."
        )
    if isinstance(source, Mapping) or isinstance(source_of(source), SparkSource):
        raise InputError(
            "Rows are sampled from the files of a folder, and tables of Spark are none: use the "
            "method 'exact'."
        )


def _verified(
    spark: SparkSession,
    graph: Containments,
    lake: Path | Location | None,
    rebuilds: Rebuilds,
    costs: Costs,
    max_table_bytes: int,
) -> tuple[Plan, dict[str, str]]:
    """Plan until every statement of the plan gives its table; return the tables that stay, too."""
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
        for table, parent, _ in statements:
            if table in wrong:
                refuted[parent, table] = wrong[table]
            else:
                right.add((parent, table))
        if not wrong:
            deleted = {deletion.table for deletion in plan.delete}
            return plan, {table: why for (_, table), why in refuted.items() if table not in deleted}
