"""Shards: the hashed cells of an index, divided into folders by table and row.

A shard holds pieces of tables, ordered by table and first row and numbered from 0. What was deleted
since is listed in the manifest.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.build.parts.deletion import deleted_numbers
from pexeso.errors import IndexCorruptError, InputError
from pexeso.redundancy.part.entries import hash_shard_entries, require_hash_facts
from pexeso.redundancy.pieces import StoredPiece, stored_pieces
from pexeso.store.local.reader import Store
from pexeso.store.manifest import FolderEntry
from pexeso.store.texts import Texts, open_texts, require_sound

PIECES, TABLES = "pieces.ipc", "tables.arrow"


@dataclass(frozen=True)
class HashShard:
    """An open shard.

    Attributes
    ----------
    deleted : int64 (d,)
        Numbers of pieces that are not to be found, ascending.
    """

    folder: Path
    deleted: np.ndarray

    @cached_property
    def tables(self) -> Texts:
        """Of each piece its table, ascending by code point."""
        texts = open_texts(self.folder / TABLES)
        require_sound(texts)
        return texts

    def pieces(self) -> list[StoredPiece]:
        """Return all pieces, deleted ones too, without their cells."""
        try:
            return stored_pieces(self.folder / PIECES)
        except (OSError, pa.ArrowException, ValueError, KeyError, TypeError) as error:
            raise IndexCorruptError(
                f"'{self.folder / PIECES}' is not as it was written: {error}. Restore it from a "
                "copy, or build the index again."
            ) from error

    def numbers_of(self, tables: pa.Array) -> np.ndarray:
        """Return the numbers of the pieces of some tables, int64, ascending."""
        mask = pc.is_in(self.tables.cast(pa.string()), value_set=tables.cast(pa.string()))
        return np.flatnonzero(mask.to_numpy(zero_copy_only=False))


def pieces_by_table(store: Store) -> dict[str, list[StoredPiece]]:
    """Return of each table of an index its pieces, tables by name and pieces by their rows.

    Cells are not read.
    """
    if "redundancy" not in (store.manifest.options.get("parts") or ()):
        raise InputError(
            f"The index '{store.path}' has no part for redundant tables. Add it with 'pexeso "
            f"add-part {store.path} redundancy', or build indexes with it from the start: 'pexeso "
            "index LAKE INDEX --include redundancy'."
        )
    pieces: dict[str, list[StoredPiece]] = {}
    for entry in hash_shard_entries(store):
        shard = open_hash_shard(store, entry)
        deleted = set(shard.deleted.tolist())
        for piece in shard.pieces():
            if piece.number not in deleted:
                pieces.setdefault(piece.table, []).append(piece)
    return {
        table: sorted(pieces[table], key=lambda piece: piece.first_row) for table in sorted(pieces)
    }


def open_hash_shard(store: Store, entry: FolderEntry) -> HashShard:
    """Open one shard; only sizes are read."""
    require_hash_facts(entry)
    return HashShard(store.folder(entry), deleted_numbers(entry))
