"""The Spark schema of Parquet files, read from one of them without a job of Spark's."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_WRITTEN_BY_SPARK = b"org.apache.spark.sql.parquet.row.metadata"


def schema_of_files(paths: Iterable[str | os.PathLike[str]]) -> Any:
    """Return the schema of Parquet files or folders of one schema, as Spark would find it.

    Spark starts a job to read the end of one file; that takes longer than a small lake's work.

    Returns
    -------
    StructType or None
        None where there is no file, or one that is left to Spark. Columns that folders are named by
        are not in it; Spark adds them.
    """
    from pyspark.sql.pandas.types import from_arrow_schema
    from pyspark.sql.types import StructType

    path = next(_files(paths), None)
    if path is None:
        return None
    try:
        schema = pq.read_schema(path)
    except (OSError, pa.ArrowException):
        return None
    stored = (schema.metadata or {}).get(_WRITTEN_BY_SPARK)
    if stored is not None:
        return StructType.fromJson(json.loads(stored))
    plain = all(
        pa.types.is_string(field.type) or pa.types.is_integer(field.type) for field in schema
    )
    return from_arrow_schema(schema) if plain else None


def _files(paths: Iterable[str | os.PathLike[str]]) -> Iterable[str]:
    for path in paths:
        if os.path.isfile(path):
            yield os.fspath(path)
        for folder, _, names in os.walk(path):
            yield from (
                os.path.join(folder, name)
                for name in names
                if name.endswith(".parquet") and not name.startswith((".", "_"))
            )
