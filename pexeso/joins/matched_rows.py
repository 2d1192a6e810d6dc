"""Joined rows of the found table by text of the query column, unchanged or aggregated.

Aggregation leaves one row per text. Of the rows that hold one value in different forms, those of
the text's own form are joined: see `joined_rows`.

The same code runs where a table is joined in memory and in a task of Spark, so both give the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.engine.lists import ranges
from pexeso.joins.aggregation import Groups, aggregated, read_numbers, type_of
from pexeso.joins.mapping import JoinMapping, places_in
from pexeso.joins.options import OF_NUMBERS, PROVENANCE, JoinOptions
from pexeso.lake.columns import find_column
from pexeso.lake.frames.tables import take_column_cells
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.lake.tokens import key_forms
from pexeso.results.column_matches import WouldMatch
from pexeso.store.arrays import take_wide

PROVENANCE_TYPES = {
    "table": pa.string(),
    "column": pa.string(),
    "value": pa.string(),
    "distance": pa.float64(),
}


FindHints = Callable[[], tuple[WouldMatch, ...]]

_SIDES: tuple[Literal["left"], Literal["right"]] = ("left", "right")


@dataclass(frozen=True, eq=False)
class JoinedRows:
    """The rows of a table that are joined with each text, as ranges of `order`, the rows.

    A text, by its position in `JoinMapping.texts`, has ranges with their distances, nearest first.
    """

    order: np.ndarray
    text: np.ndarray
    start: np.ndarray
    size: np.ndarray
    distance: np.ndarray

    @classmethod
    def of_rows(cls, text: np.ndarray, row: np.ndarray, distance: np.ndarray) -> JoinedRows:
        return cls(row, text, np.arange(len(row)), np.ones(len(row), np.int64), distance)

    def counts(self, n_texts: int) -> np.ndarray:
        """Count the rows of each text: int64 (n_texts,). No row is written out for it."""
        counts = np.zeros(n_texts, np.int64)
        np.add.at(counts, self.text, self.size)
        return counts

    @cached_property
    def written_out(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        block, at = expand(self.start, self.size)
        row = self.order[at]
        order = np.lexsort((row, block, self.text[block]))
        block = block[order]
        return self.text[block], row[order], self.distance[block]


@dataclass(frozen=True)
class FoundRows:
    """The found table, and which of its rows are joined with which text of the query column.

    `key` is for each row its place in `mapping.lake_keys`, -1 where it has none of them. Memory:
    the table, and 40 bytes for each row of it that is joined with a text.
    """

    table: str
    column: str
    rows: pa.Table
    mapping: JoinMapping
    options: JoinOptions
    key: np.ndarray
    joined: JoinedRows
    typed: Sequence[pa.ChunkedArray] | None = field(default=None, kw_only=True)
    hints: FindHints = field(default=tuple, kw_only=True)

    @property
    def text(self) -> np.ndarray:
        """Int64 (p,): the text of each joined row, by its position in `mapping.texts`, in order."""
        return self.joined.written_out[0]

    @property
    def row(self) -> np.ndarray:
        return self.joined.written_out[1]

    @property
    def distance(self) -> np.ndarray:
        return self.joined.written_out[2]

    @property
    def key_labels(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def matched_cells(self) -> pa.StringArray:
        """What `match_value` has of each row of the table: the cell of the found column."""
        return self._cells(find_column(self.rows.column_names, self.column))

    @cached_property
    def ways(self) -> list[str] | None:
        return self.options.ways(self.rows.column_names)

    @cached_property
    def groups(self) -> Groups:
        return Groups.of(self.text)

    @property
    def text_of_row(self) -> np.ndarray:
        """Int64 (o,): the text of each row of `take`, in order."""
        return self.text if self.ways is None else self.text[self.groups.starts]

    def counts(self) -> np.ndarray:
        """Count the rows of `take` of each text: int64 (t,). No row is written out for it."""
        counts = self.joined.counts(len(self.mapping.texts))
        return counts if self.ways is None else np.minimum(counts, 1)

    def take(self, start: int = 0, stop: int | None = None) -> pa.Table:
        """Return the columns that are added to the user's rows."""
        first = slice(start, stop) if self.ways is None else self.groups.starts
        one_row, distance = pa.array(self.row[first]), self.distance[first]
        provenance = {
            "table": lambda: pa.array(np.repeat(self.table, len(one_row)), pa.string()),
            "column": lambda: pa.array(np.repeat(self.column, len(one_row)), pa.string()),
            "value": lambda: take_wide(self.matched_cells, one_row),
            "distance": lambda: pa.array(distance),
        }
        columns = [provenance[name]() for name in PROVENANCE if name in self.options.provenance]
        for position in range(self.rows.num_columns):
            if self.ways is None or self.ways[position] == "first":
                columns.append(self._kept(position, one_row))
            else:
                cells, way = self._cells(position), self.ways[position]
                cells = read_numbers(cells) if way in OF_NUMBERS else cells
                cells = take_wide(cells, pa.array(self.row))
                columns.append(aggregated(cells, self.groups, way))
        return pa.Table.from_arrays(columns, [f"c{number}" for number in range(len(columns))])

    def cells_of(self, position: int, rows: np.ndarray | None = None) -> pa.StringArray:
        return take_wide(self._cells(position), pa.array(self.row if rows is None else rows))

    def _kept(self, position: int, one_row: pa.Int64Array) -> pa.Array:
        """Return cells of a column as in the file, with its type where it has one."""
        column = (self.rows.columns if self.typed is None else self.typed)[position]
        cells = take_column_cells(column, one_row)
        return cells.combine_chunks() if cells.num_chunks != 1 else cells.chunk(0)

    def _cells(self, position: int) -> pa.StringArray:
        column = self.rows.column(position)
        return (
            column.chunk(0)
            if column.num_chunks == 1
            else pa.concat_arrays(column.chunks or [pa.array([], pa.string())])
        )


