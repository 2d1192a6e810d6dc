"""A table to enrich: its columns by name."""

from __future__ import annotations

from typing import Any

from pexeso.errors import InputError
from pexeso.lake.frames.tables import Frame, table_in_memory


def table_to_enrich(table: Any) -> tuple[Frame, dict[str, Any]]:
    """Return a table, and its columns by name, in order."""
    frame = table_in_memory(table, "to enrich")
    twice = sorted({name for name in frame.names if frame.names.count(name) > 1})
    if twice:
        raise InputError(
            "Each column of the table to enrich must have a name of its own. Got several of "
            f"{', '.join(map(repr, twice))}."
        )
    if not len(frame.table):
        raise InputError("The table to enrich has no rows.")
    return frame, dict(zip(frame.names, frame.columns(), strict=True))
