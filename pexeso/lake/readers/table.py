"""A table in memory: the header as it stands and one Arrow string array for each column."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import TableReadError

DEFAULT_MAX_CELL_BYTES = 1 << 20
"""Largest cell that is kept, in bytes of UTF-8, unless told otherwise: 1 MiB.

Larger ones are read as empty.
"""

MAX_COLUMNS = 16_384
"""Most columns that a table may have (the limit of spreadsheets).

A file with more is not taken for a table.
"""


_FEW_CELLS = 500
_UTF8_BYTES = 4


@dataclass(frozen=True)
class Table:
    """One table as it stands in its file.

    Attributes
    ----------
    names
        The header, white space around each name removed; repeated and empty names are kept.
    columns
        One string array for each name, all of `n_rows` values; null where the cell is empty. Cells
        are otherwise as written, white space included.
    encoding
        Python's name of the character encoding; None for Parquet.
    delimiter
        What separates cells; None where the format has no delimiter.
    notes
        Sentences about what was repaired or left out while reading.
    """

    names: list[str]
    columns: list[pa.StringArray]
    encoding: str | None = None
    delimiter: str | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def n_rows(self) -> int:
        """Number of rows, the header not counted."""
        return len(self.columns[0]) if self.columns else 0


def check_width(shown: str, n_columns: int) -> None:
    """Refuse a table of more columns than `MAX_COLUMNS`, with a sentence."""
    if n_columns > MAX_COLUMNS:
        raise TableReadError(
            f"{shown} has {n_columns:,} columns; a table has at most {MAX_COLUMNS:,}."
        )


def clean_name(name: str) -> str:
    """Return a header name without white space and byte order marks around it."""
    return name.strip().strip("\ufeff").strip()


def empty_to_null(column: pa.StringArray, max_cell_bytes: int) -> tuple[pa.StringArray, int]:
    """Make empty cells and cells over the size limit null.

    Returns
    -------
    column, n_too_big
        The column, and how many cells were over the limit.
    """
    lengths = pc.binary_length(column)
    bounds = pc.min_max(lengths, skip_nulls=False).as_py()
    if bounds["min"] and bounds["max"] <= max_cell_bytes:
        return column, 0
    too_big = pc.greater(lengths, max_cell_bytes)
    n_too_big = pc.sum(too_big).as_py() or 0
    unwanted = pc.or_(too_big, pc.equal(lengths, 0)) if n_too_big else pc.equal(lengths, 0)
    if pc.any(unwanted).as_py():
        column = pc.if_else(unwanted, pa.scalar(None, column.type), column)
    return column, n_too_big


def cells_to_column(cells: Sequence[str], max_cell_bytes: int) -> tuple[pa.StringArray, int]:
    """Return cells as a column, empty ones and those over the size limit as null.

    Returns
    -------
    column, n_too_big
        The column, and how many cells were over the limit.
    """
    # Arrow's functions take longer to be called than a few hundred cells take in Python.
    if len(cells) <= _FEW_CELLS and _UTF8_BYTES * max(map(len, cells), default=0) <= max_cell_bytes:
        return strings([cell or None for cell in cells]), 0
    return empty_to_null(strings(cells), max_cell_bytes)


def too_big_note(n_too_big: int, max_cell_bytes: int) -> str:
    """Return the note about cells over the size limit."""
    return f"cells of more than {max_cell_bytes:,} bytes were read as empty: {n_too_big:,}"


def join_chunks(chunks: list[pa.StringArray]) -> pa.StringArray:
    """Return the chunks of one column as one string array; no chunks give an empty one."""
    if len(chunks) == 1:
        return chunks[0]
    return pa.concat_arrays(chunks) if chunks else pa.array([], pa.string())


def strings(values: list[str | None] | tuple[str | None, ...]) -> pa.StringArray:
    """Convert Python strings to an Arrow array.

    Lone surrogates, which UTF-8 cannot hold, become ``?``.
    """
    try:
        return pa.array(values, pa.string())
    except UnicodeEncodeError:
        texts = [
            None if value is None else value.encode("utf-8", "replace").decode("utf-8")
            for value in values
        ]
        return pa.array(texts, pa.string())
