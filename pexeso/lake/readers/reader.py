"""Read one file as a table, whatever its format."""

import os

import pyarrow as pa

from pexeso.errors import TableReadError
from pexeso.io.location import Location
from pexeso.lake.files import table_format
from pexeso.lake.readers.content import DEFAULT_MAX_BYTES, Content, read_content
from pexeso.lake.readers.delimited import parse_delimited
from pexeso.lake.readers.jsonlines import parse_jsonlines
from pexeso.lake.readers.options import AS_FOUND, ReadingOptions
from pexeso.lake.readers.parquet import parse_parquet
from pexeso.lake.readers.table import DEFAULT_MAX_CELL_BYTES, Table

_PARQUET_MAGIC = b"PAR1"


def read_table(
    path: str | os.PathLike[str] | Location,
    *,
    max_bytes: int = DEFAULT_MAX_BYTES,
    max_cell_bytes: int = DEFAULT_MAX_CELL_BYTES,
    options: ReadingOptions = AS_FOUND,
) -> Table:
    r"""Read a table file: delimited text, Parquet or JSON lines.

    Delimited text may have any encoding and dialect. Text may be gzipped.

    The format is told by the extension; a file with another extension is Parquet where it starts
    like Parquet, else delimited text. Memory: about three times the size of the file's text, hence
    bounded by `max_bytes`.

    Parameters
    ----------
    path
        The file: a path, an URL or a `Location`.
    max_bytes
        Limit on the file's size in bytes, also after decompression; at least 1.
    max_cell_bytes
        Limit on one cell in bytes of UTF-8; larger cells are read as empty, with a note.
    options
        How to read delimited text; what is not set is found.

    Returns
    -------
    Table
        Names, columns of strings, and notes about what was repaired.

    Raises
    ------
    TableReadError
        The file cannot be read as a table: one sentence says why.
    PlaceError
        The file is elsewhere, and its storage cannot be reached.
    """
    content = read_content(path, max_bytes=max_bytes)
    return parse_table(
        str(path), content, max_bytes=max_bytes, max_cell_bytes=max_cell_bytes, options=options
    )


def parse_table(
    shown: str,
    content: Content,
    *,
    max_bytes: int = DEFAULT_MAX_BYTES,
    max_cell_bytes: int = DEFAULT_MAX_CELL_BYTES,
    options: ReadingOptions = AS_FOUND,
) -> Table:
    """Make a table of a file's content; `shown`, its name, gives the format and stands in messages.

    See `read_table`.
    """
    try:
        return _parse(shown, content.data, max_bytes, max_cell_bytes, options)
    except MemoryError as error:
        raise TableReadError(
            f"{shown} does not fit into memory; lower max_bytes to leave such files out."
        ) from error
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise TableReadError(f"{shown} cannot be read as a table: {error}.") from error


def _parse(
    shown: str, data: bytes, max_bytes: int, max_cell_bytes: int, options: ReadingOptions
) -> Table:
    kind = table_format(shown)
    if kind == "parquet" or (kind is None and data.startswith(_PARQUET_MAGIC)):
        return parse_parquet(shown, data, max_bytes=max_bytes, max_cell_bytes=max_cell_bytes)
    if kind == "jsonlines":
        return parse_jsonlines(shown, data, max_cell_bytes=max_cell_bytes)
    name = shown.lower().removesuffix(".gz")
    return parse_delimited(
        shown, data, os.path.splitext(name)[1], max_cell_bytes=max_cell_bytes, options=options
    )
