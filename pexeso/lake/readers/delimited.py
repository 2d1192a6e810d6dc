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
from pexeso.lake.readers.beginning import (
    Beginning,
    comment_lines,
    find_beginning,
    join_header,
    separator_line,
)
from pexeso.lake.readers.conventions import (
    MAX_ROWS_BELOW,
    are_tags,
    have_row_names,
    is_drawn,
    other_table,
    repeats_header,
    require_no_document,
    require_table,
    rows_below,
    with_inner_marks,
    without_formulas,
    without_total,
)
from pexeso.lake.readers.dialect import Dialect, are_quoted_lines, detect_dialect, doubled_delimiter
from pexeso.lake.readers.encoding import (
    ENCODED_TWICE,
    MIXED,
    Encoding,
    detect_encoding,
    encoded_once,
    parts_encoded_once,
    with_marks,
    with_other_lines,
)
from pexeso.lake.readers.options import AS_FOUND, ReadingOptions
from pexeso.lake.readers.table import (
    ReadingBudget,
    Table,
    cells_to_column,
    check_width,
    clean_name,
    join_chunks,
    too_big_note,
)

_CELLS_A_CHUNK = 1 << 18
_MAX_REMEMBERED_BYTES = 64 << 20
# What a line takes in memory besides its characters.
_BYTES_A_LINE = 64

