"""Check of the partitions and the model for everything that a semantic search assumes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from embed.registry import load_embedder
from pexeso.build.parts.base import problems_of
from pexeso.build.parts.metadata import (
    embedder_folder,
    models_of,
    require_contents,
    store_of_model,
    stored_normaliser,
    stored_space,
)
from pexeso.engine.sparse.partition import check_arrays as check_sparse_arrays
from pexeso.engine.sparse.sparse_space import SparseSpace
from pexeso.engine.vector_space import LAYOUT_VERSION, VectorSpace
from pexeso.errors import EmbedderError, IndexCorruptError, InputError, MissingPackageError
from pexeso.lake.catalog import Catalog
from pexeso.store.arrays import Texts, require_sound, take_texts
from pexeso.store.integrity import Problem
from pexeso.store.local.reader import Store
from pexeso.store.manifest import MANIFEST, FolderEntry

Progress = Callable[[int, int], None]

_COUNTED = ("columns", "values", "postings")


def check(store: Store, progress: Progress | None = None, *, model: int = 0) -> list[Problem]:
    try:
        require_contents(store.manifest)
        if model >= len(models_of(store.manifest)):
            return []
        store = store_of_model(store, model)
    except IndexCorruptError as error:
        return [Problem(MANIFEST, "content", str(error))]
    return [*check_model(store), *check_partitions(store, progress)]


def check_model(store: Store) -> list[Problem]:
    """Return the problems in the layout, the normaliser and the model of a whole index.

    A model that needs a package which is not installed is not looked at.
    """
    manifest, problems = store.manifest, []
    layout = manifest.options.get("layout")
    if layout != LAYOUT_VERSION:
        sentence = (
            f"'{store.path}' has partitions of layout {layout!r}, and this version reads "
            f"layout {LAYOUT_VERSION}: build it again."
        )
        problems.append(Problem(MANIFEST, "version", sentence))
    try:
        normaliser = stored_normaliser(store)
        if normaliser.fingerprint != manifest.fingerprints["normaliser"]:
            raise InputError(
                "The rules for normalising values are not those of this version: build the index "
                "again."
            )
        if normaliser.aliases is not None:
            normaliser.aliases.canonical(pa.array([], pa.string()))  # reads them
    except IndexCorruptError as error:
        problems.append(Problem(manifest.catalogs[0].folder, "content", str(error)))
    except InputError as error:
        problems.append(Problem(MANIFEST, "version", f"'{store.path}' cannot be searched: {error}"))
    try:
        embedder = load_embedder(embedder_folder(store), verify=True)
        if embedder.fingerprint != manifest.fingerprints["embedder"]:
            raise EmbedderError("It is not the one that the index was built with.")
        recorded = manifest.facts.get("embedder", embedder.kind), manifest.facts["dimensions"]
        if recorded != (embedder.kind, embedder.dimensions):
            raise EmbedderError(
                f"It is of the kind {embedder.kind!r} with {embedder.dimensions} dimensions, and "
                "the manifest records "
                f"{recorded[0]!r} with {recorded[1]!r}."
            )
    except EmbedderError as error:
        sentence = f"The model in '{embedder_folder(store)}' cannot be used: {error}"
        problems.append(Problem(manifest.embedder.folder, "content", sentence))
    except MissingPackageError:
        pass
    return problems


def check_partitions(store: Store, progress: Progress | None = None) -> list[Problem]:
    """Return what is wrong with the contents of an index whose bytes are as they were written."""
    try:
        space = stored_space(store.manifest)
    except IndexCorruptError as error:
        return [Problem(MANIFEST, "content", str(error))]
    held: list[_Held] = []
    entries, numbers = store.manifest.partitions, itertools.count()
    ends = list(itertools.accumulate(entry.n_bytes for entry in entries))

    def check_one(entry: FolderEntry) -> Iterator[str]:
        number = next(numbers)
        try:
            yield from _check_partition(store, number, space)
            held.append(_held_columns(store, number))
        finally:
            if progress is not None:
                progress(ends[number], ends[-1])

    if problems := problems_of(store, entries, check_one):
        return problems
    wrong = [*_check_facts(store), *_check_columns(store, held)]
    return [Problem(MANIFEST, "content", f"'{store.path}' {clause}") for clause in wrong]


@dataclass(frozen=True)
class _Held:
    """The ids of a partition's columns that are not deleted, and the folder that names them."""

    entry: FolderEntry
    rows: np.ndarray
    ids: np.ndarray
    tables: Texts
    labels: Texts


def _held_columns(store: Store, number: int) -> _Held:
    deleted, ids = store.deleted_mask(number), np.asarray(store.array(number, "column_ids"))
    rows = np.flatnonzero(~deleted) if deleted is not None else np.arange(len(ids))
    tables, labels = (store.texts(number, name) for name in ("tables", "labels"))
    return _Held(store.partition_entry(number), rows, ids[rows], tables, labels)


def _check_facts(store: Store) -> Iterator[str]:
    facts, entries = store.manifest.facts, store.manifest.partitions
    n_postings = sum(entry.facts["postings"] for entry in entries)
    if facts["postings"] != n_postings:
        yield f"records {facts['postings']!r} postings, and there are {n_postings:,}."
    counts = [entry.facts["values"] for entry in entries]
    total = sum(counts) + sum(entry.facts.get("values_without_vector", 0) for entry in entries)
    if not max(counts, default=0) <= facts["values"] <= total:
        yield f"records {facts['values']!r} values, and its partitions hold {total:,} altogether."
    for number in range(0 if "letters" in facts else store.n_partitions):
        dimensions = store.array(number, "vectors").shape[1]
        if facts["dimensions"] != dimensions:
            yield (
                f"records {facts['dimensions']!r} dimensions, "
                f"and the vectors of partition {number} have {dimensions}."
            )
            return


