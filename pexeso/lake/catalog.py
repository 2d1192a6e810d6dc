"""The catalog: every table and every column of a lake, those left out with the reason, as two Parquet files."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

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


def read_catalog(folder: Path) -> tuple[pa.Table, pa.Table]:
    """Return the tables and the columns of a catalog, of `TABLES_SCHEMA` and `COLUMNS_SCHEMA`."""
    return pq.read_table(Path(folder) / TABLES_FILE), pq.read_table(Path(folder) / COLUMNS_FILE)
