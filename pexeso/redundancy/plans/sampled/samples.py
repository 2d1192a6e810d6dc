"""Rows that are drawn from tables, and looked up in others: work for tasks, on hashes of rows.

Equal rows have equal hashes, so a row that is not found is not there: no contained table is lost.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from pexeso.errors import InputError
from pexeso.lake.files import TableFile
from pexeso.lake.readers.typed import TypedRows, open_parquet, parquet_rows
from pexeso.redundancy.cell_hashes import HALVES
from pexeso.redundancy.plans.reading import rows_of_file
from pexeso.redundancy.row_hashes import HashedColumn, hashed_column, row_hashes
from pexeso.redundancy.schema_tokens import leaves
from pexeso.redundancy.tables import constant_column

Place = Mapping[str, Any]
"""A file of a table: ``path``, ``n_rows``, and ``file``, its row of a listing (`table_row`);
``wanted`` and ``told`` are those of `pexeso.redundancy.tables.place_of_cells`."""


def required_samples(epsilon: float, delta: float, n_edges: int = 1) -> int:
    """Return how many rows to draw of a table to see that it is not contained.

    A table of which at most the share ``1 - epsilon`` is contained passes with a probability of at
    most `delta`.

    Parameters
    ----------
    n_edges : int
        So many pairs together are to pass with a probability of at most `delta`.

    Notes
    -----
    R2D2, section 6.5: ln(1 / delta) / ln(1 / (1 - epsilon)), rounded up.

    Examples
    --------
    >>> required_samples(0.1, 0.05)
    29
    """
    if not (0 < epsilon < 1 and 0 < delta < 1 and n_edges >= 1):
        raise InputError(
            "epsilon and delta are above 0 and below 1, and n_edges is at least 1. Got "
            f"{epsilon!r}, {delta!r} and {n_edges!r}."
        )
    return math.ceil(math.log(n_edges / delta) / -math.log1p(-epsilon))


def drawn_rows(n_rows: int, n: int, seed: str) -> list[int]:
    """Return the numbers of `n` rows of a table, all where it has no more: ascending, no two equal.

    The draw is that of `seed` on every machine.
    """
    return sorted(Random(seed).sample(range(n_rows), min(n, n_rows)))


def drawn_columns(n_columns: int, n: int, seed: str) -> list[int]:
    """Return the places of `n` columns, all where there are no more: ascending."""
    return sorted(Random(f"columns {seed}").sample(range(n_columns), min(n, n_columns)))


def hash_samples(unit: str, *, max_table_bytes: int) -> list[dict[str, Any]]:
    """Draw rows of a table, and return their hashes on its columns.

    Returns
    -------
    list of dict
        One: ``table``, and ``hashes``, the bytes of uint64 (n, 2).
    """
    task = json.loads(unit)
    table_files, tokens, search = task["places"], task["tokens"], task["search"]
    compared = search if task["on_search"] else list(range(len(tokens)))
    if task["sampler"] == "predicate":
        rows = _rows_like_anchors(table_files, tokens, compared, search, task, max_table_bytes)
    else:
        n_rows = sum(table_file["n_rows"] for table_file in table_files)
        chosen = drawn_rows(n_rows, task["n"], task["seed"])
        rows = _hashes_of(table_files, tokens, compared, chosen, max_table_bytes)
    return [{"table": task["table"], "hashes": np.ascontiguousarray(rows, "<u8").tobytes()}]


def _hashes_of(
    table_files: Sequence[Place],
    tokens: Sequence[str],
    compared: Sequence[int],
    chosen: Sequence[int],
    max_table_bytes: int,
) -> np.ndarray:
    """Hash some rows; of Parquet only the row groups are read that hold them."""
    hashes = [np.empty((0, HALVES), np.uint64)]
    first = 0
    numbers = np.array(chosen, np.int64)
    for table_file in table_files:
        rows = numbers[(numbers >= first) & (numbers < first + table_file["n_rows"])] - first
        first += table_file["n_rows"]
        if not len(rows):
            continue
        for begin, batch in _batches_with(table_file, rows, max_table_bytes):
            batch_rows = rows[(rows >= begin) & (rows < begin + batch.n_rows)] - begin
            if len(batch_rows):
                columns = [column.take(pa.array(batch_rows)) for column in batch.columns]
                some = TypedRows(batch.names, columns, batch.is_json)
                hashes.append(_hashes_of_batch(some, table_file, tokens, compared))
    return np.concatenate(hashes)


def _batches_with(
    table_file: Place, rows: np.ndarray, max_table_bytes: int
) -> Iterator[tuple[int, TypedRows]]:
    """Yield batches that hold some rows of a file, each with the number of its first one."""
    if table_file["file"]["format"] != "parquet":
        begin = 0
        for batch in _batches(table_file, max_table_bytes):
            yield begin, batch
            begin += batch.n_rows
        return
    file = open_parquet(table_file["path"])
    begin = 0
    for group in range(file.metadata.num_row_groups):
        n_rows = file.metadata.row_group(group).num_rows
        if ((rows >= begin) & (rows < begin + n_rows)).any():
            at = begin
            for batch in file.iter_batches(row_groups=[group], use_threads=False):
                yield at, TypedRows(file.schema_arrow.names, batch.columns)
                at += len(batch)
        begin += n_rows


def _batches(table_file: Place, max_table_bytes: int) -> Iterator[TypedRows]:
    if table_file["file"]["format"] == "parquet":  # without a fingerprint, for which all is read
        yield from parquet_rows(table_file["file"]["table"], table_file["path"])
        return
    file = TableFile(**{**table_file["file"], "path": Path(table_file["path"])})
    yield from rows_of_file(file, max_table_bytes)[2]


def _hashes_of_batch(
    batch: TypedRows, table_file: Place, tokens: Sequence[str], compared: Sequence[int]
) -> np.ndarray:
    batch_leaves = leaves(batch.names, batch.columns)
    columns: list[HashedColumn | None] = []
    for position in compared:
        number, constant = table_file["wanted"][position], table_file["told"][position]
        if constant is not None:
            columns.append(constant_column(constant, batch.n_rows))
        elif number is None or number >= len(batch_leaves):  # later rows have this column
            columns.append(None)
        else:
            columns.append(hashed_column(batch_leaves[number].values, is_json=batch.is_json))
    return row_hashes(batch.n_rows, columns, [tokens[position] for position in compared])


def _rows_like_anchors(
    table_files: Sequence[Place],
    tokens: Sequence[str],
    compared: Sequence[int],
    search: Sequence[int],
    task: Mapping[str, Any],
    max_table_bytes: int,
) -> np.ndarray:
    """Draw a row, and take those that are equal to it on some columns; then another, until enough.

    The rows of a table are held as two hashes each.
    """
    both = [
        (
            _hashes_of_batch(batch, table_file, tokens, compared),
            _hashes_of_batch(batch, table_file, tokens, search),
        )
        for table_file in table_files
        for batch in _batches(table_file, max_table_bytes)
    ]
    rows, keys = (
        np.concatenate([np.empty((0, HALVES), np.uint64), *some])
        for some in (zip(*both, strict=True) if both else ((), ()))
    )
    chosen = np.empty(0, np.int64)
    for anchor in Random(task["seed"]).sample(range(len(rows)), min(task["n"], len(rows))):
        like = np.flatnonzero((keys == keys[anchor]).all(axis=1))
        chosen = np.concatenate([chosen, np.setdiff1d(like, chosen)])[: task["n"]]
        if len(chosen) == task["n"]:
            break
    return rows[chosen]


def look_up(unit: str, *, max_table_bytes: int) -> list[dict[str, Any]]:
    """Look up drawn rows of children in their parent, which is read up to the last hit.

    Parameters
    ----------
    unit : str
        JSON of ``table``, the parent's number, and ``sets``: of children that are compared on the
        same columns ``tokens``, ``places`` and ``samples``, of each child its hashes as hexadecimal
        digits.

    Returns
    -------
    list of dict
        ``parent`` and ``child`` of the pairs of which every drawn row was found.
    """
    task = json.loads(unit)
    open_sets = [_Wanted(sample_set) for sample_set in task["sets"]]
    children = [child for open_set in open_sets for child in open_set.children_without_rows()]
    for number, table_file in enumerate(task["places"]):
        open_sets = [open_set for open_set in open_sets if open_set.missing]
        if not open_sets:
            break
        for batch in _batches(table_file, max_table_bytes):
            for open_set in open_sets:
                if open_set.missing and batch.n_rows:
                    set_file = {**table_file, **open_set.places[number]}
                    compared = range(len(open_set.tokens))
                    children += open_set.seen(
                        _hashes_of_batch(batch, set_file, open_set.tokens, compared)
                    )
            if not any(open_set.missing for open_set in open_sets):
                break
    return [{"parent": task["table"], "child": child} for child in children]


class _Wanted:
    """Drawn rows of several children that are compared on the same columns."""

    def __init__(self, sample_set: Mapping[str, Any]) -> None:
        self.tokens, self.places = sample_set["tokens"], sample_set["places"]
        self.missing: dict[int, set[bytes]] = {}
        self._whole: list[int] = []
        width = HALVES * 8
        for child, text in sample_set["samples"]:
            data = bytes.fromhex(text)
            rows = {data[at : at + width] for at in range(0, len(data), width)}
            if rows:
                self.missing[child] = rows
            else:
                self._whole.append(child)
        self._first = self._halves()

    def children_without_rows(self) -> list[int]:
        """Return the children without a row to be found."""
        return self._whole

    def _halves(self) -> np.ndarray:
        rows = sorted(set().union(*self.missing.values())) if self.missing else []
        return np.unique(np.frombuffer(b"".join(rows), "<u8").reshape(-1, HALVES)[:, 0])

    def seen(self, hashes: np.ndarray) -> list[int]:
        """Take rows of the parent, and return the children of which every row has been found."""
        likely = hashes[np.isin(hashes[:, 0], self._first)]
        rows = {row.tobytes() for row in np.unique(likely, axis=0).astype("<u8")}
        whole = []
        for child, missing in list(self.missing.items()):
            missing -= rows
            if not missing:
                whole.append(child)
                del self.missing[child]
        if rows:
            self._first = self._halves()
        return whole


def seed_of(seed: int, table: str, version: str) -> str:
    """Return the seed of the draws from a table, in one form on every machine."""
    return hashlib.sha256(json.dumps([seed, table, version]).encode()).hexdigest()
