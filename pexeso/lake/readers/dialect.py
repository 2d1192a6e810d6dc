"""Detection of the dialect of delimited text.

Perfectly regular samples are recognised by a cheap test, also where titles are above them or
notes below; all others by clevercsv.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pexeso.lake.cells import is_missing_word, names_no_column

NUMBER, DATE, ADDRESS = "number", "date", "address"

_MAX_ROWS = 40
_MAX_COLUMNS = 64
_MAX_CHARACTERS = 64
_MIN_ALIKE = 0.9
_MIN_DIGITS_OF_A_CODE = 2

_NUMBER = re.compile(
    r"\(?[+\-\u2212\u2013<>~]?=?\s?[$€£¥]?\s?[+\-\u2212\u2013]?"
    r"(?:[0-9]{1,3}(?:,[0-9]{2})*(?:[,.'\u2019_\xa0\u2009\u202f ][0-9]{3})+(?:[.,][0-9]+)?"
    r"|[0-9]+(?:[.,][0-9]*)?|[.,][0-9]+)(?:[eE][+\-]?[0-9]+)?\s?[%‰$€£¥]?\)?"
)
_TIME = (
    r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?\s?(?:[AaPp]\.?[Mm]\.?|Z|[+\-][0-9:]{2,5})?"
)
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?"
_DATE = re.compile(
    rf"(?:[0-9]{{1,4}}[-/.][0-9]{{1,2}}[-/.][0-9]{{1,4}}(?:[T ]\s?{_TIME})?|{_TIME}"
    rf"|[0-9]{{1,2}}[-/. ]{_MONTH}[-/. ][0-9]{{2,4}}|{_MONTH}\s[0-9]{{1,2}},?\s[0-9]{{4}})",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"[^\s@]+@[^\s@]+\.\w+|\w+://\S+")
_SAYS_SOMETHING = re.compile(r"\w|[%‰$€£¥#]")
_DIGIT = re.compile(r"[0-9]")
_DIGITS, _LETTERS = re.compile(r"[0-9]+"), re.compile(r"[^\W0-9_]+")

# Delimiters that the cheap test tries first.
DELIMITERS = (",", "\t", ";", "|")
# The delimiter that a file's extension speaks of: taken wherever the text is regular under it.
DELIMITER_OF_EXTENSION = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".psv": "|"}
_SAMPLE_CHARACTERS = 8 << 10
_RARE_DELIMITERS = ("^", "~")
# Tried where no other delimiter cuts a row: texts are full of them.
_ODD_DELIMITERS = ("#", *_RARE_DELIMITERS, ":", " ")
_QUOTE, _SINGLE_QUOTE, _ESCAPE = '"', "'", "\\"
_MIN_ROWS_OF_BLOCK = 3
_MAX_ROWS_AROUND = 60
_MIN_ROWS_OF_ODD = 3
_MIN_WRAPPED = 3
_MIN_WIDTH_OF_ODD = {":": 3, " ": 3}
_DECIMAL_COMMA = re.compile(
    r"\s*[+\-]?(?:[0-9]{1,3}(?:[.'\u2019\xa0\u202f ][0-9]{3})+|[0-9]*),[0-9]+\s*[%$€£]?\s*"
)
_QUOTED = re.compile(r'"((?:[^"]|"")*)"[ ,;\t]*')
_ESCAPED_QUOTE = re.compile(r'[^\\](?:\\\\)*\\"(?!["\r\n])')


def kind_of(cell: str) -> str | None:
    """Return what a cell looks like; None for words, and for cells without a value.

    Cells with two digits or more that are neither numbers nor dates are codes: their kind is what
    is left of them when each run of digits, and each run of letters, is one character.

    >>> kind_of("$1,200"), kind_of("2019-01-31"), kind_of("MG-8769"), kind_of("a@b.org")
    ('number', 'date', 'a-9', 'address')
    """
    text = cell.strip()
    if _ADDRESS.fullmatch(text):
        return ADDRESS
    if not text or len(text) > _MAX_CHARACTERS or not _DIGIT.search(text):
        return None
    if _NUMBER.fullmatch(text):
        return NUMBER
    if _DATE.fullmatch(text):
        return DATE
    if len(_DIGIT.findall(text)) < _MIN_DIGITS_OF_A_CODE:
        return None
    return _LETTERS.sub("a", _DIGITS.sub("9", text))


def has_value(cell: str) -> bool:
    """Return whether a cell says something: it is not empty, ``n/a``, ``-``, ``**`` or the like."""
    text = cell.strip()
    return bool(_SAYS_SOMETHING.search(text)) and not is_missing_word(text) and text not in "xX"


def is_year(cell: str) -> bool:
    text = cell.strip()
    return len(text) == 4 and text.isascii() and text.isdigit() and 1700 <= int(text) <= 2100


def column_kinds(rows: Sequence[Sequence[str]], width: int) -> list[str | None]:
    """Return for each column the kind that nine tenths of its values are of, None where none is.

    At most 40 rows are looked at.
    """
    kinds: list[str | None] = [None] * width
    looked_at = rows[:_MAX_ROWS]
    for position in range(min(width, _MAX_COLUMNS)):
        kinds[position] = _kind_of_column(
            [row[position] for row in looked_at if position < len(row)]
        )
    return kinds


def _kind_of_column(cells: Sequence[str]) -> str | None:
    n_words_allowed = (1 - _MIN_ALIKE) * len(cells)
    counts: Counter[str | None] = Counter()
    for cell in cells:
        if has_value(cell):
            counts[kind_of(cell)] += 1
            if counts[None] > n_words_allowed:
                return None
    if not counts:
        return None
    kind, n = counts.most_common(1)[0]
    return kind if n >= max(2, _MIN_ALIKE * counts.total()) else None


def compare(row: Sequence[str], kinds: Sequence[str | None]) -> tuple[int, int]:
    """Return in how many columns of a kind a row's value is of that kind, and is not.

    A value with a digit over codes is neither where it has another form: codes vary.
    """
    n_alike = n_other = 0
    for cell, kind in zip(row, kinds, strict=False):
        if kind is not None and has_value(cell):
            if kind_of(cell) == kind:
                n_alike += 1
            elif kind in (NUMBER, DATE) or not _DIGIT.search(cell):
                n_other += 1
    return n_alike, n_other


def has_gaps_of_data(rows: Sequence[Sequence[str]], width: int) -> bool:
    """Return whether a cell of the first row stands for a missing value as data has them.

    The same text is below it, or another cell of the row is like the values of its column and
    none is unlike them.
    """
    gaps = [i for i in range(min(width, len(rows[0]))) if names_no_column(rows[0][i])]
    if not gaps or len(rows) < 2:
        return False
    if any(row[i] == rows[0][i] for i in gaps for row in rows[1:] if i < len(row)):
        return True
    n_alike, n_other = compare(rows[0], column_kinds(rows[1:], width))
    return n_alike > 0 and not n_other


@dataclass(frozen=True)
class Dialect:
    """The format of cells, in the terms of the standard library's `csv`.

    `quotechar` None means no quoting.
    """

    delimiter: str = ","
    quotechar: str | None = '"'
    escapechar: str | None = None
    skipinitialspace: bool = False

    def reader(self, lines: Iterable[str], *, strict: bool = False) -> Any:
        has_quotes = self.quotechar is not None
        return csv.reader(
            lines,
            delimiter=self.delimiter,
            escapechar=self.escapechar,
            skipinitialspace=self.skipinitialspace,
            quotechar=self.quotechar if has_quotes else _QUOTE,
            quoting=csv.QUOTE_MINIMAL if has_quotes else csv.QUOTE_NONE,
            strict=strict,
        )

    def rows(self, text: str, *, complete: bool = True) -> list[list[str]]:
        """Return the rows of a text that are not blank, without a last one that may be cut."""
        rows = [row for row in self.reader(io.StringIO(text, newline="")) if row]
        return rows if complete or len(rows) < 2 else rows[:-1]


def detect_dialect(
    sample: str, extension: str = "", *, complete: bool = True, delimiter: str | None = None
) -> Dialect:
    """Return how the cells of a delimited text are separated and quoted.

    A sample in which every row has the same number of cells under exactly one of the standard
    delimiters is taken at its word; so is one that is regular under the delimiter its extension
    speaks of, one that is regular but for a few shorter rows above and below, and one without
    delimiters. All other samples go to clevercsv, which tries every dialect and scores the tables
    they give (van den Burg, Nazábal, Sutton, "Wrangling messy CSV files by detecting row and type
    patterns", 2019).
    """
    if delimiter is not None:
        return _with_quoting(Dialect(delimiter), sample, complete)
    dialect = _detect_delimiter(sample, extension, complete)
    return dialect if dialect.quotechar != _QUOTE else _with_quoting(dialect, sample, complete)


def _detect_delimiter(sample: str, extension: str, complete: bool) -> Dialect:
    expected = DELIMITER_OF_EXTENSION.get(extension, ",")
    widths = {
        delimiter: _width_counts(Dialect(delimiter), sample, complete) for delimiter in DELIMITERS
    }
    regular = [d for d in DELIMITERS if len(widths[d]) == 1 and next(iter(widths[d])) > 1]
    if len(regular) > 1 and expected == "," and (decimal := _beside_commas(sample, regular)):
        return Dialect(decimal)
    if "\t" in regular and min(widths["\t"]) > min(widths[expected], default=0):
        return Dialect("\t")  # hardly a text has tabs, and most have commas
    if len(regular) == 1 or expected in regular:
        return Dialect(expected if expected in regular else regular[0])
    if (block_delimiter := _regular_within(sample, expected, complete)) is not None:
        return Dialect(block_delimiter)
    if (otherwise := _regular_otherwise(sample, complete)) is not None:
        return otherwise
    if (odd := _odd_delimiter(sample, complete)) is not None:
        return odd
    if all(set(counts) <= {1} for counts in widths.values()) and not _has_rare_delimiter(
        sample, complete
    ):
        return Dialect(expected)
    begin = sample[:_SAMPLE_CHARACTERS]
    dialect = _detect_odd(begin) or Dialect(_most_regular(widths, expected))
    if dialect == Dialect(dialect.delimiter, None):
        return _quoted_where_regular(dialect, sample, complete, is_quoted=_QUOTE in begin)
    return dialect


def are_quoted_lines(sample: str) -> bool:
    """Return whether quotation marks are around whole lines instead of cells.

    Between them all lines have as many cells, three or more, or two with marks of their own.
    """
    lines = sample.splitlines()[:_MAX_ROWS] if sample.startswith(_QUOTE) else []
    texts = [line[1].replace(_QUOTE * 2, _QUOTE) for line in map(_QUOTED.fullmatch, lines) if line]
    if len(texts) < max(_MIN_ROWS_OF_BLOCK, len(lines)):
        return False
    min_width = 2 if all(_QUOTE in text for text in texts) else 3
    for delimiter in DELIMITERS:
        rows = list(Dialect(delimiter).reader(texts))
        if {len(row) for row in rows} == {len(rows[0])} and len(rows[0]) >= min_width:
            return not any(cell.startswith(" ") for row in rows for cell in row)
    return False


def doubled_delimiter(sample: str) -> str | None:
    """Return ``::`` or ``||`` where all lines are cut by it into as many cells, three or more."""
    lines = sample.splitlines()[:_MAX_ROWS]
    for delimiter in ("::", "||"):
        n = lines[0].count(delimiter) if len(lines) >= _MIN_ROWS_OF_BLOCK else 0
        if n > 1 and all(line.count(delimiter) == n for line in lines):
            return None if "\t" in sample or 2 * n < lines[0].count("|") else delimiter
    return None


def _beside_commas(sample: str, regular: list[str]) -> str | None:
    """Return the other delimiter where all commas are those of decimal numbers."""
    for delimiter in regular:
        if delimiter == ",":
            continue
        rows = Dialect(delimiter).reader(io.StringIO(sample, newline=""))
        next(rows, None)  # the first may be a title, or names with commas
        with_comma = [cell for row in rows for cell in row if "," in cell]
        if with_comma and all(map(_DECIMAL_COMMA.fullmatch, with_comma)):
            return delimiter
    return None


def _regular_within(sample: str, expected: str, complete: bool) -> str | None:
    """Return the one delimiter under which a sample is regular but for shorter rows around it.

    These are titles above the table and notes below it: fewer rows than the table has, and none
    between its rows.
    """
    block_widths: dict[str, int] = {}
    n_rows: dict[str, int] = {}
    usual: dict[str, int] = {}
    for delimiter in DELIMITERS:
        if delimiter not in sample:
            continue
        widths = list(map(len, Dialect(delimiter).rows(sample, complete=complete)))
        width = max(widths, default=0)
        usual[delimiter] = Counter(widths).most_common(1)[0][0] if widths else 0
        n = widths.count(width)
        if width < 2 or n < _MIN_ROWS_OF_BLOCK:
            continue
        first = widths.index(width)
        n_around = len(widths) - n
        is_one_block = widths[first : first + n] == [width] * n
        # A table of two columns is no block where what is around it has a delimiter as well.
        if is_one_block and n_around <= min(_MAX_ROWS_AROUND, n if width > 2 else n // 2):
            block_widths[delimiter] = width
            n_rows[delimiter] = n
    has_commas = expected == "," and expected in block_widths
    if has_commas and (other := _beside_commas(sample, list(block_widths))) is not None:
        return other
    # A delimiter that cuts most rows into more cells is the better one, though not regular.
    best = [sign for sign, width in block_widths.items() if width >= max(usual.values())]
    # Of several, one whose block has the header too, whose names need no decimal comma.
    best = [sign for sign in best if n_rows[sign] == max(n_rows[other] for other in best)]
    if expected in best:
        return expected
    return best[0] if len(best) == 1 else None


def _regular_otherwise(sample: str, complete: bool) -> Dialect | None:
    """Return the dialect under which a sample is regular with spaces before its quotation marks.

    Or with single quotation marks. None where there is none, or no cell has such marks.
    """
    for delimiter in DELIMITERS:
        spaced = Dialect(delimiter, skipinitialspace=True)
        single = Dialect(delimiter, _SINGLE_QUOTE)
        for dialect, mark in ((spaced, f'{delimiter} "'), (single, f"{delimiter}'")):
            if sample.count(mark) >= _MIN_WRAPPED:
                widths = set(map(len, dialect.rows(sample, complete=complete)))
                if len(widths) == 1 and widths.pop() > 1:
                    return dialect
    return None


def _odd_delimiter(sample: str, complete: bool) -> Dialect | None:
    """Return a dialect that is seldom one, where it cuts all rows alike and no other does."""
    for delimiter in _ODD_DELIMITERS:
        if delimiter not in sample:
            continue
        # Columns are aligned by as many spaces as it takes.
        dialect = Dialect(delimiter, skipinitialspace=delimiter == " " and "   " in sample)
        min_width = _MIN_WIDTH_OF_ODD.get(delimiter, 2)
        rows = dialect.rows(sample, complete=complete)
        if (
            len(rows) >= _MIN_ROWS_OF_ODD
            and len(rows[0]) >= min_width
            and all(len(row) == len(rows[0]) for row in rows)
            and _are_columns(rows, delimiter)
        ):
            return dialect
    return None


def _are_columns(rows: list[list[str]], delimiter: str) -> bool:
    """Return whether cells between odd delimiters are those of a table.

    Colons are in times, addresses and URLs, and spaces between words: columns between spaces have
    numbers or dates in two columns at least. Those between colons have names above them, or none of
    these things in any row.
    """
    if not all(cell.strip() for cell in rows[0]):
        return False
    if delimiter == "#":
        return not all(row[0].endswith(" ") for row in rows[1:])
    if delimiter == ":":
        if not any(map(_DIGIT.search, rows[0])) and any(map(_DIGIT.search, rows[1])):
            return True
        joined = [":".join(row) for row in rows[1:]]
        return not any(
            re.search(r"\d:\d\d\b|://|\b[0-9a-fA-F]{2}:[0-9a-fA-F]{2}:", line) for line in joined
        )
    if delimiter == " ":
        kinds = column_kinds(rows[1:], len(rows[0]))
        n_alike, n_other = compare(rows[0], kinds)
        return sum(kind is not None for kind in kinds) >= 2 and n_other + n_alike >= 2
    return True


def _with_quoting(base: Dialect, sample: str, complete: bool) -> Dialect:
    changed = base
    if _ESCAPE in sample and _escapes_quotes(base, sample, complete):
        changed = replace(base, escapechar=_ESCAPE)
    elif _SINGLE_QUOTE in sample and _wraps_cells(base, sample):
        changed = replace(base, quotechar=_SINGLE_QUOTE)
    elif f'{base.delimiter} "' in sample and base.delimiter != " ":
        cells = (cell for row in base.rows(sample) for cell in row)
        if any(cell.startswith(' "') and cell.endswith('"') for cell in cells):
            changed = replace(base, skipinitialspace=True)
    if changed is base or _n_alike(changed, sample, complete) < _n_alike(base, sample, complete):
        return base
    return changed


def _escapes_quotes(base: Dialect, sample: str, complete: bool) -> bool:
    """Return whether backslashes escape quotation marks, and are no ends of cells such as folders.

    One will do where a mark would stand within a quoted cell otherwise.
    """
    n_escaped = len(_ESCAPED_QUOTE.findall(sample))
    are_sound = [
        _is_sound(dialect, sample, complete)
        for dialect in ((replace(base, escapechar=_ESCAPE), base) if n_escaped else ())
    ]
    return n_escaped > 0 and (are_sound[0] - are_sound[1] + (n_escaped > 1)) > 0


def _is_sound(dialect: Dialect, sample: str, complete: bool) -> bool:
    """Return whether each quotation mark that closes a cell is at its end."""
    lines = io.StringIO(sample, newline="")
    try:
        for _ in dialect.reader(lines, strict=True):
            pass
    except csv.Error:
        return not complete and next(lines, None) is None  # the last cell may be cut
    return True


def _n_alike(dialect: Dialect, sample: str, complete: bool) -> int:
    widths = Counter(map(len, dialect.rows(sample, complete=complete)))
    return max(widths.values(), default=0)


def _wraps_cells(dialect: Dialect, sample: str) -> bool:
    """Return whether cells begin and end with a single quotation mark, in half of all lines.

    But for one, each cell that begins with one must end with one, before a delimiter or the end of
    its line; and no cell may begin with a double one.
    """
    cut = re.escape(dialect.delimiter)
    if sample.count(f"{dialect.delimiter}'") + sample.count("\n'") < _MIN_WRAPPED:
        return False
    if re.search(rf'(?:^|{cut})"', sample, re.MULTILINE):
        return False
    n_begun = n_whole = n_lines_with = n_lines = 0
    begun, whole = (
        re.compile(rf"(?:^|{cut})'"),
        re.compile(rf"(?:^|{cut})'(?:[^']|'')*'\s*(?={cut}|$)"),
    )
    for line in sample.splitlines():
        n = len(whole.findall(line))
        n_begun, n_whole = n_begun + len(begun.findall(line)), n_whole + n
        n_lines_with, n_lines = n_lines_with + (n > 0), n_lines + bool(line)
    return n_whole >= _MIN_WRAPPED and n_whole >= n_begun - 1 and 2 * n_lines_with >= n_lines


def _has_rare_delimiter(sample: str, complete: bool) -> bool:
    """Return whether most rows are cut alike by a delimiter that only clevercsv looks for."""
    for delimiter in _RARE_DELIMITERS:
        if delimiter in sample:
            widths = _width_counts(Dialect(delimiter), sample, complete)
            if widths and widths.most_common(1)[0][0] > 1:
                return True
    return False


def _quoted_where_regular(
    dialect: Dialect, sample: str, complete: bool, *, is_quoted: bool
) -> Dialect:
    """Return a dialect with quoting if more rows are alike with it.

    clevercsv finds no quoting where there is no quotation mark in what it has seen, and where a
    cell opens with one by mistake. In the former case as many rows alike are enough: where there
    are no marks later either, cells are quoted as in most files.
    """
    quoted = Dialect(dialect.delimiter)
    n_alike = [
        max(_width_counts(other, sample, complete).values(), default=0)
        for other in (quoted, Dialect(dialect.delimiter, None))
    ]
    return quoted if n_alike[0] + (not is_quoted) > n_alike[1] else dialect


def _width_counts(dialect: Dialect, sample: str, complete: bool) -> Counter[int]:
    """Count the rows of a sample by their number of cells, blank rows left out.

    Without the delimiter every row has one cell; how many rows there are then does not matter.
    """
    if dialect.delimiter not in sample:
        return Counter([1])
    return Counter(map(len, dialect.rows(sample, complete=complete)))


def _detect_odd(sample: str) -> Dialect | None:
    from clevercsv.detect import Detector  # takes half a second to import, and few files need it

    try:
        dialect = Detector().detect(sample, delimiters=[*DELIMITERS, *_RARE_DELIMITERS])
    except Exception:  # what an odd sample makes it raise is its own affair: the fallback serves
        return None
    if dialect is None or not dialect.delimiter:
        return None
    return Dialect(dialect.delimiter, dialect.quotechar or None, dialect.escapechar or None)


def _most_regular(widths: dict[str, Counter[int]], expected: str) -> str:
    """Return the delimiter under which most rows have the same width above 1.

    If there is none, the expected delimiter is returned.
    """

    def score(delimiter: str) -> tuple[int, bool]:
        counts = widths[delimiter]
        return max(
            (n for width, n in counts.items() if width > 1), default=0
        ), delimiter == expected

    return max(DELIMITERS, key=score)
