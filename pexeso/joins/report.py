"""Report of a join, for people and programs.

It states how many rows were joined, and where the join had to choose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import InputError
from pexeso.joins.aggregation import differing, doubtful_numbers
from pexeso.joins.mapping import JoinMapping
from pexeso.joins.matched_rows import FoundRows
from pexeso.joins.options import OF_NUMBERS, JoinOptions
from pexeso.results.column_matches import WouldMatch
from pexeso.runtime.formatting import Shown, facts_table, many
from pexeso.store.arrays import take_wide

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class _Kind(NamedTuple):
    """A kind of conflicts: the columns of `CONFLICTS` with what it is about and with the others."""

    subject: str
    other: str | None
    one: str
    several: str


# In the order in which they are reported. ``shared`` of a one-to-one join: the lake value is the
# nearest of several query values. ``tied``: none of the lake values is the same normalised text.
KINDS = {
    "shared": _Kind(
        "lake_value",
        "query_value",
        "lake {noun} is wanted by several {noun}s of your table",
        "lake {noun}s are wanted by several {noun}s of your table each",
    ),
    "tied": _Kind(
        "query_value",
        "lake_value",
        "{noun} of your table has several lake {noun}s equally near",
        "{noun}s of your table have several lake {noun}s equally near",
    ),
    "unpaired": _Kind(
        "query_value",
        "lake_value",
        "{noun} of your table has matches, all taken by others",
        "{noun}s of your table have matches, all taken by others",
    ),
    "repeated": _Kind(
        "query_value",
        "lake_value",
        "{noun} of your table is joined with several rows",
        "{noun}s of your table are joined with several rows each",
    ),
    "differing": _Kind(
        "query_value",
        "cell",
        "{noun} of your table has cells that differ, of which the first is taken",
        "{noun}s of your table have cells that differ, of which the first is taken",
    ),
    "not a number": _Kind(
        "column",
        "cell",
        "column has cells that are no numbers, left out",
        "columns have cells that are no numbers, left out",
    ),
    "unlike amounts": _Kind(
        "column",
        "cell",
        "column has amounts of different currencies or shares, taken as plain numbers",
        "columns have amounts of different currencies or shares, taken as plain numbers",
    ),
    "gone": _Kind(
        "lake_value",
        None,
        "lake {noun} is no longer in the table: bring the index up to date",
        "lake {noun}s are no longer in the table: bring the index up to date",
    ),
    "not searched": _Kind(
        "query_value",
        None,
        "{noun} of your table was not in the query column",
        "{noun}s of your table were not in the query column",
    ),
}

# One row for each value or cell that takes part in a conflict.
#
# ``count`` is a number of rows: of the found table, or for ``not searched`` of your table.
CONFLICTS = pa.schema(
    [
        *(
            (name, pa.large_string())
            for name in ("kind", "query_value", "lake_value", "column", "cell")
        ),
        ("distance", pa.float64()),
        ("count", pa.int64()),
    ]
)


def mapping_conflicts(mapping: JoinMapping, values: str) -> pa.Table:
    """Find the conflicts that the values make, whatever the rows."""
    link_mask = mapping.nearest if values == "one-to-one" else mapping.chosen
    link_counts = np.bincount(mapping.lake[link_mask], minlength=len(mapping.lake_keys))
    shared = np.flatnonzero(link_mask & (link_counts > 1)[mapping.lake])
    shared = shared[np.argsort(mapping.lake[shared], kind="stable")]
    parts = [_links("shared", mapping, shared), _links("tied", mapping, _tied(mapping))]
    if values == "one-to-one":
        has_partner = np.isin(mapping.query, mapping.query[mapping.chosen])
        parts.append(_links("unpaired", mapping, np.flatnonzero(mapping.nearest & ~has_partner)))
    return pa.concat_tables(parts)


def row_conflicts(found_rows: FoundRows) -> pa.Table:
    parts = [_repeated(found_rows), *_cells(found_rows)]
    is_gone = np.ones(len(found_rows.mapping.lake_keys), dtype=bool)
    is_gone[found_rows.key[found_rows.key >= 0]] = False
    is_gone &= np.isin(np.arange(len(is_gone)), found_rows.mapping.lake[found_rows.mapping.chosen])
    parts.append(
        conflict_rows("gone", lake_value=found_rows.mapping.lake_names.filter(pa.array(is_gone)))
    )
    return pa.concat_tables(parts)


def not_searched(texts: pa.StringArray, mapping: JoinMapping, searched: pa.StringArray) -> pa.Table:
    """Find the values of the user's table that the search was not given; of `CONFLICTS`."""
    is_searched = pc.is_in(texts, value_set=pa.concat_arrays([mapping.texts, searched.unique()]))
    left = texts.filter(pc.and_(texts.is_valid(), pc.invert(is_searched))).value_counts()
    return conflict_rows(
        "not searched", query_value=left.field("values"), count=left.field("counts")
    )


