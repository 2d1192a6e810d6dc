"""Delimited text (CSV, TSV and their kin) to a table, by the standard library's `csv` parser."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain, islice
from typing import IO

import pyarrow as pa

from pexeso.errors import TableReadError
from pexeso.lake.readers.dialect import Dialect, detect_dialect
from pexeso.lake.readers.encoding import detect_encoding
from pexeso.lake.readers.table import (
    Table,
    check_cells,
    check_width,
    clean_name,
    empty_to_null,
    join_chunks,
    strings,
    too_big_note,
)

_SAMPLE_CHARACTERS = 64 << 10
_CELLS_A_CHUNK = 1 << 18
_ROWS_A_PLAIN_CHUNK = 4096
_CONTROL = re.compile(r"[\x01-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_MAX_CONTROL_FRACTION = 0.1
_LAST_LINE = "\x00pexeso end of table\x00"
"""Fed to the parser after the last line: it comes back as a row of its own unless a quotation mark
is still open.

It cannot be in a file, since text with NUL characters is refused.
"""


def parse_delimited(shown: str, data: bytes, extension: str, *, max_cell_bytes: int) -> Table:
    """Parse a delimited text; its first row that is not blank is the header.

    Rows shorter than the header are padded with nulls. Longer ones are cut, or, where most rows at
    the start are longer, the table gets further columns without names. From the line of a quotation
    mark that is never closed on, quotation marks are plain characters. Every repair is a note.
    Blank lines are no rows.

    Besides `data`, memory holds the columns (about the size of `data`) and one chunk of 256 Ki
    cells.

    Parameters
    ----------
    shown
        The file's name for messages.
    extension
        Lower case with its dot; a hint for the delimiter.
    max_cell_bytes
        Larger cells become null.
    """
    encoding = detect_encoding(data)
    if encoding is None:
        raise TableReadError(f"{shown} is binary, not delimited text.")
    notes = [encoding.note] if encoding.note else []
    sample = _decoded(data, encoding.name).read(_SAMPLE_CHARACTERS)
    if _looks_binary(sample):
        raise TableReadError(f"{shown} is binary, not delimited text.")
    dialect = detect_dialect(sample, extension, complete=len(sample) < _SAMPLE_CHARACTERS)
    # A setting of the whole process, so it is only ever raised; the limit on cells is applied to
    # what was parsed.
    csv.field_size_limit(max(csv.field_size_limit(), len(data) + 1))
    try:
        parsed = _ParsedRows(data, encoding.name, dialect)
        names, columns = _collect(shown, parsed, max_cell_bytes, notes)
    except csv.Error as error:
        raise TableReadError(f"{shown} cannot be parsed as delimited text: {error}.") from error
    return Table(names, columns, encoding.name, dialect.delimiter, notes + parsed.notes)


def _decoded(data: bytes, encoding: str) -> IO[str]:
    return io.TextIOWrapper(io.BytesIO(data), encoding=encoding, errors="replace", newline="")


def _looks_binary(sample: str) -> bool:
    """Return whether a text holds NUL, or at least a tenth of it is control characters.

    Only control characters that do not occur in text count.
    """
    return "\x00" in sample or len(_CONTROL.findall(sample)) > _MAX_CONTROL_FRACTION * len(sample)


class _ParsedRows:
    """The rows of a text, in lists of bounded size.

    A quotation mark that never closes is repaired.
    """

    def __init__(self, data: bytes, encoding: str, dialect: Dialect):
        self.data = data
        self.encoding = encoding
        self.dialect = dialect
        self.notes: list[str] = []

    def chunks(self) -> Iterator[list[list[str]]]:
        """Yield lists of rows, blank ones left out."""
        n_lines_done = 0
        n_rows = 1  # of the next list; the first holds one row, which tells how wide rows are
        reader = csv.reader(self._lines(), **self.dialect.csv_options())
        while rows := list(islice(reader, n_rows)):
            if _is_end(rows[-1]):
                yield [row for row in rows[:-1] if row]
            elif _has_swallowed_end(rows[-1]):
                yield from self._with_open_quote(n_lines_done)
            else:
                n_lines_done = reader.line_num
                n_rows = max(1, _CELLS_A_CHUNK // max(1, *map(len, rows)))
                yield [row for row in rows if row]

    def _lines(self, n_to_skip: int = 0) -> Iterator[str]:
        return chain(islice(_decoded(self.data, self.encoding), n_to_skip, None), [_LAST_LINE])

    def _with_open_quote(self, n_lines_done: int) -> Iterator[list[list[str]]]:
        """Parse again from a line on: quoted up to the row that never ends, unquoted from there."""
        reader = csv.reader(self._lines(n_lines_done), **self.dialect.csv_options())
        rows: list[list[str]] = []
        n_lines_good = n_lines_done
        for row in reader:
            if _has_swallowed_end(row):
                break
            n_lines_good = n_lines_done + reader.line_num
            rows.append(row)
        yield [row for row in rows if row]
        self.notes.append(
            f"a quotation mark in line {n_lines_good + 1:,} is never closed: "
            "from that line on quotation marks were read as plain characters"
        )
        plain = Dialect(self.dialect.delimiter, quotechar=None)
        reader = csv.reader(self._lines(n_lines_good), **plain.csv_options())
        while rows := list(islice(reader, _ROWS_A_PLAIN_CHUNK)):
            yield [row for row in rows if row and not _is_end(row)]


def _is_end(row: list[str]) -> bool:
    return row == [_LAST_LINE]


def _has_swallowed_end(row: list[str]) -> bool:
    return bool(row) and row[-1].endswith(_LAST_LINE)


def _collect(
    shown: str, parsed: _ParsedRows, max_cell_bytes: int, notes: list[str]
) -> tuple[list[str], list[pa.StringArray]]:
    """Turn rows into the header and columns, making all rows as wide as the header."""
    header: list[str] | None = None
    builder: _ColumnBuilder | None = None
    for rows in parsed.chunks():
        if header is None and rows:
            header, rows = rows[0], rows[1:]
        if header is not None and rows:
            builder = builder or _ColumnBuilder(
                shown, _width(header, rows), max_cell_bytes, len(parsed.data)
            )
            builder.add(rows)
    if header is None:
        raise TableReadError(f"{shown} is empty: it has no header row.")
    builder = builder or _ColumnBuilder(shown, len(header), max_cell_bytes, len(parsed.data))
    n_added = builder.width - len(header)
    if n_added > 0:
        notes.append(
            f"most rows are longer than the header: columns without a name were added: {n_added:,}"
        )
    names, n_too_big = empty_to_null(strings(header + [""] * n_added), max_cell_bytes)
    notes.extend(builder.notes(n_too_big))
    return [clean_name(name or "") for name in names.to_pylist()], builder.columns()


def _width(header: list[str], rows: list[list[str]]) -> int:
    """Return the number of columns: that of the header, or the usual one of longer rows.

    The latter is used if longer rows are the majority.
    """
    longer = [len(row) for row in rows if len(row) > len(header)]
    return Counter(longer).most_common(1)[0][0] if 2 * len(longer) > len(rows) else len(header)


class _ColumnBuilder:
    """Columns made from lists of rows, and counts of what had to be repaired."""

    def __init__(self, shown: str, width: int, max_cell_bytes: int, n_bytes: int):
        check_width(shown, width)
        self.shown, self.n_bytes = shown, n_bytes
        self.width = width
        self.max_cell_bytes = max_cell_bytes
        self.pieces: list[list[pa.StringArray]] = [[] for _ in range(width)]
        self.n_rows = self.n_short = self.n_long = self.n_too_big = 0

    def add(self, rows: list[list[str]]) -> None:
        self.n_rows += len(rows)
        check_cells(self.shown, self.n_rows, self.width, self.n_bytes)
        lengths = Counter(map(len, rows))
        if set(lengths) != {self.width}:
            self.n_short += sum(n for length, n in lengths.items() if length < self.width)
            self.n_long += sum(n for length, n in lengths.items() if length > self.width)
            padding = [""] * self.width
            rows = [(row + padding)[: self.width] for row in rows]
        for pieces, cells in zip(self.pieces, zip(*rows, strict=True), strict=True):
            piece, n_too_big = empty_to_null(strings(cells), self.max_cell_bytes)
            self.n_too_big += n_too_big
            pieces.append(piece)

    def columns(self) -> list[pa.StringArray]:
        return [join_chunks(pieces) for pieces in self.pieces]

    def notes(self, n_too_big_names: int) -> list[str]:
        notes = []
        if self.n_short:
            notes.append(
                f"rows shorter than the header were filled with empty cells: {self.n_short:,}"
            )
        if self.n_long:
            notes.append(f"rows longer than the header lost their surplus cells: {self.n_long:,}")
        n_too_big = self.n_too_big + n_too_big_names
        if n_too_big:
            notes.append(too_big_note(n_too_big, self.max_cell_bytes))
        return notes
