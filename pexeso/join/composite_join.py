"""Join on a key of several columns: rows go together whose keys are equal, part by part.

A key is one text here: its parts as `pexeso.lake.key_texts` has them, with a character between them
that none of them holds. So all that joins by one column joins by keys. `equal_keys` makes the links
between keys of both sides; a relation that links more than equal ones makes more of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.join.mapping import JoinMapping
from pexeso.join.matched_rows import FoundRows, joined_rows
from pexeso.join.options import JoinOptions
from pexeso.join.tables import Joined, join_texts
from pexeso.lake.key_columns import names_in, spec_of

SEPARATOR = "\x1f"
"""Between the parts of a key: white space, which `key_texts` leaves in no part."""

_TO_QUOTE = '[",\r\n]'


@dataclass(frozen=True, eq=False)
class KeyedTable:
    """The columns of a table that make up its composite key.

    Memory: their texts three times.

    Attributes
    ----------
    labels : tuple of str
    positions : tuple of int
        In the table.
    cells : list of pa.StringArray
        As they stand in the table, null where empty.
    parts : list of pa.LargeStringArray
        In the form in which they are compared.
    """

    labels: tuple[str, ...]
    positions: tuple[int, ...]
    cells: list[pa.StringArray]
    parts: list[pa.LargeStringArray]

    @cached_property
    def keys(self) -> pa.LargeStringArray:
        """The key of each row, null where a part is missing."""
        return pc.binary_join_element_wise(*self.parts, pa.scalar(SEPARATOR, pa.large_string()))


@dataclass(frozen=True)
class FoundKeyRows(FoundRows):
    """Rows found by a key of several columns; `column` has their labels as a line of CSV.

    Attributes
    ----------
    shown : pa.StringArray, one for each row of the table
        The cells of its key as a line of CSV.
    """

    shown: pa.StringArray

    @property
    def key_labels(self) -> tuple[str, ...]:
        """The columns of the found table that rows are joined by."""
        return tuple(names_in(self.column))

    @property
    def matched_cells(self) -> pa.StringArray:
        """What `match_value` has of each row of the table."""
        return self.shown


def join_keys(
    table: Any,
    mine: KeyedTable,
    rows: pa.Table,
    name: str,
    theirs: KeyedTable,
    options: JoinOptions,
    to: str | None = None,
    typed: Sequence[pa.ChunkedArray] | None = None,
) -> Joined:
    """Join a table in memory with a table of the lake, by a key of several columns.

    Parameters
    ----------
    table : table
        Yours; see `pexeso.frames.tables.table_in_memory`.
    mine : KeyedTable
        Its key.
    rows : pa.Table
        The lake's, as `pexeso.lake.rows.read_rows` gives it.
    name : str
        Of the lake's table.
    theirs : KeyedTable
        Its key, of as many columns.
    options : JoinOptions
        `values` makes no difference: a key is equal to one at most.
    to : {"pandas", "arrow", "polars"}, optional
        See `pexeso.join.tables.join_table`.
    typed : sequence of pyarrow.ChunkedArray, optional
        The columns of `rows` with the types of their file.

    Notes
    -----
    Memory: both tables, their keys as texts, and 32 bytes for each row of the lake's that is
    joined.

    Examples
    --------
    >>> def keyed(table, *labels):
    ...     cells = [table[label].combine_chunks().cast(pa.string()) for label in labels]
    ...     return KeyedTable(labels, (), cells, [each.cast(pa.large_string()) for each in cells])
    >>> mine = pa.table({"year": [2009, 2010], "country": ["Peru", "Chad"], "n": [1, 2]})
    >>> rows = pa.table({"land": ["Peru", "Peru"], "when": ["2009", "2010"], "gdp": ["1", "2"]})
    >>> keys = keyed(mine, "country", "year"), keyed(rows, "land", "when")
    >>> found = join_keys(mine, keys[0], rows, "gdp.csv", keys[1], JoinOptions())
    >>> found.table.select(["year", "country", "match_value", "gdp"]).to_pydict()
    {'year': [2009, 2010], 'country': ['Peru', 'Chad'], 'match_value': ['Peru,2009', None], \
'gdp': ['1', None]}
    """
    mapping = equal_keys(mine, theirs)
    key = pc.fill_null(pc.index_in(theirs.keys, mapping.lake_keys, skip_nulls=True), -1)
    key = key.to_numpy(zero_copy_only=False).astype(np.int64)
    found_rows = FoundKeyRows(
        name,
        spec_of(theirs.labels),
        rows,
        mapping,
        options,
        key,
        joined_rows(key, mapping),
        written_keys(theirs.cells),
        typed=typed,
    )
    # Each row has its key with it: there is none that was not searched.
    return join_texts(table, mine.keys, found_rows, mine.keys, to=to, noun="key")


def equal_keys(mine: KeyedTable, theirs: KeyedTable) -> JoinMapping:
    """Link the keys of your table with those of the lake's table that are equal.

    Returns
    -------
    JoinMapping
        Of keys; each has one link at most, of distance 0.
    """
    texts = pc.drop_null(mine.keys.unique())
    lake_keys = texts.filter(pc.is_in(texts, value_set=theirs.keys, skip_nulls=True)).sort()
    query = pc.index_in(lake_keys, texts).to_numpy(zero_copy_only=False).astype(np.int64)
    order = np.argsort(query)
    names = _names_of_keys(mine, texts)
    return JoinMapping(
        texts=texts,
        query_of_text=np.arange(len(texts)),
        query_names=names,
        text_names=names,
        lake_keys=lake_keys,
        lake_names=_names_of_keys(theirs, lake_keys),
        query=query[order],
        lake=order,
        distance=np.zeros(len(order)),
        same=np.ones(len(order), dtype=bool),
        chosen=np.ones(len(order), dtype=bool),
    )


def _names_of_keys(table: KeyedTable, keys: pa.LargeStringArray) -> pa.StringArray:
    """Return the cells of the first row that has each key, as `written_keys` writes them."""
    rows = pc.index_in(keys, table.keys)
    return written_keys([cells.take(rows) for cells in table.cells])


def written_keys(cells: Sequence[pa.Array]) -> pa.StringArray:
    """Write the cells of keys as lines of CSV, as columns of a key are named.

    Parameters
    ----------
    cells : sequence of Arrow texts (n,)
        The parts of the keys.

    Returns
    -------
    pa.StringArray (n,)
        An empty cell is written as nothing.

    Examples
    --------
    >>> written_keys([pa.array(["Oslo", "York, PA"]), pa.array(["2009", None])]).to_pylist()
    ['Oslo,2009', '"York, PA",']
    """
    return pc.binary_join_element_wise(*map(_quoted, cells), ",").cast(pa.string())


def _quoted(cells: pa.Array) -> pa.Array:
    texts = pc.fill_null(cells.cast(pa.string()), "")
    doubled = pc.replace_substring(texts, '"', '""')
    quoted = pc.binary_join_element_wise('"', doubled, '"', "")
    return pc.if_else(pc.match_substring_regex(texts, _TO_QUOTE), quoted, texts)
