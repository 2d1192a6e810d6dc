"""Tables of bytes in memory, as the tests of readers look at them."""

from pexeso.lake.containers.formats import Container, holds_several, only_member
from pexeso.lake.containers.reader import OpenTable
from pexeso.lake.readers.delimited import parse_delimited
from pexeso.lake.readers.options import ReadingOptions
from pexeso.lake.readers.table import (
    DEFAULT_MAX_BYTES,
    DEFAULT_MAX_CELL_BYTES,
    FileSource,
    ReadingBudget,
    Table,
)


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


def rows_of(table: Table) -> list[list[str | None]]:
    return list(map(list, zip(*(column.to_pylist() for column in table.columns), strict=True)))
