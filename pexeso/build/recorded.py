"""The build options that a manifest records, and their recovery for an update."""

from __future__ import annotations

from typing import Any

from embed.half import SINGLE
from pexeso.build.parts.metadata import stored_normaliser
from pexeso.errors import IndexCorruptError, InputError
from pexeso.lake.choose import ColumnRules
from pexeso.options import BuildOptions
from pexeso.registry import DEFAULT_FILTERS
from pexeso.store.local.reader import Store


def described(options: BuildOptions) -> dict[str, Any]:
    """Return what an index records of the options that it was built with, as plain JSON."""
    # They bring torch, for which nobody waits who has misspelt a folder.
    from pexeso.engine.layout.options import PartitionLayoutOptions
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
