"""What a manifest records of an index besides its files, checked before it is used.

The store keeps these entries and reads nothing in them. A manifest may come from anywhere, so that
a missing or odd entry is damage, reported in one sentence.
"""

from __future__ import annotations

import logging
import warnings
from functools import cache
from typing import TYPE_CHECKING, Any

from embed.stored import SINGLE
from pexeso.engine.vector_space import READ_LAYOUTS, VectorSpace
from pexeso.errors import DeviceError, IndexCorruptError, IndexVersionError, InputError
from pexeso.lake.catalog import ALIASES
from pexeso.lake.choose import ColumnRules
from pexeso.lake.normalise.normaliser import VERSION as NORMALISER_VERSION
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.options import DEVICES, BuildOptions
from pexeso.registry import DEFAULT_FILTERS
from pexeso.runtime.extras import require
from pexeso.store.local.reader import Store
from pexeso.store.manifest import Manifest

if TYPE_CHECKING:
    import torch

    from pexeso.engine.options import PartitionLayoutOptions


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
    from pexeso.engine.options import (
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
    from pexeso.lake.normalise.aliases import normaliser_from_json  # most commands do without

    return normaliser_from_json(store.manifest.options["normaliser"], store.catalog_files)


def has_aliases(manifest: Manifest) -> bool:
    return manifest.facts.get(ALIASES, 0) != 0


def stored_space(manifest: Manifest) -> VectorSpace:
    letters: Any = manifest.facts.get("letters")
    if letters is None:
        require("torch", "An index of dense vectors")
        from pexeso.engine.dense.space import DenseSpace

        return DenseSpace(stored_grid_options(manifest))
    from pexeso.engine.sparse.sparse_space import SparseSpace
    from pexeso.engine.sparse.vectors import LetterSpace

    try:
        return SparseSpace(LetterSpace(**letters))
    except (InputError, TypeError) as error:
        raise IndexCorruptError(
            f"The manifest of the index records a lexical space that none can have: {error}"
        ) from error


def _require(fields: dict[str, Any], needed: dict[str, type], where: str) -> None:
    for name, kind in needed.items():
        if type(fields.get(name)) is not kind:
            raise IndexCorruptError(
                f"The manifest of the index has no {kind.__name__} {name!r} among {where}: it "
                "was not written by pexeso. Build the index again."
            )


def described(options: BuildOptions) -> dict[str, Any]:
    """Return what an index records of the options that it was built with, as plain JSON."""
    # They bring torch, for which nobody waits who has misspelt a folder.
    from pexeso.engine.options import PartitionLayoutOptions
    from pexeso.engine.vector_space import LAYOUT_VERSION

    return {
        "model": options.model,
        "grid": vars(PartitionLayoutOptions(**options.grid())),
        "layout": LAYOUT_VERSION,
        "n_partitions": options.n_partitions,
        "min_partitions": options.min_partitions,
        "partition_bytes": options.partition_bytes,
        "rules": options.rules.to_dict(),
        "normaliser": options.normaliser.to_json(),
        "max_table_bytes": options.max_table_bytes,
        "parts": list(options.parts),
        "row_filters": list(options.row_filters),
        "seed": options.seed,
    }


def options_of(store: Store) -> BuildOptions:
    """Return the options that an index was built with; its aliases are the normaliser's."""
    described = store.manifest.options
    try:
        # Without the field vectors are of 32 bits. A lexical index has none, nor options of them.
        recorded = {"vector_precision": SINGLE, **described["grid"]}
        fields = () if described["model"] == "lexical" else BuildOptions.__dataclass_fields__
        grid = {name: value for name, value in recorded.items() if name in (*fields, "seed")}
        names = ("n_partitions", "partition_bytes", "max_table_bytes")
        return BuildOptions(
            **{name: described[name] for name in names},
            **grid,
            model=described["model"],
            min_partitions=described.get("min_partitions", 1),
            parts=described.get("parts", ()),
            row_filters=described.get("row_filters", DEFAULT_FILTERS),
            rules=ColumnRules.from_dict(described["rules"]),
            normaliser=stored_normaliser(store),
        )
    except (KeyError, TypeError, AttributeError, InputError) as error:
        raise IndexCorruptError(
            f"The manifest of the index does not say how it was built: {error}. Build it again."
        ) from error


_log = logging.getLogger("pexeso.index")


def require_searchable(store: Store) -> None:
    """Raise an error if this version cannot search the index.

    Reasons are another layout, another normaliser, or a manifest without the required entries.
    """
    layout = store.manifest.options.get("layout", 1)
    if layout not in READ_LAYOUTS:
        raise IndexVersionError(
            f"The index '{store.path}' was written by {store.manifest.written_by} with "
            f"partitions of layout {layout}, and this version reads layout "
            f"{' and '.join(map(str, READ_LAYOUTS))}. Build it again with this version, or search "
            "it with the one that wrote it."
        )
    require_contents(store.manifest)
    normaliser_of(store)


def choose_device(name: str) -> torch.device:
    torch = require("torch", f"The device {name}")
    kind, _, number = name.partition(":") if isinstance(name, str) else ("", "", "")
    if kind not in DEVICES or (number and (kind != "cuda" or not number.isdigit())):
        raise InputError(
            f"The device must be one of {', '.join(DEVICES)} or cuda:NUMBER. Got {name!r} instead."
        )
    if kind == "cpu":
        return torch.device(name)
    n_devices, reason = _cuda_devices()
    if kind == "auto":
        if not n_devices:
            _log_use_of_the_cpu(reason)
        return torch.device("cuda" if n_devices else "cpu")
    if int(number or 0) >= n_devices:
        raise DeviceError(
            f"The device {name} cannot be used: {reason}. Use the device auto or cpu, or "
            "mend the driver."
            if reason
            else f"There is no device {name}: torch sees {n_devices} CUDA devices. "
            "Use the device auto or cpu, or install a torch with CUDA."
        )
    return torch.device(name)


def _cuda_devices() -> tuple[int, str]:
    """Return how many CUDA devices there are, and what is wrong with their driver, or ''."""
    import torch

    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            n_devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
    except (RuntimeError, OSError) as error:
        n_devices, problem = 0, str(error)
    else:
        problem = str(caught[-1].message) if caught and not n_devices else ""
    reason = problem.strip().partition("\n")[0].rstrip(".")
    return n_devices, f"the CUDA driver does not work ({reason})" if problem else ""


@cache
def _log_use_of_the_cpu(reason: str) -> None:
    """Log once in a process that `auto` found no CUDA device, or why it can use none."""
    if reason:
        _log.warning("Searches run on the CPU: %s.", reason)
    else:
        _log.info("No CUDA device was found, so searches run on the CPU.")


def normaliser_of(store: Store) -> Normaliser:
    try:
        normaliser = stored_normaliser(store)
        same = normaliser.fingerprint == store.manifest.fingerprints["normaliser"]
    except InputError:
        same = False
    if not same:
        raise IndexVersionError(
            f"The index '{store.path}' was written by {store.manifest.written_by} with other "
            "rules for normalising values than this version's "
            f"(version {NORMALISER_VERSION}). Build it again with this version, or search it "
            "with the one that wrote it."
        )
    return normaliser
