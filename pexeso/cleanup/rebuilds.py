"""How contained tables are rebuilt: each parent is read once more, for all tables that it holds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pexeso.build.lake_source.source import spark_schema
from pexeso.cleanup.reading import ReadFile, rows_of_file
from pexeso.errors import InputError
from pexeso.io.location import Location
from pexeso.lake.files import TableFile, path_from_text, table_format
from pexeso.redundancy.filters import find_transformation
from pexeso.redundancy.pieces import StoredPiece, stored_pieces
from pexeso.redundancy.schema_tokens import Token
from pexeso.redundancy.sql import to_sql
from pexeso.redundancy.tables import TableOfPieces, hashes_of_rows, name_of, place_of_cells
from pexeso.redundancy.type_families import is_list

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROW = pa.schema([("parent", pa.int64()), ("child", pa.int64()), ("rebuild", pa.string())])


@dataclass(frozen=True)
class Rebuild:
    """How a table is rebuilt from one that holds its rows.

    Attributes
    ----------
    sql : str
        A statement of Spark SQL that names the parent as the lake does.
    distinct : bool
        Equal rows are one.
    n_conditions : int
        On rows.
    """

    sql: str
    distinct: bool
    n_conditions: int


def find_rebuilds(
    spark: SparkSession,
    lake: Path | Location,
    tables: Sequence[TableOfPieces],
    files: Mapping[str, Sequence[ReadFile]],
    edges: Sequence[tuple[int, int]],
    *,
    max_table_bytes: int,
) -> dict[tuple[int, int], Rebuild]:
    """Find how children are rebuilt from their parents, where a selection of rows does it.

    Parameters
    ----------
    tables : sequence of TableOfPieces
    files : dict of str to sequence of ReadFile
        Of each table.
    edges : sequence of (int, int)
        Parents and children, numbers of tables.

    Notes
    -----
    A task holds one parent, its rows' hashes on the columns of one child, and that child's.
    """
    by_parent: dict[int, list[int]] = {}
    for parent, child in edges:
        by_parent.setdefault(parent, []).append(child)
    units = [_unit(tables, files, parent, children) for parent, children in by_parent.items()]
    if not units:
        return {}
    work = partial(_work_of_task, lake=lake, max_bytes=max_table_bytes)
    listed = spark.createDataFrame(pa.table({"unit": pa.array(units, pa.string())}))
    n_tasks = max(1, min(len(units), 4 * spark.sparkContext.defaultParallelism))
    found = listed.repartition(n_tasks).mapInArrow(work, spark_schema(_ROW)).toArrow().to_pylist()
    return {(row["parent"], row["child"]): Rebuild(**json.loads(row["rebuild"])) for row in found}


def _unit(
    tables: Sequence[TableOfPieces],
    files: Mapping[str, Sequence[ReadFile]],
    parent: int,
    children: Sequence[int],
) -> str:
    given = []
    for child in children:
        tokens = [column.token for column in tables[child].columns]
        given.append(
            {
                "number": child,
                "tokens": tokens,
                "names": [column.name for column in tables[child].columns],
                "parent_names": [_names(tables[parent])[token] for token in tokens],
                "rows": place_of_cells(tables[child], tokens),
                "parent_rows": place_of_cells(tables[parent], tokens),
            }
        )
    return json.dumps(
        {
            "parent": parent,
            "name": tables[parent].name,
            "files": [each.file for each in files[tables[parent].name]],
            "leaves": [column.name for column in tables[parent].columns],
            "children": given,
        }
    )


def _names(table: TableOfPieces) -> dict[Token, Token]:
    return {column.token: column.name for column in table.columns}


def _work_of_task(
    batches: Iterator[pa.RecordBatch], *, lake: Path | Location, max_bytes: int
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for unit in batch.column(0).to_pylist():
            told = json.loads(unit)
            columns = _flat_columns(told["files"], lake, max_bytes)
            opened = lru_cache(maxsize=None)(stored_pieces)
            for child in told["children"]:
                found = _rebuild(told, child, columns, lambda path, n: opened(path)[n])  # noqa: B023
                if found is not None:
                    row = {"parent": told["parent"], "child": child["number"]}
                    row["rebuild"] = json.dumps(asdict(found))
                    yield pa.RecordBatch.from_pylist([row], schema=_ROW)


def _flat_columns(
    files: Sequence[str], lake: Path | Location, max_bytes: int
) -> dict[str, pa.Array]:
    """Return the columns of a table of one file that conditions can be put on."""
    if len(files) > 1:
        return {}  # files may differ in their columns: such a table is a parent of copies alone
    [name] = files
    file_alone = isinstance(lake, Path) and lake.is_file()
    path = lake if file_alone else path_from_text(lake, _at(lake, name))
    file = TableFile(name, path, table_format(name) or "delimited", 0)
    batches = list(rows_of_file(file, max_bytes)[2])
    names = max((batch.names for batch in batches), key=len)
    found = {}
    for place, column in enumerate(names):
        parts = [
            batch.columns[place] if place < len(batch.columns) else pa.nulls(batch.n_rows)
            for batch in batches
            if batch.n_rows
        ] or [batches[0].columns[place]]
        kinds = {each.type for each in parts}
        if not any(pa.types.is_nested(kind) or is_list(kind) for kind in kinds) and len(kinds) == 1:
            joined = pa.chunked_array(parts)
            if pa.types.is_dictionary(joined.type):
                joined = joined.unify_dictionaries()
            found[column] = joined.combine_chunks()
    return found


def _at(lake: Path | Location, name: str) -> str:
    return str(lake / name) if isinstance(lake, Path) else str(lake.joined(name))


def _rebuild(
    told: Mapping[str, Any],
    child: Mapping[str, Any],
    columns: Mapping[str, pa.Array],
    open_piece: Callable[[Path, int], StoredPiece],
) -> Rebuild | None:
    tokens = [name_of(tuple(token)) for token in child["tokens"]]
    tops = _top_columns(told["leaves"], child["parent_names"], child["names"])
    if tops is None:
        return None
    parent_rows = hashes_of_rows(child["parent_rows"], tokens, open_piece)
    child_rows = hashes_of_rows(child["rows"], tokens, open_piece)
    usable = {name: cells for name, cells in columns.items() if len(cells) == len(parent_rows)}
    found = find_transformation(usable, parent_rows, child_rows, *tops)
    if found is None:
        return None
    try:
        return Rebuild(to_sql(found, told["name"]), found.distinct, len(found.conditions))
    except InputError:
        return None  # its columns cannot be named


def _top_columns(
    leaves: Sequence[Sequence[str | None]],
    parent_names: Sequence[Sequence[str | None]],
    names: Sequence[Sequence[str | None]],
) -> tuple[list[str], list[str]] | None:
    """Return the whole columns that a child has of its parent, by both names.

    None where the child has only some of the fields of a nested column, or calls them otherwise.
    """
    ours: dict[str, str] = {}
    fields: dict[str, set[tuple[str | None, ...]]] = {}
    for theirs, name in zip(parent_names, names, strict=True):
        top = str(theirs[0])
        if ours.setdefault(top, str(name[0])) != name[0] or list(theirs[1:]) != list(name[1:]):
            return None
        fields.setdefault(top, set()).add(tuple(theirs))
    for top, some in fields.items():
        if {tuple(leaf) for leaf in leaves if leaf[0] == top} != some:
            return None
    return list(ours), list(ours.values())
