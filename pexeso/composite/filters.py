"""The filters of rows that an index can keep, by their names and as plain JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from pexeso.composite.bloom import Bloom, hashes_for
from pexeso.composite.row_keys import RowFilter
from pexeso.composite.xash import Xash
from pexeso.errors import IndexCorruptError, InputError
from pexeso.registry import require_filters

_KINDS = {"bloom": Bloom, "xash": Xash}


def filters_of(names: Iterable[str], mean_columns: float) -> list[RowFilter]:
    """Return the filters of these names for rows of so many columns on average.

    Examples
    --------
    >>> filters_of(["bloom-128", "xash-128-ref"], 5)[0].n_hashes
    18
    """
    filters: list[RowFilter] = []
    for name in require_filters(names):
        kind, bits, *layout = name.split("-")
        if kind == "bloom":
            filters.append(Bloom(int(bits), hashes_for(int(bits), max(1.0, mean_columns))))
        else:
            filters.append(Xash(int(bits), layout="ref" if layout else "paper"))
    return filters


def filter_to_json(hashing: RowFilter) -> dict[str, Any]:
    """Return the name and the parameters of a filter as plain JSON."""
    return {"name": hashing.name, **asdict(hashing)}


def filter_from_json(document: Any) -> RowFilter:
    """Make a filter of what `filter_to_json` returned."""
    try:
        if not isinstance(document, Mapping):
            raise TypeError(f"it is {type(document).__name__}")
        options = dict(document)
        return _KINDS[options.pop("name")](**options)
    except (KeyError, TypeError, InputError) as error:
        raise IndexCorruptError(
            f"The manifest of the index tells of a filter of rows that none can have: {error}. "
            "Build the index again."
        ) from error
