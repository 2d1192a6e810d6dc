"""One index in every stored layout: builds of their own would each take a Spark session's time."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from pexeso.engine.dense.building import build_partition, n_cells, n_coordinates
from pexeso.engine.options import PartitionLayoutOptions
from pexeso.store.arrays import write_arrays, write_texts
from pexeso.store.files import write_document
from pexeso.store.local.reader import Store, open_store
from pexeso.store.manifest import MANIFEST, FolderEntry, Manifest

LAYOUTS = {
    "projection-blocks": PartitionLayoutOptions(map="projection", n_axes=7),
    "halves": PartitionLayoutOptions(map="projection", n_axes=7, vector_precision="half"),
    "pivots-blocks": PartitionLayoutOptions(map="pivots", n_pivots=5),
    "projection-grid": PartitionLayoutOptions(map="projection", n_axes=3, cells="grid", n_levels=4),
    "pivots-grid": PartitionLayoutOptions(map="pivots", n_pivots=4, cells="grid", n_levels=4),
}


def laid_out(index: Path, copy: Path, options: PartitionLayoutOptions) -> Path:
    """Copy an index as though it had been built with these options of its partitions."""
    shutil.copytree(index, copy)
    store = open_store(copy)
    entries = tuple(_lay_out(store, number, options) for number in range(store.n_partitions))
    manifest = replace(
        store.manifest,
        parts={**store.manifest.parts, "semantic": entries},
        options={**store.manifest.options, "grid": vars(options)},
    )
    (copy / MANIFEST).write_bytes(manifest.to_bytes())
    return copy


def drop_pages(index: Path) -> None:
    """Ask the system to forget every page of an index that it holds in memory."""
    for path in index.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            os.fdatasync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


def manifest_of(index: Path) -> Manifest:
    """Return the manifest of an index."""
    return Manifest.from_bytes((index / MANIFEST).read_bytes())


def _lay_out(store: Store, number: int, options: PartitionLayoutOptions) -> FolderEntry:
    entry = store.partition_entry(number)
    old = {k: np.array(v) for k, v in store.partition(number).items()}
    texts = {
        name: pa.array(store.texts(number, name).to_pylist(), pa.string())
        for name in ("values", "texts")
    }
    folder = store.path / entry.folder
    offsets, members = old["column_values_offsets"], old["column_values_members"]
    vectors = old["vectors"].astype(np.float32)
    arrays, order = build_partition(vectors, offsets, members.astype(np.int64), options)
    column = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    row = np.argsort(order)[members]
    arrays["column_ids"] = old["column_ids"]
    arrays["posting_texts"] = old["posting_texts"][np.lexsort((row, column))]
    facts = {
        **entry.facts,
        "cells": n_cells(arrays),
        "coordinates": n_coordinates(arrays),
        "map": options.map,
    }
    for file in entry.files:
        if file.path.endswith(".npy") or file.path in ("values.arrow", "meta.json"):
            (folder / file.path).unlink()
    choice = {"map": options.map, "coordinates": n_coordinates(arrays), "trials": []}
    written = [
        *write_arrays(folder, arrays),
        write_texts(folder / "values.arrow", texts["values"].take(pa.array(order))),
        write_document(folder / "meta.json", {**facts, "choice": choice}),
    ]
    kept = [
        file for file in entry.files if file.path in ("texts.arrow", "tables.arrow", "labels.arrow")
    ]
    return FolderEntry(entry.folder, tuple([*kept, *written]), facts)


__all__ = ["LAYOUTS", "drop_pages", "laid_out", "manifest_of"]
