"""Shards: the hashed cells of an index, divided into folders by table and row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.build.parts.base import Batches, deleted_numbers, require_part, unlisted
from pexeso.errors import IndexCorruptError
from pexeso.redundancy.part import ROW_HASHES_PART
from pexeso.store.arrays import Texts, open_texts, require_sound
from pexeso.store.local.reader import Store
from pexeso.store.manifest import FolderEntry

if TYPE_CHECKING:
    from pexeso.redundancy.pieces import StoredPiece

PIECES, TABLES = "pieces.ipc", "tables.arrow"


@dataclass(frozen=True)
class HashShard:
    """An open shard."""

    folder: Path
    deleted: np.ndarray  # int64 (d,): numbers of pieces that are not to be found, ascending

    @cached_property
    def tables(self) -> Texts:
        """Of each piece its table, ascending by code point."""
        texts = open_texts(self.folder / TABLES)
        require_sound(texts)
        return texts

    def pieces(self) -> list[StoredPiece]:
        """Return all pieces, deleted ones too, without their cells."""
        from pexeso.redundancy.pieces import stored_pieces

        try:
            return stored_pieces(self.folder / PIECES)
        except (OSError, pa.ArrowException, ValueError, KeyError, TypeError) as error:
            raise IndexCorruptError(
                f"'{self.folder / PIECES}' is not as it was written: {error}. Restore it from a "
                "copy, or build the index again."
            ) from error

    def numbers_of_tables(self, tables: pa.Array) -> np.ndarray:
        mask = pc.is_in(self.tables.cast(pa.string()), value_set=tables.cast(pa.string()))
        return np.flatnonzero(mask.to_numpy(zero_copy_only=False))

    def stored(self, _: str) -> Batches:
        """Yield the records that the pieces were written from, without deleted ones."""
        deleted = set(self.deleted.tolist())
        with pa.memory_map(str(self.folder / PIECES)) as source, pa.ipc.open_file(source) as file:
            for piece in range(file.num_record_batches):
                if piece not in deleted:
                    yield file.get_batch(piece)


def pieces_by_table(store: Store) -> dict[str, list[StoredPiece]]:
    """Return of each table of an index its pieces, tables by name and pieces by their rows."""
    require_part(store, "redundancy", "redundant tables")
    pieces: dict[str, list[StoredPiece]] = {}
    for entry in ROW_HASHES_PART.entries(store):
        shard = open_shard(store, entry)
        deleted = set(shard.deleted.tolist())
        for piece in shard.pieces():
            if piece.number not in deleted:
                pieces.setdefault(piece.table, []).append(piece)
    return {
        table: sorted(pieces[table], key=lambda piece: piece.first_row) for table in sorted(pieces)
    }


def open_shard(store: Store, entry: FolderEntry) -> HashShard:
    ROW_HASHES_PART.require_facts(entry)
    return HashShard(store.folder(entry), deleted_numbers(entry))


def check_shard(shard: HashShard, entry: FolderEntry, listed: pa.Array) -> Iterator[str]:
    from pexeso.redundancy.pieces import faults_within

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
    yield from ROW_HASHES_PART.wrong_counts(shard.folder, entry, counts)
    deleted = set(shard.deleted.tolist())
    held = [piece.table for piece in pieces if piece.number not in deleted]
    yield from unlisted("it has cells", pa.array(held, pa.string()), listed)
    for piece in pieces:
        try:
            yield from faults_within(piece)
        except (pa.ArrowException, ValueError, KeyError) as error:
            yield f"piece {piece.number} cannot be read: {error}."
