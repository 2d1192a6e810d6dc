"""What programs put into delimited text by conventions of their own."""

import math
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
_MIN_NAMES = 2
_MIN_ADDED = 2
_SAME_SUM = 1e-9
_TOTAL = re.compile(
    r"\s*(?:(?:grand |sub|overall )?totals?|sum|summe|gesamt(?:summe)?|insgesamt|zusammen|somme"
    r"|totaux|total général|total general|totale|suma|totaal|razem|ogółem|celkem|итого|всего|合計"
    r"|合计|总计|總計|합계)\s*:?\s*",
    re.IGNORECASE,
)
"""What stands in the first cell of a row that adds up those above it."""
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


def repeats_header(row: Sequence[object], names: Sequence[str]) -> bool:
    """Return whether a row is the header once more, as where files were put together.

    A table of one column, or with one name, may have its name among its values.

    Examples
    --------
    >>> repeats_header(["\ufeffid", "town"], ["id", "town"]), repeats_header(["id"], ["id"])
    (True, False)
    """
    if len(row) != len(names) or len(names) < _MIN_NAMES or row[-1] != names[-1]:
        return False
    first = row[0].removeprefix("\ufeff") if isinstance(row[0], str) else row[0]
    return [first, *row[1:]] == list(names) and sum(map(bool, names)) >= _MIN_NAMES


def without_total(columns: list[pa.Array], notes: list[str]) -> list[pa.Array]:
    """Return columns without a last row that is the total of the others, and say so.

    It is one where its first cell says so, and a number of it is the sum of those above it.

    Examples
    --------
    >>> without_total([pa.array(["a", "b", "Total"]), pa.array(["1", "2", "3"])], [])[1].to_pylist()
    ['1', '2']
    """
    n_rows = len(columns[0]) if columns else 0
    if n_rows <= _MIN_ADDED:
        return columns
    cells = (column[n_rows - 1].as_py() for column in columns)
    first = next((cell for cell in cells if cell not in (None, "")), None)
    if not isinstance(first, str) or not _TOTAL.fullmatch(first):
        return columns
    if not any(_ends_in_sum(column) for column in columns):
        return columns
    notes.append(f"the row of totals below the table was left out ({first.strip()})")
    return [column.slice(0, n_rows - 1) for column in columns]


def _ends_in_sum(column: pa.Array) -> bool:
    """Return whether the last value of a column is the sum of the others, and not zero."""
    if pa.types.is_boolean(column.type) or pa.types.is_temporal(column.type):
        return False
    try:
        numbers = pc.cast(column, pa.float64())
    except pa.ArrowException:  # it has other texts
        return False
    above, total = numbers.slice(0, len(numbers) - 1), numbers[len(numbers) - 1].as_py()
    added = pc.sum(above).as_py()
    if not total or added is None or len(above) - above.null_count < _MIN_ADDED:
        return False
    return math.isclose(added, total, rel_tol=_SAME_SUM)


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
