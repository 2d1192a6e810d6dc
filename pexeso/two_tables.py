"""A join of two tables by similar values: one of them is a lake while the join is made."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow.parquet as pq

from pexeso.errors import InputError, LakeError
from pexeso.index import Index, build_index
from pexeso.lake.choose import ColumnRules, profile_column
from pexeso.lake.frames.tables import table_in_memory
from pexeso.results.query import read_query

RIGHT = "right.parquet"


@contextmanager
def index_of_table(
    file: str, column: str | int | None, where: str = " of the table on the right"
) -> Iterator[tuple[Index, str]]:
    """Index one table in a temporary folder; yield the index and the label of the column."""
    query = read_query(file, f"#{column}" if isinstance(column, int) else column)
    kind = profile_column(query.values).kind
    kinds = ("text", "date") if kind == "empty" else (kind,)
    # Whatever the column is like: it was named.
    rules = ColumnRules(kinds=kinds, min_rows=1, min_distinct=1, max_median_tokens=1e9)
    with TemporaryDirectory(prefix="pexeso-") as folder:
        try:
            index = build_index(file, Path(folder, "table.pexeso"), rules=rules)
        except LakeError as error:
            raise InputError(
                f"The column {query.column!r}{where} has no values to compare."
            ) from error
        yield index, str(query.column)


def fuzzy_join(
    left: Any,
    right: Any,
    on: str | int | None = None,
    *,
    left_on: str | int | None = None,
    right_on: str | int | None = None,
    max_distance: float | None = None,
    values: str = "nearest",
    how: str = "left",
    aggregate: str | Mapping[str, str] | None = None,
    suffix: str = "_right",
    provenance: Sequence[str] = ("value", "distance"),
    many_to_many: bool = False,
) -> Any:
    """Join two tables by similar values, without an index.

    The right table is indexed in a temporary folder. It takes some seconds for a million rows, and
    disk space as the table itself; to join with it again, build an index.

    Parameters
    ----------
    left, right : table
        A DataFrame of pandas or polars, a pyarrow Table, or what else
        `pexeso.lake.frames.tables.frame_of` takes.
    on, left_on, right_on : str or int
        The column to join by, by name or position: `on` in both tables, or one for each.
    max_distance : float, optional
        Of values that match, in [0, 1], as a fraction of the largest possible; by default 0 for
        dates, numbers and codes, and 0.4 for other values.
    suffix : str
        Suffix for column names of the right table that the left one has too.
    values, how, aggregate, provenance, many_to_many
        As in `pexeso.Match.join`.

    Returns
    -------
    table
        Of the kind of `left`: its columns and rows, in its order, those of provenance, and the
        columns of `right`.

    Raises
    ------
    InputError
        A table, a column or an option is not as it must be.
    ColumnNotFoundError
        There is no such column; the message lists those there are.

    Examples
    --------
    >>> import pyarrow as pa
    >>> people = pa.table({"city": ["Reykjavik", "København", "Oslo"]})
    >>> flags = pa.table({"town": ["Reykjavík", "Kobenhavn", "Roma"], "code": ["IS", "DK", "IT"]})
    >>> fuzzy_join(people, flags, left_on="city", right_on="town")["code"].to_pylist()
    ['IS', 'DK', None]
    """
    by_left, by_right = (on if side is None else side for side in (left_on, right_on))
    if by_left is None or by_right is None:
        raise InputError(
            "Name the column to join by: on=NAME in both tables, or left_on=NAME and right_on=NAME."
        )
    own, other = table_in_memory(left, "left"), table_in_memory(right, "right")
    chosen = {} if max_distance is None else {"max_distance": max_distance}
    with TemporaryDirectory(prefix="pexeso-") as folder:
        file = os.path.join(folder, RIGHT)
        pq.write_table(other.to("arrow"), file)
        with index_of_table(file, by_right) as (index, column):
            explained = index.explain(own.table, RIGHT, column, on=by_left, **chosen)
            return explained.match.join(
                own.table, by_left, values=values, how=how, aggregate=aggregate, suffix=suffix,
                provenance=provenance, many_to_many=many_to_many,
            )  # fmt: skip
