"""A table in memory, as it was written, and what reading one may take.

A small file can stand for any number of bytes and cells, or for work without end. Each reader asks
its budget before it sets memory aside, and between pieces. All bounds follow from the size of the
file as it is stored, so that whoever sends a small file has a small budget.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import TableReadError

# Largest file that is read, in bytes after decompression, by default: 1 GiB.
DEFAULT_MAX_BYTES = 1 << 30

# A file may unpack to so many times its size, and to so many bytes in any case.
MAX_RATIO, MIN_UNPACKED_BYTES = 250, 32 << 20

# A table may have so many cells for each byte of its file, and so many in any case.
#
# A cell takes a byte of a text at least, if only a delimiter; in a table of the filled-in ends of
# short rows, of objects without most of the keys, or of nulls, it takes none.
CELLS_A_BYTE, MIN_CELLS = 4, 32 << 20

# Reading may take so many seconds of processor time, and so many more for each MiB.
MIN_SECONDS, SECONDS_A_MIB = 10, 4

_Item = TypeVar("_Item")


class ReadingBudget:
    """The bounds of reading one table; its clock runs from when it is made."""

    def __init__(self, shown: str, n_bytes: int, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self.shown, self.n_bytes, self.max_bytes = shown, n_bytes, max_bytes
        self._since, self._spent = time.thread_time(), 0.0

    @property
    def max_unpacked(self) -> int:
        return min(self.max_bytes, max(MAX_RATIO * self.n_bytes, MIN_UNPACKED_BYTES))

    @property
    def max_seconds(self) -> int:
        return MIN_SECONDS + SECONDS_A_MIB * (self.n_bytes >> 20)

    def check_unpacked(self, n_bytes: int) -> None:
        if n_bytes > self.max_bytes:
            raise TableReadError(
                f"{self.shown} holds more than {self.max_bytes:,} bytes, the most that is read "
                "(max_bytes)."
            )
        if n_bytes > self.max_unpacked:
            raise TableReadError(
                f"{self.shown} is refused: its {self.n_bytes:,} bytes unpack to more than "
                f"{self.max_unpacked:,}; unpack it yourself if that is meant."
            )

    def check_unpacked_columns(self, n_bytes: float) -> None:
        if n_bytes > self.max_bytes:
            raise TableReadError(
                f"{self.shown} unpacks to more than {self.max_bytes:,} bytes, the most that is "
                "read (max_bytes)."
            )

    def check_cells(self, n_rows: int, n_columns: int, n_unpacked: int = 0) -> None:
        """Raise `TableReadError` for more cells than a table of so many bytes has.

        n_unpacked: bytes of the text, where the file is packed.
        """
        n_bytes = max(self.n_bytes, n_unpacked)
        if n_rows * max(1, n_columns) > max(CELLS_A_BYTE * n_bytes, MIN_CELLS):
            raise TableReadError(
                f"{self.shown} has almost no cells: it comes to more than {n_rows:,} rows of "
                f"{n_columns:,} columns, and has {n_bytes:,} bytes."
            )

    def is_over(self) -> bool:
        return self._spent + time.thread_time() - self._since > self.max_seconds

    def check_seconds(self) -> None:
        if self.is_over():
            raise self.out_of_time()

    def out_of_time(self) -> TableReadError:
        return TableReadError(
            f"{self.shown} cannot be read: after {self.max_seconds:,} seconds of work there was no "
            "end."
        )

    def paced(self, items: Iterable[_Item]) -> Iterator[_Item]:
        """Yield items; what is done between them by whoever asks takes none of the time."""
        iterator = iter(items)
        while True:
            self._since = time.thread_time()
            try:
                item = next(iterator)
            except StopIteration:
                return
            self.check_seconds()
            self._spent += time.thread_time() - self._since
            yield item


# Largest cell that is kept, in bytes of UTF-8, by default: 1 MiB.
#
# Larger ones are read as empty.
DEFAULT_MAX_CELL_BYTES = 1 << 20

# Most columns that a table may have (the limit of spreadsheets).
#
# A file with more is not taken for a table.
MAX_COLUMNS = 16_384

_FEW_CELLS = 500
_UTF8_BYTES = 4


@dataclass(frozen=True)
class Table:
    """One table as written in its file."""

    # The header, white space around each name removed; repeated and empty names are kept.
    names: list[str]
    # One string array for each name, all of `n_rows` values; null where the cell is empty. Cells
    # are otherwise as written, white space included.
    columns: list[pa.StringArray]
    encoding: str | None = None  # Python's name of the character encoding; None for Parquet
    delimiter: str | None = None  # What separates cells; None where the format has no delimiter.
    # Sentences about what was repaired or left out while reading.
    notes: list[str] = field(default_factory=list)

    @property
    def n_rows(self) -> int:
        return len(self.columns[0]) if self.columns else 0


def check_width(shown: str, n_columns: int) -> None:
    if n_columns > MAX_COLUMNS:
        raise TableReadError(
            f"{shown} has {n_columns:,} columns; a table has at most {MAX_COLUMNS:,}."
        )


def clean_name(name: str) -> str:
    return name.strip().strip("\ufeff").strip()


def empty_to_null(column: pa.StringArray, max_cell_bytes: int) -> tuple[pa.StringArray, int]:
    """Make empty cells and cells over the size limit null.

    Returned with the column is how many cells were over the limit.
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

    Returned with the column is how many cells were over the limit.
    """
    # Arrow's functions take longer to be called than a few hundred cells take in Python.
    if len(cells) <= _FEW_CELLS and _UTF8_BYTES * max(map(len, cells), default=0) <= max_cell_bytes:
        return strings([cell or None for cell in cells]), 0
    return empty_to_null(strings(cells), max_cell_bytes)


def too_big_note(n_too_big: int, max_cell_bytes: int) -> str:
    return f"cells of more than {max_cell_bytes:,} bytes were read as empty: {n_too_big:,}"


def join_chunks(chunks: list[pa.StringArray]) -> pa.StringArray:
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
