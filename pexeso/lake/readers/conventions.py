"""What programs and people put into delimited text and around its table.

Names of rows, tags, repeated headers, totals and formulas; notes below a table; and texts that are
no table at all.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import takewhile

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import TableReadError
from pexeso.lake.cells import present
from pexeso.lake.readers.dialect import NUMBER, Dialect, column_kinds, compare, has_value, kind_of

_MIN_ALIKE = 0.8
_MIN_ROWS = 2
_MIN_ALIGNED = 0.7
_WORDS_OF_PROSE = 5
_DOCUMENTS = (
    ("<!doctype html", "HTML"),
    ("<html", "HTML"),
    ("<table", "HTML"),
    ("<?xml", "XML"),
    ("{\\rtf", "rich text"),
    ("%pdf-", "PDF"),
    ("version https://git-lfs", "a pointer of Git LFS"),
)
_SAMPLE_OF_BEGIN = 1 << 10
_LONGEST_MARK = max(len(mark) for mark, _ in _DOCUMENTS)
_GAP = re.compile(r"(?<=\S)[ ]{2,}(?=\S)")

# Most rows at the end of a text that are looked at.
MAX_ROWS_BELOW = 50
_WORDS_OF_A_NOTE = 3
# Share of the rows above that fill more cells than a note: else it may be a row like these.
MIN_FULLER = 0.75
_NOUNS = (
    r"sources?|notes?|footnotes?|remarks?|disclaimer|quellen?|anmerkung(?:en)?|hinweise?|fuentes?"
    r"|notas?|remarques?|fonte|nota bene|legend|key|citation|contact|copyright|licen[cs]e"
    r"|stand|bron|kilder?|källa|lähde|źródło|uwagi?|zdroj|forrás|kaynak|πηγή|источник|примечани[ея]"
    r"|джерело|المصدر|資料|资料来源|数据来源|資料來源|出典|出所|注|备注|備註|자료|출처|주|ที่มา|หมายเหตุ"
)
_DONE = r"updated|generated|exported|downloaded|retrieved|created|prepared by|compiled by"
_SELDOM_NAMES = r"last updated|end of (?:file|data|report|table)"
# What programs of databases write below the rows that they give.
_COUNT = r"(?:\([0-9]+ rows?(?: affected| selected)?\)|[0-9]+ rows? in set.*)\s*$"
_MARK = re.compile(
    rf"\s*(?:(?:{_NOUNS}|{_DONE}|{_SELDOM_NAMES})\b\s*(?:[:\uff1a.(]|by\b|on\b|at\b|from\b|$)"
    r"|data (?:from|as of|source)\b|[*※†‡§¶©¹²³]+\s*\S|\([a-z0-9*]\)\s|\[[a-z0-9*]\]\s"
    rf"|\d\)\s|[#%]\s*\w|//|--|{_COUNT})",
    re.IGNORECASE,
)
# Of the marks those that no name has: a film is called Contact, and a domain ``*.example.com``.
_SURE = re.compile(
    rf"\s*(?:(?:{_NOUNS}|{_DONE})\b\s*[:\uff1a.]|(?:{_DONE})\s+(?:by|on|at|from)\b"
    rf"|(?:{_SELDOM_NAMES})\b|data (?:from|as of)\b|{_COUNT})",
    re.IGNORECASE,
)
_BEGIN = re.compile(r"\s*(\w+|[^\w\s]\s?)")
_FORMULA_MARKS = (b'="', b'=\0"\0', b'\0=\0"')
# How portals write codes for spreadsheets, which would read ``01234`` as a number.
_FORMULA = r'(?s)^="([^"]*)"$'
_TAG = re.compile(r"\s*(?:#[a-z][a-z_]*\s*(?:\+\s*[a-z0-9_]+\s*)*|[0-9]+[sdn])$", re.IGNORECASE)
# A line that is drawn, in cells put together.
_DRAWN = re.compile(r"(?=[-=_─━\s|+:]*[-=_─━]{3})[-=_─━\s|+:]+")
_MIN_NAMED_ROWS = 2
# Rows above and below a header that are looked at, lines that may be titles, and what is shown.
_ROWS_BESIDE, _MAX_TITLES, _SHOWN_OF_TITLE = 32, 4, 60
_MIN_SIGNS = 3
_MIN_NAMES = 2
_SPACES = "\ufeff \t\r\n\xa0"
_MIN_ADDED, _MIN_ADDED_TO_OTHERS = 2, 3
_MAX_TOTALS = 4
_ONE_TOTAL = "the row of totals below the table was"
_SAME_SUM = 1e-9
_BESIDE_DIGITS = "[$€£¥%\\s\u00a0\u202f'\u2019]"
# What is in the first cell of a row that adds up those above it.
_TOTALS = (
    r"(?:(?:sub)?tot(?:al[esit]?|aux|aal)|sum|all|[∑Σ]|summa|summe|(?:gesamt|end)(?:summe)?"
    r"|insgesamt|zusammen|somme|suma|soma|razem|ogółem|celkem|spolu|összesen|yhteensä|toplam"
    r"|jumlah|ukupno|i alt|сумма|итого|всего|разом|усього|σύνολο|المجموع|รวม|合計|合计|总计|總計"
    r"|합계|총계)"
)
_TOTAL = re.compile(rf"(?<!\w){_TOTALS}(?!\w)", re.IGNORECASE)
_TOTAL_ALONE = re.compile(rf"(?:grand |overall )?{_TOTALS}(?: g[eé]n[eé]ral)?\s*:?", re.IGNORECASE)
_NAMES_TOTAL = rf"(?i)(?:^|[^\pL\pN_]){_TOTALS}(?:[^\pL\pN_]|$)"
_MEAN = re.compile(
    r"(?:(?:overall )?(?:average|mean)|avg|durchschnitt|mittel(?:wert)?|moyenne|promedio|m[eé]dia"
    r"|gemiddelde|średnia|среднее|平均|평균)\s*:?",
    re.IGNORECASE,
)
_MAX_ODD_LINE = 1 << 16


def require_no_document(shown: str, sample: str) -> None:
    """Raise TableReadError if a text begins as a document of another kind does.

    Portals answer with a page that says what went wrong, and it is saved under the name of the
    table.

    >>> require_no_document("t.csv", "<!DOCTYPE html><p>Not found</p>")
    Traceback (most recent call last):
    pexeso.errors.TableReadError: t.csv holds HTML, not delimited text; download it again as CSV.
    """
    if (kind := document_of(sample)) is not None:
        raise TableReadError(f"{shown} holds {kind}, not delimited text; download it again as CSV.")


def document_of(sample: str) -> str | None:
    """Return of which kind a document is that a text begins as; None where it is none."""
    begin = sample[:_SAMPLE_OF_BEGIN].lstrip("\ufeff \t\r\n")[:_LONGEST_MARK].lower()
    return next((kind for mark, kind in _DOCUMENTS if begin.startswith(mark)), None)


def require_table(shown: str, sample: str, dialect: Dialect, *, complete: bool = True) -> None:
    """Raise TableReadError if a text is not clearly a delimited table.

    It is one where at least four fifths of its rows have the same number of cells, two or more.
    """
    rows = dialect.rows(sample, complete=complete)
    widths = Counter(map(len, rows))
    wide = {width: n for width, n in widths.items() if width > 1}
    if len(rows) >= _MIN_ROWS and max(wide.values(), default=0) >= _MIN_ALIKE * len(rows):
        return
    lines = [line for line in sample.splitlines() if line.strip()]
    raise TableReadError(f"{shown} is {_kind_of_text(lines)}, not delimited text.")


def _kind_of_text(lines: Sequence[str]) -> str:
    if _is_aligned(lines):
        return "fixed-width text"
    n_words = sorted(len(line.split()) for line in lines)
    if n_words and n_words[len(n_words) // 2] >= _WORDS_OF_PROSE:
        return "prose"
    return "text without columns"


def _is_aligned(lines: Sequence[str]) -> bool:
    """Return whether in most lines a column begins, after two spaces or more, at the same place."""
    if len(lines) < _MIN_ROWS:
        return False
    begins, ends = Counter(), Counter()
    for line in lines:
        positions = [gap.end() for gap in _GAP.finditer(line)]
        begins.update(positions)
        ends.update(position + len(line[position:].split(" ")[0]) for position in positions)
    max_aligned = max([*begins.values(), *ends.values()], default=0)
    return max_aligned >= _MIN_ALIGNED * len(lines)


def rows_below(rows: Sequence[Sequence[str]], width: int) -> int:
    """Return how many of the last rows of a text are not of the table.

    Rows are left out from the first on that is a note: one cell of text where the table has more
    columns, that begins like a note ("Source:", "* preliminary"; see `is_marked`), or comes
    after a blank line, or is a sentence in a line without delimiters. Before it there must be a row
    of the table, and most of them fill more cells; but for marks that no name has.
    """
    if width < 2:
        return 0
    begin = max(0, len(rows) - MAX_ROWS_BELOW)
    first = len(rows)
    for position in range(len(rows) - 1, begin - 1, -1):
        if not _may_stand_below(rows[position], width):
            break
        first = position
    for position in range(first, len(rows)):
        is_apart = position > 0 and _is_blank(rows[position - 1])
        if _is_note(rows[position], rows[:position], width, is_apart):
            while position > 0 and _is_blank(rows[position - 1]):
                position -= 1
            return len(rows) - position if position > 0 else 0
    return 0


def is_marked(text: str, begins: Iterable[str], *, is_like_a_row: bool) -> bool:
    """Return whether a cell that is alone in its row begins like a note.

    A mark that names have too ("#", "*", "Contact") counts where something else distinguishes
    the row from one of the table, or the cell is a sentence; and only where no row above begins
    alike.

    >>> is_marked("Contact", ["alien", "brazil"], is_like_a_row=True)
    False
    >>> is_marked("Contact: the office", ["alien", "brazil"], is_like_a_row=True)
    True
    """
    if not _MARK.match(text):
        return False
    ends_so = text.rstrip(" \t)\"'").endswith(".")
    is_sentence = len(text.split()) > _WORDS_OF_A_NOTE and ends_so
    if is_like_a_row and not (_SURE.match(text) or is_sentence):
        return False
    if _SURE.match(text) and not is_like_a_row:
        return True
    return begin_of(text) not in begins


def begin_of(text: str) -> str:
    """Return the first word of a text, or its first sign and whether a space follows.

    >>> begin_of("Source: us"), begin_of("#free"), begin_of("* preliminary")
    ('source', '#', '* ')
    """
    match = _BEGIN.match(text)
    return match[1].casefold() if match else ""


def _are_fuller(rows: Sequence[Sequence[str]], n_values: int) -> bool:
    counts = [n for row in rows if (n := sum(1 for cell in row if cell.strip()))]
    return sum(n > n_values for n in counts) >= MIN_FULLER * len(counts)


def _is_blank(row: Sequence[str]) -> bool:
    return not any(cell.strip() for cell in row)


def _may_stand_below(row: Sequence[str], width: int) -> bool:
    n_values = sum(1 for cell in row if cell.strip())
    if n_values <= 1:
        return not row or bool(row[0].strip()) or not n_values
    return bool(row[0].strip()) and (len(row) < width or bool(_MARK.match(row[0])))


def _is_note(
    row: Sequence[str], above: Sequence[Sequence[str]], width: int, is_apart: bool
) -> bool:
    values = [cell for cell in row if cell.strip()]
    if not values:
        return False
    n_words, is_short = len(values[0].split()), len(row) < width
    if not _SURE.match(row[0]) and not _are_fuller(above, len(values)):
        return False
    # A line above that lacks delimiters may be a note too, and says nothing of the table's rows.
    begins = (begin_of(other[0]) for other in above if len(other) >= width)
    if is_marked(row[0], begins, is_like_a_row=not (is_short or is_apart)):
        return len(values) == 1 or is_short or is_apart
    if is_short:
        is_sentence = len(row) == 1 and width > 2 and n_words > _WORDS_OF_A_NOTE
        return is_sentence or (is_apart and (len(row) == 1 or n_words >= _WORDS_OF_A_NOTE))
    return len(values) == 1 and is_apart and width > 2 and n_words >= _WORDS_OF_A_NOTE


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

    Aid organisations share tables so; where water is measured, tags are the widths of columns.

    >>> are_tags(["#country", "#affected +f", ""]), are_tags(["#1", "#2"]), are_tags(["5s", "12n"])
    (True, False, True)
    """
    tags = [cell for cell in row if cell.strip()]
    return len(tags) > 1 and all(map(_TAG.match, tags))


