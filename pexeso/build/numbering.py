"""Writing of the sorted catalog by many tasks.

Each task writes one file of the sorted whole and numbers the columns in it.

Rows are sorted by ranges, so that the files, taken by name, are in the order of the whole. Every
task counts its range, the driver adds up what lies before each (one number a task), and the tasks
write. The driver holds a few numbers for each task, a task one batch of rows. The rows of a small
lake are written in one go.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pexeso.errors import InputError, OutputError, SparkError
from pexeso.lake.catalog import COLUMNS, COLUMNS_SCHEMA, TABLES, TABLES_SCHEMA, part_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COLUMN_ORDER = ("table", "name", "position")
TABLE_ORDER = ("table",)

_PART = "part"


@dataclass(frozen=True)
class Written:
    """What was written.

    Attributes
    ----------
    n_rows : int
        Rows in all files together.
    n_kept : int
        Those without a reason why they are left out; of columns, those that were given an id.
    files : tuple of str
        Names of the files, in the order of their rows; at least one.
    """

    n_rows: int
    n_kept: int
    files: tuple[str, ...]


@dataclass(frozen=True)
class _Share:
    """The part of the catalog that one task writes.

    It has the file, the id of the first kept column, and the numbers of rows and of kept rows that
    the task must find.

    The id is None where rows are not to be numbered, and the numbers are where nothing has counted
    them.
    """

    name: str
    first_id: int | None
    n_rows: int | None = None
    n_kept: int | None = None


def number_columns(
    records: DataFrame | pa.Table, folder: str | os.PathLike[str], *, first_id: int = 0
) -> Written:
    """Write the catalog of columns as sorted files, and number the columns that are kept.

    Ids run on without a gap in the order of table, name and position, by code point, whatever the
    number of tasks.

    Parameters
    ----------
    records : DataFrame or pa.Table
        Column records, with the fields of `pexeso.lake.catalog.COLUMNS_SCHEMA` but for
        ``column_id``; others are left out. A column is kept where ``reason`` is null.
    folder : path
        An existing folder, at the same path on all machines. Files of an earlier attempt in it,
        ``columns-*.parquet``, are removed first.
    first_id : int
        Id of the first kept column.

    Returns
    -------
    Written
        Files ``columns-00000.parquet``, ``columns-00001.parquet``, ... of `COLUMNS_SCHEMA`; each is
        there whole or not at all, also where Spark runs a task twice.
    """
    if first_id < 0:
        raise InputError(
            f"The first column id must be a whole number of at least 0. Got {first_id}."
        )
    return _write(records, Path(folder), COLUMNS, COLUMNS_SCHEMA, COLUMN_ORDER, first_id)


def write_numbered(records: DataFrame | pa.Table, folder: str | os.PathLike[str]) -> Written:
    """Write the catalog of columns as sorted files, with the ids that they have."""
    return _write(records, Path(folder), COLUMNS, COLUMNS_SCHEMA, COLUMN_ORDER, None)


def write_tables(records: DataFrame | pa.Table, folder: str | os.PathLike[str]) -> Written:
    """Write the catalog of tables as sorted files, ``tables-00000.parquet``, ..."""
    return _write(records, Path(folder), TABLES, TABLES_SCHEMA, TABLE_ORDER, None)


def _write(
    records: DataFrame | pa.Table,
    folder: Path,
    kind: str,
    schema: pa.Schema,
    order: Sequence[str],
    first_id: int | None,
) -> Written:
    _remove_earlier(folder, kind)
    if isinstance(records, pa.Table):
        return _write_here(records, folder, kind, schema, order, first_id)
    from pyspark.sql import functions as sql

    rows = _with_fields(
        records, [name for name in schema.names if first_id is None or name != "column_id"]
    )
    ranges = (
        rows.repartitionByRange(*order)
        .sortWithinPartitions(*order)
        .withColumn(_PART, sql.spark_partition_id())
    )
    # A second computation might cut the ranges at other places.
    ranges = ranges.persist()
    try:
        n_kept = sql.count(sql.when(sql.col("reason").isNull(), 1))
        counts = ranges.groupBy(_PART).agg(sql.count("*"), n_kept).collect()
        shares = _shares(sorted(map(tuple, counts)), kind, first_id)
        _write_shares(ranges, shares, folder, schema)
    finally:
        ranges.unpersist()
    if not shares:
        shares = {0: _Share(part_name(kind, 0), first_id, 0, 0)}
        _write_file(iter(()), shares[0], folder, schema)
    files = tuple(share.name for share in shares.values())
    totals = (
        sum(getattr(share, name) for share in shares.values()) for name in ("n_rows", "n_kept")
    )
    return Written(*totals, files)


def _write_here(
    records: pa.Table,
    folder: Path,
    kind: str,
    schema: pa.Schema,
    order: Sequence[str],
    first_id: int | None,
) -> Written:
    """Write rows that are at hand as one file, in this process."""
    keys = [(name, "ascending") for name in order]
    share = _Share(part_name(kind, 0), first_id)
    known = records.select([name for name in schema.names if name in records.schema.names])
    rows = pa.concat_tables([schema.empty_table(), known], promote_options="default")
    counts = _write_file(iter(rows.sort_by(keys).to_batches()), share, folder, schema)
    return Written(counts["rows"][0].as_py(), counts["kept"][0].as_py(), (share.name,))


def _with_fields(records: DataFrame, names: Sequence[str]) -> DataFrame:
    from pyspark.sql import functions as sql
    from pyspark.sql.pandas.types import from_arrow_type

    types = {field.name: from_arrow_type(field.type) for field in (*TABLES_SCHEMA, *COLUMNS_SCHEMA)}
    columns = set(records.columns)
    return records.select(
        *(
            (sql.col(name) if name in columns else sql.lit(None)).cast(types[name]).alias(name)
            for name in names
        )
    )


def _shares(
    counts: Sequence[tuple[int, int, int]], kind: str, first_id: int | None
) -> dict[int, _Share]:
    """Return what each part writes, from (part, rows, kept) in order."""
    shares: dict[int, _Share] = {}
    next_id = first_id
    for number, (part, n_rows, n_kept) in enumerate(counts):
        shares[part] = _Share(part_name(kind, number), next_id, n_rows, n_kept)
        next_id = None if next_id is None else next_id + n_kept
    return shares


def _write_shares(
    ranges: DataFrame, shares: Mapping[int, _Share], folder: Path, schema: pa.Schema
) -> None:
    position = str(folder)

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        first = next((batch for batch in batches if batch.num_rows), None)
        if first is None:
            return
        part = first.column(_PART)[0].as_py()

        def every() -> Iterator[pa.RecordBatch]:
            yield first
            yield from batches

        yield _write_file(every(), shares[part], Path(position), schema)

    ranges.mapInArrow(write, "rows long, kept long").collect()


def _write_file(
    batches: Iterator[pa.RecordBatch], share: _Share, folder: Path, schema: pa.Schema
) -> pa.RecordBatch:
    """Write a share to a temporary file, rename it when complete, and count rows and kept ones."""
    n_rows = n_kept = 0
    with _appearing(folder / share.name) as attempt, pq.ParquetWriter(attempt, schema) as writer:
        for batch in batches:
            is_kept = np.asarray(batch.column("reason").is_null())
            columns = {
                name: batch.column(name) for name in schema.names if name in batch.schema.names
            }
            if share.first_id is not None:
                ids = share.first_id + n_kept + np.cumsum(is_kept) - 1
                columns["column_id"] = pa.array(ids, pa.int64(), mask=~is_kept)
            writer.write_batch(
                pa.RecordBatch.from_pydict(columns).select(schema.names).cast(schema)
            )
            n_rows, n_kept = n_rows + len(batch), n_kept + int(is_kept.sum())
        if share.n_rows is not None and (n_rows, n_kept) != (share.n_rows, share.n_kept):
            raise SparkError(
                f"A task that was to write {share.n_rows} rows of the catalog, {share.n_kept} of "
                f"them kept, found {n_rows} and {n_kept}: its input was "
                "computed again with another result. Run the build again."
            )
    return pa.RecordBatch.from_pydict(
        {"rows": pa.array([n_rows], pa.int64()), "kept": pa.array([n_kept], pa.int64())}
    )


@contextmanager
def _appearing(path: Path) -> Iterator[Path]:
    """Yield a temporary path that is renamed to its final name when the block succeeds.

    The path is random, so two attempts do not collide.
    """
    attempt = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        yield attempt
        with attempt.open("rb") as stream:
            os.fsync(stream.fileno())
        os.replace(attempt, path)
    except OSError as error:
        raise OutputError(f"'{path}' cannot be written: {error.strerror or error}.") from error
    finally:
        attempt.unlink(missing_ok=True)


def _remove_earlier(folder: Path, kind: str) -> None:
    if not folder.is_dir():
        raise OutputError(f"The folder '{folder}' for the catalog is not there.")
    for path in folder.glob(f"{kind}-*.parquet*"):
        path.unlink(missing_ok=True)
