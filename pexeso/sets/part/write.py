"""Shards written: sets divided among them, then each built by the task that owns it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from pexeso.build.parts.base import Written
from pexeso.build.parts.divide import divide, write_one_shard
from pexeso.sets.containment.options import DOCUMENT, LISTS_ALONE, EnsembleOptions
from pexeso.sets.overlap.index.saving import save_index
from pexeso.sets.overlap.index.sets import build_index
from pexeso.sets.part.open import LABELS, POSITIONS, TABLES
from pexeso.sets.part.part import TOKEN_SETS_PART
from pexeso.store.arrays import write_arrays
from pexeso.store.files import write_document
from pexeso.store.local.target import META
from pexeso.store.manifest import FileEntry, FolderEntry
from pexeso.store.texts import write_texts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pexeso.build.job import BuildJob
    from pexeso.build.stages import Facts
    from pexeso.options import BuildOptions

PAIR_BYTES = 64
"""Bytes that a (column, token) pair counts for when sets are divided: about twice what it takes on
the disk, a third of what building takes."""

SETS, TOKENS = "sets", "tokens"
"""What is laid out for a shard:

``table, position, label`` of each set, and ``table, position, value`` of each token.
"""

_RECORDS = {
    SETS: ("set", ["table", "position", "label"]),
    TOKENS: ("token", ["table", "position", "value"]),
}


def write(job: BuildJob) -> Written:
    """Write shards of the sets and the tokens that the job has read."""
    at_hand = {name: job.records_at_hand(*of) for name, of in _RECORDS.items()}
    sets, tokens = at_hand[SETS], at_hand[TOKENS]
    if sets is not None and tokens is not None:
        parts, limit = own_choices(job.options), job.options.partition_bytes
        if shards_needed(len(sets), len(tokens), parts, limit) <= 1:
            readers = {SETS: sets.to_reader(), TOKENS: tokens.to_reader()}
            return Written(divide_and_write(job, readers))
    frames = {name: job.records(kind).select(fields) for name, (kind, fields) in _RECORDS.items()}
    return Written(divide_and_write(job, frames))


def divide_and_write(
    job: BuildJob, rows: Mapping[str, DataFrame] | Mapping[str, pa.RecordBatchReader]
) -> list[FolderEntry]:
    """Divide sets among shards, and build each."""
    parts = own_choices(job.options)
    laid_out = job.stage("divide", lambda folder, meter: _lay_out(job, rows, parts, folder))
    if not laid_out["shards"]:
        return []
    placed = job.stages.folder("divide")
    fill = partial(write_shard, placed, parts=parts)
    return job.write_folders("tokens", laid_out["shards"], fill, placed=placed)


def own_choices(options: BuildOptions) -> tuple[str, ...]:
    """Return what these sets are to have, of the words by which they are asked for."""
    return tuple(word for word in TOKEN_SETS_PART.choices if word in options.parts)


def _lay_out(
    job: BuildJob,
    rows: Mapping[str, DataFrame] | Mapping[str, pa.RecordBatchReader],
    parts: tuple[str, ...],
    folder: Path,
) -> Facts:
    if isinstance(rows[SETS], pa.RecordBatchReader):
        return {"shards": write_one_shard({name: rows[name] for name in (SETS, TOKENS)}, folder)}
    sizes = (rows[name].count() for name in (SETS, TOKENS))
    n_shards = shards_needed(*sizes, parts, job.options.partition_bytes)
    return {"shards": divide(rows, ("table", "position"), n_shards, folder)}


def shards_needed(n_sets: int, n_pairs: int, parts: tuple[str, ...], partition_bytes: int) -> int:
    """Return how many shards take what there is, each of about `partition_bytes`."""
    # A signature, and in the tables a value and a set for each of its places.
    of_a_set = 8 * EnsembleOptions().permutations if "bands" in parts else 0
    return -(-(n_pairs * PAIR_BYTES + n_sets * of_a_set) // partition_bytes)


def write_shard(
    placed: Path, number: int, folder: Path, *, parts: tuple[str, ...]
) -> tuple[dict[str, Any], list[FileEntry]]:
    """Build one shard from its prepared data (`placed`), and write its files.

    Returns the shard's facts and its files.

    The same sets give the same bytes, in whatever order rows come. Memory is some 200 bytes a
    (column, token) pair, and 6 KiB a set with bands.
    """
    sets = _read(placed, SETS, number, ["table", "position", "label"])
    sets = sets.sort_by([("table", "ascending"), ("label", "ascending")]).combine_chunks()
    tokens = _read(placed, TOKENS, number, ["table", "position", "value"])
    index = build_index(_numbers_of_sets(sets, tokens), tokens["value"])
    facts = {
        "sets": index.n_sets,
        "pairs": len(index.list_sets),
        "tokens": index.n_tokens,
        "parts": list(parts),
    }
    files = [
        *save_index(index, folder),
        *write_arrays(folder, {POSITIONS: sets["position"].to_numpy()}),
    ]
    files += [
        write_texts(folder / TABLES, sets["table"]),
        write_texts(folder / LABELS, sets["label"]),
    ]
    if "bands" in parts:
        from pexeso.sets.containment.stored import (
            write_ensemble,
        )  # brings numba, which other updates do without
        from pexeso.sets.part.lists import ensemble_over

        files += write_ensemble(ensemble_over(index), folder)
    elif "containment" in parts:
        files.append(write_document(folder / DOCUMENT, {"version": LISTS_ALONE}))
    return facts, [*files, write_document(folder / META, facts)]


def _numbers_of_sets(sets: pa.Table, tokens: pa.Table) -> np.ndarray:
    """Return the number of the set that each token stands in, int64."""
    tables = pc.unique(sets["table"])
    keys, token_keys = (_keys(rows, tables) for rows in (sets, tokens))
    order = np.argsort(keys)
    return order[np.searchsorted(keys, token_keys, sorter=order)]


def _keys(rows: pa.Table, tables: pa.Array) -> np.ndarray:
    """Make one integer of the table and the position of each row."""
    table = pc.index_in(rows["table"], value_set=tables).to_numpy().astype(np.int64)
    return (table << 32) | rows["position"].to_numpy().astype(np.int64)


def _read(placed: Path, name: str, number: int, columns: list[str]) -> pa.Table:
    folder = placed / name / f"shard={number}"
    return ds.dataset(os.fspath(folder), format="parquet").to_table(columns=columns)
