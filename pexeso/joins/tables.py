"""In-memory join of a user's table, of pandas, Arrow or polars.

Pairs of rows are determined first, then the columns are put side by side.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import InputError
from pexeso.joins.conflicts import mapping_conflicts, not_searched, row_conflicts
from pexeso.joins.growth import require_moderate_growth
from pexeso.joins.matched_rows import FoundRows, expand
from pexeso.joins.naming import JoinedNames, choose_names
from pexeso.joins.report import JoinReport, count_conflicts
from pexeso.lake.columns import find_column
from pexeso.lake.frames.beside import put_beside, take_cells, take_rows
from pexeso.lake.frames.columns import column_texts
from pexeso.lake.frames.tables import Frame, frame_of, require_kind, table_in_memory
from pexeso.runtime.shown import MAX_COLUMNS, MAX_ROWS, Shown

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


@dataclass(frozen=True, repr=False)
class Joined(Shown):
    """A joined table, and what the join did.

    Attributes
    ----------
    table : pandas.DataFrame, pyarrow.Table, polars.DataFrame or pyspark.sql.DataFrame
    added : dict of str to tuple of str
        For each column that the join added the columns of the found table that it comes from, none
        where it only names these; empty of a table of Spark.
    """

    table: Any
    _make_report: Callable[[], JoinReport] = field(repr=False, compare=False)
    added: dict[str, tuple[str, ...]] = field(default_factory=dict, repr=False, compare=False)

    def _summary(self) -> str:
        """Return the kind and the size of the table; of one of Spark no rows are counted."""
        frame = self._frame
        rows = "" if frame.kind == "spark" else f"{len(self.table):,} rows, "
        return f"{rows}{len(frame.names):,} columns, {frame.kind}"

    def _shown(self) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        """Return the first rows of the table; of one of Spark its columns."""
        names = self._frame.names
        if self._frame.kind == "spark":
            return ["column"], [[name] for name in names]
        return names, zip(*self._frame.head(MAX_ROWS, MAX_COLUMNS), strict=True)

    @property
    def _frame(self) -> Frame:
        frame = frame_of(self.table)
        if frame is None:
            raise InputError(f"A joined table is a table. Got {type(self.table).__name__} instead.")
        return frame

    def to_pandas(self) -> pd.DataFrame:
        """Return the joined table as a DataFrame of pandas; one of Spark is collected."""
        return self._frame.to("pandas")

    def to_arrow(self) -> pa.Table:
        """Return the joined table as an Arrow table; one of Spark is collected."""
        return self._frame.to("arrow")

    def to_polars(self) -> pl.DataFrame:
        """Return the joined table as a DataFrame of polars; one of Spark is collected.

        Raises
        ------
        MissingPackageError
            Polars is not installed.
        """
        return self._frame.to("polars")

    @cached_property
    def report(self) -> JoinReport:
        """Rows joined, and the conflicts; worked out when it is first asked for."""
        return self._make_report()


def join_table(
    table: Any,
    on: str | int | None,
    found_rows: FoundRows,
    searched: pa.StringArray,
    *,
    to: str | None = None,
) -> Joined:
    """Join a table in memory."""
    require_kind(to)
    frame = table_in_memory(table, "to join")
    texts = column_texts(frame.column(position_of(frame.names, on)))
    return join_texts(frame.table, texts, found_rows, searched, to=to)


def join_texts(
    table: Any,
    texts: pa.Array,
    found_rows: FoundRows,
    searched: pa.Array,
    *,
    to: str | None = None,
    noun: str = "value",
) -> Joined:
    """Join a table in memory of which each row has a text, of those of the mapping."""
    require_kind(to)
    frame = table_in_memory(table, "to join")
    ours, right_rows, n_matched = _match_rows(texts, found_rows)
    names = choose_names(
        frame.names, found_rows.rows.column_names, found_rows.table, found_rows.options
    )
    right = found_rows.take().rename_columns([*names.provenance.values(), *names.found_columns])
    right = take_cells(right, pa.array(right_rows, mask=right_rows < 0))
    kind = to or frame.kind
    if frame.kind == "arrow" and kind == "pandas":
        frame = table_in_memory(_without_index(frame.table), "to join")
    joined = put_beside(take_rows(frame.to(kind), kind, ours), kind, right)
    rows = (len(texts), n_matched, len(ours))
    report = partial(_report, texts, found_rows, searched, names, rows, noun)
    return Joined(joined, report, _added(names, found_rows))


def _without_index(table: pa.Table) -> pa.Table:
    """Return a table whose columns are all columns in pandas, as a join numbers its rows anew."""
    metadata = table.schema.pandas_metadata
    if not metadata:
        return table
    index = metadata["index_columns"]
    columns = [column for column in metadata["columns"] if column.get("field_name") not in index]
    metadata = json.dumps({**metadata, "columns": columns, "index_columns": []})
    return table.replace_schema_metadata({**table.schema.metadata, b"pandas": metadata})


def _added(names: JoinedNames, found_rows: FoundRows) -> dict[str, tuple[str, ...]]:
    of_key = {"value", "distance"}
    provenance = {
        name: found_rows.key_labels if part in of_key else ()
        for part, name in names.provenance.items()
    }
    labels = found_rows.rows.column_names
    return provenance | {
        name: (label,) for name, label in zip(names.found_columns, labels, strict=True)
    }


def position_of(names: Sequence[str], on: str | int | None) -> int:
    """Return the position of the query column in the user's table."""
    if on is None:
        raise InputError("Name the query column of your table: on=NAME or on=POSITION.")
    return find_column(names, f"#{on}" if isinstance(on, int) else on)


def _match_rows(texts: pa.StringArray, found_rows: FoundRows) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the user's row and the found row of each joined row, and the matched row count.

    A row is -1 where there is none. The count is the number of the user's rows with a match.
    """
    options = found_rows.options
    text = pc.fill_null(pc.index_in(texts, found_rows.mapping.texts, skip_nulls=True), -1)
    text = text.to_numpy(zero_copy_only=False)
    counts = found_rows.counts()
    require_moderate_growth(found_rows.mapping.shown_texts, text, counts, found_rows.table, options)
    counts = np.append(counts, 0)
    sizes = counts[text]
    starts = (np.cumsum(counts) - counts)[text]
    n_matched = int(np.count_nonzero(sizes))
    if options.how == "inner":
        ours, right_rows = expand(starts, sizes)
        return ours, right_rows, n_matched
    ours, right_rows = expand(starts, np.maximum(sizes, 1))
    return ours, np.where(sizes[ours] > 0, right_rows, -1), n_matched


def _report(
    texts: pa.StringArray,
    found_rows: FoundRows,
    searched: pa.StringArray,
    names: JoinedNames,
    rows: tuple[int, int, int],
    noun: str,
) -> JoinReport:
    parts = [
        mapping_conflicts(found_rows.mapping, found_rows.options.values),
        row_conflicts(found_rows),
        not_searched(texts, found_rows.mapping, searched),
    ]
    conflicts = pa.concat_tables(parts)
    counts = count_conflicts(conflicts)
    return JoinReport(*rows, names.note, noun, conflicts=conflicts, counts=counts)