def _check_columns(store: Store, partitions: list[_Held]) -> Iterator[str]:
    """Hold the columns of the partitions, those that are not deleted, against the catalog."""
    held = np.sort(np.concatenate([np.zeros(0, np.int64), *(part.ids for part in partitions)]))
    n_twice = int((held[1:] == held[:-1]).sum())
    if n_twice:
        yield f"holds {n_twice:,} columns more than once."
        return
    try:
        catalog = Catalog(store.catalog_files)
        catalog.tables()
        columns = catalog.columns(["column_id", "table", "label"])
        columns = columns.filter(pc.is_valid(columns["column_id"])).sort_by("column_id")
        listed = columns["column_id"].to_numpy()
    except IndexCorruptError as error:
        yield f"cannot be summed up: {error}"
        return
    next_column = store.manifest.facts.get("next_column")
    if next_column is not None and not (
        type(next_column) is int and int(listed.max(initial=-1)) < next_column < 2**62
    ):
        yield (
            f"would number the next column {next_column!r}, "
            f"and the last one is {int(listed.max(initial=-1)):,}."
        )
    differing = (
        (len(np.setdiff1d(held, listed)), "its catalog does not list"),
        (len(np.setdiff1d(listed, held)), "no partition holds"),
    )
    for n_more, what in differing:
        if n_more:
            yield f"has {n_more:,} columns that {what}."
    if not any(n_more for n_more, _ in differing):
        for partition in partitions:
            yield from _check_names(partition, columns, listed)


def _check_names(held: _Held, columns: pa.Table, listed: np.ndarray) -> Iterator[str]:
    """Compare the names of a partition's columns with those in the catalog, sorted by id."""
    rows = np.searchsorted(listed, held.ids)
    for name, texts in (("table", held.tables), ("label", held.labels)):
        names = take_texts(texts, held.rows).cast(pa.string())
        right = columns[name].combine_chunks().take(pa.array(rows)).cast(pa.string())
        # Where the catalog is of a format that has no such field, there is nothing to compare with.
        wrong = np.flatnonzero(
            pc.not_equal(names, right).fill_null(False).to_numpy(zero_copy_only=False)
        )
        if len(wrong):
            yield (
                f"names {len(wrong):,} columns of '{held.entry.folder}' by another {name} than "
                "its catalog; "
                f"the first is {names[int(wrong[0])].as_py()!r}, which the catalog calls "
                f"{right[int(wrong[0])].as_py()!r}."
            )


def _check_partition(store: Store, number: int, space: VectorSpace) -> Iterator[str]:
    arrays = dict(store.partition(number))
    texts = {name: store.texts(number, name) for name in ("values", "texts", "tables", "labels")}
    for name, array in texts.items():
        require_sound(array)
        if array.null_count and name != "texts":
            yield f"{name}: {array.null_count:,} of its texts are missing."
    for name in ("column_ids", "posting_texts"):
        if name not in arrays:
            yield f"The array {name} of a partition is missing."
            return
    n_texts = len(texts["texts"])
    if isinstance(space, SparseSpace):
        wrong = check_sparse_arrays(arrays, space.letters, n_texts=n_texts)
    else:
        from pexeso.engine.validation import check_arrays

        wrong = check_arrays(arrays, space.options, n_texts=n_texts)
    yield from wrong
    if wrong:
        return
    counts = {
        "columns": len(arrays["column_ids"]),
        "values": len(arrays["value_columns_offsets"]) - 1,
        "postings": len(arrays["posting_texts"]),
    }
    for name, expected in (("values", "values"), ("tables", "columns"), ("labels", "columns")):
        if len(texts[name]) != counts[expected]:
            yield (
                f"{name}: it holds {len(texts[name]):,} texts for {counts[expected]:,} {expected}."
            )
    facts, document = store.partition_entry(number).facts, store.document(number)
    sources = (
        ("manifest.json", facts),
        ("meta.json", document if isinstance(document, dict) else {}),
    )
    for name in _COUNTED:
        for where, recorded in sources:
            if recorded.get(name) != counts[name]:
                yield (
                    f"{where}: it records {recorded.get(name)!r} {name}, "
                    f"and there are {counts[name]:,}."
                )
    for position, recorded in sources:
        yield from _check_recorded(position, recorded, _described(arrays, space))


def _described(arrays: Mapping[str, np.ndarray], space: VectorSpace) -> dict[str, Any]:
    if isinstance(space, SparseSpace):
        return {"words": len(arrays["word_weights"]), "keys": len(arrays["keys"])}
    from pexeso.engine.dense.building import n_cells, n_coordinates, n_levels

    return {
        "cells": n_cells(arrays),
        "coordinates": n_coordinates(arrays),
        "map": "projection" if "axes" in arrays else "pivots",
        "levels": n_levels(arrays),
        "metric": space.options.metric,
    }


def _check_recorded(where: str, recorded: dict[str, Any], right: dict[str, Any]) -> Iterator[str]:
    for name, value in right.items():
        if name in recorded and recorded[name] != value:
            yield f"{where}: it records {name} {recorded[name]!r}, where {value!r} is right."
    missing = recorded.get("values_without_vector", 0)
    if type(missing) is not int or not 0 <= missing < 2**62:
        yield f"{where}: it records {missing!r} values without a vector."
