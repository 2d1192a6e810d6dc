"""Validation of the manifest entries of an index beside its files.

Options, fingerprints and facts are checked once before they are used.

The store keeps these and reads nothing in them. A manifest may come from anywhere, so that a
missing or odd entry is damage, told in one sentence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pexeso.errors import IndexCorruptError, InputError
from pexeso.lake.catalog import ALIASES
from pexeso.store.manifest import Manifest

if TYPE_CHECKING:
    from pexeso.engine.layout.options import PartitionLayoutOptions
    from pexeso.engine.vector_space import VectorSpace
    from pexeso.lake.normalise.normaliser import Normaliser
    from pexeso.store.local.reader import Store

_NEEDED: dict[str, dict[str, type]] = {
    "options": {"grid": dict, "normaliser": str, "model": str},
    "fingerprints": {"embedder": str, "normaliser": str},
    "facts": {"lake": str, "values": int, "postings": int, "dimensions": int},
}
_GRID = {"metric": str, "map": str}
_PARTITION = ("columns", "values", "postings", "cells", "coordinates")


def require_contents(manifest: Manifest) -> None:
    """Refuse a manifest that lacks what searching and summing up an index need."""
    for section, needed in _NEEDED.items():
        _require(getattr(manifest, section), needed, f"its {section}")
    _require(manifest.options["grid"], _GRID, "the options of its partitions")
    for entry in manifest.partitions:
        counts = {name: int for name in _PARTITION if name in entry.facts}
        _require(entry.facts, counts, f"the facts of {entry.folder}")


def stored_grid_options(manifest: Manifest) -> PartitionLayoutOptions:
    """Return the options of the partitions that a manifest holds."""
    from pexeso.engine.layout.options import (
        PartitionLayoutOptions,  # brings torch, which a summary of an index does without
    )

    grid: Any = manifest.options.get("grid")
    try:
        return PartitionLayoutOptions(**grid)
    except (InputError, TypeError, ValueError) as error:
        raise IndexCorruptError(
            f"The manifest of the index has options of its partitions that none can have: {error}"
        ) from error


def stored_normaliser(store: Store) -> Normaliser:
    """Return the normaliser that an index was built with, and its aliases."""
    from pexeso.lake.normalise.aliases import normaliser_from_json  # most commands do without

    return normaliser_from_json(store.manifest.options["normaliser"], store.catalog_files)


def has_aliases(manifest: Manifest) -> bool:
    """Return whether an index was built with aliases."""
    return manifest.facts.get(ALIASES, 0) != 0


def stored_space(manifest: Manifest) -> VectorSpace:
    """Return the space of the vectors that a manifest's partitions hold."""
    letters: Any = manifest.facts.get("letters")
    if letters is None:
        from pexeso.engine.dense_space import DenseSpace  # brings torch

        return DenseSpace(stored_grid_options(manifest))
    from pexeso.engine.sparse.space import LetterSpace
    from pexeso.engine.sparse.sparse_space import SparseSpace

    try:
        return SparseSpace(LetterSpace(**letters))
    except (InputError, TypeError) as error:
        raise IndexCorruptError(
            f"The manifest of the index tells of a lexical space that none can have: {error}"
        ) from error


def _require(fields: dict[str, Any], needed: dict[str, type], where: str) -> None:
    for name, kind in needed.items():
        if type(fields.get(name)) is not kind:
            raise IndexCorruptError(
                f"The manifest of the index has no {kind.__name__} {name!r} among {where}: it "
                "was not written by pexeso. Build the index again."
            )
