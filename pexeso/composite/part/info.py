"""What `pexeso info` and an update tell of the shards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pexeso.build.parts.deletion import deleted_numbers
from pexeso.composite.part.open import COUNTS, require_row_facts, row_shard_entries
from pexeso.store.local.reader import Store
from pexeso.store.manifest import FolderEntry


def info(store: Store) -> dict[str, Any]:
    """Return what is in the shards, by the manifest alone.

    Returns
    -------
    dict
        ``row_keys``: of each shard its ``tables``, ``rows``, ``cells``, ``values`` (distinct),
        ``filters`` of rows, ``deleted`` (tables among these that are not found any more) and
        ``bytes``.
    """
    return {"row_keys": [_shard(entry) for entry in row_shard_entries(store)]}


def _shard(entry: FolderEntry) -> dict[str, Any]:
    require_row_facts(entry)
    names = [
        f"{description['name']}-{description['bits']}" for description in entry.facts["filters"]
    ]
    counts = {name: entry.facts[name] for name in COUNTS}
    return {
        **counts,
        "filters": names,
        "deleted": len(deleted_numbers(entry)),
        "bytes": entry.n_bytes,
    }


def totals(folders: Sequence[FolderEntry]) -> dict[str, int]:
    """Return the number of tables, rows and cells."""
    return {
        name: sum(entry.facts[name] for entry in folders) for name in ("tables", "rows", "cells")
    }