def is_drawn(row: Sequence[str]) -> bool:
    """Return whether a row is a line that is drawn, such as one of dashes below a header.

    >>> is_drawn(["", "---", ":---:", ""]), is_drawn(["--+----", ""]), is_drawn(["-", "--", "-"])
    (True, True, False)
    """
    return _DRAWN.fullmatch("|".join(row)) is not None


def repeats_header(row: Sequence[object], names: Sequence[str]) -> bool:
    """Return whether a row is the header once more, as where files were put together.

    Case and spaces count for nothing. A table of one column, or with one name, may have its name
    among its values.

    >>> repeats_header(["\ufeffid", "Town "], ["id", "town"]), repeats_header(["id"], ["id"])
    (True, False)
    """
    if len(row) != len(names) or len(names) < _MIN_NAMES or _plain(row[-1]) != _plain(names[-1]):
        return False
    return (
        list(map(_plain, row)) == list(map(_plain, names)) and sum(map(bool, names)) >= _MIN_NAMES
    )


def other_table(rows: Sequence[Sequence[object]], names: Iterable[str]) -> tuple[int, str] | None:
    """Return where another table, or its title, begins below one with some names, and a note.

    It does behind a blank row, where other names are over numbers, and there are numbers above in
    two such columns, or in one below a title; or where of three things so many are there in all:
    such names, a title, and rows above of another width.
    """
    width, known = max(map(len, rows), default=0), {*map(_plain, names)} - {""}
    for start in range(1, len(rows) - _MIN_ROWS):
        if any(rows[start - 1]) or not any(rows[start]):
            continue
        head = start
        while head < min(start + _MAX_TITLES, len(rows) - 1) and _n_filled(rows[head]) < _MIN_NAMES:
            head += 1
        named = [str(cell) for cell in rows[head] if cell]
        are_names = all(has_value(name) and kind_of(name) is None for name in named)
        if not are_names or not _MIN_NAMES <= len(named) == len(set(named)):
            continue
        below = list(takewhile(any, rows[head + 1 : head + 1 + _ROWS_BESIDE]))
        above = list(filter(any, rows[max(0, start - 1 - _ROWS_BESIDE) : start - 1]))
        if not above or len(below) < _MIN_ROWS or set(map(_plain, named)) == known:
            continue
        texts, *sides = (
            [["" if cell is None else str(cell) for cell in row] for row in some]
            for some in (rows[head : head + 1], above, below)
        )
        kinds = [column_kinds(side, width) for side in sides]
        n_alike, n_unlike = compare(texts[0], kinds[1])
        both = [NUMBER if pair == (NUMBER, NUMBER) else None for pair in zip(*kinds, strict=True)]
        n_between = compare(texts[0], both)[1] + (head > start)
        widths = {max(map(_n_filled, side)) for side in (above, below)}
        n_signs = n_unlike + (head > start) + (len(widths) > 1)
        if n_unlike and not n_alike and (n_between >= _MIN_NAMES or n_signs >= _MIN_SIGNS):
            title = next(str(cell) for cell in rows[start] if cell)[:_SHOWN_OF_TITLE]
            while not any(rows[start - 1]):
                start -= 1
            return start, f"another table below this one was left out ({title})"
    return None