def _tied(mapping: JoinMapping) -> np.ndarray:
    """Return the links of query values with several nearest lake values, none of equal text."""
    first = np.flatnonzero(mapping.nearest)
    which = np.cumsum(mapping.nearest) - 1
    is_near = mapping.distance == mapping.distance[first][which]
    n_near = np.bincount(which[is_near], minlength=len(first))
    open_ones = (n_near > 1) & ~mapping.same[first]
    return np.flatnonzero(is_near & open_ones[which])


def _links(kind: str, mapping: JoinMapping, links: np.ndarray) -> pa.Table:
    return conflict_rows(
        kind,
        query_value=take_wide(mapping.query_names, pa.array(mapping.query[links])),
        lake_value=take_wide(mapping.lake_names, pa.array(mapping.lake[links])),
        distance=pa.array(mapping.distance[links]),
    )


def _repeated(found_rows: FoundRows) -> pa.Table:
    counts = np.bincount(found_rows.groups.of_row, minlength=len(found_rows.groups))
    rows = np.flatnonzero((counts > 1)[found_rows.groups.of_row])
    # One row for each lake value of such a text, with its number of rows.
    ids = (
        found_rows.text[rows] * max(1, len(found_rows.mapping.lake_keys))
        + found_rows.key[found_rows.row[rows]]
    )
    _, first, sizes = np.unique(ids, return_index=True, return_counts=True)
    order = np.argsort(first)
    at = rows[first[order]]
    return conflict_rows(
        "repeated",
        query_value=take_wide(found_rows.mapping.shown_texts, pa.array(found_rows.text[at])),
        lake_value=take_wide(
            found_rows.mapping.lake_names, pa.array(found_rows.key[found_rows.row[at]])
        ),
        distance=pa.array(found_rows.distance[at]),
        count=pa.array(sizes[order]),
    )


def _cells(found_rows: FoundRows) -> list[pa.Table]:
    parts = []
    for position, way in enumerate(found_rows.ways or ()):
        name = found_rows.rows.column_names[position]
        if way == "first":
            group, cells = differing(found_rows.cells_of(position), found_rows.groups)
            text = found_rows.text[found_rows.groups.starts[group]]
            names = take_wide(found_rows.mapping.shown_texts, pa.array(text))
            parts.append(conflict_rows("differing", query_value=names, column=name, cell=cells))
        elif way in OF_NUMBERS:
            # The joined rows, each once, in the order in which they are first joined.
            _, first = np.unique(found_rows.row, return_index=True)
            rows = found_rows.row[np.sort(first)]
            others, unlike = doubtful_numbers(found_rows.cells_of(position, rows))
            cells, counts = others.flatten()
            parts.append(conflict_rows("not a number", column=name, cell=cells, count=counts))
            parts.append(conflict_rows("unlike amounts", column=name, cell=unlike))
    return parts


def conflict_rows(kind: str, **columns: Any) -> pa.Table:
    n_rows = next(len(column) for column in columns.values() if not isinstance(column, str))
    filled = {"kind": kind, **columns}
    arrays = [
        pa.repeat(pa.scalar(column, field.type), n_rows)
        if isinstance(column := filled.get(field.name), str | None)
        else column.cast(field.type)
        for field in CONFLICTS
    ]
    return pa.Table.from_arrays(arrays, schema=CONFLICTS)


# Most rows that a join makes of each of your rows, on average.
MAX_GROWTH = 10

# Joins of at most so many rows are never refused.
MAX_ROWS = 5_000


def may_grow(options: JoinOptions) -> bool:
    """Return whether a join keeps no row one and was not allowed to multiply rows."""
    return options.aggregate is None and not options.many_to_many


def is_multiplied(n_rows: int, n_joined: int) -> bool:
    """Return whether a join makes more than `MAX_GROWTH` rows of each, on average."""
    return n_joined > MAX_GROWTH * n_rows


def is_large(n_rows: int, n_joined: int) -> bool:
    return is_multiplied(n_rows, n_joined) and n_joined > MAX_ROWS


def require_moderate_growth(
    texts: pa.StringArray, text: np.ndarray, counts: np.ndarray, table: str, options: JoinOptions
) -> None:
    """Raise InputError where a join would make far more rows than your table has.

    `text` is the position of that of each of your rows, -1 for none, and `counts` the rows of the
    found table that each text is joined with.
    """
    if not may_grow(options):
        return
    own = np.bincount(text[text >= 0], minlength=len(texts))
    unmatched = len(text) - int(own[counts > 0].sum())
    joined = own * counts
    n_joined = int(joined.sum()) + (unmatched if options.how == "left" else 0)
    if is_large(len(text), n_joined):
        largest = int(joined.argmax())
        example = texts[largest].as_py(), int(own[largest]), int(counts[largest])
        raise _too_large(len(text), n_joined, table, *example)


