"""Steps of a build that small lakes take without a job of Spark's.

A job, a shuffle and a file of Spark's each cost tenths of a second in a new Java process, however
few rows there are. So the tasks that read a small lake write their records themselves, and what is
small enough for the driver is put together there, by Arrow. The files are where Spark's would be
and have the same rows.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pexeso.build.numbering import number_columns, write_tables
from pexeso.build.report import Task
from pexeso.lake import record_schema
from pexeso.lake.catalog import COLUMNS_SCHEMA, TABLES_SCHEMA, damage_made_plain
from pexeso.store.io.parquet_folder import fits_in_driver, part_name, write_parquet_folder
from pexeso.store.local.reader import Store

if TYPE_CHECKING:
    from pexeso.build.stages import Facts

ATTEMPTS = pa.schema([("folder", pa.string())])
"""What `write_records` yields."""


def fits_the_driver(facts: Facts, skipped: Path | None = None) -> bool:
    """Return whether the driver can hold the records of a lake."""
    n_bytes = facts.get("report", {}).get("bytes_out")
    if n_bytes is None:
        return False
    others = () if skipped is None else skipped.glob("*.parquet")
    return fits_in_driver(n_bytes + sum(map(_n_bytes, others)))


def catalog_fits(store: Store, *kinds: str) -> bool:
    """Return whether the driver can hold the catalog of an index."""
    n_bytes = 0
    for kind in kinds:
        for path in chain.from_iterable(store.catalog_files(kind)):
            with damage_made_plain(path):
                n_bytes += _n_bytes(path)
    return fits_in_driver(n_bytes)


def folder_fits(folder: Path) -> bool:
    """Return whether this process can do with the files in a folder what tasks would."""
    return fits_in_driver(sum(map(_n_bytes, folder.rglob("*.parquet"))))


def _n_bytes(path: Path) -> int:
    """Return the bytes of a file of Parquet once it is read."""
    metadata = pq.read_metadata(path)
    return sum(metadata.row_group(n).total_byte_size for n in range(metadata.num_row_groups))


def write_records(
    batches: Iterator[pa.RecordBatch], *, task: Task, folder: Path
) -> Iterator[pa.RecordBatch]:
    """Write the records that a task gives as Parquet, and yield the name of their folder.

    Each attempt at the task has a folder of its own, with a folder for each kind of record in it.
    """
    name = f"attempt-{secrets.token_hex(8)}"
    fields = [field for field in record_schema.SCHEMA if field.name != "record"]
    writers: dict[str, pq.ParquetWriter] = {}
    try:
        for batch in task(batches):
            for kind in batch.column("record").unique().to_pylist():
                if kind not in writers:
                    path = folder / name / f"record={kind}"
                    path.mkdir(parents=True)
                    writers[kind] = pq.ParquetWriter(path / part_name(), pa.schema(fields))
                rows = batch.filter(pc.equal(batch.column("record"), kind))
                writers[kind].write_batch(rows.select(writers[kind].schema.names))
    finally:
        for writer in writers.values():
            writer.close()
    yield pa.RecordBatch.from_pydict({"folder": pa.array([name])}, ATTEMPTS)


def gather_records(attempts: Path, names: Sequence[str], folder: Path) -> None:
    """Put what tasks wrote with `write_records` into one folder for each kind, ``record=KIND``."""
    for number, name in enumerate(names):
        for path in sorted(attempts.glob(f"{name}/record=*")):
            target = folder / path.name
            target.mkdir(exist_ok=True)
            os.replace(path / part_name(), target / part_name(number))


def read_records(folder: Path, kind: str, names: Sequence[str]) -> pa.Table:
    """Return some fields of all records of a kind that a stage left."""
    empty = record_schema.SCHEMA.empty_table().select(list(names))
    files = sorted((folder / f"record={kind}").glob("*.parquet"))
    return pa.concat_tables([empty, *(pq.read_table(file, columns=list(names)) for file in files)])


def write_catalog(
    records: Path, skipped: Path, catalog: Path, folder: Path, first_id: int
) -> Facts:
    """Do what `pexeso.build.job.BuildJob.write_catalog` does."""
    tables = read_records(records, "table", TABLES_SCHEMA.names)
    others = pq.read_table(skipped, partitioning=None)
    write_tables(pa.concat_tables([tables, others], promote_options="default"), catalog)
    fields = [name for name in COLUMNS_SCHEMA.names if name != "column_id"]
    columns = number_columns(read_records(records, "column", fields), catalog, first_id=first_id)
    keys = pq.read_table(catalog / columns.files[0], columns=["table", "position", "column_id"])
    values = read_records(records, "value", ["table", "position", "value", "text", "count"])
    postings = values.join(
        keys.filter(pc.field("column_id").is_valid()),
        ["table", "position"],
        join_type="inner",
        use_threads=False,
    )
    postings = postings.select(["column_id", "value", "text", "count"])
    return {
        "columns": columns.n_kept,
        "postings": write_parquet_folder(postings, folder / "postings"),
        "values": write_parquet_folder(
            pa.table({"value": postings["value"].unique()}), folder / "values"
        ),
    }
