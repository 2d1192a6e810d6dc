"""What programs put into delimited text by conventions of their own."""

import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pexeso.lake.readers.layout.dialect import Dialect

_FORMULA_MARKS = (b'="', b'=\0"\0', b'\0=\0"')
_FORMULA = r'(?s)^="([^"]*)"$'
"""How portals write codes for spreadsheets, which would read ``01234`` as a number."""
_TAG = re.compile(r"\s*#[a-z][a-z_]*\s*(?:\+\s*[a-z0-9_]+\s*)*$", re.IGNORECASE)
_MIN_NAMED_ROWS = 2
_MAX_ODD_LINE = 1 << 16


def have_row_names(header: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first column holds names of rows, and has no name itself.

    Programs of statistics write tables so: each row is one cell longer than the header, and begins
    with a name that no other row has.
    """
    width = len(header) + 1
    if len(rows) < _MIN_NAMED_ROWS or any(len(row) != width for row in rows):
        return False
    names = {row[0] for row in rows}
    if len(names) < len(rows) or "" in names:
        return False
    # A space is that of a text with a delimiter in it.
    return any(row[-1].strip() for row in rows) and not any(
        cell[:1] == " " for row in rows for cell in row
    )


def are_tags(row: Sequence[str]) -> bool:
    """Return whether a row below a header says by tags what its columns hold.

    Aid organisations share tables so.

    Examples
    --------
    >>> are_tags(["#country", "#affected +f", ""]), are_tags(["#1", "#2"])
    (True, False)
    """
    tags = [cell for cell in row if cell.strip()]
    return len(tags) > 1 and all(map(_TAG.match, tags))


def with_inner_marks(line: str, dialect: Dialect, width: int) -> list[str] | None:
    r"""Return the cells of a line in which quotation marks within quoted cells are not doubled.

    None where it has no such mark, or not as many cells as a row has.

    Examples
    --------
    >>> with_inner_marks('1,"TV 42" screen",new\n', Dialect(), 3)
    ['1', 'TV 42" screen', 'new']
    """
    mark, cut = dialect.quotechar, re.escape(dialect.delimiter)
    if mark is None or dialect.escapechar is not None or len(line) > _MAX_ODD_LINE:
        return None
    if not re.search(rf"{mark}[^{cut}{mark}\r\n]", line):
        return None
    line = line.rstrip("\r\n")
    closing = re.compile(rf"(?<!{mark}){mark}(?:{mark}{mark})*(?={cut}|$)")
    doubled = re.compile(rf"(?<!{mark})(?:{mark}{mark})+(?={cut}|$)")
    cells: list[str] = []
    start, is_odd, has_closing = 0, False, True
    while start <= len(line):
        if line.startswith(mark, start):
            match = closing.search(line, start + 1) if has_closing else None
            has_closing = match is not None  # none is looked for again: each look takes the line
            match = match or doubled.search(line, start + 1)
            if match is None:
                return None
            text, end = line[start + 1 : match.end() - 1], match.end()
            is_odd = is_odd or mark in text.replace(mark * 2, "")
            cells.append(text.replace(mark * 2, mark))
        else:
            end = line.find(dialect.delimiter, start)
            end = len(line) if end < 0 else end
            cells.append(line[start:end])
        start = end + 1
    return cells if is_odd and len(cells) == width else None


def without_formulas(
    columns: list[pa.StringArray], data: bytes, notes: list[str]
) -> list[pa.StringArray]:
    """Return columns in which cells such as ``="01234"`` are the text that a spreadsheet shows."""
    if not any(mark in data for mark in _FORMULA_MARKS):
        return columns
    are_formulas = [pc.match_substring_regex(column, _FORMULA) for column in columns]
    n_formulas = sum(pc.sum(flags).as_py() or 0 for flags in are_formulas)
    if not n_formulas:
        return columns
    notes.append(f'cells such as ="01234" were read as the text in them: {n_formulas:,}')
    texts = [pc.replace_substring_regex(column, _FORMULA, r"\1") for column in columns]
    return [pc.if_else(pc.equal(text, ""), None, text) for text in texts]
