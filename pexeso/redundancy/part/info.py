"""What `pexeso info` and an update tell of the shards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pexeso.build.parts.deletion import deleted_numbers
from pexeso.redundancy.part.entries import COUNTS, hash_shard_entries, require_hash_facts
from pexeso.store.local.reader import Store
from pexeso.store.manifest import FolderEntry


def info(store: Store) -> dict[str, Any]:
    """Return what is in the shards, by the manifest alone.

    Returns
    -------
    dict
        ``row_hashes``: of each shard its ``pieces`` (of tables), ``rows``, ``cells``, ``deleted``
        (pieces among these that are not found any more) and ``bytes``.
    """
    return {"row_hashes": [_shard(entry) for entry in hash_shard_entries(store)]}


def _shard(entry: FolderEntry) -> dict[str, Any]:
    require_hash_facts(entry)
    counts = {name: entry.facts[name] for name in COUNTS}
    return {**counts, "deleted": len(deleted_numbers(entry)), "bytes": entry.n_bytes}


def totals(folders: Sequence[FolderEntry]) -> dict[str, int]:
    """Return the number of rows and cells that are hashed."""
    return {f"hashed_{name}": sum(folder.facts[name] for folder in folders) for name in COUNTS[1:]}
