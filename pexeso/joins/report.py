"""Report of a join, for people and programs.

It states how many rows were joined, and where the join had to choose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pexeso.joins.conflicts import (
    DIFFERING,
    GONE,
    KINDS,
    NOT_A_NUMBER,
    NOT_SEARCHED,
    REPEATED,
    SHARED,
    TIED,
    UNPAIRED,
    conflict_rows,
)
from pexeso.joins.growth import is_multiplied
from pexeso.runtime.shown import Shown, facts_table, many

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST_NOT_SEARCHED = 10_000
"""Most values of the user's table that a report lists as not searched, those with the most rows
first; their number is told whole."""

EXAMPLES = 3
"""Conflicts of each kind that `JoinReport.to_dict` shows."""

_SAID = {
    SHARED: (
        "lake {noun} is wanted by several {noun}s of yours",
        "lake {noun}s are wanted by several {noun}s of yours each",
    ),
    TIED: (
        "{noun} of yours has several lake {noun}s equally near",
        "{noun}s of yours have several lake {noun}s equally near",
    ),
    UNPAIRED: (
        "{noun} of yours has matches, all taken by others",
        "{noun}s of yours have matches, all taken by others",
    ),
    REPEATED: (
        "{noun} of yours is joined with several rows",
        "{noun}s of yours are joined with several rows each",
    ),
    DIFFERING: (
        "{noun} of yours has cells that differ, of which the first is taken",
        "{noun}s of yours have cells that differ, of which the first is taken",
    ),
    NOT_A_NUMBER: (
        "column has cells that are no numbers, left out",
        "columns have cells that are no numbers, left out",
    ),
    GONE: (
        "lake {noun} is no longer in the table: bring the index up to date",
        "lake {noun}s are no longer in the table: bring the index up to date",
    ),
    NOT_SEARCHED: (
        "{noun} of your table was not in the query column",
        "{noun}s of your table were not in the query column",
    ),
}
_OTHERS = {
    SHARED: "query_value",
    TIED: "lake_value",
    UNPAIRED: "lake_value",
    REPEATED: "lake_value",
    DIFFERING: "cell",
    NOT_A_NUMBER: "cell",
}
"""What is shown behind the value that a conflict is about."""
_MOST_SHOWN = 3


@dataclass(frozen=True, repr=False)
class JoinReport(Shown):
    """What a join did.

    Attributes
    ----------
    rows : int
        Rows of the user's table.
    matched_rows : int
        Those that were joined with a row of the found table at least.
    joined_rows : int
        Rows of the joined table.
    note : str or None
        What to know about the names of columns.
    noun : str
        What `lines` calls that by which rows are joined: a value, or a key of several columns.
    conflicts : pyarrow.Table
        Of `pexeso.joins.conflicts.CONFLICTS`: every value and cell that takes part in a conflict.
    counts : dict
        The number of conflicts of each kind that there are; see `pexeso.joins.conflicts.KINDS`.
    """

    rows: int
    matched_rows: int
    joined_rows: int
    note: str | None = None
    noun: str = "value"
    conflicts: pa.Table = field(repr=False, kw_only=True)
    counts: dict[str, int] = field(kw_only=True)

    def _summary(self) -> str:
        rows = f"{self.matched_rows:,} of {many(self.rows, 'row')} joined"
        return f"{rows} to {self.joined_rows:,}, {many(len(self.counts), 'kind')} of conflict"

    def _shown(self) -> tuple[list[str], list[list[Any]]]:
        return facts_table(self.counts)

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form of the report.

        It holds the numbers of rows and, for each kind of conflict, the number of conflicts and a
        few examples.
        """
        return {
            "rows": self.rows,
            "matched_rows": self.matched_rows,
            "joined_rows": self.joined_rows,
            "note": self.note,
            "conflicts": {
                kind: {
                    "count": number,
                    "examples": [
                        self._example(kind, position) for position in range(min(number, EXAMPLES))
                    ],
                }
                for kind, number in self.counts.items()
            },
        }

    def lines(self) -> list[str]:
        """Return one line per kind of conflict, with the number of conflicts and an example.

        The list is empty if there is nothing to report.
        """
        lines = [] if self.note is None else [f"Note: {self.note}"]
        if is_multiplied(self.rows, self.joined_rows):
            lines.append(f"{many(self.rows, 'row')} of yours became {self.joined_rows:,}.")
        for kind, number in self.counts.items():
            what = _SAID[kind][number != 1].format(noun=self.noun)
            lines.append(f"{number:,} {what}, such as {_shown(self._example(kind, 0))}.")
        return lines

    def _of(self, kind: str) -> pa.Table:
        return self.conflicts.filter(pc.equal(self.conflicts["kind"], kind))

    def _example(self, kind: str, position: int) -> dict[str, Any]:
        rows = self._of(kind)
        subject = _subjects(rows, kind)[position]
        rows = rows.filter(pc.equal(rows[KINDS[kind]], subject))
        column = rows["column"][0]
        if column.is_valid:
            rows = rows.filter(pc.equal(rows["column"], column))
        others = rows[_OTHERS[kind]].unique() if kind in _OTHERS else pa.array([], pa.string())
        return {
            "of": subject.as_py(),
            "column": column.as_py(),
            "with": others[:_MOST_SHOWN].to_pylist(),
            "n": len(others),
        }


