"""A join by a key of several columns as SQL, for DuckDB and other databases."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa

from pexeso.errors import InputError
from pexeso.joins.composite_join import FoundKeyRows, KeyedTable, find_key_rows
from pexeso.joins.options import join_options
from pexeso.joins.sql.joins import JoinSql, Key, source_of, statement
from pexeso.joins.sql.lake_tables import LakeTable, Rows, duckdb_texts, has_duckdb, require_duckdb
from pexeso.joins.sql.texts import LAKES, YOURS, quoted
from pexeso.lake.key_columns import spec_of
from pexeso.store.io.location import Location


def sql_of_key(
    yours: tuple[KeyedTable, pa.Table],
    theirs: tuple[KeyedTable, str, Rows],
    lake: Path | Location,
    *,
    how: str = "left",
    names: tuple[str, str | None] = (YOURS, None),
) -> JoinSql:
    """Write the join of a table of yours with one of the lake, by a key, as a statement.

    Rows meet whose keys are equal in the form that `pexeso.lake.key_texts` has. Keys whose texts
    differ are listed in the statement.

    Parameters
    ----------
    yours : (KeyedTable, pyarrow.Table)
        The key of your table, and its columns as they stand there.
    theirs : (KeyedTable, str, Rows)
        That of the lake's, the name of the table, and its rows.
    lake : Path or Location
    how, names
        As in `pexeso.joins.sql.joins.sql_of_match`.

    Raises
    ------
    MissingPackageError
        The table of the lake has no name, and duckdb is not installed.
    InputError
        DuckDB has no text for a cell of the lake that is part of a key.
    """
    (own_key, cells), (their, table, rows) = yours, theirs
    requested = join_options({"how": how, "provenance": ()})
    own_name, named = names
    if named is None:
        require_duckdb()
    lake_table = LakeTable.of_rows(lake, table, rows, their.positions)
    texts = duckdb_texts(cells) if has_duckdb() else _texts(own_key)
    found_rows = find_key_rows(own_key, rows.texts, table, their, requested)
    pairs = _pairs(zip(texts, own_key.texts.to_pylist(), strict=True), found_rows, lake_table)
    on, keys = cells.column_names, lake_table.keys
    sql = statement(
        pairs, (quoted(own_name), on), (source_of(lake_table, named), keys), requested.how
    )
    readers = {YOURS: None, LAKES: lake_table.reader}
    return JoinSql(sql, readers, spec_of(on), spec_of(keys), pairs)


def _texts(table: KeyedTable) -> list[tuple[str | None, ...]]:
    return list(zip(*(cells.to_pylist() for cells in table.cells), strict=True))


def _pairs(
    rows: Iterable[tuple[tuple[str | None, ...], str | None]],
    found_rows: FoundKeyRows,
    table: LakeTable,
) -> list[tuple[Key, tuple[str | None, ...]]]:
    """Return what equal texts alone would not join, or would join though it is not joined."""
    lake_texts = set(table.texts)
    position_of = {text: at for at, text in enumerate(found_rows.mapping.texts.to_pylist())}
    starts = np.searchsorted(found_rows.text, np.arange(len(position_of) + 1))
    pairs: list[tuple[Key, tuple[str | None, ...]]] = []
    for texts, key in dict(rows).items():
        partners: dict[Key, None] = {}
        if key is not None:
            first, last = starts[position_of[key]], starts[position_of[key] + 1]
            joined = (table.texts[row] for row in found_rows.row[first:last].tolist())
            partners = dict.fromkeys(_whole(partner, table.name) for partner in joined)
        if partners:
            pairs += (
                []
                if list(partners) == [texts]
                else [(_whole(texts, "your table"), partner) for partner in partners]
            )
        elif None not in texts and texts in lake_texts:
            pairs.append((_whole(texts, "your table"), (None,) * len(texts)))
    return pairs


def _whole(texts: tuple[str | None, ...], where: str) -> Key:
    if None in texts:
        raise InputError(
            f"DuckDB reads a cell of a key in {where!r} as NULL, where pexeso has a value, so that "
            "SQL would not make the same rows: join by 'pexeso join' or CompositeMatch.join."
        )
    return texts  # type: ignore[return-value]
