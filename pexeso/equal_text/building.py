"""What a task does to build a shard: from the sets and tokens that were laid out for it to the files of its folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from pexeso.containment.stored import write_ensemble
from pexeso.equal_text.lists import ensemble_over
from pexeso.equal_text.shards import LABELS, POSITIONS, TABLES
from pexeso.overlap.index import build_index
from pexeso.overlap.saving import save_index
from pexeso.store.arrays import write_arrays
from pexeso.store.files import write_document
from pexeso.store.manifest import FileEntry
from pexeso.store.target import META, PartitionTarget, entry_to_json
from pexeso.store.texts import write_texts

Batches = Iterator[pa.RecordBatch]

SETS, TOKENS = "sets", "tokens"
"""What is laid out for a shard: ``table, position, label`` of each set, and ``table, position, value`` of each token."""


def write_shards(
    batches: Batches, *, placed: str, targets: Sequence[PartitionTarget], parts: tuple[str, ...]
) -> Batches:
    """Write the shards whose numbers come in, but for those that are there; give the manifest's entry of each as JSON.

    Parameters
    ----------
    batches
        Numbers of shards.
    placed
        The folder with sets and tokens by shard.
    targets
        Where each shard goes.
    parts
        What a shard gets; see `pexeso.options.PARTS`.
    """
    for batch in batches:
        for number in batch.column(0).to_pylist():
            fill = partial(write_shard, Path(placed), number, parts=parts)
            entry = targets[number].written() or targets[number].write(fill)
            yield pa.RecordBatch.from_pydict({"number": [number], "entry": [entry_to_json(entry)]})


def write_shard(
    placed: Path, number: int, folder: Path, *, parts: tuple[str, ...]
) -> tuple[dict[str, object], list[FileEntry]]:
    """Build one shard from what was laid out for it, and write its files; give its facts and its files.

    The same sets give the same bytes, in whatever order rows come. Memory is some 200 bytes a (column, token) pair, and 6 KiB a set with signatures.
    """
    sets = _read(placed, SETS, number, ["table", "position", "label"])
    sets = sets.sort_by([("table", "ascending"), ("label", "ascending")]).combine_chunks()
    tokens = _read(placed, TOKENS, number, ["table", "position", "value"])
    index = build_index(_numbers_of_sets(sets, tokens), tokens["value"])
    facts: dict[str, object] = {
        "sets": index.n_sets,
        "pairs": len(index.list_sets),
        "tokens": index.n_tokens,
        "parts": list(parts),
    }
    files = [*save_index(index, folder), *write_arrays(folder, {POSITIONS: sets["position"].to_numpy()})]
    files += [write_texts(folder / TABLES, sets["table"]), write_texts(folder / LABELS, sets["label"])]
    if "containment" in parts:
        files += write_ensemble(ensemble_over(index), folder)
    return facts, [*files, write_document(folder / META, facts)]


def _numbers_of_sets(sets: pa.Table, tokens: pa.Table) -> np.ndarray:
    """Give the number of the set that each token stands in, int64."""
    tables = pc.unique(sets["table"])
    keys, wanted = (_keys(rows, tables) for rows in (sets, tokens))
    order = np.argsort(keys)
    return order[np.searchsorted(keys, wanted, sorter=order)]


def _keys(rows: pa.Table, tables: pa.Array) -> np.ndarray:
    """Make one integer of the table and the position of each row."""
    table = pc.index_in(rows["table"], value_set=tables).to_numpy().astype(np.int64)
    return (table << 32) | rows["position"].to_numpy().astype(np.int64)


def _read(placed: Path, name: str, number: int, columns: list[str]) -> pa.Table:
    folder = placed / name / f"shard={number}"
    return ds.dataset(os.fspath(folder), format="parquet").to_table(columns=columns)