def count_conflicts(conflicts: pa.Table) -> dict[str, int]:
    """Count the conflicts of each kind that occurs.

    The count is the number of distinct values or columns that are affected.
    """
    counts = {
        kind: len(_subjects(conflicts.filter(pc.equal(conflicts["kind"], kind)), kind))
        for kind in KINDS
    }
    return {kind: number for kind, number in counts.items() if number}


def report_on_spark(
    texts: DataFrame,
    joined_texts: DataFrame,
    conflicts: Sequence[pa.Table],
    searched: pa.StringArray,
    how: str,
    note: str | None,
) -> JoinReport:
    """Report a join of a Spark DataFrame."""
    from pyspark.sql import functions as sql

    (name,) = texts.columns
    counted = texts.groupBy(name).agg(sql.count("*").alias("count"))
    known = texts.sparkSession.createDataFrame(pa.table({name: pc.drop_null(searched.unique())}))
    left = counted.where(sql.col(name).isNotNull()).join(known, name, "left_anti")
    unsearched = left.orderBy(sql.desc("count"), name).limit(MOST_NOT_SEARCHED).toArrow()
    rows = conflict_rows(NOT_SEARCHED, query_value=unsearched[name], count=unsearched["count"])
    every = pa.concat_tables([*conflicts, rows])
    counts = count_conflicts(every)
    if len(unsearched) == MOST_NOT_SEARCHED:
        counts[NOT_SEARCHED] = left.count()
    row_counts = joined_texts.groupBy(name).agg(sql.count("*").alias("joined"))
    with_joined = counted.join(row_counts, name, "left")
    is_matched = sql.col("joined").isNotNull()
    n_rows = sql.when(is_matched, sql.col("count") * sql.col("joined")).otherwise(
        sql.col("count") if how == "left" else 0
    )
    matched = sql.when(is_matched, sql.col("count")).otherwise(0)
    total = with_joined.agg(sql.sum("count"), sql.sum(matched), sql.sum(n_rows)).first()
    rows_of = [number or 0 for number in total]
    return JoinReport(*rows_of, note, conflicts=every, counts=counts)


def _shown(example: dict[str, Any]) -> str:
    """Write an example: the value that the conflict is about, and what it has to do with."""
    column = "" if example["column"] in (None, example["of"]) else f" in {example['column']}"
    text = f"'{example['of']}'{column}"
    if example["with"]:
        text += ": " + ", ".join(f"'{other}'" for other in example["with"])
    n_more = example["n"] - len(example["with"])
    return f"{text} and {n_more:,} more" if n_more else text


def _subjects(rows: pa.Table, kind: str) -> pa.Array:
    return rows[KINDS[kind]].unique()
