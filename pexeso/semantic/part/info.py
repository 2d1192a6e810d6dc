"""What `pexeso info` reports of the model and the partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from embed.stored import SINGLE
from pexeso.build.parts.metadata import (
    WEIGHED,
    is_as_published,
    models_of,
    stale_models,
    store_of_model,
)
from pexeso.store.local.reader import Store
from pexeso.store.manifest import FolderEntry


def info(store: Store, *, model: int = 0) -> dict[str, Any]:
    """Return what is in the partitions of all models, by a small document of each.

    The part of the main model reports all. ``counts_are_bounds`` says that updates count a value of
    several partitions several times, and deleted columns until they are compacted away;
    ``word_weights`` is ``"earlier"`` where the words of a model were weighed by the columns of an
    earlier state, which a compaction mends, and None for a model that weighs none by the lake.
    """
    if model:
        return {}
    stale = stale_models(store)
    main, *further = (
        {
            **_of_model(store_of_model(store, number)),
            "word_weights": ("earlier" if number in stale else "current")
            if name in WEIGHED
            else None,
        }
        for number, name in enumerate(models_of(store.manifest))
    )
    return {**main, "further_models": further}


def _of_model(store: Store) -> dict[str, Any]:
    manifest = store.manifest
    grid = manifest.options["grid"]
    documents = [store.document(number) for number in range(len(manifest.partitions))]
    choices = [one.get("choice") if isinstance(one, dict) else None for one in documents]
    return {
        "values": manifest.facts["values"],
        "postings": manifest.facts["postings"],
        "counts_are_bounds": bool(manifest.deleted_columns)
        or (manifest.generation > 1 and len(manifest.partitions) > 1),
        "model": manifest.options["model"],
        "dimensions": manifest.facts["dimensions"],
        "vector_precision": None
        if "letters" in manifest.facts
        else grid.get("vector_precision", SINGLE),
        "letters": manifest.facts.get("letters"),
        "metric": grid["metric"],
        "map": grid["map"],
        "cells": grid.get("cells", "grid"),
        "as_published": is_as_published(grid, manifest.facts.get("embedder")),
        "partitions": [
            {
                **entry.facts,
                "bytes": entry.n_bytes,
                "choice": choice if isinstance(choice, dict) else None,
            }
            for entry, choice in zip(manifest.partitions, choices, strict=True)
        ],
    }


def totals(folders: Sequence[FolderEntry], *, model: int = 0) -> dict[str, int]:
    return {}