def _n_filled(row: Sequence[object]) -> int:
    return len(row) - sum(cell in (None, "") for cell in row)


def _plain(cell: object) -> object:
    return "" if cell is None else cell.strip(_SPACES).casefold() if isinstance(cell, str) else cell


def without_total(columns: list[pa.Array], notes: list[str]) -> list[pa.Array]:
    """Return columns without last rows that are totals of the others, and say so.

    A row is one where its first cell says so, and a number of it is the sum of those above it, or
    their mean; or where it alone has no first cell, and all others are such sums.

    >>> without_total([pa.array(["a", "b", "Total"]), pa.array(["1", "2", "3"])], [])[1].to_pylist()
    ['1', '2']
    """
    n_rows = len(columns[0]) if columns else 0
    first = n_rows
    while first > max(_MIN_ADDED, n_rows - _MAX_TOTALS) and _may_be_total(columns, first - 1):
        first -= 1
    for n_above in range(first, n_rows):
        begins = [begin for row in range(n_above, n_rows) if (begin := _begin(columns, row))]
        if begins and all(_is_total(columns, n_above, row) for row in range(n_above, n_rows)):
            rows = "rows of totals below the table were" if begins[1:] else _ONE_TOTAL
            notes.append(f"{rows} left out ({', '.join(begins)})")
            return [column.slice(0, n_above) for column in columns]
    return columns if first == n_rows else _without_subtotals(columns, notes)


