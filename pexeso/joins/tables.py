"""In-memory join of a user's table, of pandas, Arrow or polars.

Pairs of rows are determined first, then the columns are put side by side.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.engine.lists import distinct_numbers
from pexeso.errors import ColumnNotFoundError, InputError
from pexeso.joins.aggregation import are_unlike
from pexeso.joins.mapping import JoinMapping, PairColumns, make_mapping, places_in
from pexeso.joins.matched_rows import FoundRows, expand, find_rows
from pexeso.joins.options import PROVENANCE, JoinOptions, free_name
from pexeso.joins.report import (
    JoinReport,
    count_conflicts,
    mapping_conflicts,
    not_searched,
    require_moderate_growth,
    row_conflicts,
)
from pexeso.lake.columns import find_column
from pexeso.lake.frames.columns import column_texts
from pexeso.lake.frames.tables import (
    Frame,
    frame_of,
    put_beside,
    require_kind,
    table_in_memory,
    take_cells,
    take_rows,
)
from pexeso.results.query import exact_kind
from pexeso.runtime.formatting import MAX_COLUMNS, MAX_ROWS, Shown
from pexeso.store.arrays import take_wide

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from pexeso.results.matches import Match
    from pexeso.semantic.encoded_query import EncodedQuery
    from pexeso.semantic.open_index import OpenIndex


PREFIX = "match_"


@dataclass(frozen=True)
class JoinedNames:
    provenance: dict[str, str]
    found_columns: list[str]
    note: str | None = None


def choose_names(
    mine: Sequence[str],
    labels: Sequence[str],
    table: str,
    options: JoinOptions,
    *,
    fold_case: bool = False,
) -> JoinedNames:
    key: Callable[[str], str] = str.casefold if fold_case else str
    used_names = {key(name) for name in mine}
    requested = [name for name in PROVENANCE if name in options.provenance]
    clashes = [PREFIX + name for name in requested if key(PREFIX + name) in used_names]
    # One number for all of them.
    ending = free_name(
        "", lambda end: any(key(PREFIX + name + end) in used_names for name in requested)
    )
    provenance = {name: PREFIX + name + ending for name in requested}
    # The names that provenance has where nothing is taken are kept for it: what a column means must
    # not hang on the options.
    used_names |= {key(name) for name in provenance.values()} | {
        key(PREFIX + name) for name in requested
    }
    return JoinedNames(
        provenance,
        _found_names(labels, table, options, used_names, key),
        _note(clashes, provenance),
    )


def _note(clashes: list[str], provenance: dict[str, str]) -> str | None:
    if not clashes:
        return None
    stay = "is a column of your table and stays as it is"
    if len(clashes) > 1:
        stay = "are columns of your table and stay as they are"
    return (
        f"{', '.join(clashes)} {stay}; what the join adds is called "
        f"{', '.join(provenance.values())}."
    )


def _found_names(
    labels: Sequence[str],
    table: str,
    options: JoinOptions,
    reserved: set[str],
    key: Callable[[str], str],
) -> list[str]:
    free = {key(label) for label in labels if key(label) not in reserved}
    used = reserved | free
    names, still_taken = [], []
    for label in labels:
        name = label
        if key(label) in free:
            free.remove(key(label))  # of labels that Spark takes for one, the first keeps it
        elif options.suffix is None:
            name = free_name(f"{table}:{label}", lambda new: key(new) in used)
        else:
            name = label + options.suffix
            if key(name) in used:
                still_taken.append(name)
                continue
        names.append(name)
        used.add(key(name))
    if still_taken:
        raise InputError(
            f"With the suffix {options.suffix!r} these names are taken as well: "
            f"{', '.join(still_taken)}. Choose another suffix."
        )
    return names


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
        """Return the joined table as a DataFrame of polars; one of Spark is collected."""
        return self._frame.to("polars")

    @cached_property
    def report(self) -> JoinReport:
        """Rows joined, and the conflicts; worked out when it is first asked for."""
        return self._make_report()

    def noted(self, note: str) -> Joined:
        """Return the same join, with a further note in its report."""

        def make_report() -> JoinReport:
            notes = filter(None, (self.report.note, note))
            return replace(self.report, note=" ".join(notes))

        return replace(self, _make_report=make_report)


def join_table(
    table: Any,
    on: str | int | None,
    found_rows: FoundRows,
    searched: pa.StringArray,
    *,
    to: str | None = None,
) -> Joined:
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
    """Return a table whose columns are all columns in pandas, as a join numbers its rows again."""
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
    if on is None:
        raise InputError("Name the query column of your table: on=NAME or on=POSITION.")
    return find_column(names, f"#{on}" if isinstance(on, int) else on)


def _match_rows(texts: pa.StringArray, found_rows: FoundRows) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the user's row and the found row of each joined row, and the matched row count."""
    options = found_rows.options
    text = places_in(texts, found_rows.mapping.texts)
    counts = found_rows.counts()
    require_moderate_growth(found_rows.mapping.shown_texts, text, counts, found_rows.table, options)
    counts = np.append(counts, 0)
    sizes = counts[text]
    starts = (np.cumsum(counts) - counts)[text]
    n_matched = int(np.count_nonzero(sizes))
    ours, right_rows = expand(starts, sizes if options.how == "inner" else np.maximum(sizes, 1))
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
    notes = [names.note, _unlike_note(found_rows)]
    if noun == "value" and "shared" in counts:
        notes.append(_one_to_one_note(texts, found_rows))
    note = " ".join(filter(None, notes)) or None
    readings = found_rows.hints()
    return JoinReport(*rows, note, noun, readings, conflicts=conflicts, counts=counts)


