"""Work of a build's tasks on Arrow batches.

Every function here runs in a worker process.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

import pexeso.errors
from pexeso.build.parts.base import Batches, Filled
from pexeso.errors import PexesoError, PlaceError
from pexeso.lake.choose import ColumnRules
from pexeso.lake.containers.reader import TablesInTurn
from pexeso.lake.files import path_from_text, table_of_row
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.lake.records import Records, lake_records
from pexeso.store.io.location import Location
from pexeso.store.local.target import PartitionTarget, entry_to_json

ENTRIES = pa.schema([("number", pa.int64()), ("entry", pa.string())])
"""What `write_folders` yields."""

_OWN_ERROR = re.compile(r"pexeso\.errors\.(\w+): ([^\n]+)")


def read_tables(
    batches: Batches,
    *,
    root: Path | Location,
    rules: ColumnRules,
    normaliser: Normaliser,
    max_table_bytes: int,
    wanted: Sequence[Records],
) -> Batches:
    """Convert a listing of files to records.

    The listing has the schema `pexeso.build.lake_source.source.LISTING_SCHEMA`. A bad file becomes
    a record with its reason.
    """
    for batch in batches:
        files = (table_of_row(root, row) for row in _by_file(batch))
        yield from lake_records(files, rules, normaliser, max_bytes=max_table_bytes, wanted=wanted)


def write_folders(
    batches: Batches, *, targets: Sequence[PartitionTarget], fill: Callable[[int, Path], Filled]
) -> Batches:
    """Write the folders whose numbers come in, and yield their manifest entries as JSON.

    Folders that are already complete are not written again.
    """
    for batch in batches:
        for number in batch.column(0).to_pylist():
            entry = targets[number].written() or targets[number].write(partial(fill, number))
            yield pa.RecordBatch.from_pydict({"number": [number], "entry": [entry_to_json(entry)]})


def compare_contents(batches: Batches, *, root: Path | Location) -> Batches:
    """Compare the files of a listing with their old fingerprints.

    The result has table and change.
    """
    with TablesInTurn() as tables:
        for row in (row for batch in batches for row in _by_file(batch)):
            path = path_from_text(root, row["path"])
            fingerprint = tables.fingerprint(path, row["member"], row["reading"])
            same = fingerprint == row["old_fingerprint"]
            yield pa.RecordBatch.from_pydict(
                {"table": [row["table"]], "change": ["unchanged" if same else "changed"]}
            )


def closed_files(batch: pa.RecordBatch, *, root: Path | Location) -> pa.Array:
    """Return the names of the tables of a listing whose files are there and cannot be opened."""
    rows = zip(batch["table"].to_pylist(), batch["path"].to_pylist(), strict=True)
    closed = [table for table, path in rows if _is_closed(path_from_text(root, path))]
    return pa.array(closed, pa.string())


def _is_closed(path: Path | Location) -> bool:
    try:
        if isinstance(path, Path):
            os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
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


def _by_file(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Return the rows of a listing with the tables of one file in a row: it is opened once."""
    return batch.sort_by([("path", "ascending"), ("table", "ascending")]).to_pylist()


def error_in(traceback: str) -> PexesoError | None:
    r"""Find the last error of ours in the text of a worker's traceback, and make it again."""
    for name, message in reversed(_OWN_ERROR.findall(traceback)):
        kind = getattr(pexeso.errors, name, None)
        if isinstance(kind, type) and issubclass(kind, PexesoError):
            return kind(message)
    return None
