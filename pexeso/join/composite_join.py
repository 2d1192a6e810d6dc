"""Join on a key of several columns: rows go together whose keys are equal, part by part.

A key is one text here: its parts as `pexeso.lake.key_texts` has them, with a character between them
that none of them holds. So all that joins by one column joins by keys. `equal_keys` makes the links
between keys of both sides; a relation that links more than equal ones makes more of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.composite.one_table import OneTable, one_table
from pexeso.errors import InputError, QueryError
from pexeso.join.mapping import JoinMapping
from pexeso.join.matched_rows import FoundRows, joined_rows
from pexeso.join.options import JoinOptions
from pexeso.join.tables import Joined, column_of, join_texts, names_of
from pexeso.lake.key_columns import find_key_columns
from pexeso.lake.key_texts import key_texts
from pexeso.search.query import query_from_values

if TYPE_CHECKING:
    import pandas as pd

SEPARATOR = "\x1f"
"""Between the parts of a key: white space, which `key_texts` leaves in no part."""

_TO_QUOTE = '[",\r\n]'


@dataclass(frozen=True, eq=False)
class KeyedTable:
    """The columns of a table that make up its composite key. `keyed_table` makes it.

    Memory: the texts of these columns, up to three times.

    Attributes
    ----------
    labels : tuple of str
        Of the columns.
    positions : tuple of int
    cells : list of pa.StringArray
        As they stand in the table, null where empty.
    """

    labels: tuple[str, ...]
    positions: tuple[int, ...]
    cells: list[pa.StringArray]

    @cached_property
    def parts(self) -> list[pa.LargeStringArray]:
        """The cells in the form in which they are compared."""
        return [key_texts(cells) for cells in self.cells]

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
    def matched_cells(self) -> pa.StringArray:
        """What `match_value` has of each row of the table."""
        return self.shown


def keyed_table(
    names: Sequence[str], column: Callable[[int], Any], specs: str | Iterable[str]
) -> KeyedTable:
    """Take the columns of a key out of a table.

    Parameters
    ----------
    names : sequence of str
        Of all columns.
    column : callable
        From a position to the column, of pandas or Arrow.
    specs : str or iterable of str
        See `pexeso.lake.key_columns.find_key_columns`.

    Raises
    ------
    ColumnNotFoundError, QueryError
        The columns are not there, or make no key.
    """
    chosen = find_key_columns(names, specs)
    similar = [each.label for each in chosen if each.similar]
    if similar:
        raise QueryError(
            f"A table is joined where the parts of a key are equal. Got {similar[0]}~: leave the ~ "
            "out, or join by this column alone, which matches similar values."
        )
    cells = [query_from_values(column(each.position)).values for each in chosen]
    positions = tuple(each.position for each in chosen)
    return KeyedTable(tuple(each.label for each in chosen), positions, cells)


def keyed_rows(
    rows: pa.Table, table: str, specs: str | Iterable[str] | None, mine: KeyedTable
) -> KeyedTable:
    """Take the columns out of the lake's table that a key of yours is joined with.

    Parameters
    ----------
    rows : pa.Table
        The whole of it.
    table : str
        Its name.
    specs : str, iterable of str or None
        One column for each of the key; None: those that join most keys.

    Raises
    ------
    ColumnNotFoundError, QueryError
        The columns are not there, make no key, or are not as many as yours.
    InputError
        None are named, and no row of the table holds a key.
    """
    if specs is None:
        require_width(rows, table, mine)
        best = beside(rows, mine).best()
        if best is None:
            raise InputError(
                f"No row of '{table}' has a whole key of your table ({', '.join(mine.labels)}), in "
                "whatever columns: pexeso explain shows which parts it has."
            )
        specs = [f"#{position}" for position in best.columns]
    found = keyed_table(rows.column_names, rows.column, specs)
    if len(found.labels) != len(mine.labels):
        raise QueryError(
            "A key has as many columns in the lake's table as in yours. Got "
            f"{len(mine.labels)} of yours ({', '.join(mine.labels)}) and {len(found.labels)} of "
            f"'{table}' ({', '.join(found.labels)}): name one for each."
        )
    return found


def beside(rows: pa.Table, mine: KeyedTable) -> OneTable:
    """Put the keys of a table of yours beside a table of the lake."""
    arrays = [key_texts(column) for column in rows.columns]
    return one_table(mine.parts, pa.Table.from_arrays(arrays, names=rows.column_names))


def require_width(rows: pa.Table, table: str, mine: KeyedTable) -> None:
    """Raise InputError if a table has fewer columns than a key."""
    if rows.num_columns < len(mine.labels):
        raise InputError(
            f"A key of {len(mine.labels)} columns needs a table with as many. '{table}' has "
            f"{rows.num_columns}: take another table, or fewer columns."
        )


def join_keys(
    table: pd.DataFrame | pa.Table,
    on: str | Iterable[str],
    rows: pa.Table,
    name: str,
    columns: str | Iterable[str] | None,
    options: JoinOptions,
    to: str | None = None,
) -> Joined:
    """Join a table in memory with a table of the lake, by a key of several columns.

    Parameters
    ----------
    table : pandas.DataFrame or pyarrow.Table
        Yours.
    on : str or iterable of str
        The columns of the key in it.
    rows : pa.Table
        The lake's, as `pexeso.lake.rows.read_rows` gives it.
    name : str
        Of the lake's table.
    columns : str, iterable of str or None
        See `keyed_rows`.
    options : JoinOptions
        `values` makes no difference: a key is equal to one at most.
    to : {"pandas", "arrow"}, optional
        See `pexeso.join.tables.join_table`.

    Returns
    -------
    Joined

    Raises
    ------
    InputError, ColumnNotFoundError, QueryError
        See `keyed_rows` and `pexeso.join.tables.names_of`.

    Notes
    -----
    Memory: both tables, their keys as texts, and 32 bytes for each row of the lake's that is
    joined.

    Examples
    --------
    >>> mine = pa.table({"year": [2009, 2010], "country": ["Peru", "Chad"], "n": [1, 2]})
    >>> rows = pa.table({"land": ["peru", "peru"], "when": ["2009", "2010"], "gdp": ["1", "2"]})
    >>> found = join_keys(mine, "country,year", rows, "gdp.csv", "land,when", JoinOptions())
    >>> found.table.select(["year", "country", "match_value", "gdp"]).to_pydict()
    {'year': [2009, 2010], 'country': ['Peru', 'Chad'], 'match_value': ['peru,2009', None], \
'gdp': ['1', None]}
    """
    if hasattr(table, "sparkSession"):
        raise InputError(
            "A Spark DataFrame is joined by one column. To join by a key of several, give a pandas "
            "DataFrame or a pyarrow Table."
        )
    mine = keyed_table(names_of(table, to), lambda position: column_of(table, position), on)
    theirs = keyed_rows(rows, name, columns, mine)
    mapping = equal_keys(mine, theirs)
    key = pc.fill_null(pc.index_in(theirs.keys, mapping.lake_keys, skip_nulls=True), -1)
    key = key.to_numpy(zero_copy_only=False).astype(np.int64)
    found = FoundKeyRows(
        name,
        written_names(theirs.labels),
        rows,
        mapping,
        options,
        key,
        *joined_rows(key, mapping),
        written_keys(theirs.cells),
    )
    # Each row has its key with it: there is none that was not searched.
    return join_texts(table, mine.keys, found, mine.keys, to=to, noun="key")


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
    return JoinMapping(
        texts=texts,
        query_of_text=np.arange(len(texts)),
        query_names=_names_of_keys(mine, texts),
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


def written_names(labels: Sequence[str]) -> str:
    """Write the columns of a key as `pexeso.lake.key_columns.names_in` reads them."""
    return written_keys([pa.array([label], pa.string()) for label in labels])[0].as_py()


def _quoted(cells: pa.Array) -> pa.Array:
    texts = pc.fill_null(cells.cast(pa.string()), "")
    doubled = pc.replace_substring(texts, '"', '""')
    quoted = pc.binary_join_element_wise('"', doubled, '"', "")
    return pc.if_else(pc.match_substring_regex(texts, _TO_QUOTE), quoted, texts)
