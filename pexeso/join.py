"""The user's table left-joined with a found one, through the values that match."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pexeso.errors import InputError
from pexeso.lake.columns import find_column
from pexeso.lake.normalise import Normaliser
from pexeso.lake.rows import read_rows
from pexeso.places import Place
from pexeso.queries import query_from_values
from pexeso.results import Pair

if TYPE_CHECKING:
    import pandas as pd

VALUE, DISTANCE = "match_value", "match_distance"
CHOICES = ("nearest", "all")

_TEXT, _KEY = "__text", "__key"


def join_tables(
    table: pd.DataFrame,
    on: str | int | None,
    pairs: Sequence[Pair],
    *,
    lake: str | os.PathLike[str] | Place,
    found_table: str,
    found_column: str,
    normaliser: Normaliser,
    values: str = "nearest",
) -> pd.DataFrame:
    """Left-join `table` with a table of the lake.

    Parameters
    ----------
    table : pandas.DataFrame
        The user's; every row is kept, in order.
    on : str or int
        Name or position of the query column.
    pairs : sequence of Pair
        The matching values, nearest first for each query value.
    lake : path, URL or Place
        Where the tables are that the index was built from.
    found_table, found_column : str
        As a result names them.
    normaliser : Normaliser
        Of the index: rows of the found table are looked up by normalised value, as the index holds them.
    values : {"nearest", "all"}
        Join the nearest lake value of each query value, or all that match.

    Returns
    -------
    pandas.DataFrame
        The columns of `table`; ``match_value`` (the found column's text) and ``match_distance``; the columns of the found table, those whose name is taken
        as ``table:column``. A row of `table` is repeated where several rows of the found table match, and has missing values on the right where none does.
    """
    import pandas as pd

    if values not in CHOICES:
        raise InputError(f"values must be one of {', '.join(CHOICES)}. Got {values!r} instead.")
    left = table.copy()
    left[_TEXT] = query_from_values(table.iloc[:, _position(table, on)]).values.to_pandas()
    links = pd.DataFrame([(pair.query, pair.key, pair.distance) for pair in pairs], columns=[_TEXT, _KEY, DISTANCE])
    if values == "nearest":
        links = links.drop_duplicates(_TEXT)
    right = _found_rows(lake, found_table, found_column, normaliser, set(map(str, table.columns)))
    joined = left.merge(links, how="left", on=_TEXT).merge(right, how="left", on=_KEY)
    order = [*table.columns, VALUE, DISTANCE, *(name for name in right.columns if name not in (_KEY, VALUE))]
    return joined[order]


def _found_rows(
    lake: str | os.PathLike[str] | Place, found_table: str, found_column: str, normaliser: Normaliser, taken: set[str]
) -> pd.DataFrame:
    """Read the found table with its key column normalised; rows without a key cannot match and are left out."""
    rows = read_rows(lake, found_table)
    column = rows.column(found_column).combine_chunks()
    frame = rows.to_pandas()
    taken |= {VALUE, DISTANCE}
    frame.columns = [f"{found_table}:{name}" if name in taken else name for name in frame.columns]
    frame[VALUE] = column.to_pandas()
    frame[_KEY] = normaliser.normalise(column).to_pandas()
    return frame[frame[_KEY].notna()]


def _position(table: pd.DataFrame, on: str | int | None) -> int:
    if on is None:
        raise InputError("Name the query column of your table: on=NAME or on=POSITION.")
    return find_column([str(name) for name in table.columns], f"#{on}" if isinstance(on, int) else on)
