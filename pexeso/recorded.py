"""What a manifest records of how an index was built, and the options that it gives again for an update."""

from __future__ import annotations

from typing import Any

from pexeso import __version__
from pexeso.engine.grid_options import LAYOUT_VERSION, GridOptions
from pexeso.errors import IndexCorruptError, InputError
from pexeso.lake.choose import ColumnRules
from pexeso.lake.normalise import Normaliser
from pexeso.options import BuildOptions
from pexeso.store.manifest import Manifest


def described(options: BuildOptions) -> dict[str, Any]:
    """Give what an index records of the options that it was built with, as plain JSON."""
    return {
        "model": options.model,
        "grid": vars(GridOptions(**options.grid())),
        "layout": LAYOUT_VERSION,
        "clustering": options.clustering,
        "n_partitions": options.n_partitions,
        "partition_bytes": options.partition_bytes,
        "rules": options.rules.to_dict(),
        "normaliser": options.normaliser.to_json(),
        "max_table_bytes": options.max_table_bytes,
        "parts": list(options.parts),
        "seed": options.seed,
    }


def options_of(manifest: Manifest) -> BuildOptions:
    """Give the options that an index was built with.

    Raises
    ------
    IndexCorruptError
        The manifest has none that this version knows.
    """
    described = manifest.options
    try:
        grid = {name: value for name, value in described["grid"].items() if name in BuildOptions.__dataclass_fields__}
        names = ("clustering", "n_partitions", "partition_bytes", "max_table_bytes")
        return BuildOptions(
            **{name: described[name] for name in names},
            **grid,
            parts=described.get("parts", ()),
            rules=ColumnRules.from_dict(described["rules"]),
            normaliser=Normaliser.from_json(described["normaliser"]),
        )
    except (KeyError, TypeError, AttributeError, InputError) as error:
        raise IndexCorruptError(
            f"The manifest of the index does not say how it was built: {error}. Build it again."
        ) from error


def kept_records(manifest: Manifest) -> dict[str, Any]:
    """Give what an update writes into the manifest as it found it: the arguments `written_by`, `options` and `fingerprints` of a commit."""
    return {
        "written_by": f"pexeso {__version__}",
        "options": manifest.options,
        "fingerprints": manifest.fingerprints,
    }
