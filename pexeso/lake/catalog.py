"""The catalog: every table and every column of a lake, those left out with the reason, as two Parquet files."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pexeso.errors import InputError
from pexeso.lake.records import SCHEMA

TABLES_FILE = "tables.parquet"
COLUMNS_FILE = "columns.parquet"


def _schema(*names: str) -> pa.Schema:
    return pa.schema([SCHEMA.field(name) for name in names])


TABLES_SCHEMA = _schema(
    *("table", "format", "n_bytes", "encoding", "delimiter", "n_rows", "n_columns", "fingerprint", "reason", "notes")
)
"""One row a table, ordered by `table`. See `records.SCHEMA`; `reason` says why a file could not be read."""

COLUMNS_SCHEMA = pa.schema(
    [
        *_schema("table", "position", "name", "label", "kind", "n_rows", "n_missing", "n_distinct", "median_tokens"),
        SCHEMA.field("reason"),
        pa.field("column_id", pa.int32()),
    ]
)
"""One row a column, ordered by table, name, position; `column_id` numbers the kept ones and is null for the others."""


def tables_of(records: pa.Table) -> pa.Table:
    """Return the rows of `TABLES_SCHEMA` among records, ordered by table."""
    chosen = records.filter(pc.equal(records["record"], "table")).select(TABLES_SCHEMA.names)
    return chosen.cast(TABLES_SCHEMA).sort_by("table")


def columns_of(records: pa.Table) -> pa.Table:
    """Return the rows of `COLUMNS_SCHEMA` among records, kept columns numbered from 0.

    The order is by table, name and position, by code point, which is the order of UTF-8 bytes: it depends on the lake
    alone and not on how the records came in.

    Examples
    --------
    >>> from pexeso.lake.records import SCHEMA
    >>> record = {"record": "column", "table": "a.csv", "n_rows": 9}
    >>> rows = [record | {"position": 0, "name": "b"}, record | {"position": 1, "name": "a"}]
    >>> columns_of(pa.Table.from_pylist(rows, schema=SCHEMA))["column_id"].to_pylist()
    [0, 1]
    """
    chosen = records.filter(pc.equal(records["record"], "column")).select(COLUMNS_SCHEMA.names[:-1])
    ordered = chosen.sort_by([("table", "ascending"), ("name", "ascending"), ("position", "ascending")])
    kept = pc.is_null(ordered["reason"]).combine_chunks()
    numbers = pc.subtract(pc.cumulative_sum(kept.cast(pa.int32())), 1)
    ids = pc.if_else(kept, numbers, pa.scalar(None, pa.int32()))
    return ordered.append_column("column_id", ids).cast(COLUMNS_SCHEMA)


def write_catalog(folder: Path, tables: pa.Table, columns: pa.Table) -> None:
    """Write the two files of a catalog into a folder that exists.

    Parameters
    ----------
    folder
        Files of the same names in it are replaced.
    tables, columns
        Of `TABLES_SCHEMA` and `COLUMNS_SCHEMA`.

    Raises
    ------
    InputError
        A schema differs.
    """
    for rows, schema, name in ((tables, TABLES_SCHEMA, TABLES_FILE), (columns, COLUMNS_SCHEMA, COLUMNS_FILE)):
        if not rows.schema.equals(schema):
            raise InputError(f"{name} must have the fields {', '.join(schema.names)}. Got {rows.schema.names}.")
        pq.write_table(rows, Path(folder) / name, compression="zstd")


def read_catalog(folder: Path) -> tuple[pa.Table, pa.Table]:
    """Return (tables, columns) as `write_catalog` wrote them."""
    return pq.read_table(Path(folder) / TABLES_FILE), pq.read_table(Path(folder) / COLUMNS_FILE)