_SAMPLE_CHARACTERS = 64 << 10
_SHOWN_CHARACTERS = 60
_MANY_ROWS = 1 << 12
_MIN_LONGER = 0.25
_MAX_CELL_CHARACTERS = 64 << 20
_CONTROL = re.compile(r"[\x01-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_MAX_CONTROL_FRACTION = 0.1
_ANY_CONTROL = re.compile(_CONTROL.pattern.encode())
_MAX_NULL_FRACTION = 0.1
_SELDOM_TABLES = (".txt",)
_QUOTED_LINE = re.compile(rb'^"((?:[^"\r\n]|"")*)"[ ,;\t]*(?=\r?$)', re.MULTILINE)
# What old programs write behind a text.
_END_OF_TEXT = b"\x1a"


def decoded(data: bytes, encoding: str) -> IO[str]:
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
        n_lines_done = self.n_lines_above
        n_rows = 1  # of the next list; the first holds one row, which shows how wide rows are
        width = 0
        reader = self.dialect.reader(self._lines(n_lines_done), strict=True)
        try:
            while rows := list(islice(reader, n_rows)):
                n_lines_done = self.n_lines_above + reader.line_num
                width = width or len(rows[0])
                n_rows = max(1, _CELLS_A_CHUNK // max(1, *map(len, rows)))
                self.budget.check_seconds()
                yield rows
                del rows  # before the next are made
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
        lines = _RememberedLines(self._lines(n_lines_done))
        reader = self.dialect.reader(lines)
        rows: list[list[str]] = []
        n_plain = first_plain = 0
        while (row := next(reader, None)) is not None:
            self.budget.check_seconds()
            row_lines = lines.row_lines()
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
        opened = f"{self.dialect.quotechar}{next(self.dialect.reader([line]))[-1]}"
        before = line.removesuffix(opened)
        plain = Dialect(self.dialect.delimiter, None).reader([opened])
        return [*next(self.dialect.reader([before]), [])[:-1], *next(plain)]

    def _is_opened_by_mistake(
        self, lines: list[str], row: list[str], as_plain: list[str], width: int
    ) -> bool:
        """Return whether a quotation mark of the first line opens no cell that ends properly.

        It is never closed; or it is by one within a cell of a later line, and it is the first line
        alone that is as wide as other rows.
        """
        if len(list(self.dialect.reader([*lines, "x"]))) == 1:
            return True
        if len(as_plain) != width:
            return False
        if len(row) == width and not self._are_rows(lines[1:], width):
            return False
        strict = self.dialect.reader(lines, strict=True)
        try:
            next(strict)
        except csv.Error:
            return strict.line_num > 1
        return False

    def _are_rows(self, lines: list[str], width: int) -> bool:
        """Return whether each line alone is as wide as a row; the last has a mark within a cell."""
        plain = Dialect(self.dialect.delimiter, None).reader(lines[-1:])
        return all(len(row) == width for row in (*self.dialect.reader(lines[:-1]), *plain))


class _RememberedLines:
    """Lines, remembered as they are taken; some may be put back.

    Where more are taken for one row than memory has room for, they seem to be done: the quotation
    mark that goes on so far is taken for one that is never closed.
    """

    def __init__(self, lines: Iterator[str]):
        self._lines = lines
        self._waiting: list[str] = []
        self._row_lines: list[str] = []
        self._n_bytes = 0
        self.is_done = False

    def row_lines(self) -> list[str]:
        """Return the lines that were taken since this was last called."""
        lines, self._row_lines, self._n_bytes = self._row_lines, [], 0
        return lines

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = None
        if self._n_bytes <= _MAX_REMEMBERED_BYTES:
            line = self._waiting.pop() if self._waiting else next(self._lines, None)
        if line is None:
            self.is_done = True
            raise StopIteration
        self._row_lines.append(line)
        self._n_bytes += len(line) + _BYTES_A_LINE
        return line

    def put_back(self, lines: list[str]) -> None:
        self._waiting += reversed(lines)
        self.is_done = False


def parse_delimited(
    data: bytes,
    budget: ReadingBudget,
    extension: str,
    *,
    max_cell_bytes: int,
    options: ReadingOptions = AS_FOUND,
) -> Table:
    """Parse a delimited text; its first row that is no title, comment or blank line is the header.

    The header may have several rows, or none where the first row is data like the others: its
    columns are without names then. Notes below the table are left out.

    Rows shorter than the header are padded with nulls. Longer ones are cut, or, where a quarter of
    the rows at the start are longer, the table gets further columns without names. A quotation mark
    that is never closed is a plain character. Every repair is a note.
    Blank lines are no rows.

    Besides `data`, memory holds the columns (about the size of `data`) and one chunk of 256 Ki
    cells. A cell has at most 64 Mi characters.
    """
    shown = budget.shown
    encoding, data = _encoding(shown, data, options)
    notes = [encoding.note] if encoding.note else []
    twice = data = data.removesuffix(_END_OF_TEXT)
    if encoding == Encoding("utf-8"):
        data = encoded_once(twice)
        data = parts_encoded_once(twice) if data is twice else data
    if data is not twice:
        notes.append(ENCODED_TWICE)
    original = data
    if encoding.name in ("utf-8", "utf-8-sig") and (data := with_marks(data)) is not original:
        notes.append("control characters were read as what Windows-1252 has in their place")
    sample = decoded(data, encoding.name).read(_SAMPLE_CHARACTERS)
    if options.delimiter is None and (cut := _plainly_cut(data, sample, notes)) != data:
        data, sample = cut, decoded(cut, encoding.name).read(_SAMPLE_CHARACTERS)
    n_control = len(_CONTROL.findall(sample))
    if "\x00" in sample or n_control > _MAX_CONTROL_FRACTION * len(sample):
        raise TableReadError(f"{shown} is binary, not delimited text.")
    if options.delimiter is None and options.skip_rows is None:
        require_no_document(shown, sample)
    if len(sample) < _SAMPLE_CHARACTERS and not sample.strip("\ufeff \t\r\n"):
        raise TableReadError(f"{shown} is empty: it has no header row.")
    # A setting of the whole process, so it is only ever raised; the limit on cells is applied to
    # what was parsed.
    csv.field_size_limit(max(csv.field_size_limit(), _MAX_CELL_CHARACTERS))
    try:
        dialect, beginning = _layout(shown, sample, extension, options, notes)
        parsed = ParsedRows(data, encoding.name, dialect, budget, beginning.n_lines)
        names, columns = _collect(parsed, beginning.n_header_rows, max_cell_bytes, notes)
    except csv.Error as error:
        raise TableReadError(f"{shown} cannot be parsed as delimited text: {error}.") from error
    return Table(names, columns, encoding.name, dialect.delimiter, notes + parsed.notes)


def _encoding(shown: str, data: bytes, options: ReadingOptions) -> tuple[Encoding, bytes]:
    if options.encoding is not None:
        return Encoding(options.encoding), data
    encoding = detect_encoding(data)
    if encoding is None and (text := _without_nulls(data)) is not None:
        n_nulls = len(data) - len(text)
        return Encoding("utf-8", f"NUL characters were left out: {n_nulls:,}"), text
    if encoding is None:
        raise TableReadError(f"{shown} is binary, not delimited text.")
    if encoding.note and encoding.name in ("utf-8", "cp1252") and (text := with_other_lines(data)):
        return Encoding("utf-8", MIXED), text
    return encoding, data


def _without_nulls(data: bytes) -> bytes | None:
    """Return a text without the NULs that programs write for empty cells, or to fill a file up.

    None where there are many others, or bytes that no text has.
    """
    body = data.rstrip(b"\0")
    if not body.endswith((b"\n", b"\r")):  # what fills a file up comes after a whole line
        body = data
    text = body.replace(b"\0", b"")
    if len(body) - len(text) > _MAX_NULL_FRACTION * len(body):
        return None
    encoding = detect_encoding(text)
    is_text = encoding is not None and encoding.name == "utf-8" and encoding.note is None
    return text if is_text and not _ANY_CONTROL.search(text) else None


def _plainly_cut(data: bytes, sample: str, notes: list[str]) -> bytes:
    """Return a text as one that the parser can cut; of two bytes a letter as it is."""
    cut = data
    if are_quoted_lines(sample):
        cut = _QUOTED_LINE.sub(rb"\1", data).replace(b'""', b'"')
        note = "quotation marks around whole lines were left out"
    elif (doubled := doubled_delimiter(sample)) is not None:
        cut, note = data.replace(doubled.encode(), b"\t"), f"cells are cut by {doubled!r}"
    notes += [note] if cut is not data and cut != data else []
    return cut


def _layout(
    shown: str, sample: str, extension: str, options: ReadingOptions, notes: list[str]
) -> tuple[Dialect, Beginning]:
    complete = len(sample) < _SAMPLE_CHARACTERS
    n_skipped, delimiter = options.skip_rows, options.delimiter
    if n_skipped is None and (named := separator_line(sample)) is not None:
        delimiter = delimiter or named[0]
        n_skipped_first, body = 1, sample[named[1] :]
        notes.append(f"the first line, which names the separator {named[0]!r}, was left out")
    else:
        n_skipped_first, body = n_skipped or 0, _without_lines(sample, n_skipped or 0)
    n_comments = comment_lines(body) if n_skipped is None else 0
    dialect = detect_dialect(
        _without_lines(body, n_comments), extension, complete=complete, delimiter=delimiter
    )
    beginning = find_beginning(
        body, dialect, complete=complete, n_comments=n_comments, at_start=n_skipped is not None
    )
    if extension in _SELDOM_TABLES and delimiter is None:
        require_table(shown, _without_lines(body, beginning.n_lines), dialect, complete=complete)
    if n_skipped is None and beginning.n_lines:
        notes.append(f"lines above the header were left out: {beginning.n_lines:,}")
    n_header_rows = beginning.n_header_rows if options.header is None else options.header
    if options.header is None and n_header_rows != 1:
        notes.append(
            f"the header has {n_header_rows} rows: their names were joined"
            if n_header_rows
            else "there is no header: the first row is data, and columns have no names"
        )
    return dialect, Beginning(n_skipped_first + beginning.n_lines, n_header_rows)


def _without_lines(text: str, n_lines: int) -> str:
    if not n_lines:
        return text
    return "".join(islice(io.StringIO(text, newline=""), n_lines, None))


def _collect(
    parsed: ParsedRows, n_header_rows: int, max_cell_bytes: int, notes: list[str]
) -> tuple[list[str], list[pa.StringArray]]:
    header: list[list[str]] = []
    builder: _ColumnBuilder | None = None
    n_repeated = n_drawn = 0
    for rows, is_last in _with_last(parsed.chunks()):
        if builder is None:
            n_filled = [position for position, row in enumerate(rows) if row]
            positions = n_filled[: n_header_rows - len(header)]
            header += [rows[position] for position in positions]
            rows = rows[positions[-1] + 1 :] if positions else rows
            if len(header) < n_header_rows or not any(rows):
                continue
        other = other_table(rows, chain.from_iterable(header)) if header else None
        if other is not None:
            notes.append(other[1])
            rows, is_last = rows[: other[0]], True
        if builder is None:
            first = next(position for position, row in enumerate(rows) if row)
            if header and are_tags(rows[first]):
                notes.append("the row of tags below the header was left out")
                del rows[: first + 1]
            filled = [row for row in rows if row]
            if len(header) == 1 and have_row_names(header[0], filled):
                header[0] = ["", *header[0]]
                notes.append("the first column has no name in the header: rows are called by it")
            width = _width(header, filled)
            del filled  # these rows are done long before the last ones come
            builder = _ColumnBuilder(width, max_cell_bytes, parsed)
        if is_last and (n_below := rows_below(rows, builder.width)):
            notes.append(_note_on_rows_below(rows[-n_below:]))
            rows = rows[:-n_below]
        rows = [row for row in rows if row]
        n_rows = len(rows)
        rows = [row for row in rows if not is_drawn(row)]
        n_drawn += n_rows - len(rows)
        n_rows = len(rows)
        rows = [row for row in rows if not any(repeats_header(row, names) for names in header)]
        n_repeated += n_rows - len(rows)
        if rows:
            builder.add(rows)
        del rows
        if other is not None:
            break
    if n_drawn:
        notes.append(f"lines of dashes were left out: {n_drawn:,}")
    if n_repeated:
        notes.append(f"rows that repeat the header were left out: {n_repeated:,}")
    if not header and builder is None:
        raise TableReadError(f"{parsed.budget.shown} is empty: it has no header row.")
    width = max(map(len, header), default=0)
    builder = builder or _ColumnBuilder(width, max_cell_bytes, parsed)
    n_added = builder.width - width
    if header and n_added > 0:
        notes.append(
            f"many rows are longer than the header: columns without a name were added: {n_added:,}"
        )
    joined = header[0] if len(header) == 1 else join_header(header, builder.width)
    header_cells = [*joined, *([""] * (builder.width - len(joined)))]
    names, n_too_big = cells_to_column(header_cells, max_cell_bytes)
    notes.extend(builder.notes(n_too_big))
    names, *columns = without_formulas(
        [names, *map(join_chunks, builder.pieces)], parsed.data, notes
    )
    columns = without_total(columns, notes)
    return [clean_name(name or "") for name in names.to_pylist()], columns


def _with_last(chunks: Iterator[list[list[str]]]) -> Iterator[tuple[list[list[str]], bool]]:
    """Yield lists of rows, and whether each is the last; that one has all rows of the end.

    No more rows are held back than that takes, but for the few of a small table.
    """
    held: list[list[str]] = []
    for rows in chunks:
        held += rows
        del rows
        if len(held) > _MANY_ROWS:
            yield held[:-MAX_ROWS_BELOW], False
            held = held[-MAX_ROWS_BELOW:]
    yield held, True


def _note_on_rows_below(rows: list[list[str]]) -> str:
    first = next(text for row in rows if (text := " ".join(row).strip()))
    shown = first if len(first) <= _SHOWN_CHARACTERS else f"{first[:_SHOWN_CHARACTERS]}..."
    n_filled = sum(1 for row in rows if any(row))
    return f"lines below the table were left out: {n_filled:,} ({shown})"


def _width(header: list[list[str]], rows: list[list[str]]) -> int:
    """Return the number of columns: that of the header, or the usual one of longer rows.

    The latter is used if at least a quarter of all rows are that much longer: they are a second
    table, or the header is short.
    """
    width = max(map(len, header), default=0)
    lengths = Counter(map(len, rows))
    if not header:
        return lengths.most_common(1)[0][0]
    longer = Counter({length: n for length, n in lengths.items() if length > width})
    usual, n = longer.most_common(1)[0] if longer else (width, 0)
    is_wider = width > 1 and n >= _MIN_LONGER * len(rows)
    return usual if is_wider or 2 * longer.total() > len(rows) else width


class _ColumnBuilder:
    """Columns made from lists of rows, and counts of what had to be repaired."""

    def __init__(self, width: int, max_cell_bytes: int, parsed: ParsedRows):
        check_width(parsed.budget.shown, width)
        self.budget, self.n_bytes = parsed.budget, len(parsed.data)
        self.delimiter = parsed.dialect.delimiter
        self.width = width
        self.max_cell_bytes = max_cell_bytes
        self.pieces: list[list[pa.StringArray]] = [[] for _ in range(width)]
        self.n_rows = self.n_short = self.n_long = self.n_joined = self.n_too_big = 0

    def add(self, rows: list[list[str]]) -> None:
        self.n_rows += len(rows)
        self.budget.check_cells(self.n_rows, self.width, self.n_bytes)
        lengths = Counter(map(len, rows))
        if set(lengths) != {self.width}:
            if self.width == 1:  # what is a delimiter elsewhere is one of the texts' own here
                rows = [[self.delimiter.join(row).rstrip(self.delimiter)] for row in rows]
                self.n_joined += lengths.total() - lengths[1]
                lengths = Counter([1])
            self.n_short += sum(n for length, n in lengths.items() if length < self.width)
            self.n_long += sum(n for length, n in lengths.items() if length > self.width)
            padding = [""] * self.width
            rows = [(row + padding)[: self.width] for row in rows]
        for pieces, cells in zip(self.pieces, zip(*rows, strict=True), strict=True):
            piece, n_too_big = cells_to_column(cells, self.max_cell_bytes)
            self.n_too_big += n_too_big
            pieces.append(piece)

    def notes(self, n_too_big_names: int) -> list[str]:
        n_too_big = self.n_too_big + n_too_big_names
        repairs = (
            (self.n_short, "rows shorter than the header were filled with empty cells"),
            (self.n_long, "rows longer than the header lost their surplus cells"),
            (
                self.n_joined,
                f"rows of the one column that hold a {self.delimiter!r} were read whole",
            ),
        )
        notes = [f"{repair}: {n:,}" for n, repair in repairs if n]
        return [*notes, too_big_note(n_too_big, self.max_cell_bytes)] if n_too_big else notes
