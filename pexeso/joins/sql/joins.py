"""A join with a column of the lake as SQL, for DuckDB and other databases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from pexeso.joins.matched_join import Lake, rows_of_match
from pexeso.joins.matched_rows import FoundRows
from pexeso.joins.options import join_options
from pexeso.joins.sql.lake_tables import LakeTable, require_duckdb
from pexeso.joins.sql.texts import LAKES, YOURS, literal, quoted
from pexeso.runtime.shown import Shown, facts_table, many

if TYPE_CHECKING:
    from pexeso.results.matches import Match
    from pexeso.semantic.encoded_query import EncodedQuery


@dataclass(frozen=True, repr=False)
class JoinSql(Shown):
    """A join as SQL.

    Attributes
    ----------
    sql : str
        One statement over the two tables of `tables`.
    tables : dict
        For each of the two what reads it in DuckDB, or None where it is read by other means.
    query_column, lake_column : str
        The columns that are joined; of a key of several columns as a command names them.
    pairs : list of (str, str or None)
        Values that are joined though their texts differ, and those that are not joined (None)
        though the lake has an equal text; all others are joined by equal values. Of keys each is a
        tuple of texts.
    """

    sql: str
    tables: dict[str, str | None]
    query_column: str
    lake_column: str
    pairs: list[tuple[Any, Any]] = field(repr=False)

    def _summary(self) -> str:
        return f"{many(len(self.pairs), 'pair')} of texts that differ"

    def _shown(self) -> tuple[list[str], list[list[Any]]]:
        names = {"your column": self.query_column, "column of the lake": self.lake_column}
        return facts_table({**names, "SQL": self.sql})

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form."""
        return {**vars(self), "pairs": [list(pair) for pair in self.pairs]}


def sql_of_match(
    lake: Lake,
    query: EncodedQuery,
    match: Match,
    on: str,
    options: Mapping[str, Any],
    names: tuple[str, str | None],
) -> JoinSql:
    """Write the join of a match with a table of the user's as a statement."""
    requested = join_options({**options, "provenance": ()})
    yours, named = names
    if named is None:
        require_duckdb()
    match_rows = rows_of_match(lake, query, match, requested)
    lake_table = LakeTable.of(lake.where, match_rows)
    source = source_of(lake_table, named)
    pairs = _pairs(query, match_rows, [text for (text,) in lake_table.texts])
    keys = [((text,), (their,)) for text, their in pairs]
    [key] = lake_table.keys
    sql = statement(keys, (quoted(yours), [on]), (source, [key]), requested.how)
    return JoinSql(sql, {YOURS: None, LAKES: lake_table.reader}, on, key, pairs)


def _pairs(
    query: EncodedQuery, match_rows: FoundRows, lake_texts: list[str | None]
) -> list[tuple[str, str | None]]:
    """Return what equal texts alone would not join, or would join though it is not joined."""
    distinct_texts = set(lake_texts)
    mapping = match_rows.mapping
    position_of = {text: position for position, text in enumerate(mapping.texts.to_pylist())}
    pairs: list[tuple[str, str | None]] = []
    searched: list[str] = query.column.values.drop_null().to_pylist()
    for text in dict.fromkeys(searched):
        position = position_of.get(text, -1)
        first, last = (
            np.searchsorted(match_rows.text, [position, position + 1]) if position >= 0 else (0, 0)
        )
        partners = dict.fromkeys(lake_texts[row] for row in match_rows.row[first:last].tolist())
        if partners:
            pairs += [] if list(partners) == [text] else [(text, their) for their in partners]
        elif text in distinct_texts:
            pairs.append((text, None))
    return pairs


def source_of(table: LakeTable, named: str | None) -> str:
    """Return what a table of the lake is called in a statement."""
    if named is not None:
        return quoted(named)
    # Of a catalog named, since DuckDB would look for a file of that name in the working folder.
    return table.reader or f"temp.main.{quoted(table.name)}"


Key = tuple[str, ...]
"""The texts of a key, one for each column."""


def statement(
    pairs: Sequence[tuple[Key, tuple[str | None, ...]]],
    ours: tuple[str, Sequence[str]],
    theirs: tuple[str, Sequence[str]],
    how: str,
) -> str:
    """Write a join of two tables whose texts are equal, but for those that pairs tell.

    Parameters
    ----------
    pairs : sequence of pairs of tuples
        The texts of a key of yours, and those that it is joined with; None where with none.

    Examples
    --------
    >>> print(statement([], ("mine", ["city", "year"]), ("lakes", ["town", "held"]), "inner"))
    SELECT y.*, l.*
    FROM mine AS y
    JOIN lakes AS l ON CAST(l."town" AS VARCHAR) = CAST(y."city" AS VARCHAR) AND CAST(l."held" AS VARCHAR) = CAST(y."year" AS VARCHAR);
    """  # noqa: E501  what is printed is one line
    (yours, on), (lakes, keys) = ours, theirs
    own = [f"CAST(y.{quoted(name)} AS VARCHAR)" for name in on]
    their = [f"CAST(l.{quoted(name)} AS VARCHAR)" for name in keys]
    join = "JOIN" if how == "inner" else "LEFT JOIN"
    if not pairs:
        return f"SELECT y.*, l.*\nFROM {yours} AS y\n{join} {lakes} AS l ON {_equal(their, own)};"
    ends = [""] if len(on) == 1 else [f"_{at}" for at in range(1, len(on) + 1)]
    value_names, partners = (
        [f"{name}{end}" for end in ends] for name in ("query_value", "lake_value")
    )
    rows = ",\n    ".join(f"({', '.join(map(literal, [*one, *other]))})" for one, other in pairs)
    joined = [
        f"CASE WHEN p.{value_names[0]} IS NULL THEN {text} ELSE p.{partner} END"
        for text, partner in zip(own, partners, strict=True)
    ]
    pairs_name = "pairs"
    while pairs_name in f"{yours} {lakes}".lower():  # it would hide a table of that name
        pairs_name += "_"
    return (
        f"WITH {pairs_name}({', '.join([*value_names, *partners])}) AS (VALUES\n    {rows}\n)\n"
        f"SELECT y.*, l.*\nFROM {yours} AS y\n"
        f"LEFT JOIN {pairs_name} AS p ON {_equal([f'p.{name}' for name in value_names], own)}\n"
        f"{join} {lakes} AS l ON {_equal(their, joined)};"
    )


def _equal(ones: Sequence[str], others: Sequence[str]) -> str:
    return " AND ".join(f"{one} = {other}" for one, other in zip(ones, others, strict=True))
