"""Shards of hashed cells looked through: what `pexeso check` tells of the part for redundancy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import pyarrow as pa

from pexeso.build.parts.base import problems_of
from pexeso.errors import IndexCorruptError
from pexeso.lake.catalog import Catalog
from pexeso.redundancy.part.entries import COUNTS, hash_shard_entries
from pexeso.redundancy.part.open import open_hash_shard
from pexeso.redundancy.pieces import faults_within
from pexeso.store.files import read_document
from pexeso.store.integrity import Problem
from pexeso.store.local.reader import Store
from pexeso.store.local.target import META
from pexeso.store.manifest import FolderEntry
from pexeso.store.paths import MANIFEST


def check(store: Store, progress: Callable[[int, int], None] | None = None) -> list[Problem]:
    """Return the problems in the contents of the hashed cells of an index.

    The bytes of the index must be as they were written.

    Notes
    -----
    One piece at a time is held, and the names of the catalog's tables.
    """
    if not hash_shard_entries(store):
        return []
    try:
        listed = set(Catalog(store.catalog_files).tables(["table"])["table"].to_pylist())
    except IndexCorruptError as error:
        return [Problem(MANIFEST, "content", str(error))]
    return problems_of(
        store, hash_shard_entries(store), lambda entry: _check_shard(store, entry, listed)
    )


def _check_shard(store: Store, entry: FolderEntry, listed: set[str]) -> Iterator[str]:
    shard = open_hash_shard(store, entry)
    pieces = shard.pieces()
    if shard.tables.to_pylist() != [piece.table for piece in pieces]:
        yield "its list of tables is not that of its pieces."
        return
    keys = [(piece.table, piece.first_row) for piece in pieces]
    if any(one >= other for one, other in pairwise(keys)):
        yield "pieces must be distinct and sorted by table and first row."
    counts = (
        len(pieces),
        sum(piece.n_rows for piece in pieces),
        sum(piece.n_rows * len(piece.facts) for piece in pieces),
    )
    document = read_document(shard.folder / META)
    for where, facts in (
        (MANIFEST, entry.facts),
        (META, document if isinstance(document, dict) else {}),
    ):
        for name, number in zip(COUNTS, counts, strict=True):
            if facts.get(name) != number:
                yield f"{where} tells of {facts.get(name)!r} {name}, and there are {number:,}."
    deleted = set(shard.deleted.tolist())
    unknown = {piece.table for piece in pieces if piece.number not in deleted} - listed
    if unknown:
        yield f"it has cells of {len(unknown):,} tables that the catalog does not list."
    for piece in pieces:
        try:
            yield from faults_within(piece)
        except (pa.ArrowException, ValueError, KeyError) as error:
            yield f"piece {piece.number} cannot be read: {error}."