def find_rows(
    table: str,
    column: str,
    rows: pa.Table,
    mapping: JoinMapping,
    normaliser: Normaliser,
    options: JoinOptions,
    typed: Sequence[pa.ChunkedArray] | None = None,
) -> FoundRows:
    position = find_column(rows.column_names, column)
    keys = normaliser.normalise(rows.column(position))
    key = places_in(keys, mapping.lake_keys)
    mapping = mapping.in_order(first_rows(key, mapping), options.values)
    forms = None
    if options.values != "all":
        forms = (normaliser.resolved(mapping.texts), normaliser.resolved(rows.column(position)))
    joined = joined_rows(key, mapping, forms)
    return FoundRows(table, column, rows, mapping, options, key, joined, typed=typed)


def first_rows(key: np.ndarray, mapping: JoinMapping) -> np.ndarray:
    """Return the first row of each lake value; one behind all rows where it has none: int64."""
    first = np.full(len(mapping.lake_keys), len(key))
    rows = np.flatnonzero(key >= 0)[::-1]
    first[key[rows]] = rows
    return first


def joined_rows(
    key: np.ndarray, mapping: JoinMapping, told_apart: tuple[pa.Array, pa.Array] | None = None
) -> JoinedRows:
    """Find the rows of a table that are joined, from the lake value of each of its rows.

    A text is joined with the rows of the lake values that its own value is linked to. Where rows
    are told apart, by texts and the cells of the rows with aliases replaced by what they mean, and
    some of those have the text itself, they alone are joined with it; else those whose cells differ
    from it in case and white space alone, where there are some; else all.
    """
    linked = np.flatnonzero(mapping.chosen)
    rows = np.flatnonzero(key >= 0)
    forms = pa.array([], pa.string())
    form = np.zeros(len(rows), np.int64)
    texts = mapping.texts
    if told_apart is not None:
        texts, cells = told_apart
        encoded = cells.take(pa.array(rows)).dictionary_encode()
        forms, form = encoded.dictionary, encoded.indices.to_numpy().astype(np.int64)
    by_form = np.lexsort((form, key[rows]))
    rows, form = rows[by_form], form[by_form]
    starts = np.searchsorted(key[rows], np.arange(len(mapping.lake_keys) + 1))
    _, form_starts, form_sizes = np.unique(form, return_index=True, return_counts=True)
    own_text, own_form = _own_forms(mapping, linked, texts, key[rows][form_starts], forms)
    # The links are by query value, nearest first.
    others = np.setdiff1d(np.arange(len(mapping.texts)), own_text)
    query = mapping.query_of_text[others]
    first, last = (np.searchsorted(mapping.query[linked], query, side) for side in _SIDES)
    owner, at = expand(first, last - first)
    lake = mapping.lake[linked[at]]
    own_link = linked[np.searchsorted(mapping.query[linked], mapping.query_of_text[own_text])]
    return JoinedRows(
        rows,
        np.concatenate([own_text, others[owner]]),
        np.concatenate([form_starts[own_form], starts[lake]]),
        np.concatenate([form_sizes[own_form], starts[lake + 1] - starts[lake]]),
        mapping.distance[np.concatenate([own_link, linked[at]]).astype(np.int64)],
    )