def _unlike_note(found_rows: FoundRows) -> str | None:
    """Return a note where numbers are joined whose signs or currencies differ: (5) is not 5."""
    if exact_kind(found_rows.mapping.shown_texts.cast(pa.string())) != "number":
        return None
    ours = take_wide(found_rows.mapping.shown_texts, pa.array(found_rows.text)).cast(pa.string())
    theirs = take_wide(found_rows.matched_cells, pa.array(found_rows.row)).cast(pa.string())
    rows = pc.indices_nonzero(are_unlike(ours, theirs))
    if not len(rows):
        return None
    example = f"'{ours[rows[0].as_py()]}' with '{theirs[rows[0].as_py()]}'"
    return f"Numbers of other signs or currencies are joined, such as {example}."


def _one_to_one_note(texts: pa.StringArray, found_rows: FoundRows) -> str | None:
    """Offer a join that uses no value twice, where each value is in one row of either table."""
    text = pc.drop_null(pc.index_in(texts, found_rows.mapping.texts, skip_nulls=True))
    query = found_rows.mapping.query_of_text[text.to_numpy()]
    key = found_rows.key[found_rows.key >= 0]
    is_unique = all(len(distinct_numbers(side)) == len(side) for side in (query, key))
    if found_rows.options.values != "nearest" or not is_unique:
        return None
    return (
        "No value repeats in either column, and some values of the lake are joined with several "
        "of your rows: values='one-to-one' (--values one-to-one) uses no value twice."
    )


# What the name of a lake begins with that was one of Spark's tables.
SPARK_LAKE = "spark:"


def rows_of_match(
    opened: OpenIndex, query: EncodedQuery, match: Match, options: JoinOptions
) -> FoundRows:
    if str(opened.lake).startswith(SPARK_LAKE):
        raise InputError(
            "The index was built from Spark's tables, which are not read here: give a Spark "
            f"DataFrame to join with '{match.table}'."
        )
    rows, typed = opened.typed_rows(match.table)
    mapping, normaliser = mapping_of_match(query, match, options), opened.normaliser
    try:
        joined = find_rows(match.table, match.column, rows, mapping, normaliser, options, typed)
    except ColumnNotFoundError as error:
        raise ColumnNotFoundError(
            f"'{match.table}' has changed since it was indexed, so bring the index up to date "
            f"(pexeso append). {error}"
        ) from None
    return replace(joined, hints=partial(match._details.would_match, match._position))


def mapping_of_match(query: EncodedQuery, match: Match, options: JoinOptions) -> JoinMapping:
    texts, query_of_text = query.texts
    # As arrays: a column of values that are alike has millions of pairs.
    table = match._details.table(match._position)
    text, keys, values = table.text, table.keys, table.values
    distances, costs = table.distances, table.costs
    if options.values == "nearest":
        # A pair that is worse than the best of its text is neither joined nor a tie.
        sizes = np.diff(table.starts, append=len(table))
        rows = np.flatnonzero(costs == np.repeat(costs[table.starts], sizes))
        text, distances, costs = text[rows], distances[rows], costs[rows]
        keys, values = (take_wide(column, pa.array(rows)) for column in (keys, values))
    own_texts = take_wide(table.texts, pa.array(text)).cast(pa.large_string())
    pairs = PairColumns(own_texts, keys, values, distances, costs)
    return make_mapping(
        pa.array(texts, pa.string()), query_of_text, query.values, pairs, options.values
    )
