"""Rows of a delimited text by the standard library's `csv` parser, in lists of bounded size."""

import csv
import io
import re
from collections.abc import Iterator
from itertools import islice
from typing import IO

from pexeso.lake.readers.budget import ReadingBudget
from pexeso.lake.readers.layout.conventions import with_inner_marks
from pexeso.lake.readers.layout.dialect import Dialect

_CELLS_A_CHUNK = 1 << 18
_MAX_REMEMBERED_BYTES = 64 << 20
_BYTES_A_LINE = 64
"""What a line takes in memory besides its characters."""


def decoded(data: bytes, encoding: str) -> IO[str]:
    """Return a text as a stream; what no character is written so becomes the mark for it."""
    return io.TextIOWrapper(io.BytesIO(data), encoding=encoding, errors="replace", newline="")


class ParsedRows:
    """The rows of a text from a line on, in lists of bounded size.

    A quotation mark that opens a cell by mistake is a plain character.
    """

    def __init__(
        self,
        data: bytes,
        encoding: str,
        dialect: Dialect,
        budget: ReadingBudget,
        n_lines_above: int = 0,
    ):
        self.data, self.budget = data, budget
        self.encoding = encoding
        self.dialect = dialect
        self.n_lines_above = n_lines_above
        self.notes: list[str] = []

    def chunks(self) -> Iterator[list[list[str]]]:
        """Yield lists of rows, blank lines as empty ones."""
        n_lines_done = self.n_lines_above
        n_rows = 1  # of the next list; the first holds one row, which tells how wide rows are
        width = 0
        reader = csv.reader(self._lines(n_lines_done), **self.dialect.csv_options(), strict=True)
        try:
            while rows := list(islice(reader, n_rows)):
                n_lines_done = self.n_lines_above + reader.line_num
                width = width or len(rows[0])
                n_rows = max(1, _CELLS_A_CHUNK // max(1, *map(len, rows)))
                self.budget.check_seconds()
                yield rows
        except csv.Error:
            yield from self._with_odd_quotes(n_lines_done, width)

    def _lines(self, n_to_skip: int) -> Iterator[str]:
        lines = islice(decoded(self.data, self.encoding), n_to_skip, None)
        return lines if self.dialect.escapechar is None else self._with_lone_backslashes(lines)

    def _with_lone_backslashes(self, lines: Iterator[str]) -> Iterator[str]:
        """Double the backslashes that escape nothing: the parser would drop them."""
        pattern = re.compile(rf'(\\[\\"{re.escape(self.dialect.delimiter)}\r\n])|\\')
        for line in lines:
            yield pattern.sub(lambda match: match[1] or r"\\", line)

    def _with_odd_quotes(self, n_lines_done: int, width: int) -> Iterator[list[list[str]]]:
        """Yield rows from a line on, where a quotation mark is not where the format has it."""
        lines = _RememberedLines(self._lines(n_lines_done))
        reader = csv.reader(lines, **self.dialect.csv_options())
        rows: list[list[str]] = []
        n_plain = first_plain = 0
        while (row := next(reader, None)) is not None:
            self.budget.check_seconds()
            row_lines, lines.remembered = lines.remembered, []
            width = width or len(row)
            if len(row_lines) > 1 or lines.is_done:
                as_plain = self._without_last_quote(row_lines[0])
                if self._is_opened_by_mistake(row_lines, row, as_plain, width):
                    row = as_plain
                    lines.put_back(row_lines[1:])
                    n_plain += 1
                    first_plain = first_plain or n_lines_done + 1
                    row_lines = row_lines[:1]
            if len(row_lines) == 1:
                row = with_inner_marks(row_lines[0], self.dialect, width) or row
            n_lines_done += len(row_lines)
            rows.append(row)
            if len(rows) * width >= _CELLS_A_CHUNK:
                yield rows
                rows = []
        yield rows
        if n_plain:
            self.notes.append(
                f"a quotation mark in line {first_plain:,} is never closed: "
                "it was read as a plain character"
                + (f", as were those of {n_plain - 1:,} more lines" if n_plain > 1 else "")
            )

    def _without_last_quote(self, line: str) -> list[str]:
        """Return the row of a line alone, the quotation mark that is open at its end as text."""
        options = self.dialect.csv_options()
        opened = f"{self.dialect.quotechar}{next(csv.reader([line], **options))[-1]}"
        before = line.removesuffix(opened)
        plain = csv.reader([opened], **Dialect(self.dialect.delimiter, None).csv_options())
        return [*next(csv.reader([before], **options), [])[:-1], *next(plain)]

    def _is_opened_by_mistake(
        self, lines: list[str], row: list[str], as_plain: list[str], width: int
    ) -> bool:
        """Return whether a quotation mark of the first line opens no cell that ends properly.

        It is never closed; or it is by one within a cell of a later line, and it is the first line
        alone that is as wide as other rows.
        """
        options = self.dialect.csv_options()
        if len(list(csv.reader([*lines, "x"], **options))) == 1:
            return True
        if len(as_plain) != width:
            return False
        if len(row) == width and not self._are_rows(lines[1:], width):
            return False
        strict = csv.reader(lines, **options, strict=True)
        try:
            next(strict)
        except csv.Error:
            return strict.line_num > 1
        return False

    def _are_rows(self, lines: list[str], width: int) -> bool:
        """Return whether each line alone is as wide as a row; the last has a mark within a cell."""
        plain = Dialect(self.dialect.delimiter, None).csv_options()
        whole = csv.reader(lines[:-1], **self.dialect.csv_options())
        return all(len(row) == width for row in (*whole, *csv.reader(lines[-1:], **plain)))


class _RememberedLines:
    """Lines, remembered as they are taken; some may be put back.

    Where more are taken for one row than memory has room for, they seem to be done: the quotation
    mark that goes on so far is taken for one that is never closed.
    """

    def __init__(self, lines: Iterator[str]):
        self._lines = lines
        self._waiting: list[str] = []
        self._remembered: list[str] = []
        self._n_bytes = 0
        self.is_done = False

    @property
    def remembered(self) -> list[str]:
        """Lines that were taken since it was last set."""
        return self._remembered

    @remembered.setter
    def remembered(self, lines: list[str]) -> None:
        self._remembered, self._n_bytes = lines, 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if self._n_bytes > _MAX_REMEMBERED_BYTES:
            self.is_done = True
            raise StopIteration
        if self._waiting:
            line = self._waiting.pop()
        else:
            try:
                line = next(self._lines)
            except StopIteration:
                self.is_done = True
                raise
        self._remembered.append(line)
        self._n_bytes += len(line) + _BYTES_A_LINE
        return line

    def put_back(self, lines: list[str]) -> None:
        """Have lines taken once more, before all others."""
        self._waiting += reversed(lines)
        self.is_done = False
