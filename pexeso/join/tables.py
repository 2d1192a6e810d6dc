"""In-memory join of a user's table of pandas or Arrow.

Pairs of rows are determined first, then the columns are put side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import InputError
from pexeso.join.conflicts import mapping_conflicts, not_searched, row_conflicts
from pexeso.join.matched_rows import FoundRows, expand
from pexeso.join.naming import JoinedNames, choose_names
from pexeso.join.options import KINDS
from pexeso.join.report import JoinReport, count_conflicts
from pexeso.lake.columns import find_column
from pexeso.search.query import query_from_values

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Joined:
    """A joined table, and what the join did.

    Attributes
    ----------
    table : pandas.DataFrame, pyarrow.Table or pyspark.sql.DataFrame
    """

    table: Any
    _make_report: Callable[[], JoinReport] = field(repr=False, compare=False)

    @cached_property
    def report(self) -> JoinReport:
        """Rows joined, and the conflicts; worked out when it is first asked for."""
        return self._make_report()


def join_table(
    table: pd.DataFrame | pa.Table,
    on: str | int | None,
    found: FoundRows,
    searched: pa.StringArray,
    *,
    to: str | None = None,
) -> Joined:
    """Join a table in memory.

    Parameters
    ----------
    to : {"pandas", "arrow"}, optional
        The kind of table that is given back; by default that of `table`.
    """
    names = _names_of(table, to)
    position = position_of(names, on)
    is_arrow = isinstance(table, pa.Table)
    column = table.column(position) if is_arrow else table.iloc[:, position]
    return join_texts(table, query_from_values(column).values, found, searched, to=to)


def join_texts(
    table: pd.DataFrame | pa.Table,
    texts: pa.Array,
    found: FoundRows,
    searched: pa.Array,
    *,
    to: str | None = None,
    noun: str = "value",
) -> Joined:
    """Join a table in memory of which each row has a text, of those of the mapping.

    Parameters
    ----------
    texts : Arrow texts
        One a row, null where it has none.
    noun : str
        What the report calls a text.
    """
    mine = _names_of(table, to)
    ours, theirs, n_matched = _match_rows(texts, found)
    names = choose_names(mine, found.rows.column_names, found.table, found.options)
    right = found.take().rename_columns([*names.provenance.values(), *names.found])
    kind = to or ("arrow" if isinstance(table, pa.Table) else "pandas")
    joined = _put_together(table, ours, theirs, right, kind)
    rows = (len(texts), n_matched, len(ours))
    return Joined(joined, partial(_report, texts, found, searched, names, rows, noun))


def _names_of(table: Any, to: str | None) -> list[str]:
    is_arrow = isinstance(table, pa.Table)
    if not is_arrow and not hasattr(table, "iloc"):
        raise InputError(
            "The table to join must be a pandas DataFrame, a pyarrow Table or a Spark "
            f"DataFrame. Got {type(table).__name__} instead."
        )
    if to is not None and to not in KINDS:
        raise InputError(f"to must be one of {', '.join(KINDS)}. Got {to!r} instead.")
    return [str(name) for name in (table.column_names if is_arrow else table.columns)]


def position_of(names: Sequence[str], on: str | int | None) -> int:
    """Return the position of the query column in the user's table."""
    if on is None:
        raise InputError("Name the query column of your table: on=NAME or on=POSITION.")
    return find_column(names, f"#{on}" if isinstance(on, int) else on)


def _match_rows(texts: pa.StringArray, found: FoundRows) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the user's row and the found row of each joined row, and the matched row count.

    A row is -1 where there is none. The count is the number of the user's rows with a match.
    """
    mapping = found.mapping
    text = pc.fill_null(pc.index_in(texts, mapping.texts, skip_nulls=True), -1).to_numpy(
        zero_copy_only=False
    )
    query = np.append(mapping.query_of_text, -1)[text]
    bounds = np.searchsorted(found.query_of_row, [query, query + 1])
    sizes = np.where(query >= 0, bounds[1] - bounds[0], 0)
    n_matched = int(np.count_nonzero(sizes))
    if found.options.how == "inner":
        ours, theirs = expand(bounds[0], sizes)
        return ours, theirs, n_matched
    ours, theirs = expand(bounds[0], np.maximum(sizes, 1))
    return ours, np.where(sizes[ours] > 0, theirs, -1), n_matched


def _put_together(
    table: Any, ours: np.ndarray, theirs: np.ndarray, right: pa.Table, kind: str
) -> Any:
    beside = right.take(pa.array(theirs, mask=theirs < 0))
    if kind == "pandas":
        return _put_together_in_pandas(
            table.to_pandas() if isinstance(table, pa.Table) else table, ours, beside
        )
    if not isinstance(table, pa.Table):
        table = pa.Table.from_pandas(table, preserve_index=False)
    table = table.take(pa.array(ours))
    for field_, column in zip(beside.schema, beside.columns, strict=True):
        table = table.append_column(field_, column)
    return table


def _put_together_in_pandas(
    table: pd.DataFrame, ours: np.ndarray, beside: pa.Table
) -> pd.DataFrame:
    import pandas as pd

    left = table.iloc[ours].reset_index(drop=True)
    series = [
        _as_series(column, name)
        for name, column in zip(beside.column_names, beside.columns, strict=True)
    ]
    return pd.concat([left, *series], axis=1)


def _as_series(column: pa.ChunkedArray, name: str) -> pd.Series:
    """Convert a column to a pandas series.

    Missing text cells are NaN, whole numbers may be missing, and lists remain lists.
    """
    import pandas as pd

    if pa.types.is_integer(column.type):
        return column.to_pandas(types_mapper={column.type: pd.Int64Dtype()}.get).rename(name)
    if pa.types.is_list(column.type):
        return pd.Series(column.to_pylist(), dtype=object, name=name)
    cells = column.to_pandas().rename(name)
    return cells.where(cells.notna(), np.nan) if pa.types.is_string(column.type) else cells


def _report(
    texts: pa.StringArray,
    found: FoundRows,
    searched: pa.StringArray,
    names: JoinedNames,
    rows: tuple[int, int, int],
    noun: str,
) -> JoinReport:
    parts = [
        mapping_conflicts(found.mapping, found.options.values),
        row_conflicts(found),
        not_searched(texts, found.mapping, searched),
    ]
    conflicts = pa.concat_tables(parts)
    counts = count_conflicts(conflicts)
    return JoinReport(*rows, names.note, noun, conflicts=conflicts, counts=counts)
