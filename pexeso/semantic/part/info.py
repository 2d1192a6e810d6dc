"""What `pexeso info` tells of the model and the partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from embed.half import SINGLE
from pexeso.build.parts.models import WEIGHED, models_of, stale_models, store_of_model
from pexeso.build.parts.presets import is_as_published
from pexeso.store.local.reader import Store
from pexeso.store.manifest import FolderEntry


def info(store: Store, *, model: int = 0) -> dict[str, Any]:
    """Return what is in the partitions of all models; reads a small document of each.

    The part of the main model tells of all, the others of nothing.

    Returns
    -------
    dict
        ``values``: distinct normalised values; ``postings``: (column, distinct value) pairs;
        ``counts_are_bounds``: whether these are at most as many, since updates count a value of
        several partitions several times, and deleted columns until they are compacted away;
        ``model``, ``dimensions`` and ``metric``; ``vector_precision``: ``"half"`` or ``"single"``,
        None for a lexical model; ``letters``, where the model is lexical: how
        words are compared; ``map``, the contractive map that was asked for:
        ``"auto"``, ``"projection"`` or ``"pivots"``; ``cells``: ``"blocks"`` or ``"grid"``;
        ``word_weights``: ``"current"``, or ``"earlier"`` where the words of the model were weighed
        by the columns of an earlier state, which a compaction mends; None for a model that weighs
        none by the lake;
        ``as_published``: whether all this is as the preset ``"published"`` sets it;
        ``partitions``: of each its ``columns``, ``values``, ``postings``, ``cells``,
        ``coordinates``, ``map`` (the one in use), ``bytes``, and as ``choice`` what the map was
        chosen from, where it was. ``further_models``: a list with the same fields of each further
        model.
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
            {**entry.facts, "bytes": entry.n_bytes, "choice": _choice(store.document(number))}
            for number, entry in enumerate(manifest.partitions)
        ],
    }


def _choice(document: Any) -> dict[str, Any] | None:
    choice = document.get("choice") if isinstance(document, dict) else None
    return choice if isinstance(choice, dict) else None


def totals(folders: Sequence[FolderEntry], *, model: int = 0) -> dict[str, int]:
    """Return nothing: this part is never added."""
    return {}
