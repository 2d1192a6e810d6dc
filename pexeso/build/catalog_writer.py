"""Writing of the sorted catalog, in which columns are numbered, and of values by these numbers.

Rows are sorted by ranges, so that the files, taken by name, are in the order of the whole. Where
one ends depends on the rows alone, never on the number of tasks: its bound is drawn from a sample
by hash. Tasks count what is in each range, the driver adds up what lies before it (one number a
range), and the tasks that own the ranges write. The driver holds the sample of names and a few
numbers for each task, a task one range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pexeso.build.workers import Attempt, Facts, Needs, Workers, run_tasks
from pexeso.lake.catalog import (
    COLUMNS,
    COLUMNS_SCHEMA,
    SCHEMA,
    TABLES,
    TABLES_SCHEMA,
    Catalog,
    part_name,
)
from pexeso.runtime.exchange import (
    BucketWriter,
    bucket_files,
    buckets_by_hash,
    buckets_by_range,
    hash_rows,
    range_bounds,
    read_bucket,
)
from pexeso.store.files import empty_folder
from pexeso.store.io.parquet import n_bytes_of, n_rows_of, parquet_files
from pexeso.store.io.temporary import written_whole

SCHEMAS = {TABLES: TABLES_SCHEMA, COLUMNS: COLUMNS_SCHEMA}
# About how many rows a file of the catalog has.
ROWS_PER_FILE = 1 << 18

POSTINGS, VALUES = "postings", "values"
POSTINGS_SCHEMA = pa.schema(
    [("column_id", pa.int64()), *(SCHEMA.field(name) for name in ("value", "text", "count"))]
)
VALUES_SCHEMA = pa.schema([("value", pa.string())])
# About how many distinct values a bucket has at most: what one task holds of them.
VALUES_PER_BUCKET = 500_000

IDS, _ITEM = "ids", "item"
IDS_SCHEMA = pa.schema(
    [("table", pa.string()), ("position", pa.int32()), ("column_id", pa.int64())]
)

_ORDER = {TABLES: ("table",), COLUMNS: ("table", "name", "position")}
_SAMPLED_NAMES = 10_000
_BATCH_ROWS = 1 << 17

# Reads the rows of an item: what a task sorts.
Rows = Callable[[Any], pa.Table]


def write_sorted(
    workers: Workers,
    kind: str,
    items: Sequence[Any],
    read: Rows,
    catalog: Path,
    scratch: Path,
    *,
    n_rows: int,
    n_bytes: int,
    first_id: int | None = None,
) -> int:
    """Write the catalog of one kind as sorted files, and return how many rows are not left out.

    Columns that are kept are numbered from `first_id` on, without a gap, in the order of table,
    name and position by code point, and `IDS` in the scratch folder has them by the item that they
    come from; None leaves the ids that they have. Each task reads the rows of an item; all together
    have `n_rows`, or somewhat less.
    """
    n_ranges = max(1, -(-n_rows // ROWS_PER_FILE))
    bounds = pa.array([], pa.string())
    if n_ranges > 1:
        sample = partial(_sample, read=read, share=_SAMPLED_NAMES / n_rows)
        names, _ = run_tasks(workers, sample, items, scratch, Needs(n_bytes))
        bounds = range_bounds(pa.chunked_array(names, pa.string()), n_ranges)
    split = partial(_split, kind=kind, read=read, bounds=bounds)
    counted, _ = run_tasks(workers, split, list(enumerate(items)), scratch, Needs(n_bytes))
    shape = (len(bounds) + 1, 2)
    counts = np.sum([*counted, np.zeros(shape, np.int64)], axis=0)
    kept_before = np.cumsum(counts[:, 1]) - counts[:, 1]
    shares = [
        (number, None if first_id is None else first_id + int(before))
        for number, before in enumerate(kept_before)
    ]
    write = partial(_write_range, kind=kind, placed=scratch / kind, n_ranges=shape[0])
    write = partial(write, catalog=catalog, n_items=len(items))
    run_tasks(workers, write, shares, scratch, Needs(n_bytes))
    return int(counts[:, 1].sum())


def _sample(item: Any, attempt: Attempt, *, read: Rows, share: float) -> pa.Array:
    names = read(item)["table"].unique()
    return names.filter(pa.array(hash_rows(names).view(np.uint64) < share * 2.0**64))


def _split(
    numbered: tuple[int, Any], attempt: Attempt, *, kind: str, read: Rows, bounds: pa.Array
) -> np.ndarray:
    """Write rows for the tasks that own their ranges, and count all and the kept ones of each."""
    number, item = numbered
    schema, rows = _nullable(kind), read(item)
    rows = rows.append_column(_ITEM, pa.array(np.full(len(rows), number, np.int32)))
    known = rows.select([name for name in schema.names if name in rows.schema.names])
    rows = pa.concat_tables([schema.empty_table(), known], promote_options="default")
    ranges = buckets_by_range(rows["table"], bounds)
    with BucketWriter(attempt.path(kind, "part.arrow"), len(bounds) + 1, schema) as writer:
        writer.add(rows, ranges)
    is_kept = np.asarray(rows["reason"].is_null())
    kept = np.bincount(ranges[is_kept], minlength=len(bounds) + 1)
    return np.column_stack([writer.counts, kept])


def _nullable(kind: str) -> pa.Schema:
    """Return the schema of rows on their way: all may be null, and they know their items."""
    return pa.schema([*(field.with_nullable(True) for field in SCHEMAS[kind]), (_ITEM, pa.int32())])


def _write_range(
    share: tuple[int, int | None],
    attempt: Attempt,
    *,
    kind: str,
    placed: Path,
    n_ranges: int,
    n_items: int,
    catalog: Path,
) -> None:
    """Write the file of a range, and the ids that its kept columns get, by item."""
    number, first_id = share
    rows = read_bucket(placed, number, n_ranges, _nullable(kind))
    rows = rows.sort_by([(name, "ascending") for name in _ORDER[kind]])
    if first_id is not None:
        is_kept = np.asarray(rows["reason"].is_null())
        ids = pa.array(first_id + np.cumsum(is_kept) - 1, pa.int64(), mask=~is_kept)
        rows = rows.set_column(rows.schema.get_field_index("column_id"), "column_id", ids)
        kept = rows.filter(pa.array(is_kept))
        with BucketWriter(attempt.path(IDS, "part.arrow"), n_items, IDS_SCHEMA) as writer:
            writer.add(kept, kept[_ITEM].to_numpy())
    with written_whole(catalog / part_name(kind, number), overwrite=True) as path:
        pq.write_table(rows.drop_columns([_ITEM]).cast(SCHEMAS[kind]), path)


def read_record_files(paths: Sequence[Path], names: Sequence[str]) -> pa.Table:
    empty = pa.schema([SCHEMA.field(name).with_nullable(True) for name in names]).empty_table()
    read = [pq.ParquetFile(path).read(columns=list(names)).select(list(names)) for path in paths]
    return pa.concat_tables([empty, *read], promote_options="default")


def record_files(records: Path, kind: str) -> list[Path]:
    return parquet_files(records / f"record={kind}")


def write_catalog(
    workers: Workers, records: Path, skipped: Path, catalog: Path, folder: Path, first_id: int
) -> Facts:
    """Write the catalog of what was read, and its values by the ids of their columns.

    Leaves ``postings`` (``column_id, value, text, count``) and ``values`` (``value``, each once) in
    the folder. No file of values has a value that another one has, and no two files of postings
    have the same column.
    """
    empty_folder(catalog)
    files = [*record_files(records, "table"), *parquet_files(skipped)]
    read = partial(_read_tables, skipped=skipped)
    n_rows, n_bytes = n_rows_of(files), n_bytes_of(files)
    write_sorted(workers, TABLES, files, read, catalog, folder, n_rows=n_rows, n_bytes=n_bytes)
    files = record_files(records, "column")
    n_columns = write_sorted(
        workers,
        COLUMNS,
        files,
        _read_columns,
        catalog,
        folder,
        n_rows=n_rows_of(files),
        n_bytes=n_bytes_of(files),
        first_id=first_id,
    )
    # A task that reads leaves its columns and their values in files of one name.
    items = {path.name: number for number, path in enumerate(files)}
    files = record_files(records, "value")
    n_buckets = value_buckets(workers, n_rows_of(files))
    post = partial(_post, ids=folder / IDS, n_items=len(items), n_buckets=n_buckets)
    numbered = [(items[path.name], path) for path in files]
    counts, _ = run_tasks(workers, post, numbered, folder, Needs(n_bytes_of(files)))
    return {
        "columns": n_columns,
        "postings": sum(counts),
        "values": write_distinct(workers, folder, n_buckets),
    }


def _read_tables(path: Path, *, skipped: Path) -> pa.Table:
    if path.parent == skipped:
        return pq.ParquetFile(path).read(columns=["table", "reason"])
    return read_record_files([path], TABLES_SCHEMA.names)


def _read_columns(path: Path) -> pa.Table:
    names = [name for name in COLUMNS_SCHEMA.names if name != "column_id"]
    return read_record_files([path], names)


def _post(
    numbered: tuple[int, Path], attempt: Attempt, *, ids: Path, n_items: int, n_buckets: int
) -> int:
    """Write the values of kept columns with their ids, and their distinct values by bucket."""
    number, path = numbered
    file = pq.ParquetFile(path)
    columns = read_bucket(ids, number, n_items, IDS_SCHEMA)
    names = columns["table"].unique()
    keys = _keys(columns["table"], columns["position"], names)
    order = np.argsort(keys)
    keys, column_ids = keys[order], columns["column_id"].to_numpy()[order]
    n_rows, path = 0, attempt.path(POSTINGS, "part.parquet")
    with pq.ParquetWriter(path, POSTINGS_SCHEMA) as writer, value_writer(attempt, n_buckets) as out:
        for batch in file.iter_batches(_BATCH_ROWS, columns=["table", "position", *_VALUE_FIELDS]):
            key = _keys(batch["table"], batch["position"], names)
            place = np.minimum(np.searchsorted(keys, key), max(0, len(keys) - 1))
            is_kept = keys[place] == key if len(keys) else np.zeros(len(key), bool)
            rows = batch.filter(pa.array(is_kept))
            values = [rows[name] for name in _VALUE_FIELDS]
            postings = pa.RecordBatch.from_arrays(
                [pa.array(column_ids[place[is_kept]]), *values], schema=POSTINGS_SCHEMA
            )
            writer.write_batch(postings)
            split_values(out, postings["value"])
            n_rows += len(postings)
    return n_rows


_VALUE_FIELDS = ("value", "text", "count")


def _keys(
    tables: pa.Array | pa.ChunkedArray, positions: pa.Array | pa.ChunkedArray, names: pa.Array
) -> np.ndarray:
    """Make one number of the table and the position of each row, int64; below 0 without a name."""
    table = pc.index_in(tables, value_set=names).fill_null(-1).to_numpy().astype(np.int64)
    return (table << 32) | positions.to_numpy().astype(np.int64)


def value_buckets(workers: Workers, n_postings: int) -> int:
    """Return among how many tasks the distinct values of so many postings are divided."""
    n_buckets = max(1, -(-n_postings // VALUES_PER_BUCKET))
    return max(n_buckets, workers.cores) if n_buckets > 1 else 1


def value_writer(attempt: Attempt, n_buckets: int) -> BucketWriter:
    """Return what `split_values` writes to."""
    return BucketWriter(attempt.path(_SPLIT, "part.arrow"), n_buckets, VALUES_SCHEMA)


def split_values(writer: BucketWriter, values: pa.Array) -> None:
    """Write distinct values for the tasks that own their buckets; see `write_distinct`."""
    rows = pa.table([values.unique()], schema=VALUES_SCHEMA)
    writer.add(rows, buckets_by_hash(len(writer.counts), rows["value"]))


_SPLIT = "split_values"


def write_distinct(workers: Workers, folder: Path, n_buckets: int) -> int:
    """Write each value that tasks gave to `split_values` once; a file for each bucket."""
    split = folder / _SPLIT
    task = partial(_distinct, split=split, n_buckets=n_buckets)
    n_bytes = n_bytes_of(bucket_files(split))
    counts, _ = run_tasks(workers, task, range(n_buckets), folder, Needs(n_bytes))
    return sum(counts)


def _distinct(bucket: int, attempt: Attempt, *, split: Path, n_buckets: int) -> int:
    values = read_bucket(split, bucket, n_buckets, VALUES_SCHEMA)["value"].unique()
    pq.write_table(pa.table([values], schema=VALUES_SCHEMA), attempt.path(VALUES, "part.parquet"))
    return len(values)


def rewrite_sorted(workers: Workers, files_of: Any, catalog: Path, folder: Path) -> None:
    """Write the rows of a catalog that hold, of all its folders, as one folder."""
    empty_folder(catalog)
    for kind in (TABLES, COLUMNS):
        paths = [path for paths in files_of(kind) for path in paths]
        read = partial(read_piece, files_of=files_of, kind=kind)
        n_rows, n_bytes = n_rows_of(paths), n_bytes_of(paths)
        items = range(len(paths))
        write_sorted(workers, kind, items, read, catalog, folder, n_rows=n_rows, n_bytes=n_bytes)


def read_piece(number: int, *, files_of: Any, kind: str) -> pa.Table:
    """Read what holds of one file of a kind, of those of all folders of a catalog in order."""
    pieces: Iterator[Callable[[], pa.Table]] = Catalog(files_of).pieces(kind, SCHEMAS[kind].names)
    return next(piece for place, piece in enumerate(pieces) if place == number)()
