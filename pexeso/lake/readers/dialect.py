"""Detection of the dialect of delimited text.

Perfectly regular samples are recognised by a cheap test, all others by clevercsv.
"""

import csv
import io
from collections import Counter
from dataclasses import dataclass

DELIMITERS = (",", "\t", ";", "|")
"""Delimiters that the cheap test tries; clevercsv may also find ``^`` and ``~``.

Not colons: times and addresses are full of them.
"""

DELIMITER_OF_EXTENSION = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".psv": "|"}
"""The delimiter that a file's extension speaks of: taken wherever the text is regular under it."""

_SAMPLE_CHARACTERS = 8 << 10
_RARE_DELIMITERS = ("^", "~")
_QUOTE = '"'


@dataclass(frozen=True)
class Dialect:
    """The format of cells, in the terms of the standard library's `csv`.

    `quotechar` None means no quoting.
    """

    delimiter: str = ","
    quotechar: str | None = '"'
    escapechar: str | None = None

    def csv_options(self) -> dict[str, object]:
        """Return the keyword arguments for `csv.reader`."""
        if self.quotechar is None:
            return {
                "delimiter": self.delimiter,
                "quoting": csv.QUOTE_NONE,
                "escapechar": self.escapechar,
            }
        return {
            "delimiter": self.delimiter,
            "quotechar": self.quotechar,
            "escapechar": self.escapechar,
        }


def detect_dialect(sample: str, extension: str = "", *, complete: bool = True) -> Dialect:
    r"""Return how the cells of a delimited text are separated and quoted.

    A sample in which every row has the same number of cells under exactly one of the standard
    delimiters is taken at its word; so is one that is regular under the delimiter its extension
    speaks of, and one without delimiters. All other samples go to clevercsv, which tries every
    dialect and scores the tables they give (van den Burg, Nazábal, Sutton, "Wrangling messy CSV
    files by detecting row and type patterns", 2019).

    Parameters
    ----------
    sample
        The start of the text; of longer samples the first rows are used (8 Ki characters for
        clevercsv).
    extension
        Lower case, with its dot.
    complete
        False where the text goes on after the sample: its last row is then cut and not counted.
    """
    expected = DELIMITER_OF_EXTENSION.get(extension, ",")
    widths = {delimiter: _row_widths(sample, delimiter, complete) for delimiter in DELIMITERS}
    regular = [d for d in DELIMITERS if len(widths[d]) == 1 and next(iter(widths[d])) > 1]
    if len(regular) == 1 or expected in regular:
        return Dialect(expected if expected in regular else regular[0])
    if all(set(counts) <= {1} for counts in widths.values()) and not _has_rare_delimiter(
        sample, complete
    ):
        return Dialect(expected)
    begin = sample[:_SAMPLE_CHARACTERS]
    found = _detect_odd(begin) or Dialect(_most_regular(widths, expected))
    if found == Dialect(found.delimiter, None) and _QUOTE not in begin:
        return _quoted_where_regular(found, sample, complete)
    return found


def _has_rare_delimiter(sample: str, complete: bool) -> bool:
    """Return whether most rows are cut alike by a delimiter that only clevercsv looks for."""
    for delimiter in _RARE_DELIMITERS:
        if delimiter in sample:
            widths = _row_widths(sample, delimiter, complete)
            if widths and widths.most_common(1)[0][0] > 1:
                return True
    return False


def _quoted_where_regular(found: Dialect, sample: str, complete: bool) -> Dialect:
    """Return a dialect with quoting, unless more rows are alike without it.

    Where no quotation mark is in what clevercsv has seen, it finds no quoting. Later marks decide;
    where there are none in the sample either, cells are quoted as in most files.
    """
    quoted = Dialect(found.delimiter)
    n_alike = [
        max(_row_widths(sample, found.delimiter, complete, each).values(), default=0)
        for each in (quoted.quotechar, None)
    ]
    return quoted if n_alike[0] >= n_alike[1] else found


def _row_widths(
    sample: str, delimiter: str, complete: bool, quotechar: str | None = _QUOTE
) -> Counter[int]:
    """Count the rows of a sample by their number of cells, blank rows left out.

    Without the delimiter every row has one cell; how many rows there are then does not matter.
    """
    if delimiter not in sample:
        return Counter([1])
    options = Dialect(delimiter, quotechar).csv_options()
    widths = [len(row) for row in csv.reader(io.StringIO(sample, newline=""), **options) if row]
    if not complete and len(widths) > 1:
        widths.pop()
    return Counter(widths)


def _detect_odd(sample: str) -> Dialect | None:
    from clevercsv.detect import Detector  # takes half a second to import, and few files need it

    try:
        found = Detector().detect(sample, delimiters=[*DELIMITERS, *_RARE_DELIMITERS])
    except Exception:  # what an odd sample makes it raise is its own affair: the fallback serves
        return None
    if found is None or not found.delimiter:
        return None
    return Dialect(found.delimiter, found.quotechar or None, found.escapechar or None)


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
