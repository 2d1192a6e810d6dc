"""Edges as joins of tables for OpenMetadata.

A line for each table: its fully qualified name, and the joins as the catalogue takes them for a
table (`PUT /api/v1/tables/{id}/joins`, its type `tableJoins`). OpenMetadata counts how often
columns were joined; nothing was joined here, so that `joinCount` is the number of distinct values
that match, by which it orders joins.

The catalogue takes the joins of a table all together or not at all, and refuses them where it does
not know one of the columns. Columns without a name, and names that it cannot hold, are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from pexeso.joins.exports.edges import Edges, named_rows
from pexeso.joins.exports.formats import ExportFormat, Naming
from pexeso.joins.exports.lines import write_lines

_RESERVED = {'"': "__reserved__quote__", "::": "__reserved__colon__", ">": "__reserved__arrow__"}
"""What OpenMetadata's own ingestion writes for what names must not have."""

_HELD = re.compile("[^\n\r\x85\u2028\u2029]{1,256}")
_NAMES = ("left_table", "left_column", "right_table", "right_column")


def write_openmetadata(edges: Edges, path: Path, naming: Naming) -> None:
    """Write an object for each table that joins, one a line."""
    write_lines(path, [_lines(edges, naming.namespace)])


def _lines(edges: Edges, namespace: str) -> Iterator[str]:
    today = datetime.now(UTC).date().isoformat()
    rows = (
        row
        for row in named_rows(edges)
        if all(_HELD.fullmatch(local_name(row[name])) for name in _NAMES)
    )
    for table, of_table in groupby(rows, itemgetter("left_table")):
        columns = [
            {
                "columnName": local_name(name),
                "joinedWith": [
                    {
                        "fullyQualifiedName": qualified(
                            namespace, row["right_table"], row["right_column"]
                        ),
                        "joinCount": row["matched"],
                    }
                    for row in of_column
                ],
            }
            for name, of_column in groupby(of_table, itemgetter("left_column"))
        ]
        joins = {"startDate": today, "dayCount": 1, "columnJoins": columns}
        line = {"table": qualified(namespace, table), "joins": joins}
        yield json.dumps(line, ensure_ascii=False)


def local_name(name: str) -> str:
    """Return the name that OpenMetadata has for a table or a column.

    Examples
    --------
    >>> local_name('a "b"')
    'a __reserved__quote__b__reserved__quote__'
    """
    for text, instead in _RESERVED.items():
        name = name.replace(text, instead)
    return name


def qualified(namespace: str, *names: str) -> str:
    """Return a fully qualified name; names with a dot are quoted.

    Examples
    --------
    >>> qualified("files.default.lake", "geo/cities.csv", "city")
    'files.default.lake."geo/cities.csv".city'
    """
    local = [local_name(name) for name in names]
    return ".".join([namespace, *(f'"{name}"' if "." in name else name for name in local)])


OPENMETADATA = ExportFormat(
    "openmetadata", ".jsonl", write_openmetadata, levels=("SERVICE", "DATABASE", "SCHEMA")
)
