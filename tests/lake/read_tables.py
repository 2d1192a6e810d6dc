"""Tables of bytes in memory, as the tests of readers look at them."""

from collections.abc import Iterable
from pathlib import Path

import pexeso
from pexeso.lake.catalog import Catalog
from pexeso.lake.choose import ColumnRules
from pexeso.lake.containers.formats import Container, holds_several, only_member
from pexeso.lake.containers.reader import OpenTable
from pexeso.lake.files import TableFile, find_tables
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.lake.readers.delimited import parse_delimited
from pexeso.lake.readers.options import ReadingOptions
from pexeso.lake.readers.table import (
    DEFAULT_MAX_BYTES,
    DEFAULT_MAX_CELL_BYTES,
    FileSource,
    ReadingBudget,
    Table,
)
from pexeso.lake.records import lake_records
from pexeso.store.opening import open_store_anywhere

_OF_TABLE = ["table", "n_rows", "n_columns", "reason"]
_OF_COLUMN = ["table", "position", "label", "kind", "n_rows", "n_missing", "n_distinct", "reason"]


def as_bytes(data: str | bytes) -> bytes:
    return data.encode() if isinstance(data, str) else data


def read_data(
    data: str | bytes,
    name: str = "t.csv",
    *,
    max_bytes: int = DEFAULT_MAX_BYTES,
    max_cell_bytes: int = DEFAULT_MAX_CELL_BYTES,
) -> Table:
    """Read the one table of a file with this name and content."""
    source, inner = FileSource(name, data=as_bytes(data), max_bytes=max_bytes), None
    if holds_several(name):
        source, inner = Container(source).enter(only_member(source))
    return OpenTable(name, source, inner, None).text(max_cell_bytes=max_cell_bytes)


def read_delimited(data: str | bytes, extension: str = ".csv", **options) -> Table:
    data = as_bytes(data)
    budget = ReadingBudget(f"t{extension}", len(data))
    options = ReadingOptions(**options)
    return parse_delimited(data, budget, extension, max_cell_bytes=1 << 20, options=options)


def records_of(files: Iterable[TableFile], rules: ColumnRules | None = None) -> list[dict]:
    """Return the records of tables of a lake, in order."""
    batches = lake_records(files, rules or ColumnRules(), Normaliser())
    return [row for batch in batches for row in batch.to_pylist()]


def index_content(index: pexeso.Index) -> tuple[list[dict], list[dict]]:
    """Return what an index knows of its tables and of their columns."""
    catalog = Catalog(open_store_anywhere(index.path).catalog_files)
    columns = catalog.columns(_OF_COLUMN).to_pylist()
    columns.sort(key=lambda column: (column["table"], column["position"]))
    return catalog.tables(_OF_TABLE).sort_by("table").to_pylist(), columns


def lake_content(lake: Path, rules: ColumnRules) -> tuple[list[dict], list[dict]]:
    """Return what an index of a lake would know, as `index_content` does; none is built."""
    rows = records_of(find_tables(lake)[0], rules)
    return tuple(
        [{name: row[name] for name in names} for row in rows if row["record"] == kind]
        for kind, names in (("table", _OF_TABLE), ("column", _OF_COLUMN))
    )


def rows_of(table: Table) -> list[list[str | None]]:
    return list(map(list, zip(*(column.to_pylist() for column in table.columns), strict=True)))
