"""Tables of a lake that are new, changed or gone since an index was written.

The listing and the catalog are compared in tasks, each of which has some files of both.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow.dataset import dataset

from pexeso.build.catalog_writer import read_piece
from pexeso.build.parts.base import Batches
from pexeso.build.source import (
    LISTING,
    LISTING_SCHEMA,
    SKIPPED,
    SKIPPED_SCHEMA,
    FolderSource,
    n_reading_tasks,
    rows_by_file,
)
from pexeso.build.workers import Attempt, Facts
from pexeso.errors import PlaceError
from pexeso.lake.catalog import TABLES, TABLES_SCHEMA
from pexeso.lake.containers.formats import READERS
from pexeso.lake.containers.reader import TablesInTurn
from pexeso.lake.files import path_from_text
from pexeso.runtime.exchange import BucketWriter, buckets_by_hash, read_bucket
from pexeso.runtime.system import open_file
from pexeso.store.io.location import Location
from pexeso.store.io.parquet import n_bytes_of, parquet_files
from pexeso.store.local.reader import Store

if TYPE_CHECKING:
    from pexeso.build.job import BuildJob

_Names = TypeVar("_Names", pa.Array, pa.ChunkedArray)

NEW, CHANGED, GONE, UNCHANGED = "new", "changed", "gone", "unchanged"
# Of a format that is read in another way than when the index was written.
REREAD = "reread"
# A table of an existing file or folder that cannot be opened: it may be as it was.
CLOSED = "closed"
# A table of the index whose file can no longer be read as one.
NO_TABLE = "no table"
# What is no table and was none: left out for another reason than before, and no longer there.
OTHER_REASON, FORGOTTEN = "other reason", "forgotten"

_DOUBTFUL, _KNOWN_SKIPPED = "doubtful", "skipped before"

_TO_READ = (NEW, CHANGED, REREAD)
_LEFT_OUT = (SKIPPED, NO_TABLE, OTHER_REASON)
# What the catalog knows and no longer holds.
REPLACED = (CHANGED, REREAD, NO_TABLE, OTHER_REASON, FORGOTTEN)

# The fact of an index that lists the tables that are read again once they are there.
#
# They could not be read when a part was added, or when the reader of a format had changed.
READ_ONCE_BACK = "read_once_back"

_KNOWN = ("n_bytes", "modified", "version", "fingerprint", "reason")
_THERE = pa.schema([*LISTING_SCHEMA, SKIPPED_SCHEMA.field("reason")])
_ENTRIES = _THERE.append(SKIPPED_SCHEMA.field("is_closed"))
_JUDGED = _THERE.append(pa.field("change", pa.string()))
_LEFT = {
    "changes": _JUDGED,
    LISTING: LISTING_SCHEMA,
    SKIPPED: pa.schema([SKIPPED_SCHEMA.field(name) for name in ("table", "reason")]),
}

_OLD = pa.schema(
    [("table", pa.string()), *((f"old_{name}", TABLES_SCHEMA.field(name).type) for name in _KNOWN)]
)


def find_changes(
    job: BuildJob,
    source: FolderSource,
    folder: Path,
    *,
    compare: str,
    to_read: Sequence[str] = _TO_READ,
) -> Facts:
    """Compare the listing of this update with the catalog of an index.

    Leaves ``listing`` (the tables to read, by what became of them), ``changes`` (table, change) and
    ``skipped`` (files that are no tables, where the catalog says otherwise) in the folder. Reads
    the files whose time of change alone differs; with ``compare="content"`` all whose size is the
    same.
    """
    judge = partial(
        judged,
        root=source.root,
        compare=compare,
        stale_formats=stale_formats(job.index),
        max_bytes=job.options.max_table_bytes,
        to_read=job.index.manifest.facts.get(READ_ONCE_BACK, ()),
    )
    listed, facts = job.stages.folder("list"), job.stages.finished("list") or {}
    n_buckets = n_reading_tasks(job.workers, facts.get("bytes") or 0)
    files = [(name, path) for name in (LISTING, SKIPPED) for path in parquet_files(listed / name)]
    pieces = [path for paths in job.index.catalog_files(TABLES) for path in paths]
    n_bytes = n_bytes_of([*(path for _, path in files), *pieces])
    split = partial(_split_listed, n_buckets=n_buckets)
    closed = pa.chunked_array(job.run(split, files, folder, n_bytes=n_bytes), pa.string())
    split = partial(_split_known, store=job.index, n_buckets=n_buckets)
    job.run(split, range(len(pieces)), folder, n_bytes=n_bytes)
    if compare == "content":
        n_bytes += facts.get("bytes") or 0
    task = partial(
        _judge, folder=folder, n_buckets=n_buckets, judge=judge, closed=closed, to_read=to_read
    )
    judgements = job.run(task, range(n_buckets), folder, n_bytes=n_bytes)
    counted: Counter[str] = sum((counts for counts, _ in judgements), Counter())
    counts = {kind: counted[kind] for kind in (NEW, CHANGED, REREAD, GONE, UNCHANGED, CLOSED)}
    counts[CHANGED] += counted[NO_TABLE]
    n_rows = sum(counted[kind] for kind in (*_TO_READ, *_LEFT_OUT))
    return {**counts, "bytes": sum(read for _, read in judgements), "rows": n_rows}


_LISTED, _CATALOG = "split_listed", "split_known"


def _buckets(tables: pa.ChunkedArray, n_buckets: int) -> np.ndarray:
    """Return the buckets of tables: those inside one file, which is opened once, are together."""
    return buckets_by_hash(n_buckets, pc.replace_substring_regex(tables, "#.*", ""))


def _split_listed(item: tuple[str, Path], attempt: Attempt, *, n_buckets: int) -> pa.Array:
    """Write what was listed by bucket, and return the names of what cannot be opened."""
    name, path = item
    rows = pq.ParquetFile(path).read()
    rows = pa.concat_tables([_ENTRIES.empty_table(), rows], promote_options="default")
    with BucketWriter(attempt.path(_LISTED, f"{name}.arrow"), n_buckets, _ENTRIES) as writer:
        writer.add(rows, _buckets(rows["table"], n_buckets))
    return rows["table"].filter(rows["is_closed"].fill_null(False)).combine_chunks()


def _split_known(number: int, attempt: Attempt, *, store: Store, n_buckets: int) -> None:
    rows = read_piece(number, files_of=store.catalog_files, kind=TABLES)
    rows = rows.select(["table", *_KNOWN]).rename_columns(_OLD.names)
    with BucketWriter(attempt.path(_CATALOG, "part.arrow"), n_buckets, _OLD) as writer:
        writer.add(rows, _buckets(rows["table"], n_buckets))


def _judge(
    bucket: int,
    attempt: Attempt,
    *,
    folder: Path,
    n_buckets: int,
    judge: Any,
    closed: pa.ChunkedArray,
    to_read: Sequence[str],
) -> tuple[Counter[str], int]:
    """Decide on the tables of a bucket, and count changes and the bytes to read."""
    listing = read_bucket(folder / _LISTED, bucket, n_buckets, _ENTRIES)
    known = read_bucket(folder / _CATALOG, bucket, n_buckets, _OLD)
    known = known.append_column("known", pa.repeat(True, len(known)))
    known = known.append_column("in_closed", _is_in_any(known["table"], closed))
    pairs = listing.append_column("there", pa.repeat(True, len(listing))).join(
        known, "table", join_type="full outer", use_threads=False
    )
    rows = pa.Table.from_batches(judge(iter(pairs.to_batches())), schema=_JUDGED)
    change = rows["change"]
    is_read = pc.is_in(change, value_set=pa.array(to_read, pa.string()))
    for name, chosen in (
        ("changes", rows),
        (LISTING, rows.filter(is_read)),
        (SKIPPED, rows.filter(pc.is_in(change, value_set=pa.array(_LEFT_OUT)))),
    ):
        pq.write_table(chosen.select(_LEFT[name].names), attempt.path(name, "part.parquet"))
    counts = Counter({row["values"]: row["counts"] for row in change.value_counts().to_pylist()})
    return counts, pc.sum(rows["n_bytes"].filter(is_read)).as_py() or 0


def _is_in_any(tables: pa.ChunkedArray, folders: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return whether each table lies in some of the files and folders."""
    mask = pc.is_in(tables, value_set=folders[:0])
    for names in _above(tables) if len(folders) else ():
        mask = pc.or_(mask, pc.is_in(names, value_set=folders))
    return mask


