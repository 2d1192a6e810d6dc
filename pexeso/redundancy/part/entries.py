"""What the manifest of an index has on its shards, without the loops that compare cells."""

from __future__ import annotations

from pexeso.build.parts.deletion import DELETED
from pexeso.errors import IndexCorruptError
from pexeso.store.id_ranges import are_ranges
from pexeso.store.local.reader import Store
from pexeso.store.manifest import FolderEntry

PART = "row_hashes"
COUNTS = ("pieces", "rows", "cells")

FORM = "cells-2"
"""Of the hashes of values (`pexeso.redundancy.cell_hashes`); another one cannot be compared."""


def hash_shard_entries(store: Store) -> tuple[FolderEntry, ...]:
    """Return what the manifest of an index has on its shards, in their order."""
    return store.manifest.parts.get(PART, ())


def require_hash_facts(entry: FolderEntry) -> None:
    """Refuse an entry whose facts cannot be those of a shard."""
    facts = entry.facts
    counted = all(type(facts.get(name)) is int and facts[name] >= 0 for name in COUNTS)
    if not counted or not are_ranges(facts.get(DELETED, []), facts["pieces"]):
        raise IndexCorruptError(
            f"The manifest of the index does not tell of '{entry.folder}' what a folder of hashed "
            "cells holds: it was not written by pexeso. Build the index again."
        )
    if facts.get("form") != FORM:
        raise IndexCorruptError(
            f"The cells in '{entry.folder}' have the form {facts.get('form')!r}, and this version "
            f"of pexeso compares the form {FORM!r}: build the index again."
        )
