"""Where a table begins in a delimited text, and how many rows its header has.

Above a header may be a line that names the separator, comments, titles and blank lines. Every
rule here asks for evidence: the text is read as before, from its first row on with one row as the
header, wherever there is none.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice, pairwise

from pexeso.lake.readers.dialect import (
    NUMBER,
    Dialect,
    column_kinds,
    compare,
    has_gaps_of_data,
    has_value,
    is_year,
    kind_of,
)

# Most lines above a header that are recognised as such.
MAX_LINES_ABOVE = 100

_MAX_CHARACTERS = 16 << 10
_ROWS_AT_FIRST = 50
_MAX_ROWS = 160
_MAX_FOUND_HEADER = 3
_TITLE_WORDS = 3
_MIN_ROWS = 2
_FEW_COLUMNS = 3
_FEW_NAMES = 20
_MIN_ROWS_TO_RECUR = 5
_MIN_YEARS_BESIDE, _MOST_YEARS_APART = 2, 10
_SEPARATOR_LINE = re.compile(r'\ufeff?"?sep=(.)"?[^\S\r\n]*(?:\r\n|\r|\n|$)', re.IGNORECASE)
_COMMENT = re.compile(r"\s*(#|//|%|;(?=[^;]*$)|--(?!-))")
_DIGIT, _FOUR_DIGITS = re.compile("[0-9]"), re.compile("[0-9]{4}")
_BLANK = re.compile(r"\s*$")

Row = list[str]


@dataclass(frozen=True)
class Beginning:
    """Where a table begins.

    `n_lines` come before the header, or before the data where there is none.
    """

    n_lines: int = 0
    n_header_rows: int = 1


def separator_line(sample: str) -> tuple[str, int] | None:
    r"""Return the separator that the first line names, and the characters of that line.

    Spreadsheets write and read such lines: ``sep=;``. None where the text does not begin so.

    >>> separator_line("sep=;\na;b\n")
    (';', 6)
    """
    match = _SEPARATOR_LINE.match(sample)
    return (match.group(1), match.end()) if match else None


def comment_lines(sample: str) -> int:
    """Return how many lines at the start are comments, or blank ones before a further comment.

    0 where there is no other line.
    """
    if _COMMENT.match(sample[:_MAX_CHARACTERS]) is None:
        return 0
    n_comments = n_blank = 0
    for line in islice(io.StringIO(sample, newline=""), MAX_LINES_ABOVE):
        if _BLANK.match(line):
            n_blank += 1
        elif _COMMENT.match(line.rstrip()):
            n_comments += n_blank + 1
            n_blank = 0
        else:
            return n_comments
    return 0


def find_beginning(
    sample: str,
    dialect: Dialect,
    *,
    complete: bool = True,
    n_comments: int = 0,
    at_start: bool = False,
) -> Beginning:
    """Return where the table begins.

    n_comments: lines at the start that are comments, by `comment_lines`.
    """
    rows = _numbered_rows(sample, dialect, complete)
    gap = 0 if at_start or n_comments else _first_gap(sample)
    return table_beginning(rows, n_comments=n_comments, at_start=at_start, gap=gap)


def table_beginning(
    rows: list[tuple[int, Row]],
    *,
    n_comments: int = 0,
    at_start: bool = False,
    gap: int = 0,
    min_width: int = 1,
) -> Beginning:
    """Return where the table begins in rows with the numbers of their lines.

    gap: number of the first blank line below another one; min_width: cells of a row of the table.
    """
    rows = _once(rows)
    if not rows:
        return Beginning()
    width = _usual_width([r for line, r in rows if line >= n_comments and len(r) >= min_width])
    start = 0 if at_start else _start(rows, width, n_comments)
    if start == 0 and gap:
        start = _rows_above_gap(gap, rows, width)
    table = [row for _, row in rows[start:]]
    if not at_start and start == 0 and not n_comments and _is_title_of_plain(table, width):
        start, table = 1, table[1:]
    return Beginning(rows[start][0], _header_rows(table, width))


def _numbered_rows(sample: str, dialect: Dialect, complete: bool) -> list[tuple[int, Row]]:
    if sample.count("\n", 0, _MAX_CHARACTERS) > _ROWS_AT_FIRST and len(sample) > _MAX_CHARACTERS:
        sample, complete = sample[:_MAX_CHARACTERS], False
    reader = dialect.reader(io.StringIO(sample, newline=""))
    rows: list[tuple[int, Row]] = []
    line = 0
    try:
        for row in islice(reader, _MAX_ROWS):
            if row:
                rows.append((line, row))
            line = reader.line_num
            if len(rows) == _ROWS_AT_FIRST == line and len({len(row) for _, row in rows}) == 1:
                return rows
    except csv.Error:
        return []
    if not complete and 1 < len(rows) < _MAX_ROWS:
        rows.pop()
    return rows


def _once(rows: list[tuple[int, Row]]) -> list[tuple[int, Row]]:
    """Return rows without those of words alone that are above already: a header again."""
    first = {tuple(row): line for line, row in reversed(rows)}
    return [
        (line, row) for line, row in rows if first[tuple(row)] == line or any(map(kind_of, row))
    ]


def _usual_width(rows: Sequence[Row]) -> int:
    widths = Counter(map(len, rows)).most_common()
    if not widths:
        return 1
    max_count = widths[0][1]
    return max(width for width, n in widths if n == max_count)


def _start(rows: list[tuple[int, Row]], width: int, n_comments: int) -> int:
    first = next((i for i, (line, _) in enumerate(rows) if line >= n_comments), 0)
    if width < 2 or [len(row) for _, row in rows].count(width) < _MIN_ROWS:
        return first
    first = _commented_header(rows, first, width)
    table = [row for _, row in rows[first:]]
    return first + _rows_above(table, width)


def _commented_header(rows: list[tuple[int, Row]], first: int, width: int) -> int:
    """Return `first`, or the position before it where the last comment is the header.

    It is where it has a cell for each column, and the row after it is no header.
    """
    if first == 0 or len(rows[first - 1][1]) != width:
        return first
    below = [row for _, row in rows[first:]]
    n_alike, n_other = compare(below[0], column_kinds(below[1:], width))
    return first if n_other and not n_alike else first - 1


def _rows_above(rows: list[Row], width: int) -> int:
    """Return how many rows above the table are titles, or say something about the table."""
    if n := _rows_above_blank(rows, width):
        return n
    n, is_clear, is_blank = 0, False, False
    for row in rows[:MAX_LINES_ABOVE]:
        values = [cell for cell in row if cell.strip()]
        is_title = len(values) == 1 and len(values[0].split()) > _TITLE_WORDS
        if not values:
            is_clear, is_blank = is_clear or n > 0, True
        elif _stands_above(row, values, width) or (is_blank and is_title):
            is_blank = False
            is_clear = is_clear or len(values[0].split()) >= _TITLE_WORDS
        else:
            break
        n += 1
    if n == 0 or n >= len(rows):
        return 0
    if not any(cell.strip() for row in rows[:n] for cell in row):
        return n
    header = rows[n]
    if len([cell for cell in header if cell.strip()]) < 2:
        return 0
    n_alike, n_other = compare(header, column_kinds(rows[n + 1 :], width))
    if n_other and not n_alike:
        return n if header[0].strip() or len(rows[n - 1]) < width or n > 1 else 0
    return n if is_clear else 0


def _rows_above_blank(rows: list[Row], width: int) -> int:
    """Return how many rows are above the table where a row of empty cells parts them from it.

    None of them has a value for each column, and the row after it has.
    """
    for n, row in enumerate(rows[:MAX_LINES_ABOVE]):
        n_values = sum(1 for cell in row if cell.strip())
        if n_values == 0 and n > 0:
            below = rows[n + 1] if n + 1 < len(rows) else []
            return n + 1 if sum(1 for cell in below if cell.strip()) >= width else 0
        if n_values >= width:
            return 0
    return 0


def _rows_above_gap(gap: int, rows: list[tuple[int, Row]], width: int) -> int:
    """Return how many rows are above the table where a blank line parts them from it.

    They are facts such as ``Created,2021-03-04``: each has fewer cells than the table has columns,
    and the row behind the blank line has a name for each. A narrower table is none of them.
    """
    n = sum([line < gap for line, _ in rows])
    below = [row for _, row in rows[n:]]
    if not n or len(below) <= _MIN_ROWS or any(len(row) >= width for _, row in rows[:n]):
        return 0
    if sum(1 for cell in below[0] if cell.strip()) < width:
        return 0
    above = [row for _, row in rows[:n]]
    if n > _MIN_ROWS and compare(above[0], column_kinds(above[1:], width))[1]:
        return 0
    n_alike, n_other = compare(below[0], column_kinds(below[1:], width))
    return n if not n_alike and (n_other or n > 1) else 0


def _first_gap(sample: str) -> int:
    is_below = False
    lines = islice(io.StringIO(sample[:_MAX_CHARACTERS], newline=""), MAX_LINES_ABOVE)
    for number, line in enumerate(lines):
        if _BLANK.match(line) and is_below:
            return number
        is_below = is_below or not _BLANK.match(line)
    return 0


def _stands_above(row: Row, values: list[str], width: int) -> bool:
    if not row[0].strip():
        return False
    if len(values) == 1:
        return len(row) < width or width >= 2
    if len(row) < width and len(values) < width:
        n_words = sum(len(value.split()) for value in values)
        if len(values) == 2 and n_words > _TITLE_WORDS and len(values[0].split()) > 1:
            return True
        if len(values) == 2 and values[0].rstrip().endswith(":"):
            return True
    return (
        width >= 4
        and 2 * len(values) <= width
        and not any(cell.strip() for cell in row[width // 2 :])
    )


def _is_title_of_plain(rows: list[Row], width: int) -> bool:
    """Return whether the first row is a title that happens to have a cell for each column.

    A long text over a row of short names.
    """
    if len(rows) < 4 or not 2 <= width <= 3 or len(rows[0]) < width:
        return False
    kinds = column_kinds(rows[2:], width)
    n_alike, n_other = compare(rows[1], kinds)
    longest = [max(len(cell.split()) for cell in row) for row in rows[:2]]
    return (
        n_other > 0
        and not n_alike
        and longest[0] >= 4
        and longest[1] <= 2
        and (compare(rows[0], kinds)[0] == 0)
    )


def _header_rows(rows: list[Row], width: int) -> int:
    if has_gaps_of_data(rows, width):
        return 0
    if len(rows) < 3 or _is_plain(rows, width):
        return 1
    n_above = _MAX_FOUND_HEADER if len(rows) > 2 * _MAX_FOUND_HEADER else min(2, len(rows) - 2)
    kinds = column_kinds(rows[n_above:], width)
    n_alike, n_other = compare(rows[0], kinds)
    if (are_names := _are_numbers_as_names(rows, kinds)) and not n_other:
        n_alike = 0
    if not n_other and not are_names:
        # One number among names of words is a name as well as a value.
        if n_alike >= (1 if width <= _FEW_COLUMNS else 2):
            return 0
        if _recurs(rows, width):
            return 0
    if n_alike or len(rows) < 4:
        return 1
    n = 1
    while n < min(_MAX_FOUND_HEADER, len(rows) - 2) and _continues_header(rows, n, kinds):
        n += 1
    return n


def _is_plain(rows: list[Row], width: int) -> bool:
    """Return whether one row of names is over rows of data; quick, for most tables."""
    names = [name.strip() for name in rows[0]]
    if not all(names) or len(set(names)) < len(names):
        return False
    n_name_like = 0
    for name, first, second in zip(names[:_FEW_NAMES], rows[1], rows[2], strict=False):
        if kind_of(second) == NUMBER:
            is_number = kind_of(first) == NUMBER
            if is_number and has_value(name) and kind_of(name) != NUMBER:
                return True
            n_name_like += not is_number
    # Without a digit no name looks like the values of a column.
    return (
        n_name_like < 2
        and bool(_DIGIT.search("".join(rows[2])))
        and not _DIGIT.search("".join(names))
        and not _recurs(rows, width)
    )


def _are_numbers_as_names(rows: list[Row], kinds: Sequence[str | None]) -> bool:
    """Return whether the numbers of a first row are names: years, or the numbers of columns."""
    positions = [
        i for i, kind in enumerate(kinds) if kind is not None and has_value(_cell(rows[0], i))
    ]
    cells, *below = (
        [_cell(row, i).strip() for i in positions if kinds[i] == NUMBER] for row in rows[:3]
    )
    # Years name columns as often as they are values, whatever is below them. Other numbers in order
    # are values where those below them are, too.
    are_years = all(map(is_year, cells))
    in_order, *also_below = map(_are_years_in_order, (cells, *below))
    if len(cells) >= _MIN_YEARS_BESIDE and (are_years or (in_order and not any(also_below))):
        return True
    # A date or code like those below it names no column, and nor do other numbers beside it.
    if not cells or len(cells) < len(positions):
        return False
    if are_years:  # one column of years has one above them as often
        return not all(map(is_year, chain.from_iterable(below)))
    if not all(cell.isascii() and cell.isdigit() for cell in cells):
        return False
    numbers = [int(cell) for cell in cells]
    # A row that counts on, such as 1,2,3 above 4,5,6, could be names as well as data. Most files
    # have names.
    counts_on = all(after == before + 1 for before, after in pairwise(numbers))
    if numbers == [1] and sum(map(has_value, rows[0])) > 1:
        return False  # next to words it counts nothing; a lone 0 is the name that pandas gives
    return counts_on and (numbers[0] in (0, 1) or len(numbers) > 2)


def _are_years_in_order(cells: Sequence[str]) -> bool:
    """Return whether cells are numbers of four digits that all rise, or all fall, by a few.

    Calendars of other eras have such years. Two must follow each other.
    """
    if not all(len(c) == 4 and c.isascii() and c.isdigit() for c in cells):
        return False
    steps = [int(after) - int(before) for before, after in pairwise(cells)]
    most_apart = _MOST_YEARS_APART if len(cells) > _MIN_YEARS_BESIDE else 1
    return bool(steps) and (
        0 < min(steps) <= max(steps) <= most_apart or -most_apart <= min(steps) <= max(steps) < 0
    )


def _recurs(rows: list[Row], width: int) -> bool:
    """Return whether most values of a first row occur again below, each in its own column.

    Where one row below has most of them, it may be the header once more.
    """
    below = rows[1:]
    positions = [i for i in range(min(width, len(rows[0]))) if has_value(rows[0][i])]
    if len(below) < _MIN_ROWS_TO_RECUR or len(positions) < 2:
        return False
    repeats = [
        [number for number, row in enumerate(below) if i < len(row) and row[i] == rows[0][i]]
        for i in positions
    ]
    max_repeats = max(Counter(chain.from_iterable(repeats)).values(), default=0)
    if max_repeats == len(positions) or max_repeats > max(2, len(positions) / 2):
        return False
    return 2 * sum(map(bool, repeats)) > len(positions)


def _continues_header(rows: list[Row], n: int, kinds: Sequence[str | None]) -> bool:
    """Return whether row `n` is one more row of the header, given the rows above it.

    Columns of numbers decide: names and units in them are no data, but those of a row that has a
    date or code where others have one are missing values.
    """
    row, above = rows[n], rows[n - 1]
    if len(row) != len(kinds) or len([cell for cell in row if cell.strip()]) < 2:
        return False
    of_numbers = [kind if kind == NUMBER else None for kind in kinds]
    n_alike, n_other = compare(row, of_numbers)
    is_below_groups = n == 1 and _is_below_groups(row, above)
    if n_alike:
        return is_below_groups and _are_years_below_groups(rows, of_numbers)
    if is_below_groups:
        return n_other > 0 or _names_answers(rows)
    has_key, n_no_key = compare(row, [None if kind == NUMBER else kind for kind in kinds])
    if has_key:  # a date or code like those below
        return False
    n_columns = len(of_numbers) - of_numbers.count(None)
    begins_with_digit = any(
        kind and cell.strip()[:1].isdigit() for cell, kind in zip(row, of_numbers, strict=False)
    )
    # What is over numbers as well as over dates or codes, and is like none, names both.
    n_names = n_other + n_no_key if n_other else 0
    return n_names >= max(2, n_columns / 2) and not begins_with_digit


def _names_answers(rows: list[Row]) -> bool:
    """Return whether the values below the second row repeat, and none of its own is among them."""
    positions = [i for i, cell in enumerate(rows[1]) if has_value(cell)]
    n_repeating = 0
    for i in positions:
        below = [cell for row in rows[2:] if has_value(cell := _cell(row, i))]
        distinct = set(below)
        if rows[1][i] in distinct:
            return False
        n_repeating += len(below) >= _MIN_ROWS_TO_RECUR and 2 * len(distinct) <= len(below)
    return 2 * n_repeating > len(positions)


def _is_below_groups(row: Row, above: Row) -> bool:
    """Return whether a row names the columns of the groups that the row above it names.

    A group's name is above its first column alone, or above each: the cells after it are empty
    or say the same, and those below them are not empty.
    """
    names = [cell.strip() for cell in above]
    gaps = [
        i
        for i in range(1, len(names))
        if (names[i] == names[i - 1] and names[i]) or (not names[i] and any(names[:i]))
    ]
    return bool(gaps) and all(has_value(_cell(row, i)) for i in gaps)


def _are_years_below_groups(rows: list[Row], kinds: Sequence[str | None]) -> bool:
    row, above = rows[1], rows[0]
    positions = [i for i, kind in enumerate(kinds) if kind is not None and has_value(_cell(row, i))]
    if len(positions) < 2 or not all(is_year(_cell(row, i)) for i in positions):
        return False
    if any(
        has_value(_cell(row, i)) and has_value(_cell(above, i))
        for i in range(len(kinds))
        if i not in positions
    ):
        return False
    below = [_cell(lower_row, i) for lower_row in rows[2:64] for i in positions]
    return 4 * sum(map(is_year, below)) < len(below)


def join_header(rows: Sequence[Row], width: int) -> list[str]:
    """Return the names of columns by a header of several rows, joined by a space.

    The name of a group of columns goes on to the right, up to the next name in its row, where the
    row below names the columns of the group. A name of two rows is taken once.

    >>> join_header([["", "Sales", "", "Staff"], ["Country", "2019", "2020", ""]], 4)
    ['Country', 'Sales 2019', 'Sales 2020', 'Staff']
    """
    parts: list[list[str]] = [[] for _ in range(width)]
    for n, row in enumerate(rows):
        group = ""
        for position in range(width):
            name = " ".join(_cell(row, position).split())
            below = any(_cell(lower_row, position).strip() for lower_row in rows[n + 1 :])
            group = name or (group if below else "")
            if group and group not in parts[position]:
                parts[position].append(group)
    return [" ".join(names) for names in parts]


def _cell(row: Row, position: int) -> str:
    return row[position] if position < len(row) else ""