def _without_subtotals(columns: list[pa.Array], notes: list[str]) -> list[pa.Array]:
    """Return columns without the totals of groups of rows, where the last is that of all others."""
    n_rows = len(columns[0])
    named = _rows_of_totals(columns)
    if len(named) < _MIN_ADDED + 1 or named[-1] != n_rows - 1:
        return columns
    rows = np.arange(n_rows)
    groups = np.searchsorted(named, rows)  # a total is in the group of the rows above it
    is_row = ~np.isin(rows, named)
    for numbers, _ in (pair for column in columns for pair in _as_numbers(column)):
        values = np.nan_to_num(numbers.to_numpy(zero_copy_only=False).astype(np.float64))
        added = np.bincount(groups[is_row], values[is_row], minlength=len(named))
        added[-1] = added.sum()
        if added.all() and np.allclose(added, values[named], rtol=_SAME_SUM, atol=0):
            notes.append(f"rows of totals of the table were left out: {len(named):,}")
            return [column.filter(pa.array(is_row)) for column in columns]
    return columns


def _rows_of_totals(columns: list[pa.Array]) -> np.ndarray:
    """Return the rows whose first cell that is not empty names a total, int64."""
    texts: pa.Array | None = None
    for column in columns:
        if pa.types.is_nested(column.type):
            continue
        cells = pc.utf8_trim_whitespace(pc.cast(column, pa.string()))
        cells = pc.if_else(pc.equal(cells, ""), None, cells)
        texts = cells if texts is None else pc.coalesce(texts, cells)
        if not texts.null_count:
            break
    if texts is None:
        return np.zeros(0, np.int64)
    is_named = pc.match_substring_regex(texts, _NAMES_TOTAL)
    return pc.indices_nonzero(pc.fill_null(is_named, False)).to_numpy().astype(np.int64)


