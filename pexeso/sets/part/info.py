"""What `pexeso info` and an update tell of the shards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pexeso.build.parts.deletion import deleted_numbers
from pexeso.store.local.reader import Store
from pexeso.store.manifest import FolderEntry


def info(store: Store) -> dict[str, Any]:
    """Return what is in the shards, by the manifest alone.

    Returns
    -------
    dict
        ``token_sets``: of each shard its ``columns`` (as sets), ``tokens`` (distinct), ``pairs``
        (of a column and a token), ``deleted`` (columns among these that are not found any more) and
        ``bytes``.
    """
    return {"token_sets": [_shard(entry) for entry in store.manifest.parts.get("token_sets", ())]}


def _shard(entry: FolderEntry) -> dict[str, Any]:
    from pexeso.sets.part.open import (  # brings numba, which most indexes need not
        require_shard_facts,
    )

    require_shard_facts(entry)
    counts = {
        "columns": entry.facts["sets"],
        **{name: entry.facts[name] for name in ("tokens", "pairs")},
    }
    return {**counts, "deleted": len(deleted_numbers(entry)), "bytes": entry.n_bytes}


def totals(folders: Sequence[FolderEntry]) -> dict[str, int]:
    """Return the number of columns as sets, of distinct tokens and of (column, token) pairs.

    Distinct tokens are counted in each shard.
    """
    names = {"columns": "sets", "tokens": "tokens", "pairs": "pairs"}
    return {name: sum(entry.facts[fact] for entry in folders) for name, fact in names.items()}