def _above(tables: _Names) -> Iterator[_Names]:
    """Yield the names of the files and folders that hold tables, from the nearest one up.

    >>> [names.to_pylist() for names in _above(pa.array(["a/b.xlsx#c", "d.csv"]))]
    [['a/b.xlsx', ''], ['a', ''], ['', '']]
    """
    names = tables
    while pc.any(pc.not_equal(names, "")).as_py():
        names = pc.replace_substring_regex(names, r"(^|[/#])[^/#]*$", "")
        yield names


def judged(
    batches: Batches,
    *,
    root: Path | Location,
    compare: str,
    stale_formats: Sequence[str],
    max_bytes: int,
    to_read: Sequence[str] = (),
) -> Batches:
    """Decide what became of each file of a listing or of a catalog."""
    for batch in batches:
        change = _judgement(batch, compare, stale_formats, max_bytes, to_read)
        doubtful = batch.filter(pc.equal(change, _DOUBTFUL))
        if len(doubtful):
            is_other = pc.is_in(batch["table"], value_set=changed_contents(doubtful, root=root))
            compared = pc.if_else(is_other, CHANGED, UNCHANGED)
            change = pc.if_else(pc.equal(change, _DOUBTFUL), compared, change)
        was_table = pc.and_not(batch["known"].fill_null(False), batch["old_reason"].is_valid())
        opened = pc.and_(was_table, pc.is_in(change, value_set=pa.array([CHANGED, REREAD])))
        closed = closed_files(batch.filter(opened), root=root)
        change = pc.if_else(pc.is_in(batch["table"], value_set=closed), CLOSED, change)
        rows = batch.select(_THERE.names).append_column("change", change)
        yield rows.filter(pc.not_equal(change, _KNOWN_SKIPPED)).cast(_JUDGED)