def _begin(columns: list[pa.Array], row: int) -> str:
    """Return the first cell of a row that is not empty."""
    cells = (column[row].as_py() for column in columns)
    return next((text for cell in cells if cell is not None and (text := str(cell).strip())), "")


def _may_be_total(columns: list[pa.Array], row: int) -> bool:
    begin = _begin(columns, row)
    return bool(not _begin(columns[:1], row) or _TOTAL.search(begin) or _MEAN.fullmatch(begin))


def _is_total(columns: list[pa.Array], n_above: int, row: int) -> bool:
    """Return whether a row is the total of the first ones, or empty; odd names need more rows."""
    begin = _begin(columns, row)
    is_mean = _MEAN.fullmatch(begin) is not None
    is_plain = _TOTAL_ALONE.fullmatch(begin) is not None
    may_count = is_plain and begin.lower() != "all"
    added = (
        _ends_in_sum(
            pa.concat_arrays([column.slice(0, n_above), column.slice(row, 1)]), may_count, is_mean
        )
        for column in columns
        if _begin([column], row)
    )
    if not begin:
        return True
    if not is_plain and n_above < _MIN_ADDED_TO_OTHERS:
        return False
    if is_mean or _TOTAL.search(begin):
        return any(added)
    return not columns[0].slice(0, n_above).null_count and all(added)


