"""Whether a text is a table at all: for files whose extension does not say so."""

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence

from pexeso.errors import TableReadError
from pexeso.lake.readers.layout.dialect import Dialect

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
)
_SAMPLE_OF_BEGIN = 1 << 10
_LONGEST_MARK = max(len(mark) for mark, _ in _DOCUMENTS)
_GAP = re.compile(r"(?<=\S)[ ]{2,}(?=\S)")


def require_no_document(shown: str, sample: str) -> None:
    """Raise TableReadError if a text begins as a document of another kind does.

    Portals answer with a page that says what went wrong, and it is saved under the name of the
    table.

    Examples
    --------
    >>> require_no_document("t.csv", "<!DOCTYPE html><p>Not found</p>")
    Traceback (most recent call last):
    pexeso.errors.TableReadError: t.csv holds HTML, not delimited text; download it again as CSV.
    """
    begin = sample[:_SAMPLE_OF_BEGIN].lstrip("\ufeff \t\r\n")[:_LONGEST_MARK].lower()
    for mark, kind in _DOCUMENTS:
        if begin.startswith(mark):
            raise TableReadError(
                f"{shown} holds {kind}, not delimited text; download it again as CSV."
            )


def require_table(shown: str, sample: str, dialect: Dialect, *, complete: bool = True) -> None:
    """Raise TableReadError if a text is not clearly a delimited table.

    It is one where at least four fifths of its rows have the same number of cells, two or more.
    """
    reader = csv.reader(io.StringIO(sample, newline=""), **dialect.csv_options())
    rows = [row for row in reader if row]
    if not complete and len(rows) > 1:
        rows.pop()
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