def changed_contents(batch: pa.RecordBatch, *, root: Path | Location) -> pa.Array:
    """Return the names of the tables of a listing that have other fingerprints than before."""
    changed = []
    with TablesInTurn() as tables:
        for row in rows_by_file(batch):
            path = path_from_text(root, row["path"])
            if tables.fingerprint(path, row["member"], row["reading"]) != row["old_fingerprint"]:
                changed.append(row["table"])
    return pa.array(changed, pa.string())


def closed_files(batch: pa.RecordBatch, *, root: Path | Location) -> pa.Array:
    """Return the names of the tables of a listing whose files are there and cannot be opened."""
    rows = zip(batch["table"].to_pylist(), batch["path"].to_pylist(), strict=True)
    closed = [table for table, path in rows if _is_closed(path_from_text(root, path))]
    return pa.array(closed, pa.string())


def _is_closed(path: Path | Location) -> bool:
    try:
        if isinstance(path, Path):
            os.close(open_file(path, os.O_RDONLY))
        else:
            with path.open() as stream:
                stream.read(1)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    except PlaceError as error:
        return isinstance(error.__cause__, PermissionError)
    return False


def stale_formats(store: Store) -> list[str]:
    """Return the formats whose reader is not known to be that of when an index was written."""
    known = store.manifest.facts.get("readers", {})
    return [name for name, version in READERS.items() if known.get(name) != version]


def _judgement(
    batch: pa.RecordBatch,
    compare: str,
    stale: Sequence[str],
    max_bytes: int,
    to_read: Sequence[str],
) -> pa.Array:
    """Return what the listing alone says of each file."""

    def has(name: str) -> pa.Array:
        return batch[name].is_valid()

    def same(name: str) -> pa.Array:
        return pc.equal(batch[name], batch[f"old_{name}"]).fill_null(False)

    is_known = has("known")
    is_unversioned = pc.and_not(pc.invert(has("version")), has("old_version"))
    same_version = pc.or_(same("version"), is_unversioned)
    comparable = pc.and_(same("n_bytes"), has("old_fingerprint"))
    trusted = pc.and_(same("n_bytes"), pc.and_(same("modified"), same_version))
    # Of a database nobody knows the time, and the bytes are those of its files.
    has_time = pc.or_(has("modified"), has("old_modified"))
    trusted = pc.or_(trusted, pc.and_not(same("version"), has_time))
    if compare == "content":
        trusted = pc.and_not(trusted, has("old_fingerprint"))
    is_stale = pc.is_in(batch["format"], value_set=pa.array(stale, pa.string()))
    is_gone, was_skipped = pc.invert(has("there")), has("old_reason")
    # Permission to open a file may have come without a trace in its size and time.
    not_opened = pc.and_(was_skipped, pc.invert(has("old_fingerprint")))
    not_opened = pc.and_(not_opened, batch["member"].is_null())
    not_opened = pc.and_(not_opened, pc.less_equal(batch["n_bytes"], max_bytes).fill_null(False))
    is_closed = pc.if_else(is_gone, batch["in_closed"], batch["is_closed"]).fill_null(False)
    cases = {
        SKIPPED: pc.and_not(has("reason"), is_known),
        CLOSED: pc.and_not(is_closed, was_skipped),
        _KNOWN_SKIPPED: pc.if_else(is_gone, is_closed, same("reason")),
        FORGOTTEN: pc.and_(is_gone, was_skipped),
        GONE: is_gone,
        OTHER_REASON: pc.and_(has("reason"), was_skipped),
        NO_TABLE: has("reason"),
        NEW: pc.invert(is_known),
        REREAD: is_stale,
        CHANGED: pc.is_in(batch["table"], value_set=pa.array(to_read, pa.string())),
        UNCHANGED: pc.and_not(trusted, not_opened),
        _DOUBTFUL: pc.or_(trusted, comparable),
    }
    return pc.case_when(
        pa.StructArray.from_arrays(cases.values(), names=list(cases)), *cases, CHANGED
    )


def names_of(job: BuildJob, kinds: Sequence[str]) -> pa.Array:
    """Read the names of the tables of some kinds of change, sorted; as many as have changed."""
    changes = dataset(job.stages.folder("changes") / "changes")
    rows = changes.to_table(columns=["table"], filter=pc.field("change").isin(kinds))
    return rows["table"].combine_chunks().sort()
