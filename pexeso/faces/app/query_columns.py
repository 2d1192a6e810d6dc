"""The column, or the columns of a key, that a page searches with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pexeso.errors import InputError
from pexeso.lake.columns import (
    find_column,
    find_key_columns,
    label_columns,
    names_one_column,
    spec_of,
)
from pexeso.lake.containers.reader import read_table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.requests import Request

    from pexeso.faces.app.page import Pages
    from pexeso.faces.app.tables import QueryTable
    from pexeso.lake.readers.options import ReadingOptions


@dataclass(frozen=True)
class QueryColumns:
    table: QueryTable
    labels: tuple[str, ...]
    parameter: str

    @property
    def is_key(self) -> bool:
        return len(self.labels) > 1

    @property
    def name(self) -> str:
        return ", ".join(self.labels)

    @property
    def spec(self) -> str:
        return spec_of(self.labels) if self.is_key else self.labels[0]

    @property
    def query(self) -> dict[str, Any]:
        """The fields of requests that say what they are called, and how their file is read."""
        query = f"{self.table.spec}:{self.parameter}"
        return {"query": query, **self.table.reading.to_dict()}

    @property
    def path(self) -> str:
        return f"/tables/{self.table.id}"


def query_columns(pages: Pages, request: Request) -> QueryColumns:
    """Return the columns that an URL names, by ``column=``, which may occur several times."""
    table = pages.tables[request.path_params["table"]]
    # An uploaded file does not change, and each move of a slider needs its names again.
    names = (_names if table.is_of_lake else _names_once)(table.spec, table.reading)
    requested = [name for name in request.query_params.getlist("column") if name] or ["#0"]
    if len(requested) == 1 and names_one_column(names, requested[0]):
        position = find_column(names, requested[0])
        return QueryColumns(table, (label_columns(names)[position],), f"#{position}")
    key = find_key_columns(names, requested[0] if len(requested) == 1 else requested)
    marks = [f"#{column.position}{'~' if column.similar else ''}" for column in key]
    return QueryColumns(table, tuple(column.label for column in key), ",".join(marks))


def _names(spec: str, reading: ReadingOptions) -> tuple[str, ...]:
    return tuple(read_table(spec, options=reading).names)


_names_once = lru_cache(maxsize=20)(_names)


def only(given: Any, names: Iterable[str]) -> dict[str, Any]:
    return {name: given[name] for name in names if name in given}


def has_part(pages: Pages, name: str) -> bool:
    return name in pages.served.index.store.manifest.options.get("parts", ())


def lake_table(pages: Pages, name: str) -> dict[str, Any]:
    """Return what the catalog has about the table that a name means; see `Catalog.named`."""
    index = pages.served.index
    name = index.catalog.named(name)
    tables = index.catalog.tables(among=pa.array([name], pa.string())).to_pylist()
    if not tables:
        raise InputError(index.catalog.why_not(name, index.lake))
    return tables[0]


def lake_table_to_search(pages: Pages, name: str) -> QueryTable:
    return pages.tables.add_lake_table(
        str(pages.served.index.lake), lake_table(pages, name)["table"]
    )


def position_of(pages: Pages, table: str, label: str) -> str:
    """Return what names a column of the lake behind the name of a file, as ``#3``."""
    among = pa.array([table], pa.string())
    columns = pages.served.index.catalog.columns(["label", "position"], among=among)
    labels = columns.sort_by("position")["label"].to_pylist()
    if label not in labels:
        raise InputError(f"The index has no column {label!r} of {table!r}.")
    return f"#{labels.index(label)}"