def _ends_in_sum(column: pa.Array, may_count: bool, is_mean: bool) -> bool:
    """Return whether the last value is the sum, or mean, of the others; each may be rounded.

    Numbers that count rows, such as 1, 2, 3, are sums by chance.
    """
    if pa.types.is_boolean(column.type) or pa.types.is_temporal(column.type):
        return False
    for numbers, unit in _as_numbers(column):
        above, total = numbers.slice(0, len(numbers) - 1), numbers[len(numbers) - 1].as_py()
        added, n = pc.sum(above).as_py(), len(above) - above.null_count
        if not total or added is None or n < _MIN_ADDED:
            continue
        total = n * total if is_mean else total
        if math.isclose(added, total, rel_tol=_SAME_SUM, abs_tol=n * unit / 2):
            return may_count or pc.unique(pc.pairwise_diff(numbers)[1:]).to_pylist() != [1.0]
    return False


def _as_numbers(column: pa.Array) -> Iterator[tuple[pa.Array, float]]:
    """Yield a column as numbers in each notation that it may have, and their last place.

    That is 0 for whole numbers, and where it is not known.
    """
    if not pa.types.is_string(column.type):
        with suppress(pa.ArrowException):
            yield pc.cast(column, pa.float64()), 0.0
        return
    texts = pc.replace_substring_regex(present(column), _BESIDE_DIGITS, "")
    for thousands, decimal in (",.", ".,"):
        plain = pc.replace_substring(pc.replace_substring(texts, thousands, ""), decimal, ".")
        places = pc.max(pc.utf8_length(pc.replace_substring_regex(plain, r"^[^.]*\.?", ""))).as_py()
        with suppress(pa.ArrowException):  # it has other texts
            yield pc.cast(plain, pa.float64()), 10.0**-places if places else 0.0


def with_inner_marks(line: str, dialect: Dialect, width: int) -> list[str] | None:
    r"""Return the cells of a line in which quotation marks within quoted cells are not doubled.

    None where it has no such mark, or not as many cells as a row has.

    >>> with_inner_marks('1,"TV 42" screen",new\n', Dialect(), 3)
    ['1', 'TV 42" screen', 'new']
    """
    mark, cut = dialect.quotechar, re.escape(dialect.delimiter)
    if mark is None or dialect.escapechar is not None or len(line) > _MAX_ODD_LINE:
        return None
    if not re.search(rf"{mark}[^{cut}{mark}\r\n]", line):
        return None
    line = line.rstrip("\r\n")
    ends = re.compile(rf"{mark}+(?={cut}|$)")
    for is_nearest in (False, True):
        cells = _cells_to_ends(line, mark, dialect.delimiter, ends, is_nearest)
        if len(cells) == width:
            return cells
    return None


def _cells_to_ends(
    line: str, mark: str, delimiter: str, ends: re.Pattern[str], is_nearest: bool
) -> list[str]:
    """Return the cells of a line; none where each of its marks is doubled, or a cell has no end.

    A quoted cell ends before a delimiter by an odd number of marks, or, where there are none or the
    nearest counts, by any.
    """
    cells: list[str] = []
    start, is_odd, looks_on = 0, False, not is_nearest
    while start <= len(line):
        if line.startswith(mark, start):
            matches = ends.finditer(line, start + 1)
            nearest = match = next(matches, None)
            while looks_on and match is not None and len(match[0]) % 2 == 0:
                match = next(matches, None)
            looks_on = looks_on and match is not None  # each look takes the line
            match = match or nearest
            if match is None:
                return []
            text, end = line[start + 1 : match.end() - 1], match.end()
            is_odd = is_odd or mark in text.replace(mark * 2, "")
            cells.append(text.replace(mark * 2, mark))
        else:
            end = line.find(delimiter, start)
            end = len(line) if end < 0 else end
            cells.append(line[start:end])
        start = end + 1
    return cells if is_odd else []


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