def require_moderate_growth_on_spark(
    texts: DataFrame, counted: DataFrame, table: str, options: JoinOptions
) -> None:
    """Raise InputError as `require_moderate_growth` does.

    Your table is counted by text only where a text is joined with more than `MAX_GROWTH` rows.
    """
    from pyspark.sql import functions as sql

    if not may_grow(options):
        return
    (name,), (key, number) = texts.columns, counted.columns
    in_driver = counted.toArrow()
    if (pc.max(in_driver[number]).as_py() or 0) <= MAX_GROWTH:
        return
    known = texts.sparkSession.createDataFrame(in_driver)
    own = texts.groupBy(name).agg(sql.count("*").alias("own"))
    pairs = own.join(known, sql.col(name).eqNullSafe(sql.col(key)), "left")
    unmatched = sql.col("own") if options.how == "left" else sql.lit(0)
    rows = sql.when(sql.col(number) > 0, sql.col("own") * sql.col(number)).otherwise(unmatched)
    best = sql.max_by(sql.struct(name, "own", number), rows)
    n_rows, n_joined, example = pairs.agg(sql.sum("own"), sql.sum(rows), best).first()
    if n_rows is not None and is_large(n_rows, n_joined):
        raise _too_large(n_rows, n_joined, table, *example)


def _too_large(
    n_rows: int, n_joined: int, table: str, text: str | None, own: int, their: int | None
) -> InputError:
    return InputError(
        f"The join would make {n_joined:,} rows of the {n_rows:,} of your table: "
        f"{text!r} is in {own:,} of them, each of which is joined with {their or 0:,} rows of "
        f"'{table}'. Keep each row of your table one by aggregate (--aggregate), join by a column "
        "that identifies rows, or allow it by many_to_many (--many-to-many)."
    )


# Most values of the user's table that a report lists as not searched, those with the most rows
# first; their number is reported whole.
MOST_NOT_SEARCHED = 10_000

# Conflicts of each kind that `JoinReport.to_dict` shows.
EXAMPLES = 3

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
    readings : tuple of WouldMatch
        Rules that are off by which more values would be equal, where values are joined by equality.
    conflicts : pyarrow.Table
        Of `pexeso.joins.report.CONFLICTS`: every value and cell that takes part in a conflict.
    counts : dict
        The number of conflicts of each kind that there are; see `pexeso.joins.report.KINDS`.
    """

    rows: int
    matched_rows: int
    joined_rows: int
    note: str | None = None
    noun: str = "value"
    readings: tuple[WouldMatch, ...] = ()
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
            **({"readings": list(map(asdict, self.readings))} if self.readings else {}),
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
            lines.append(f"{many(self.rows, 'row')} of your table became {self.joined_rows:,}.")
        for kind, number in self.counts.items():
            what = (KINDS[kind].one if number == 1 else KINDS[kind].several).format(noun=self.noun)
            lines.append(f"{number:,} {what}, such as {_shown(self._example(kind, 0))}.")
        return [*lines, *(one.sentence() for one in self.readings)]

    def _of(self, kind: str) -> pa.Table:
        return self.conflicts.filter(pc.equal(self.conflicts["kind"], kind))

    def _example(self, kind: str, position: int) -> dict[str, Any]:
        rows = self._of(kind)
        subject = _subjects(rows, kind)[position]
        rows = rows.filter(pc.equal(rows[KINDS[kind].subject], subject))
        column = rows["column"][0]
        if column.is_valid:
            rows = rows.filter(pc.equal(rows["column"], column))
        other = KINDS[kind].other
        others = pa.array([], pa.string()) if other is None else rows[other].unique()
        return {
            "of": subject.as_py(),
            "column": column.as_py(),
            "with": others[:_MOST_SHOWN].to_pylist(),
            "n": len(others),
        }


def count_conflicts(conflicts: pa.Table) -> dict[str, int]:
    """Count the conflicts of each kind that occurs."""
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
    from pyspark.sql import functions as sql

    (name,) = texts.columns
    counted = texts.groupBy(name).agg(sql.count("*").alias("count"))
    known = texts.sparkSession.createDataFrame(pa.table({name: pc.drop_null(searched.unique())}))
    left = counted.where(sql.col(name).isNotNull()).join(known, name, "left_anti")
    unsearched = left.orderBy(sql.desc("count"), name).limit(MOST_NOT_SEARCHED).toArrow()
    rows = conflict_rows("not searched", query_value=unsearched[name], count=unsearched["count"])
    every = pa.concat_tables([*conflicts, rows])
    counts = count_conflicts(every)
    if len(unsearched) == MOST_NOT_SEARCHED:
        counts["not searched"] = left.count()
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
    return rows[KINDS[kind].subject].unique()
