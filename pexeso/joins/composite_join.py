"""Join on a key of several columns: rows go together whose keys are equal, part by part.

A key is one text here: its parts as `pexeso.lake.tokens` has them, with a character between them
that none of them holds. So all that joins by one column joins by keys. `equal_keys` makes the links
between keys of both sides; a relation that links more than equal ones makes more of them. Where
rows of the lake's table have the very cells of a key, these alone are joined with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.joins.mapping import JoinMapping, places_in
from pexeso.joins.matched_rows import FindHints, FoundRows, joined_rows
from pexeso.joins.options import JoinOptions
from pexeso.lake.columns import names_in, spec_of
from pexeso.lake.tokens import joined_parts

_TO_QUOTE = '[",\r\n]'


@dataclass(frozen=True, eq=False)
class KeyedTable:
    """The columns of a table that make up its composite key; `parts` in the form that is compared.

    Memory: their texts four times.
    """

    labels: tuple[str, ...]
    positions: tuple[int, ...]
    cells: list[pa.StringArray]
    parts: list[pa.LargeStringArray]

    @cached_property
    def keys(self) -> pa.LargeStringArray:
        return joined_parts(self.parts)

    @cached_property
    def texts(self) -> pa.LargeStringArray:
        """The cells of each row's key as in the table, null where a part is missing."""
        texts = joined_parts([pc.utf8_trim_whitespace(cells) for cells in self.cells])
        return pc.if_else(self.keys.is_valid(), texts, pa.scalar(None, texts.type))


@dataclass(frozen=True)
class FoundKeyRows(FoundRows):
    """Rows found by a key of several columns; `column` has their labels as a line of CSV."""

    shown: pa.StringArray

    @property
    def key_labels(self) -> tuple[str, ...]:
        return tuple(names_in(self.column))

    @property
    def matched_cells(self) -> pa.StringArray:
        return self.shown


def find_key_rows(
    mine: KeyedTable,
    rows: pa.Table,
    name: str,
    theirs: KeyedTable,
    options: JoinOptions,
    typed: Sequence[pa.ChunkedArray] | None = None,
    hints: FindHints = tuple,
) -> FoundKeyRows:
    mapping = equal_keys(mine, theirs)
    key = places_in(theirs.keys, mapping.lake_keys)
    return FoundKeyRows(
        name,
        spec_of(theirs.labels),
        rows,
        mapping,
        options,
        key,
        joined_rows(key, mapping, (mapping.texts, theirs.texts)),
        written_keys(theirs.cells),
        typed=typed,
        hints=hints,
    )


def equal_keys(mine: KeyedTable, theirs: KeyedTable) -> JoinMapping:
    """Link the keys of your table with those of the lake's table that are equal."""
    keys, texts = (pc.drop_null(pc.unique(column)) for column in (mine.keys, mine.texts))
    lake_keys = keys.filter(pc.is_in(keys, value_set=theirs.keys, skip_nulls=True)).sort()
    query = places_in(lake_keys, keys)
    order = np.argsort(query)
    rows_of_texts = pc.index_in(texts, mine.texts)
    return JoinMapping(
        texts=texts,
        query_of_text=places_in(mine.keys.take(rows_of_texts), keys),
        query_names=_names_of_rows(mine, pc.index_in(keys, mine.keys)),
        text_names=_names_of_rows(mine, rows_of_texts),
        lake_keys=lake_keys,
        lake_names=_names_of_rows(theirs, pc.index_in(lake_keys, theirs.keys)),
        query=query[order],
        lake=order,
        distance=np.zeros(len(order)),
        cost=np.zeros(len(order)),
        same=np.ones(len(order), dtype=bool),
        chosen=np.ones(len(order), dtype=bool),
    )


def _names_of_rows(table: KeyedTable, rows: pa.Array) -> pa.StringArray:
    return written_keys([cells.take(rows) for cells in table.cells])


def written_keys(cells: Sequence[pa.Array]) -> pa.StringArray:
    """Write the cells of keys of several columns as lines of CSV; of one column they stay."""
    if len(cells) == 1:
        return cells[0].cast(pa.string())
    return pc.binary_join_element_wise(*map(_quoted, cells), ",").cast(pa.string())


def _quoted(cells: pa.Array) -> pa.Array:
    texts = pc.fill_null(cells.cast(pa.string()), "")
    doubled = pc.replace_substring(texts, '"', '""')
    quoted = pc.binary_join_element_wise('"', doubled, '"', "")
    return pc.if_else(pc.match_substring_regex(texts, _TO_QUOTE), quoted, texts)