def _own_forms(
    mapping: JoinMapping,
    linked: np.ndarray,
    all_texts: pa.Array,
    lake_of_form: np.ndarray,
    forms: pa.Array,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the texts that have forms of their own among cells, and these forms, as positions."""
    none = np.zeros(0, np.int64)
    if not len(forms):
        return none, none
    # Where a lake value has one form, there is nothing to choose.
    has_several = np.bincount(lake_of_form, minlength=len(mapping.lake_keys)) > 1
    link = np.minimum(
        np.searchsorted(mapping.query[linked], mapping.query_of_text), max(len(linked) - 1, 0)
    )
    if not has_several.any() or not len(linked):
        return none, none
    is_linked = mapping.query[linked][link] == mapping.query_of_text
    lake_of_text = np.where(is_linked, mapping.lake[linked][link], -1)
    texts = np.flatnonzero(is_linked & has_several[lake_of_text])
    among = np.flatnonzero(has_several[lake_of_form])
    our_texts = all_texts.take(pa.array(texts)).cast(pa.large_string())
    their_texts = forms.take(pa.array(among)).cast(pa.large_string())
    pairs: list[tuple[np.ndarray, np.ndarray]] = []
    for ours, theirs in ((our_texts, their_texts), (key_forms(our_texts), key_forms(their_texts))):
        one, other = equal_pairs(ours, theirs)
        same = lake_of_text[texts[one]] == lake_of_form[among[other]]
        pairs.append((texts[one[same]], among[other[same]]))
    (text, form), (folded_text, folded_form) = pairs
    left = ~np.isin(folded_text, text)
    return np.append(text, folded_text[left]), np.append(form, folded_form[left])


def equal_pairs(ours: pa.Array, theirs: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs of positions that hold equal texts; null equals nothing."""
    known = pc.unique(theirs).drop_null()
    one, other = places_in(ours, known), places_in(theirs, known)
    by_text = np.argsort(other, kind="stable")
    first, last = (np.searchsorted(other[by_text], one, side) for side in _SIDES)
    owner, at = expand(first, np.where(one >= 0, last - first, 0))
    return owner, by_text[at]


def expand(starts: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Write out ranges: for each number in them the range that it belongs to, and the number."""
    owner = np.repeat(np.arange(len(starts)), sizes)
    return owner, ranges(starts, sizes)


def found_types(
    labels: list[str], types: Sequence[pa.DataType], options: JoinOptions
) -> list[pa.DataType]:
    """Return the types of what `FoundRows.take` gives of a table with these columns."""
    ways = options.ways(labels) or ["first"] * len(labels)
    provenance = [PROVENANCE_TYPES[name] for name in PROVENANCE if name in options.provenance]
    return provenance + [
        kind if way == "first" else type_of(way) for way, kind in zip(ways, types, strict=True)
    ]
